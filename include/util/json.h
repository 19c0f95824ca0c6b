/*
 * JSON text from outside.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * json-c does the parsing; this adds what strict readers need besides:
 * duplicate keys, numbers beyond 64 bits, NUL characters, NaN and Infinity
 * are refused, and depth and length are limited.
 */
#ifndef UTIL_JSON_H
#define UTIL_JSON_H

#include <glib.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct json_object JsonValue;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JsonValue, json_object_put)

enum {
    JSON_DEPTH_MAX = 128,               /* arrays and objects within each other */
    JSON_TEXT_MAX = 4 * 1024 * 1024,    /* bytes */
};

/*
 * Exactly one value, blanks around it allowed. The caller owns the result.
 * NULL and *errp set on failure; note that the value null is NULL as well,
 * without an error.
 */
JsonValue *json_parse(const char *text, size_t len, GError **errp);

/*
 * The integer @value, if it is one and fits. (json-c's own getters clamp and
 * convert.)
 */
bool json_get_u64(JsonValue *value, uint64_t *out);
bool json_get_i64(JsonValue *value, int64_t *out);

/*
 * The string @value, borrowed, or NULL if it is none or contains a NUL
 * character.
 */
const char *json_get_str(JsonValue *value);

/* "integer", "string", ..., as messages name a value's type. */
const char *json_type_name(JsonValue *value);

/* The compact text of a value. The caller frees it. */
char *json_text(JsonValue *value);

/* The message for a parameter that should be @expected ("integer", ...). */
void json_err_type(GError **errp, const char *param, const char *expected,
                   JsonValue *value);

#endif
