/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chardev/chardev.h"

#include <string.h>

#include "chardev-internal.h"
#include "util/err.h"
#include "util/suggest.h"

static size_t null_write(Chardev *c, const uint8_t *buf, size_t len)
{
    return len;
}

static void null_free(Chardev *c)
{
    g_free(c);
}

static const ChardevOps null_ops = { .name = "null", .write = null_write, .free = null_free };

static Chardev *null_open(const char *arg, bool signals, GError **errp)
{
    Chardev *c = g_new0(Chardev, 1);

    c->ops = &null_ops;
    return c;
}

static const struct {
    const char *name;
    bool has_arg;
    Chardev *(*open)(const char *arg, bool signals, GError **errp);
} kinds[] = {
    { "null", false, null_open },
    { "stdio", false, chardev_stdio_open },
    { "file", true, chardev_file_open },
};

Chardev *chardev_open(const char *spec, bool signals, GError **errp)
{
    const char *colon = strchr(spec, ':');
    size_t len = colon != NULL ? (size_t)(colon - spec) : strlen(spec);
    g_autofree char *name = g_strndup(spec, len);
    Suggest near;

    suggest_start(&near, name);
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        suggest_offer(&near, kinds[i].name);
        if (strcmp(kinds[i].name, name) != 0) {
            continue;
        }
        if (kinds[i].has_arg != (colon != NULL && colon[1] != '\0')) {
            err_set(errp, "character device '%s': %s", spec,
                    kinds[i].has_arg ? "a path must follow" : "nothing may follow the name");
            return NULL;
        }
        return kinds[i].open(colon != NULL ? colon + 1 : NULL, signals, errp);
    }
    err_set(errp, "there is no character device '%s'", spec);
    suggest_append(&near, errp);
    return NULL;
}

void chardev_free(Chardev *c)
{
    if (c != NULL) {
        c->ops->free(c);
    }
}

void chardev_set_front(Chardev *c, const ChardevFront *front, void *opaque)
{
    c->front = front;
    c->opaque = opaque;
    chardev_accept_input(c);
}

void chardev_begin(Chardev *c)
{
    if (c->ops->begin != NULL) {
        c->ops->begin(c);
    }
    chardev_accept_input(c);
}

size_t chardev_write(Chardev *c, const uint8_t *buf, size_t len)
{
    return c->ops->write(c, buf, len);
}

void chardev_accept_input(Chardev *c)
{
    if (c->ops->accept_input != NULL) {
        c->ops->accept_input(c);
    }
}

/* ---- for back ends ---- */

size_t chardev_front_room(const Chardev *c)
{
    return c->front != NULL && c->front->can_receive != NULL ?
           c->front->can_receive(c->opaque) : 0;
}

void chardev_front_receive(Chardev *c, const uint8_t *buf, size_t len)
{
    c->front->receive(c->opaque, buf, len);
}

void chardev_front_can_send(Chardev *c)
{
    if (c->front != NULL && c->front->can_send != NULL) {
        c->front->can_send(c->opaque);
    }
}
