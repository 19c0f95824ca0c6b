/*
 * Object model: the life of an object, and its properties.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/object.h"

#include <string.h>

#include "util/err.h"
#include "util/scalar.h"
#include "util/suggest.h"

enum { BASES_MAX = 8 };         /* depth of a chain of types */

/* The types of @type's chain, base first. */
static int type_chain(const ObjType *type, const ObjType *chain[BASES_MAX])
{
    int depth = 0;

    for (const ObjType *t = type; t; t = t->parent) {
        depth++;
    }
    g_assert(depth <= BASES_MAX);
    for (int i = depth; i > 0; i--, type = type->parent) {
        chain[i - 1] = type;
    }
    return depth;
}

static void *prop_field(Object *obj, const ObjProp *prop)
{
    return (char *)obj + prop->offset;
}

static void value_release(const ObjProp *prop, PropValue *value)
{
    if (prop->type->release) {
        prop->type->release(value);
    }
}

/* ---- making and freeing -------------------------------------------------- */

static void prop_apply_default(const ObjProp *prop, void *opaque)
{
    Object *obj = opaque;
    PropValue value = { 0 };

    if (prop->def) {
        bool ok = prop->type->from_text(obj, prop, prop->def, &value, NULL);

        g_assert(ok);           /* object_tree_new() has tried it */
        prop->type->store(obj, prop_field(obj, prop), &value);
        value_release(prop, &value);
    }
}

static void prop_clear(const ObjProp *prop, void *opaque)
{
    Object *obj = opaque;
    PropValue none = { 0 };

    if (prop->field_size != 0) {
        prop->type->store(obj, prop_field(obj, prop), &none);
    }
}

Object *object_new(ObjectTree *tree, const ObjType *type, const char *id, GError **errp)
{
    const ObjType *chain[BASES_MAX];
    int depth = type_chain(type, chain);
    Object *obj;

    if (type->flags & OBJ_ABSTRACT) {
        err_set(errp, "Type '%s' is abstract", type->name);
        return NULL;
    }
    if (id && !scalar_is_identifier(id)) {
        err_set(errp, "Parameter 'id' expects an identifier (letters, digits, '-', '.', '_', "
                "starting with a letter), not '%s'", id);
        return NULL;
    }
    obj = g_malloc0(type->size);
    obj->type = type;
    obj->tree = tree;
    obj->id = g_strdup(id);
    obj->given = g_ptr_array_new();
    obj->refs = 1;
    for (int i = 0; i < depth; i++) {
        if (chain[i]->init) {
            chain[i]->init(obj);
        }
    }
    object_type_prop_foreach(type, prop_apply_default, obj);
    return obj;
}

Object *object_ref(Object *obj)
{
    g_atomic_int_inc(&obj->refs);
    return obj;
}

void object_unref(Object *obj)
{
    if (!obj || !g_atomic_int_dec_and_test(&obj->refs)) {
        return;
    }
    g_assert(!obj->parent && obj->links == 0);
    if (obj->realized) {
        obj->refs = 1;          /* for hooks that take one meanwhile */
        object_unrealize(obj);
        g_assert(obj->refs == 1);
    }
    for (const ObjType *t = obj->type; t; t = t->parent) {
        if (t->finalize) {
            t->finalize(obj);
        }
    }
    object_type_prop_foreach(obj->type, prop_clear, obj);
    g_assert(!obj->children || obj->children->len == 0);
    if (obj->children) {
        g_ptr_array_free(obj->children, TRUE);
    }
    g_ptr_array_free(obj->given, TRUE);
    g_free(obj->id);
    g_free(obj);
}

/* ---- properties ---------------------------------------------------------- */

static void suggest_prop(const ObjProp *prop, void *opaque)
{
    if (!(prop->flags & (PROP_HIDDEN | PROP_READ_ONLY))) {
        suggest_offer(opaque, prop->name);
    }
}

static const ObjProp *prop_find(const Object *obj, const char *name, GError **errp)
{
    const ObjProp *prop = object_type_prop(obj->type, name);
    Suggest near;

    if (!prop) {
        err_set(errp, "Property '%s.%s' not found", obj->type->name, name);
        suggest_start(&near, name);
        object_type_prop_foreach(obj->type, suggest_prop, &near);
        suggest_append(&near, errp);
    }
    return prop;
}

/* May it be set at all, now? */
static bool prop_settable(const Object *obj, const ObjProp *prop, GError **errp)
{
    if (prop->flags & PROP_READ_ONLY) {
        err_set(errp, "Property '%s.%s' is read-only", obj->type->name, prop->name);
        return false;
    }
    if (obj->realized && !(prop->flags & PROP_LIVE)) {
        err_set(errp, "Property '%s.%s' cannot be changed while '%s' is in use",
                obj->type->name, prop->name, obj->id ? obj->id : obj->type->name);
        return false;
    }
    return true;
}

bool object_given(const Object *obj, const char *name)
{
    const ObjProp *prop = object_type_prop(obj->type, name);

    return prop && g_ptr_array_find(obj->given, prop, NULL);
}

static bool prop_store(Object *obj, const ObjProp *prop, PropValue *value, GError **errp)
{
    if (prop->check && !prop->check(obj, prop, value, errp)) {
        return false;
    }
    if (prop->field_size == 0) {
        if (!prop->set(obj, prop, value, errp)) {
            return false;
        }
    } else {
        prop->type->store(obj, prop_field(obj, prop), value);
        if (obj->realized && prop->changed) {
            prop->changed(obj, prop);
        }
    }
    if (!g_ptr_array_find(obj->given, prop, NULL)) {
        g_ptr_array_add(obj->given, (gpointer)prop);
    }
    return true;
}

bool object_set_text(Object *obj, const char *name, const char *text, GError **errp)
{
    const ObjProp *prop = prop_find(obj, name, errp);
    PropValue value = { 0 };
    bool ok;

    if (!prop || !prop_settable(obj, prop, errp) ||
        !prop->type->from_text(obj, prop, text, &value, errp)) {
        return false;
    }
    ok = prop_store(obj, prop, &value, errp);
    value_release(prop, &value);
    return ok;
}

static bool set_json(Object *obj, const char *name, JsonValue *json, bool texts,
                     GError **errp)
{
    const ObjProp *prop = prop_find(obj, name, errp);
    PropValue value = { 0 };
    bool ok;

    if (!prop || !prop_settable(obj, prop, errp) ||
        !prop->type->from_json(obj, prop, json, texts, &value, errp)) {
        return false;
    }
    ok = prop_store(obj, prop, &value, errp);
    value_release(prop, &value);
    return ok;
}

bool object_set_json(Object *obj, const char *name, JsonValue *value, GError **errp)
{
    return set_json(obj, name, value, false, errp);
}

bool object_set_all(Object *obj, JsonValue *options, bool texts, GError **errp)
{
    json_object_object_foreach(options, name, value) {
        bool ok;

        if (texts && json_object_is_type(value, json_type_string)) {
            ok = object_set_text(obj, name, json_object_get_string(value), errp);
        } else {
            ok = set_json(obj, name, value, texts, errp);
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

JsonValue *object_get(Object *obj, const char *name, GError **errp)
{
    const ObjProp *prop = prop_find(obj, name, errp);
    PropValue value = { 0 };
    JsonValue *json;

    if (!prop) {
        return NULL;
    }
    if (prop->get) {
        prop->get(obj, prop, &value);
        json = prop->type->to_json(prop, &value);
        value_release(prop, &value);
    } else {
        prop->type->load(prop_field(obj, prop), &value);
        json = prop->type->to_json(prop, &value);
    }
    return json;
}

/* ---- realize -------------------------------------------------------------- */

typedef struct Missing {
    Object *obj;
    const ObjProp *prop;
} Missing;

static void note_missing(const ObjProp *prop, void *opaque)
{
    Missing *m = opaque;

    if ((prop->flags & PROP_MANDATORY) && !g_ptr_array_find(m->obj->given, prop, NULL)) {
        m->prop = prop;
    }
}

/* Everything that can be checked without an effect. */
static bool object_check(Object *obj, const ObjType **chain, int depth, GError **errp)
{
    Missing missing = { .obj = obj };

    object_type_prop_foreach(obj->type, note_missing, &missing);
    if (missing.prop) {
        err_set(errp, "Parameter '%s' is missing", missing.prop->name);
        return false;
    }
    for (int i = 0; i < depth; i++) {
        if (chain[i]->check && !chain[i]->check(obj, errp)) {
            return false;
        }
    }
    return true;
}

/* Unrealize the @count first types of the chain, from the leaf's end. */
static void unrealize_chain(Object *obj, const ObjType **chain, int count)
{
    while (count-- > 0) {
        if (chain[count]->unrealize) {
            chain[count]->unrealize(obj);
        }
    }
}

bool object_realize(Object *obj, GError **errp)
{
    const ObjType *chain[BASES_MAX];
    int depth = type_chain(obj->type, chain);
    int done;

    g_assert(!obj->realized);
    if (!object_check(obj, chain, depth, errp)) {
        return false;
    }
    for (done = 0; done < depth; done++) {
        if (chain[done]->realize && !chain[done]->realize(obj, errp)) {
            unrealize_chain(obj, chain, done);
            return false;
        }
    }
    for (int i = depth; i > 0; i--) {
        if (chain[i - 1]->complete && !chain[i - 1]->complete(obj, errp)) {
            unrealize_chain(obj, chain, depth);
            return false;
        }
    }
    obj->realized = true;
    return true;
}

void object_unrealize(Object *obj)
{
    const ObjType *chain[BASES_MAX];
    int depth = type_chain(obj->type, chain);

    g_assert(obj->realized);
    obj->realized = false;
    unrealize_chain(obj, chain, depth);
}
