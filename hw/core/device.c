/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hw/core/device.h"

#include <string.h>

#include "util/err.h"

/* The bootindex of a device that has one and was given it, else -1. */
static int64_t device_bootindex(Device *dev)
{
    g_autoptr(JsonValue) v = NULL;

    if (object_type_prop(dev->obj.type, "bootindex") == NULL) {
        return -1;
    }
    v = object_get(&dev->obj, "bootindex", NULL);
    return v != NULL ? json_object_get_int64(v) : -1;
}

static bool device_check(Object *obj, GError **errp)
{
    Device *dev = (Device *)obj;
    int64_t index = device_bootindex(dev);

    for (unsigned i = 0; index >= 0 && i < dev->machine->devices->len; i++) {
        Device *other = g_ptr_array_index(dev->machine->devices, i);

        if (device_bootindex(other) == index) {
            err_set(errp, "bootindex %" G_GINT64_FORMAT " is taken by '%s'", index,
                    device_name(other));
            return false;
        }
    }
    return true;
}

static bool device_complete(Object *obj, GError **errp)
{
    Device *dev = (Device *)obj;

    g_ptr_array_add(dev->machine->devices, dev);
    return true;
}

static void device_unrealize(Object *obj)
{
    Device *dev = (Device *)obj;

    g_ptr_array_remove(dev->machine->devices, dev);
}

const ObjType type_device = {
    .name = "device",
    .size = sizeof(Device),
    .flags = OBJ_ABSTRACT,
    .check = device_check,
    .complete = device_complete,
    .unrealize = device_unrealize,
};

const char *device_name(const Device *dev)
{
    return dev->obj.id != NULL ? dev->obj.id : dev->obj.type->name;
}

/* The string member @name of @options; an error when it is something else. */
static bool option_string(JsonValue *options, const char *name, const char **text, GError **errp)
{
    JsonValue *v = NULL;

    *text = NULL;
    if (!json_object_object_get_ex(options, name, &v)) {
        return true;
    }
    if (!json_object_is_type(v, json_type_string)) {
        err_set(errp, "parameter '%s' expects a string", name);
        return false;
    }
    *text = json_object_get_string(v);
    return true;
}

/* The properties alone: everything but "driver" and "id". */
static JsonValue *option_properties(JsonValue *options)
{
    JsonValue *props = json_object_new_object();

    json_object_object_foreach(options, key, value) {
        if (strcmp(key, "driver") != 0 && strcmp(key, "id") != 0) {
            json_object_object_add(props, key, json_object_get(value));
        }
    }
    return props;
}

static bool device_attach(ObjectTree *tree, Device *dev, GError **errp)
{
    const char *id = dev->obj.id;

    if (id != NULL) {
        if (object_find_device(tree, id) != NULL) {
            err_set(errp, "there is already a device with the id '%s'", id);
            return false;
        }
        return object_attach(object_container(tree, "/machine/peripheral"), id, &dev->obj, errp);
    }
    return object_attach(object_container(tree, "/machine/peripheral-anon"), "device[*]",
                         &dev->obj, errp);
}

Device *device_add(Machine *m, ObjectTree *tree, JsonValue *options, bool texts, GError **errp)
{
    g_autoptr(JsonValue) props = NULL;
    g_autoptr(Object) obj = NULL;
    const ObjType *type;
    const char *driver;
    const char *id;

    if (!option_string(options, "driver", &driver, errp) ||
        !option_string(options, "id", &id, errp)) {
        return NULL;
    }
    if (driver == NULL) {
        err_set(errp, "parameter 'driver' is missing");
        return NULL;
    }
    type = object_type_for_user(tree, driver, OBJ_DEVICE, errp);
    if (type == NULL) {
        return NULL;
    }
    obj = object_new(tree, type, id, errp);
    if (obj == NULL) {
        return NULL;
    }
    ((Device *)obj)->machine = m;
    props = option_properties(options);
    if (!object_set_all(obj, props, texts, errp) || !device_attach(tree, (Device *)obj, errp)) {
        return NULL;
    }
    if (!object_realize(obj, errp)) {
        object_detach(obj);
        return NULL;
    }
    return (Device *)obj;       /* the tree keeps a reference */
}

void device_del(Device *dev)
{
    Object *obj = object_ref(&dev->obj);

    object_unrealize(obj);
    object_detach(obj);
    object_unref(obj);
}
