/*
 * Object model: the kinds of values that properties have.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/object.h"

#include <inttypes.h>
#include <string.h>

#include "util/err.h"
#include "util/scalar.h"
#include "util/suggest.h"

/* ---- numbers ------------------------------------------------------------ */

static void number_range(const ObjProp *prop, int64_t *min, uint64_t *max)
{
    bool own = prop->min != 0 || prop->max != 0;

    *min = own ? prop->min : prop->type->min;
    *max = own ? prop->max : prop->type->max;
}

static void number_refuse(const ObjProp *prop, const char *given, GError **errp)
{
    int64_t min;
    uint64_t max;

    number_range(prop, &min, &max);
    scalar_err_number(errp, prop->name, min, max, given);
}

static bool unsigned_in_range(const ObjProp *prop, uint64_t u)
{
    int64_t min;
    uint64_t max;

    number_range(prop, &min, &max);
    return u <= max && (min < 0 || u >= (uint64_t)min);
}

static bool signed_in_range(const ObjProp *prop, int64_t i)
{
    int64_t min;
    uint64_t max;

    number_range(prop, &min, &max);
    return i >= min && (i < 0 || (uint64_t)i <= max);
}

static void json_type_refuse(const ObjProp *prop, const char *expected, JsonValue *json,
                             GError **errp)
{
    json_err_type(errp, prop->name, expected, json);
}

static bool unsigned_from_text(Object *obj, const ObjProp *prop, const char *text,
                               PropValue *value, GError **errp)
{
    if (!scalar_parse_u64(text, &value->u) || !unsigned_in_range(prop, value->u)) {
        number_refuse(prop, text, errp);
        return false;
    }
    return true;
}

static bool unsigned_from_json(Object *obj, const ObjProp *prop, JsonValue *json,
                               bool texts, PropValue *value, GError **errp)
{
    g_autofree char *given = NULL;

    if (!json_object_is_type(json, json_type_int)) {
        json_type_refuse(prop, "integer", json, errp);
        return false;
    }
    if (!json_get_u64(json, &value->u) || !unsigned_in_range(prop, value->u)) {
        given = json_text(json);
        number_refuse(prop, given, errp);
        return false;
    }
    return true;
}

static JsonValue *unsigned_to_json(const ObjProp *prop, const PropValue *value)
{
    return json_object_new_uint64(value->u);
}

static bool signed_from_text(Object *obj, const ObjProp *prop, const char *text,
                             PropValue *value, GError **errp)
{
    if (!scalar_parse_i64(text, &value->i) || !signed_in_range(prop, value->i)) {
        number_refuse(prop, text, errp);
        return false;
    }
    return true;
}

static bool signed_from_json(Object *obj, const ObjProp *prop, JsonValue *json,
                             bool texts, PropValue *value, GError **errp)
{
    g_autofree char *given = NULL;

    if (!json_object_is_type(json, json_type_int)) {
        json_type_refuse(prop, "integer", json, errp);
        return false;
    }
    if (!json_get_i64(json, &value->i) || !signed_in_range(prop, value->i)) {
        given = json_text(json);
        number_refuse(prop, given, errp);
        return false;
    }
    return true;
}

static JsonValue *signed_to_json(const ObjProp *prop, const PropValue *value)
{
    return json_object_new_int64(value->i);
}

static bool size_from_text(Object *obj, const ObjProp *prop, const char *text,
                           PropValue *value, GError **errp)
{
    int64_t min;
    uint64_t max;

    if (scalar_parse_size(text, 'B', &value->u) && unsigned_in_range(prop, value->u)) {
        return true;
    }
    number_range(prop, &min, &max);
    scalar_err_size(errp, prop->name, min, max, text);
    return false;
}

/* The C type decides how a field is read and written. */
#define NUMBER_FIELD(name_, ctype_, member_) \
    static void name_##_load(const void *field, PropValue *value) \
    { \
        value->member_ = *(const ctype_ *)field; \
    } \
    static void name_##_store(Object *obj, void *field, PropValue *value) \
    { \
        *(ctype_ *)field = (ctype_)value->member_; \
    }

NUMBER_FIELD(u8, uint8_t, u)
NUMBER_FIELD(u16, uint16_t, u)
NUMBER_FIELD(u32, uint32_t, u)
NUMBER_FIELD(u64, uint64_t, u)
NUMBER_FIELD(i32, int32_t, i)
NUMBER_FIELD(i64, int64_t, i)
NUMBER_FIELD(bool_, bool, b)
NUMBER_FIELD(enum_, int, e)

#define UNSIGNED_TYPE(var_, name_, bits_) \
    const PropType prop_##var_ = { \
        .name = name_, \
        .field_size = (bits_) / 8, \
        .max = UINT##bits_##_MAX, \
        .from_text = unsigned_from_text, \
        .from_json = unsigned_from_json, \
        .to_json = unsigned_to_json, \
        .load = var_##_load, \
        .store = var_##_store, \
    }

UNSIGNED_TYPE(u8, "uint8", 8);
UNSIGNED_TYPE(u16, "uint16", 16);
UNSIGNED_TYPE(u32, "uint32", 32);
UNSIGNED_TYPE(u64, "uint64", 64);

#define SIGNED_TYPE(var_, name_, bits_) \
    const PropType prop_##var_ = { \
        .name = name_, \
        .field_size = (bits_) / 8, \
        .min = INT##bits_##_MIN, \
        .max = INT##bits_##_MAX, \
        .from_text = signed_from_text, \
        .from_json = signed_from_json, \
        .to_json = signed_to_json, \
        .load = var_##_load, \
        .store = var_##_store, \
    }

SIGNED_TYPE(i32, "int32", 32);
SIGNED_TYPE(i64, "int", 64);

#define SIZE_TYPE(var_, bits_) \
    const PropType prop_##var_ = { \
        .name = "size", \
        .field_size = (bits_) / 8, \
        .max = UINT##bits_##_MAX, \
        .from_text = size_from_text, \
        .from_json = unsigned_from_json, \
        .to_json = unsigned_to_json, \
        .load = u##bits_##_load, \
        .store = u##bits_##_store, \
    }

SIZE_TYPE(size, 64);
SIZE_TYPE(size32, 32);

bool prop_check_power_of_two(Object *obj, const ObjProp *prop, const PropValue *value,
                             GError **errp)
{
    if ((value->u & (value->u - 1)) != 0) {
        err_set(errp, "Parameter '%s' expects a power of two, not %" PRIu64,
                prop->name, value->u);
        return false;
    }
    return true;
}

/* ---- booleans and enumerations ------------------------------------------- */

static bool bool_from_text(Object *obj, const ObjProp *prop, const char *text,
                           PropValue *value, GError **errp)
{
    if (!scalar_parse_bool(text, &value->b)) {
        scalar_err_bool(errp, prop->name, text);
        return false;
    }
    return true;
}

static bool bool_from_json(Object *obj, const ObjProp *prop, JsonValue *json, bool texts,
                           PropValue *value, GError **errp)
{
    if (!json_object_is_type(json, json_type_boolean)) {
        json_type_refuse(prop, "boolean", json, errp);
        return false;
    }
    value->b = json_object_get_boolean(json);
    return true;
}

static JsonValue *bool_to_json(const ObjProp *prop, const PropValue *value)
{
    return json_object_new_boolean(value->b);
}

const PropType prop_bool = {
    .name = "bool",
    .field_size = sizeof(bool),
    .from_text = bool_from_text,
    .from_json = bool_from_json,
    .to_json = bool_to_json,
    .load = bool__load,
    .store = bool__store,
};

static const EnumTable *enum_table(const ObjProp *prop)
{
    return prop->type == &prop_on_off_auto ? &OnOffAuto_table : prop->names;
}

static bool enum_from_text(Object *obj, const ObjProp *prop, const char *text,
                           PropValue *value, GError **errp)
{
    value->e = enum_parse(enum_table(prop), prop->name, text, errp);
    return value->e >= 0;
}

static bool enum_from_json(Object *obj, const ObjProp *prop, JsonValue *json, bool texts,
                           PropValue *value, GError **errp)
{
    const char *text = json_get_str(json);

    if (!text) {
        json_type_refuse(prop, "string", json, errp);
        return false;
    }
    return enum_from_text(obj, prop, text, value, errp);
}

static JsonValue *enum_to_json(const ObjProp *prop, const PropValue *value)
{
    return json_object_new_string(enum_name(enum_table(prop), value->e));
}

const PropType prop_enum = {
    .name = "enum",
    .field_size = sizeof(int),
    .from_text = enum_from_text,
    .from_json = enum_from_json,
    .to_json = enum_to_json,
    .load = enum__load,
    .store = enum__store,
};

const PropType prop_on_off_auto = {
    .name = "OnOffAuto",
    .field_size = sizeof(int),
    .from_text = enum_from_text,
    .from_json = enum_from_json,
    .to_json = enum_to_json,
    .load = enum__load,
    .store = enum__store,
};

/* ---- strings ------------------------------------------------------------- */

static bool str_from_text(Object *obj, const ObjProp *prop, const char *text,
                          PropValue *value, GError **errp)
{
    value->s = g_strdup(text);
    return true;
}

static bool str_from_json(Object *obj, const ObjProp *prop, JsonValue *json, bool texts,
                          PropValue *value, GError **errp)
{
    const char *text = json_get_str(json);

    if (!text) {
        json_type_refuse(prop, "string", json, errp);
        return false;
    }
    return str_from_text(obj, prop, text, value, errp);
}

static JsonValue *str_to_json(const ObjProp *prop, const PropValue *value)
{
    return json_object_new_string(value->s ? value->s : "");
}

static void str_load(const void *field, PropValue *value)
{
    value->s = *(char *const *)field;
}

static void str_store(Object *obj, void *field, PropValue *value)
{
    g_free(*(char **)field);
    *(char **)field = g_steal_pointer(&value->s);
}

static void str_release(PropValue *value)
{
    g_clear_pointer(&value->s, g_free);
}

const PropType prop_str = {
    .name = "str",
    .field_size = sizeof(char *),
    .from_text = str_from_text,
    .from_json = str_from_json,
    .to_json = str_to_json,
    .load = str_load,
    .store = str_store,
    .release = str_release,
};

/* ---- links --------------------------------------------------------------- */

static void link_offer(Object *where, const char *type, Suggest *near)
{
    for (guint i = 0; where->children && i < where->children->len; i++) {
        Object *child = g_ptr_array_index(where->children, i);

        if (object_type_is_a(child->type, type)) {
            suggest_offer(near, child->name);
        }
    }
}

static bool link_from_text(Object *obj, const ObjProp *prop, const char *text,
                           PropValue *value, GError **errp)
{
    Object *target = NULL;
    Suggest near;

    if (text[0] == '/') {
        target = object_resolve(obj->tree, text, NULL);
    } else {
        target = object_find_user(obj->tree, text);
        if (!target) {
            target = object_find_device(obj->tree, text);
        }
    }
    if (!target) {
        err_set_class(errp, ERR_CLASS_DEVICE_NOT_FOUND,
                      "Parameter '%s' expects the id of an object of type '%s', '%s' not found",
                      prop->name, prop->link_type, text);
        suggest_start(&near, text);
        link_offer(object_container(obj->tree, "/objects"), prop->link_type, &near);
        link_offer(object_container(obj->tree, "/machine/peripheral"), prop->link_type, &near);
        suggest_append(&near, errp);
        return false;
    }
    if (!object_type_is_a(target->type, prop->link_type)) {
        err_set(errp, "Parameter '%s' expects the id of an object of type '%s', "
                "but '%s' is of type '%s'",
                prop->name, prop->link_type, text, target->type->name);
        return false;
    }
    value->link = target;
    return true;
}

static bool link_from_json(Object *obj, const ObjProp *prop, JsonValue *json, bool texts,
                           PropValue *value, GError **errp)
{
    const char *text = json_get_str(json);

    if (!text) {
        json_type_refuse(prop, "string", json, errp);
        return false;
    }
    return link_from_text(obj, prop, text, value, errp);
}

static JsonValue *link_to_json(const ObjProp *prop, const PropValue *value)
{
    g_autofree char *path = value->link ? object_path(value->link) : NULL;

    return json_object_new_string(path ? path : "");
}

static void link_load(const void *field, PropValue *value)
{
    value->link = *(Object *const *)field;
}

static void link_store(Object *obj, void *field, PropValue *value)
{
    Object **where = field;
    Object *old = *where;

    *where = value->link;
    if (*where) {
        object_ref(*where)->links++;
    }
    if (old) {
        old->links--;
        object_unref(old);
    }
}

const PropType prop_link = {
    .name = "link",
    .field_size = sizeof(Object *),
    .from_text = link_from_text,
    .from_json = link_from_json,
    .to_json = link_to_json,
    .load = link_load,
    .store = link_store,
};

/* ---- arrays and objects --------------------------------------------------- */

static bool json_from_text(Object *obj, const ObjProp *prop, const char *text,
                           PropValue *value, GError **errp)
{
    err_set(errp, "Parameter '%s' expects an array or object, as '%s.0...=' or in JSON, not '%s'",
            prop->name, prop->name, text);
    return false;
}

static bool json_from_json(Object *obj, const ObjProp *prop, JsonValue *json, bool texts,
                           PropValue *value, GError **errp)
{
    if (!json_object_is_type(json, json_type_array) &&
        !json_object_is_type(json, json_type_object)) {
        json_type_refuse(prop, "array", json, errp);
        return false;
    }
    value->json = json_object_get(json);
    return true;
}

static JsonValue *json_to_json(const ObjProp *prop, const PropValue *value)
{
    return json_object_get(value->json);
}

static void json_load(const void *field, PropValue *value)
{
    value->json = *(JsonValue *const *)field;
}

static void json_store(Object *obj, void *field, PropValue *value)
{
    json_object_put(*(JsonValue **)field);
    *(JsonValue **)field = g_steal_pointer(&value->json);
}

static void json_release(PropValue *value)
{
    json_object_put(g_steal_pointer(&value->json));
}

const PropType prop_json = {
    .name = "any",
    .field_size = sizeof(JsonValue *),
    .from_text = json_from_text,
    .from_json = json_from_json,
    .to_json = json_to_json,
    .load = json_load,
    .store = json_store,
    .release = json_release,
};
