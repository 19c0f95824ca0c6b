/*
 * JSON to C values, as the type tables say.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qapi/qapi.h"

#include <math.h>
#include <string.h>

#include "qapi-int.h"
#include "util/err.h"
#include "util/scalar.h"
#include "util/suggest.h"

typedef struct Reader {
    bool texts;                 /* leaves are strings, from key=value */
    GString *path;              /* of the value being read, "file.filename" */
    int depth;
} Reader;

/* Fills what a slot in a zeroed struct holds; false leaves it good to free. */
static bool read_slot(Reader *r, const QapiType *type, JsonValue *json, void *slot,
                      GError **errp);

static const char *param(const Reader *r)
{
    return r->path->len > 0 ? r->path->str : "argument";
}

static gsize path_push(Reader *r, const char *name)
{
    gsize before = r->path->len;

    g_string_append_printf(r->path, "%s%s", before > 0 ? "." : "", name);
    return before;
}

static void path_pop(Reader *r, gsize before)
{
    g_string_truncate(r->path, before);
}

/* ---- scalars --------------------------------------------------------------- */

static const char *json_name_of(const QapiType *type)
{
    switch (type->kind) {
    case QAPI_BOOL:
        return "boolean";
    case QAPI_INT:
    case QAPI_UINT:
    case QAPI_SIZE:
        return "integer";
    case QAPI_NUMBER:
        return "number";
    case QAPI_STR:
    case QAPI_ENUM:
        return "string";
    case QAPI_LIST:
        return "array";
    case QAPI_OBJECT:
        return "object";
    case QAPI_ANY:
    case QAPI_ALTERNATE:
        break;
    }
    return type->name;
}

static bool wrong_type(Reader *r, const QapiType *type, JsonValue *json, GError **errp)
{
    json_err_type(errp, param(r), json_name_of(type), json);
    return false;
}

static void store_integer(const QapiType *type, uint64_t bits, void *slot)
{
    switch (type->size) {
    case 1:
        *(uint8_t *)slot = (uint8_t)bits;
        break;
    case 2:
        *(uint16_t *)slot = (uint16_t)bits;
        break;
    case 4:
        *(uint32_t *)slot = (uint32_t)bits;
        break;
    default:
        *(uint64_t *)slot = bits;
        break;
    }
}

static bool parse_integer(Reader *r, const QapiType *type, JsonValue *json, uint64_t *bits)
{
    const char *text = r->texts ? json_get_str(json) : NULL;
    int64_t i;
    uint64_t u;
    bool ok;

    if (type->kind == QAPI_INT) {
        ok = r->texts ? scalar_parse_i64(text, &i) : json_get_i64(json, &i);
        *bits = ok ? (uint64_t)i : 0;
        return ok && i >= type->min && (i < 0 || (uint64_t)i <= type->max);
    }
    if (!r->texts) {
        ok = json_get_u64(json, &u);
    } else if (type->kind == QAPI_SIZE) {
        ok = scalar_parse_size(text, 'B', &u);
    } else {
        ok = scalar_parse_u64(text, &u);
    }
    *bits = ok ? u : 0;
    return ok && u <= type->max;
}

static bool read_integer(Reader *r, const QapiType *type, JsonValue *json, void *slot,
                         GError **errp)
{
    uint64_t bits;

    if (r->texts ? !json_get_str(json) : !json_object_is_type(json, json_type_int)) {
        return wrong_type(r, type, json, errp);
    }
    if (!parse_integer(r, type, json, &bits)) {
        const char *given = json_object_get_string(json);

        if (type->kind == QAPI_SIZE) {
            scalar_err_size(errp, param(r), type->min, type->max, given);
        } else {
            scalar_err_number(errp, param(r), type->min, type->max, given);
        }
        return false;
    }
    store_integer(type, bits, slot);
    return true;
}

static bool read_bool(Reader *r, const QapiType *type, JsonValue *json, void *slot,
                      GError **errp)
{
    if (r->texts && json_get_str(json)) {
        if (!scalar_parse_bool(json_get_str(json), slot)) {
            scalar_err_bool(errp, param(r), json_get_str(json));
            return false;
        }
        return true;
    }
    if (r->texts || !json_object_is_type(json, json_type_boolean)) {
        return wrong_type(r, type, json, errp);
    }
    *(bool *)slot = json_object_get_boolean(json);
    return true;
}

static bool read_number(Reader *r, const QapiType *type, JsonValue *json, void *slot,
                        GError **errp)
{
    const char *text = r->texts ? json_get_str(json) : NULL;
    double d;
    char *end;

    if (text) {
        d = g_ascii_strtod(text, &end);
        if (end == text || *end != '\0' || !isfinite(d) || g_ascii_isspace(text[0])) {
            err_set(errp, "Parameter '%s' expects a number, not '%.200s'", param(r), text);
            return false;
        }
    } else if (!r->texts && (json_object_is_type(json, json_type_double) ||
                             json_object_is_type(json, json_type_int))) {
        d = json_object_get_double(json);
    } else {
        return wrong_type(r, type, json, errp);
    }
    *(double *)slot = d;
    return true;
}

static bool read_str(Reader *r, const QapiType *type, JsonValue *json, void *slot,
                     GError **errp)
{
    const char *text = json_get_str(json);

    if (!text) {
        return wrong_type(r, type, json, errp);
    }
    *(char **)slot = g_strdup(text);
    return true;
}

static bool read_enum(Reader *r, const QapiType *type, JsonValue *json, void *slot,
                      GError **errp)
{
    const char *text = json_get_str(json);
    int value;

    if (!text) {
        return wrong_type(r, type, json, errp);
    }
    value = enum_parse(type->names, param(r), text, errp);
    if (value < 0) {
        return false;
    }
    *(int *)slot = value;
    return true;
}

/* ---- structs and unions ------------------------------------------------------ */

static const QapiMember *member_find(const QapiType *type, const char *name)
{
    for (size_t i = 0; type && i < type->member_count; i++) {
        if (strcmp(type->members[i].name, name) == 0) {
            return &type->members[i];
        }
    }
    return NULL;
}

static void offer_members(const QapiType *type, Suggest *near)
{
    for (size_t i = 0; type && i < type->member_count; i++) {
        suggest_offer(near, type->members[i].name);
    }
}

/* Every key of @json must be a member of @type or, for a union, @branch. */
static bool check_keys(Reader *r, const QapiType *type, const QapiType *branch,
                       JsonValue *json, GError **errp)
{
    json_object_object_foreach(json, key, value) {
        Suggest near;
        gsize before;

        (void)value;
        if (member_find(type, key) || member_find(branch, key)) {
            continue;
        }
        before = path_push(r, key);
        err_set(errp, "Parameter '%.200s' is unexpected", r->path->str);
        path_pop(r, before);
        suggest_start(&near, key);
        offer_members(type, &near);
        offer_members(branch, &near);
        suggest_append(&near, errp);
        return false;
    }
    return true;
}

static bool read_member(Reader *r, const QapiMember *m, JsonValue *json, char *object,
                        GError **errp)
{
    JsonValue *value;
    gsize before = path_push(r, m->name);
    bool ok = true;

    if (!json_object_object_get_ex(json, m->name, &value)) {
        ok = m->optional;
        if (!ok) {
            err_set(errp, "Parameter '%s' is missing", param(r));
        }
    } else {
        ok = read_slot(r, m->type, value, object + m->offset, errp);
        if (ok && m->has_offset != QAPI_NO_HAS) {
            *(bool *)(object + m->has_offset) = true;
        }
    }
    path_pop(r, before);
    return ok;
}

static bool read_members(Reader *r, const QapiType *type, JsonValue *json, char *object,
                         GError **errp)
{
    for (size_t i = 0; i < type->member_count; i++) {
        if (!read_member(r, &type->members[i], json, object, errp)) {
            return false;
        }
    }
    return true;
}

static bool read_object(Reader *r, const QapiType *type, JsonValue *json, void *object,
                        GError **errp)
{
    const QapiType *branch = NULL;

    if (!json_object_is_type(json, json_type_object)) {
        return wrong_type(r, type, json, errp);
    }
    /* The tag says which other members there may be, so it comes first. */
    if (type->tag && !read_member(r, type->tag, json, object, errp)) {
        return false;
    }
    branch = qapi_branch(type, object);
    return check_keys(r, type, branch, json, errp) &&
           read_members(r, type, json, object, errp) &&
           (!branch ||
            read_members(r, branch, json, (char *)object + type->branch_offset, errp));
}

/* ---- alternates and lists ----------------------------------------------------- */

/* Could a value of this kind of JSON be that type? */
static bool may_be(const QapiType *type, JsonValue *json)
{
    switch (type->kind) {
    case QAPI_BOOL:
        return json_object_is_type(json, json_type_boolean);
    case QAPI_INT:
    case QAPI_UINT:
    case QAPI_SIZE:
        return json_object_is_type(json, json_type_int);
    case QAPI_NUMBER:
        return json_object_is_type(json, json_type_double) ||
               json_object_is_type(json, json_type_int);
    case QAPI_STR:
    case QAPI_ENUM:
        return json_object_is_type(json, json_type_string);
    case QAPI_OBJECT:
        return json_object_is_type(json, json_type_object);
    case QAPI_LIST:
        return json_object_is_type(json, json_type_array);
    case QAPI_ANY:
    case QAPI_ALTERNATE:
        break;
    }
    return false;
}

/*
 * The branch for @json. Text is a string branch if there is one, otherwise
 * the only scalar one: any type of JSON value could be meant by it.
 */
static const QapiMember *choose(const Reader *r, const QapiType *type, JsonValue *json)
{
    const QapiMember *scalar = NULL;

    for (size_t i = 0; i < type->member_count; i++) {
        const QapiMember *m = &type->members[i];

        if (may_be(m->type, json)) {
            return m;
        }
        if (m->type->kind != QAPI_OBJECT && m->type->kind != QAPI_LIST && !scalar) {
            scalar = m;
        }
    }
    return r->texts && json_object_is_type(json, json_type_string) ? scalar : NULL;
}

static bool read_alternate(Reader *r, const QapiType *type, JsonValue *json, void *alternate,
                           GError **errp)
{
    const QapiMember *m = choose(r, type, json);

    if (!m) {
        return wrong_type(r, type, json, errp);
    }
    *(int *)alternate = (int)(m - type->members);
    return read_slot(r, m->type, json, (char *)alternate + m->offset, errp);
}

static bool read_list(Reader *r, const QapiType *type, JsonValue *json, QapiList *list,
                      GError **errp)
{
    size_t size = qapi_slot_size(type->element);
    size_t count;

    if (!json_object_is_type(json, json_type_array)) {
        return wrong_type(r, type, json, errp);
    }
    count = json_object_array_length(json);
    list->items = g_try_malloc0_n(count, size);
    if (!list->items && count > 0) {
        err_set(errp, "Parameter '%s': no memory for %zu elements", param(r), count);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        g_autofree char *index = g_strdup_printf("%zu", i);
        gsize before = path_push(r, index);
        bool ok;

        list->count = i + 1;
        ok = read_slot(r, type->element, json_object_array_get_idx(json, i),
                       (char *)list->items + i * size, errp);
        path_pop(r, before);
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* ---- any --------------------------------------------------------------------- */

static bool read_pointed_to(Reader *r, const QapiType *type, JsonValue *json, void *value,
                            GError **errp)
{
    bool ok;

    if (r->depth >= JSON_DEPTH_MAX) {
        err_set(errp, "Parameter '%.200s...' is nested deeper than %d", param(r), JSON_DEPTH_MAX);
        return false;
    }
    r->depth++;
    if (type->kind == QAPI_OBJECT) {
        ok = read_object(r, type, json, value, errp);
    } else if (type->kind == QAPI_ALTERNATE) {
        ok = read_alternate(r, type, json, value, errp);
    } else {
        ok = read_list(r, type, json, value, errp);
    }
    r->depth--;
    return ok;
}

static bool read_slot(Reader *r, const QapiType *type, JsonValue *json, void *slot,
                      GError **errp)
{
    switch (type->kind) {
    case QAPI_BOOL:
        return read_bool(r, type, json, slot, errp);
    case QAPI_INT:
    case QAPI_UINT:
    case QAPI_SIZE:
        return read_integer(r, type, json, slot, errp);
    case QAPI_NUMBER:
        return read_number(r, type, json, slot, errp);
    case QAPI_STR:
        return read_str(r, type, json, slot, errp);
    case QAPI_ENUM:
        return read_enum(r, type, json, slot, errp);
    case QAPI_ANY:
        *(JsonValue **)slot = json_object_get(json);
        return true;
    case QAPI_OBJECT:
    case QAPI_ALTERNATE:
    case QAPI_LIST:
        *(void **)slot = g_malloc0(type->size);
        return read_pointed_to(r, type, json, *(void **)slot, errp);
    }
    return false;
}

void *qapi_from_json(const QapiType *type, JsonValue *json, bool texts, GError **errp)
{
    g_autoptr(GString) path = g_string_new(NULL);
    Reader r = { .texts = texts, .path = path };
    void *value;

    g_assert(qapi_is_pointed_to(type));
    value = g_malloc0(type->size);
    if (!read_pointed_to(&r, type, json, value, errp)) {
        qapi_free(type, value);
        return NULL;
    }
    return value;
}
