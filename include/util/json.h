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
#include <stddef.h>

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

/* "integer", "string", ..., as messages name a value's type. */
const char *json_type_name(JsonValue *value);

/* The compact text of a value. The caller frees it. */
char *json_text(JsonValue *value);

#endif
