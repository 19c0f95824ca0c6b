/*
 * The argument of an option: key=value,... or JSON.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/keyval.h"

#include <string.h>

#include "util/err.h"
#include "util/suggest.h"

/*
 * The text up to a single comma or the end, with doubled commas made one.
 * Leaves *text behind that comma.
 */
static char *take_value(const char **text)
{
    GString *value = g_string_new(NULL);
    const char *p = *text;

    for (; *p != '\0'; p++) {
        if (*p == ',') {
            p++;
            if (*p != ',') {
                break;
            }
        }
        g_string_append_c(value, *p);
    }
    *text = p;
    return g_string_free(value, FALSE);
}

/* Is this part of a key a name or an index? */
static bool part_is_sound(const char *part)
{
    size_t len = strlen(part);

    if (len == 0 || len > KEYVAL_PART_MAX) {
        return false;
    }
    if (g_ascii_isdigit(part[0])) {
        return part[strspn(part, "0123456789")] == '\0';
    }
    for (const char *p = part; *p != '\0'; p++) {
        if (!g_ascii_isalnum(*p) && *p != '-' && *p != '_') {
            return false;
        }
    }
    return true;
}

static bool key_is_sound(char **parts, const char *key, GError **errp)
{
    guint count = g_strv_length(parts);

    if (count > JSON_DEPTH_MAX - 2) {
        err_set(errp, "Parameter '%.40s...' is nested deeper than %d", key, JSON_DEPTH_MAX - 2);
        return false;
    }
    /* "".split is no part at all */
    if (count > 0 && !g_ascii_isdigit(parts[0][0])) {
        guint i = 0;

        while (i < count && part_is_sound(parts[i])) {
            i++;
        }
        if (i == count) {
            return true;
        }
    }
    err_set(errp, "Invalid parameter '%.200s'", key);
    return false;
}

static void refuse_mixed(char **parts, int upto, GError **errp)
{
    g_autofree char *name = NULL;
    char *rest = parts[upto + 1];

    parts[upto + 1] = NULL;
    name = g_strjoinv(".", parts);
    parts[upto + 1] = rest;
    err_set(errp, "Parameters '%s.*' used inconsistently", name);
}

/* Put @value where @parts say; objects on the way are made. */
static bool insert(JsonValue *options, char **parts, const char *value, GError **errp)
{
    JsonValue *at = options;
    JsonValue *next;
    int i;

    for (i = 0; parts[i + 1]; i++) {
        if (!json_object_object_get_ex(at, parts[i], &next)) {
            next = json_object_new_object();
            json_object_object_add(at, parts[i], next);
        }
        if (!json_object_is_type(next, json_type_object)) {
            refuse_mixed(parts, i, errp);
            return false;
        }
        at = next;
    }
    if (json_object_object_get_ex(at, parts[i], &next) &&
        json_object_is_type(next, json_type_object)) {
        refuse_mixed(parts, i, errp);
        return false;
    }
    json_object_object_add(at, parts[i], json_object_new_string(value));
    return true;
}

/*
 * An object all of whose keys are numbers as an array; @value itself when
 * its keys are names. NULL with *errp set when they are mixed or have gaps.
 */
static JsonValue *array_from_object(JsonValue *value, const char *path, GError **errp)
{
    int count = json_object_object_length(value);
    g_autoptr(JsonValue) array = NULL;
    int numbers = 0;

    json_object_object_foreach(value, key, member) {
        (void)member;
        numbers += g_ascii_isdigit(key[0]) != 0;
    }
    if (numbers == 0) {
        return json_object_get(value);
    }
    if (numbers != count) {
        err_set(errp, "Parameters '%s.*' used inconsistently", path);
        return NULL;
    }
    array = json_object_new_array_ext(count);
    for (int i = 0; i < count; i++) {
        g_autofree char *index = g_strdup_printf("%d", i);
        JsonValue *element;

        if (!json_object_object_get_ex(value, index, &element)) {
            err_set(errp, "Parameter '%s.%d' missing", path, i);
            return NULL;
        }
        json_object_array_add(array, json_object_get(element));
    }
    return g_steal_pointer(&array);
}

/* Make arrays of all that are meant so below @object, innermost first. */
static bool make_arrays(JsonValue *object, const char *path, GError **errp)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);

    json_object_object_foreach(object, key, member) {
        if (json_object_is_type(member, json_type_object)) {
            g_ptr_array_add(keys, g_strdup(key));
        }
    }
    for (guint i = 0; i < keys->len; i++) {
        const char *name = g_ptr_array_index(keys, i);
        JsonValue *value = json_object_object_get(object, name);
        g_autofree char *below = g_strdup_printf("%s%s%s", path, path[0] ? "." : "", name);

        if (!make_arrays(value, below, errp)) {
            return false;
        }
        value = array_from_object(value, below, errp);
        if (!value) {
            return false;
        }
        json_object_object_add(object, name, value);
    }
    return true;
}

static bool is_help(const char *text, size_t len)
{
    return (len == 4 && strncmp(text, "help", 4) == 0) || (len == 1 && text[0] == '?');
}

/* An item that is a lone word: help, the implied key's value, or a switch. */
static bool take_lone_word(Keyval *kv, const char **text, size_t len,
                           const char *implied_key, unsigned flags, GError **errp)
{
    g_autofree char *word = NULL;
    const char *key;
    bool off;

    if (is_help(*text, len)) {
        kv->help = true;
        *text += len + ((*text)[len] == ',');
        return true;
    }
    if (implied_key) {
        word = take_value(text);
        json_object_object_add(kv->options, implied_key, json_object_new_string(word));
        return true;
    }
    word = g_strndup(*text, len);
    if (len == 0) {
        err_set(errp, "Expected parameter before ','");
        return false;
    }
    if (!(flags & KEYVAL_SHORT_BOOL) || !part_is_sound(word)) {
        err_set(errp, "Expected '=' after parameter '%.200s'", word);
        return false;
    }
    off = g_str_has_prefix(word, "no") && word[2] != '\0';
    key = off ? word + 2 : word;
    report_warning("short-form boolean option '%s' deprecated; please use %s=%s instead",
                   word, key, off ? "off" : "on");
    json_object_object_add(kv->options, key, json_object_new_string(off ? "off" : "on"));
    *text += len + ((*text)[len] == ',');
    return true;
}

static bool take_item(Keyval *kv, const char **text, const char *implied_key,
                      unsigned flags, GError **errp)
{
    size_t len = strcspn(*text, "=,");
    g_autofree char *key = NULL;
    g_autofree char *value = NULL;
    g_auto(GStrv) parts = NULL;

    if ((*text)[len] != '=') {
        return take_lone_word(kv, text, len, implied_key, flags, errp);
    }
    key = g_strndup(*text, len);
    parts = g_strsplit(key, ".", -1);
    if (!key_is_sound(parts, key, errp)) {
        return false;
    }
    *text += len + 1;
    value = take_value(text);
    return insert(kv->options, parts, value, errp);
}

static bool parse_json(Keyval *kv, const char *text, GError **errp)
{
    GError *local = NULL;

    kv->options = json_parse(text, strlen(text), &local);
    if (local) {
        g_propagate_error(errp, local);
        return false;
    }
    g_assert(json_object_is_type(kv->options, json_type_object));    /* it began with '{' */
    return true;
}

bool keyval_parse(Keyval *kv, const char *text, const char *implied_key, unsigned flags,
                  GError **errp)
{
    *kv = (Keyval){ .texts = true };
    if ((flags & KEYVAL_JSON) && text[0] == '{') {
        kv->texts = false;
        return parse_json(kv, text, errp);
    }
    if (strlen(text) > JSON_TEXT_MAX) {
        err_set(errp, "Option text is longer than %d bytes", JSON_TEXT_MAX);
        return false;
    }
    kv->options = json_object_new_object();
    while (*text != '\0') {
        if (!take_item(kv, &text, implied_key, flags, errp)) {
            keyval_clear(kv);
            return false;
        }
        implied_key = NULL;
    }
    if (!make_arrays(kv->options, "", errp)) {
        keyval_clear(kv);
        return false;
    }
    return true;
}

void keyval_clear(Keyval *kv)
{
    json_object_put(kv->options);
    *kv = (Keyval){ 0 };
}

const char *keyval_get(const Keyval *kv, const char *key)
{
    JsonValue *value;

    if (!json_object_object_get_ex(kv->options, key, &value)) {
        return NULL;
    }
    return json_get_str(value);
}

char *keyval_take(Keyval *kv, const char *key)
{
    char *value = g_strdup(keyval_get(kv, key));

    if (value) {
        json_object_object_del(kv->options, key);
    }
    return value;
}

bool keyval_check_empty(const Keyval *kv, const char *const *known, GError **errp)
{
    json_object_object_foreach(kv->options, key, value) {
        Suggest near;

        (void)value;
        err_set(errp, "Invalid parameter '%s'", key);
        suggest_start(&near, key);
        for (; known && *known; known++) {
            suggest_offer(&near, *known);
        }
        suggest_append(&near, errp);
        return false;
    }
    return true;
}
