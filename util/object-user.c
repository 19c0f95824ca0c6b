/*
 * Object model: -object, and what "help" prints.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/object.h"

#include <string.h>

#include "util/err.h"
#include "util/suggest.h"

static void suggest_type(const ObjType *type, void *opaque)
{
    suggest_offer(opaque, type->name);
    if (type->alias) {
        suggest_offer(opaque, type->alias);
    }
}

const ObjType *object_type_for_user(ObjectTree *tree, const char *name, unsigned flags,
                                    GError **errp)
{
    const ObjType *type = object_type_find(tree, name);
    Suggest near;

    if (type && (type->flags & flags) == flags) {
        return type;
    }
    if (!(flags & OBJ_DEVICE)) {
        err_set(errp, "Parameter 'qom-type' does not accept value '%s'", name);
    } else if (type) {
        err_set(errp, "Parameter 'driver' expects a pluggable device type, not '%s'", name);
    } else {
        err_set(errp, "'%s' is not a valid device model name", name);
    }
    suggest_start(&near, name);
    object_type_foreach(tree, flags, suggest_type, &near);
    suggest_append(&near, errp);
    return NULL;
}

/* The string member @name of @options, removed from @rest. */
static const char *take_str(JsonValue *options, JsonValue *rest, const char *name,
                            GError **errp)
{
    JsonValue *value;
    const char *text;

    if (!json_object_object_get_ex(options, name, &value)) {
        err_set(errp, "Parameter '%s' is missing", name);
        return NULL;
    }
    text = json_get_str(value);
    if (!text) {
        json_err_type(errp, name, "string", value);
        return NULL;
    }
    json_object_object_del(rest, name);
    return text;
}

/* A shallow copy: members are shared. */
static JsonValue *copy_members(JsonValue *options)
{
    JsonValue *copy = json_object_new_object();

    json_object_object_foreach(options, name, value) {
        json_object_object_add(copy, name, json_object_get(value));
    }
    return copy;
}

Object *object_add(ObjectTree *tree, JsonValue *options, bool texts, GError **errp)
{
    g_autoptr(JsonValue) rest = copy_members(options);
    g_autoptr(Object) obj = NULL;
    const char *type_name, *id;
    const ObjType *type;

    type_name = take_str(options, rest, "qom-type", errp);
    if (!type_name) {
        return NULL;
    }
    type = object_type_for_user(tree, type_name, OBJ_USER_CREATABLE, errp);
    if (!type) {
        return NULL;
    }
    id = take_str(options, rest, "id", errp);
    if (!id) {
        return NULL;
    }
    if (object_find_user(tree, id)) {
        err_set(errp, "Duplicate ID '%s' for object", id);
        return NULL;
    }
    obj = object_new(tree, type, id, errp);
    if (!obj || !object_set_all(obj, rest, texts, errp) || !object_realize(obj, errp)) {
        return NULL;
    }
    object_attach(object_container(tree, "/objects"), id, obj, NULL);
    return obj;                 /* the tree keeps it; the autoptr drops ours */
}

bool object_del(ObjectTree *tree, const char *id, GError **errp)
{
    Object *obj = object_find_user(tree, id);

    if (!obj) {
        err_set(errp, "object '%s' not found", id);
        return false;
    }
    for (const ObjType *t = obj->type; t; t = t->parent) {
        if (t->can_delete && !t->can_delete(obj, errp)) {
            return false;
        }
    }
    if (obj->links > 0) {
        err_set(errp, "object '%s' is in use, can not be deleted", id);
        return false;
    }
    object_unrealize(obj);
    object_detach(obj);
    return true;
}

/* ---- help ------------------------------------------------------------------ */

static void collect_type(const ObjType *type, void *opaque)
{
    g_ptr_array_add(opaque, (gpointer)type);
}

static gint compare_categories(gconstpointer a, gconstpointer b)
{
    const ObjType *x = *(const ObjType *const *)a;
    const ObjType *y = *(const ObjType *const *)b;
    int by_category = g_strcmp0(x->category, y->category);

    return by_category != 0 ? by_category : strcmp(x->name, y->name);
}

static void print_device(const ObjType *type, GString *out)
{
    g_string_append_printf(out, "name \"%s\"", type->name);
    if (type->bus) {
        g_string_append_printf(out, ", bus %s", type->bus);
    }
    if (type->alias) {
        g_string_append_printf(out, ", alias \"%s\"", type->alias);
    }
    if (type->desc) {
        g_string_append_printf(out, ", desc \"%s\"", type->desc);
    }
    g_string_append_c(out, '\n');
}

void object_help_list(ObjectTree *tree, unsigned flags, GString *out)
{
    g_autoptr(GPtrArray) types = g_ptr_array_new();
    const char *category = NULL;

    object_type_foreach(tree, flags, collect_type, types);
    if (!(flags & OBJ_DEVICE)) {
        g_string_append(out, "List of user creatable objects:\n");
        for (guint i = 0; i < types->len; i++) {
            const ObjType *type = g_ptr_array_index(types, i);

            g_string_append_printf(out, "  %s\n", type->name);
        }
        return;
    }
    g_ptr_array_sort(types, compare_categories);
    for (guint i = 0; i < types->len; i++) {
        const ObjType *type = g_ptr_array_index(types, i);

        if (i == 0 || g_strcmp0(category, type->category) != 0) {
            category = type->category;
            g_string_append_printf(out, "%s%s devices:\n", i > 0 ? "\n" : "",
                                   category ? category : "Uncategorized");
        }
        print_device(type, out);
    }
}

static void collect_prop(const ObjProp *prop, void *opaque)
{
    if (!(prop->flags & (PROP_HIDDEN | PROP_READ_ONLY))) {
        g_ptr_array_add(opaque, (gpointer)prop);
    }
}

static gint compare_props(gconstpointer a, gconstpointer b)
{
    return strcmp((*(const ObjProp *const *)a)->name, (*(const ObjProp *const *)b)->name);
}

void object_help_type(const ObjType *type, GString *out)
{
    g_autoptr(GPtrArray) props = g_ptr_array_new();

    object_type_prop_foreach(type, collect_prop, props);
    g_ptr_array_sort(props, compare_props);
    if (props->len == 0) {
        g_string_append_printf(out, "There are no options for %s.\n", type->name);
        return;
    }
    g_string_append_printf(out, "%s options:\n", type->name);
    for (guint i = 0; i < props->len; i++) {
        const ObjProp *prop = g_ptr_array_index(props, i);
        g_autofree char *kind = object_prop_type_name(prop);
        g_autofree char *left = g_strdup_printf("%s=<%s>", prop->name, kind);
        g_autoptr(JsonValue) def = object_prop_default(prop);
        g_autofree char *def_text = def ? json_text(def) : NULL;

        if (!prop->help && !def_text) {
            g_string_append_printf(out, "  %s\n", left);
            continue;
        }
        g_string_append_printf(out, "  %-22s - %s", left, prop->help ? prop->help : "");
        if (def_text) {
            g_string_append_printf(out, " (default: %s)", def_text);
        }
        g_string_append_c(out, '\n');
    }
}
