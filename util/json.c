/*
 * JSON text from outside.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * json-c 0.16 in strict mode still takes NaN, -01, "1.", keys in single
 * quotes, overlong UTF-8, clamps integers, truncates keys at a NUL and keeps the last of
 * several equal keys. So once
 * it has accepted a text, and its structure is thereby known to be sound, a
 * scanner walks over the text once more and refuses these.
 */
#include "util/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"

typedef struct Scanner {
    const char *text;
    const char *p;
    const char *end;
    int depth;
    GHashTable *keys[JSON_DEPTH_MAX + 1];   /* of the object at each depth */
} Scanner;

/* One string; @p behind the opening quote on entry, behind the closing after. */
static bool scan_string(Scanner *s, GError **errp)
{
    for (; s->p < s->end && *s->p != '"'; s->p++) {
        if ((unsigned char)*s->p < 0x20) {
            err_set(errp, "control character in string at byte %td", s->p - s->text);
            return false;
        }
        if (*s->p != '\\') {
            continue;
        }
        s->p++;
        if (s->end - s->p > 4 && strncmp(s->p, "u0000", 5) == 0) {
            err_set(errp, "NUL character in string at byte %td", s->p - 1 - s->text);
            return false;
        }
    }
    s->p++;
    return true;
}

/* What the string from its opening quote @start to behind its closing one means. */
static char *unescape(const char *start, const char *end)
{
    g_autofree char *copy = g_strndup(start, end - start);
    g_autoptr(JsonValue) value = NULL;

    if (!strchr(copy, '\\')) {
        return g_strndup(start + 1, end - start - 2);
    }
    value = json_tokener_parse(copy);
    return g_strdup(value ? json_object_get_string(value) : copy);
}

/* A string that is a member's name: must be new in its object. */
static bool scan_key(Scanner *s, const char *start, GError **errp)
{
    GHashTable **keys = &s->keys[s->depth];
    char *key = unescape(start, s->p);

    if (!*keys) {
        *keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    }
    if (g_hash_table_contains(*keys, key)) {
        err_set(errp, "duplicate key '%s'", key);
        g_free(key);
        return false;
    }
    g_hash_table_add(*keys, key);
    return true;
}

static const char *skip_digits(const char *p)
{
    while (g_ascii_isdigit(*p)) {
        p++;
    }
    return p;
}

/* RFC 8259 number grammar, and the value must fit. */
static bool number_is_sound(const char *word)
{
    const char *p = word + (*word == '-');
    bool integer = true;

    if (!g_ascii_isdigit(*p) || (*p == '0' && g_ascii_isdigit(p[1]))) {
        return false;
    }
    p = skip_digits(p);
    if (*p == '.') {
        integer = false;
        if (!g_ascii_isdigit(p[1])) {
            return false;
        }
        p = skip_digits(p + 1);
    }
    if (*p == 'e' || *p == 'E') {
        integer = false;
        p += 1 + (p[1] == '+' || p[1] == '-');
        if (!g_ascii_isdigit(*p)) {
            return false;
        }
        p = skip_digits(p);
    }
    if (*p != '\0') {
        return false;
    }
    errno = 0;
    if (!integer) {
        return isfinite(g_ascii_strtod(word, NULL));
    }
    if (*word == '-') {
        (void)strtoll(word, NULL, 10);
    } else {
        (void)strtoull(word, NULL, 10);
    }
    return errno == 0;
}

/* A number or one of the three literals. */
static bool scan_word(Scanner *s, GError **errp)
{
    const char *start = s->p;
    g_autofree char *word = NULL;

    while (s->p < s->end && !strchr(" \t\r\n,:[]{}", *s->p)) {
        s->p++;
    }
    word = g_strndup(start, s->p - start);
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0 ||
        strcmp(word, "null") == 0 || number_is_sound(word)) {
        return true;
    }
    err_set(errp, "invalid or too large word '%.40s' at byte %td", word, start - s->text);
    return false;
}

/* Is the string that was just read followed by a colon? */
static bool is_key(const Scanner *s)
{
    const char *p = s->p;

    while (p < s->end && strchr(" \t\r\n", *p)) {
        p++;
    }
    return p < s->end && *p == ':';
}

static bool scan_token(Scanner *s, GError **errp)
{
    const char *start = s->p;

    switch (*s->p) {
    case ' ': case '\t': case '\r': case '\n': case ',': case ':':
        s->p++;
        return true;
    case '{': case '[':
        s->depth++;
        g_assert(s->depth <= JSON_DEPTH_MAX);   /* json-c has checked */
        s->p++;
        return true;
    case '}': case ']':
        g_clear_pointer(&s->keys[s->depth], g_hash_table_destroy);
        s->depth--;
        g_assert(s->depth >= 0);
        s->p++;
        return true;
    case '"':
        s->p++;
        if (!scan_string(s, errp)) {
            return false;
        }
        return !is_key(s) || scan_key(s, start, errp);
    default:
        return scan_word(s, errp);
    }
}

static bool scan_text(const char *text, size_t len, GError **errp)
{
    Scanner s = { .text = text, .p = text, .end = text + len };
    bool ok = true;

    while (ok && s.p < s.end) {
        ok = scan_token(&s, errp);
    }
    for (int i = 0; i <= JSON_DEPTH_MAX; i++) {
        g_clear_pointer(&s.keys[i], g_hash_table_destroy);
    }
    return ok;
}

static JsonValue *parse_value(struct json_tokener *tok, const char *text, size_t len,
                              GError **errp)
{
    g_autoptr(JsonValue) value = json_tokener_parse_ex(tok, text, (int)len);
    enum json_tokener_error status = json_tokener_get_error(tok);

    if (status == json_tokener_continue) {
        /* a number at the very end is complete only now */
        value = json_tokener_parse_ex(tok, "", 1);
        status = json_tokener_get_error(tok);
        if (status == json_tokener_continue) {
            status = json_tokener_error_parse_eof;
        }
    } else if (status == json_tokener_success && json_tokener_get_parse_end(tok) != len) {
        status = json_tokener_error_parse_unexpected;
    }
    if (status == json_tokener_success) {
        return g_steal_pointer(&value);
    }
    if (status == json_tokener_error_depth) {
        err_set(errp, "JSON parse error, nested deeper than %d", JSON_DEPTH_MAX);
    } else {
        err_set(errp, "JSON parse error, %s at byte %zu", json_tokener_error_desc(status),
                json_tokener_get_parse_end(tok));
    }
    return NULL;
}

JsonValue *json_parse(const char *text, size_t len, GError **errp)
{
    g_autoptr(JsonValue) value = NULL;
    g_autoptr(GError) local = NULL;
    struct json_tokener *tok;

    if (len > JSON_TEXT_MAX) {
        err_set(errp, "JSON text is longer than %d bytes", JSON_TEXT_MAX);
        return NULL;
    }
    if (memchr(text, '\0', len)) {
        err_set(errp, "JSON parse error, NUL character");
        return NULL;
    }
    if (!g_utf8_validate(text, (gssize)len, NULL)) {
        err_set(errp, "JSON parse error, invalid UTF-8");
        return NULL;
    }
    while (len > 0 && strchr(" \t\r\n", text[len - 1])) {
        len--;
    }
    tok = json_tokener_new_ex(JSON_DEPTH_MAX);
    if (!tok) {
        err_set_errno(errp, ENOMEM, "JSON parser");
        return NULL;
    }
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
    value = parse_value(tok, text, len, &local);
    json_tokener_free(tok);
    if (!local && !scan_text(text, len, &local)) {
        err_prepend(&local, "JSON parse error, ");
    }
    if (local) {
        g_propagate_error(errp, g_steal_pointer(&local));
        return NULL;
    }
    return g_steal_pointer(&value);
}

bool json_get_u64(JsonValue *value, uint64_t *out)
{
    if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0) {
        return false;
    }
    *out = json_object_get_uint64(value);
    return true;
}

bool json_get_i64(JsonValue *value, int64_t *out)
{
    if (!json_object_is_type(value, json_type_int) ||
        (json_object_get_int64(value) >= 0 && json_object_get_uint64(value) > INT64_MAX)) {
        return false;
    }
    *out = json_object_get_int64(value);
    return true;
}

const char *json_get_str(JsonValue *value)
{
    const char *text;

    if (!json_object_is_type(value, json_type_string)) {
        return NULL;
    }
    text = json_object_get_string(value);
    return strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

const char *json_type_name(JsonValue *value)
{
    switch (json_object_get_type(value)) {
    case json_type_null:
        return "null";
    case json_type_boolean:
        return "boolean";
    case json_type_int:
        return "integer";
    case json_type_double:
        return "number";
    case json_type_string:
        return "string";
    case json_type_array:
        return "array";
    case json_type_object:
        return "object";
    }
    return "unknown";
}

char *json_text(JsonValue *value)
{
    return g_strdup(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                   JSON_C_TO_STRING_NOSLASHESCAPE));
}

void json_err_type(GError **errp, const char *param, const char *expected, JsonValue *value)
{
    err_set(errp, "Invalid parameter type for '%s', expected: %s (got %s)", param, expected,
            json_type_name(value));
}
