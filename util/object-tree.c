/*
 * Object model: types by name, and the tree of objects.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/object.h"

#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/suggest.h"

struct ObjectTree {
    const ObjType **types;      /* sorted by name */
    size_t count;
    Object *root;
};

static const ObjType type_container = {
    .name = "container",
    .size = sizeof(Object),
};

/* ---- types --------------------------------------------------------------- */

static int type_compare(const void *a, const void *b)
{
    return strcmp((*(const ObjType *const *)a)->name, (*(const ObjType *const *)b)->name);
}

const ObjType *object_type_find(ObjectTree *tree, const char *name)
{
    for (size_t i = 0; i < tree->count; i++) {
        const ObjType *t = tree->types[i];

        if (strcmp(t->name, name) == 0 || (t->alias && strcmp(t->alias, name) == 0)) {
            return t;
        }
    }
    return NULL;
}

void object_type_foreach(ObjectTree *tree, unsigned flags,
                         void (*fn)(const ObjType *type, void *opaque), void *opaque)
{
    for (size_t i = 0; i < tree->count; i++) {
        if ((tree->types[i]->flags & flags) == flags) {
            fn(tree->types[i], opaque);
        }
    }
}

bool object_type_is_a(const ObjType *type, const char *ancestor)
{
    for (; type; type = type->parent) {
        if (strcmp(type->name, ancestor) == 0) {
            return true;
        }
    }
    return false;
}

const void *object_class_data(const ObjType *type)
{
    while (type && !type->class_data) {
        type = type->parent;
    }
    return type ? type->class_data : NULL;
}

const ObjProp *object_type_prop(const ObjType *type, const char *name)
{
    for (; type; type = type->parent) {
        for (const ObjProp *p = type->props; p && p->name; p++) {
            if (strcmp(p->name, name) == 0) {
                return p;
            }
        }
    }
    return NULL;
}

void object_type_prop_foreach(const ObjType *type,
                              void (*fn)(const ObjProp *prop, void *opaque), void *opaque)
{
    for (const ObjType *t = type; t; t = t->parent) {
        for (const ObjProp *p = t->props; p && p->name; p++) {
            if (object_type_prop(type, p->name) == p) {
                fn(p, opaque);
            }
        }
    }
}

char *object_prop_type_name(const ObjProp *prop)
{
    if (prop->type == &prop_link) {
        return g_strdup_printf("link<%s>", prop->link_type);
    }
    return g_strdup(prop->type == &prop_enum ? prop->names->type : prop->type->name);
}

JsonValue *object_prop_default(const ObjProp *prop)
{
    PropValue value = { 0 };
    JsonValue *json;

    if (!prop->def || !prop->type->from_text(NULL, prop, prop->def, &value, NULL)) {
        return NULL;
    }
    json = prop->type->to_json(prop, &value);
    if (prop->type->release) {
        prop->type->release(&value);
    }
    return json;
}

/* A mistake in a table is ours: say which, and stop. */
static void type_check_prop(const ObjType *type, const ObjProp *p)
{
    PropValue value = { 0 };
    g_autoptr(GError) err = NULL;
    const char *wrong = NULL;

    if (!p->type) {
        wrong = "no type";
    } else if (p->field_size != 0 && p->field_size != p->type->field_size) {
        wrong = "field of another size than its type";
    } else if (p->field_size != 0 && p->offset + p->field_size > type->size) {
        wrong = "field outside the instance";
    } else if (p->field_size == 0 && !p->get) {
        wrong = "neither field nor getter";
    } else if (p->field_size == 0 && !p->set && !(p->flags & PROP_READ_ONLY)) {
        wrong = "neither field nor setter";
    } else if (p->type == &prop_enum && !p->names) {
        wrong = "no names";
    } else if (p->type == &prop_link && !p->link_type) {
        wrong = "no link_type";
    } else if (p->def && (p->field_size == 0 || p->type == &prop_link ||
                          p->type == &prop_json)) {
        wrong = "default not possible";
    } else if (p->def && !p->type->from_text(NULL, p, p->def, &value, &err)) {
        wrong = err->message;
    }
    if (wrong) {
        g_error("property %s.%s: %s", type->name, p->name, wrong);
    }
    if (p->def && p->type->release) {
        p->type->release(&value);
    }
}

static void type_check(const ObjectTree *tree, size_t at)
{
    const ObjType *type = tree->types[at];

    if (type->size < (type->parent ? type->parent->size : sizeof(Object))) {
        g_error("type %s: instance smaller than its base", type->name);
    }
    if (at > 0 && strcmp(tree->types[at - 1]->name, type->name) == 0) {
        g_error("type %s: listed twice", type->name);
    }
    for (const ObjType *t = type; t; t = t->parent) {
        for (const ObjProp *p = t->props; p && p->name; p++) {
            type_check_prop(t, p);
        }
    }
}

/* ---- tree ---------------------------------------------------------------- */

ObjectTree *object_tree_new(const ObjType *const *types, size_t count)
{
    static const char *const containers[] = {
        "/objects", "/machine", "/machine/peripheral", "/machine/peripheral-anon",
        "/machine/unattached",
    };
    ObjectTree *tree = g_new0(ObjectTree, 1);

    tree->types = g_new(const ObjType *, count);
    tree->count = count;
    for (size_t i = 0; i < count; i++) {
        tree->types[i] = types[i];
    }
    qsort(tree->types, count, sizeof(tree->types[0]), type_compare);
    for (size_t i = 0; i < count; i++) {
        type_check(tree, i);
    }
    tree->root = object_new(tree, &type_container, NULL, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(containers); i++) {
        object_container(tree, containers[i]);
    }
    return tree;
}

static void detach_children(Object *obj)
{
    while (obj->children && obj->children->len > 0) {
        Object *last = g_ptr_array_index(obj->children, obj->children->len - 1);

        detach_children(last);
        object_detach(last);
    }
}

void object_tree_free(ObjectTree *tree)
{
    if (!tree) {
        return;
    }
    detach_children(tree->root);
    object_unref(tree->root);
    g_free(tree->types);
    g_free(tree);
}

Object *object_child(Object *parent, const char *name)
{
    for (guint i = 0; parent->children && i < parent->children->len; i++) {
        Object *child = g_ptr_array_index(parent->children, i);

        if (strcmp(child->name, name) == 0) {
            return child;
        }
    }
    return NULL;
}

/* "device[*]" becomes "device[0]" or the next number that is free. */
static char *child_name(Object *parent, const char *name)
{
    size_t len = strlen(name);

    if (!g_str_has_suffix(name, "[*]")) {
        return g_strdup(name);
    }
    for (unsigned i = 0; ; i++) {
        char *numbered = g_strdup_printf("%.*s[%u]", (int)(len - 3), name, i);

        if (!object_child(parent, numbered)) {
            return numbered;
        }
        g_free(numbered);
    }
}

bool object_attach(Object *parent, const char *name, Object *obj, GError **errp)
{
    g_autofree char *own = child_name(parent, name);

    g_assert(!obj->parent);
    if (object_child(parent, own)) {
        g_autofree char *path = object_path(parent);

        err_set(errp, "Duplicate name '%s' in '%s'", own, path ? path : "?");
        return false;
    }
    if (!parent->children) {
        parent->children = g_ptr_array_new();
    }
    g_ptr_array_add(parent->children, object_ref(obj));
    obj->parent = parent;
    obj->name = g_steal_pointer(&own);
    return true;
}

void object_detach(Object *obj)
{
    g_assert(obj->parent);
    g_ptr_array_remove(obj->parent->children, obj);
    obj->parent = NULL;
    g_clear_pointer(&obj->name, g_free);
    object_unref(obj);
}

/* Walk @path from the root; missing containers are made if @make is set. */
static Object *walk(ObjectTree *tree, const char *path, bool make)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    Object *at = tree->root;

    for (int i = 0; parts[i]; i++) {
        Object *next;

        if (parts[i][0] == '\0') {
            continue;
        }
        next = object_child(at, parts[i]);
        if (!next && make) {
            next = object_new(tree, &type_container, NULL, NULL);
            object_attach(at, parts[i], next, NULL);
            object_unref(next);         /* the tree keeps it */
        }
        if (!next) {
            return NULL;
        }
        at = next;
    }
    return at;
}

Object *object_container(ObjectTree *tree, const char *path)
{
    return walk(tree, path, true);
}

Object *object_find_user(ObjectTree *tree, const char *id)
{
    return object_child(object_container(tree, "/objects"), id);
}

Object *object_find_device(ObjectTree *tree, const char *id)
{
    return object_child(object_container(tree, "/machine/peripheral"), id);
}

/* How often the name occurs below @at, and where last. */
static unsigned find_name(Object *at, const char *name, Object **found)
{
    unsigned count = 0;

    for (guint i = 0; at->children && i < at->children->len; i++) {
        Object *child = g_ptr_array_index(at->children, i);

        if (strcmp(child->name, name) == 0) {
            *found = child;
            count++;
        }
        count += find_name(child, name, found);
    }
    return count;
}

Object *object_resolve(ObjectTree *tree, const char *path, GError **errp)
{
    Object *found = NULL;
    unsigned count;

    if (path[0] == '/') {
        found = walk(tree, path, false);
        count = found != NULL;
    } else {
        count = find_name(tree->root, path, &found);
    }
    if (count == 1) {
        return found;
    }
    if (count > 1) {
        err_set(errp, "Path '%s' is ambiguous", path);
    } else {
        err_set_class(errp, ERR_CLASS_DEVICE_NOT_FOUND, "Device '%s' not found", path);
    }
    return NULL;
}

char *object_path(const Object *obj)
{
    GString *path = g_string_new(NULL);

    for (; obj->parent; obj = obj->parent) {
        g_string_prepend(path, obj->name);
        g_string_prepend_c(path, '/');
    }
    if (obj != obj->tree->root) {
        g_string_free(path, TRUE);
        return NULL;
    }
    if (path->len == 0) {
        g_string_append_c(path, '/');
    }
    return g_string_free(path, FALSE);
}
