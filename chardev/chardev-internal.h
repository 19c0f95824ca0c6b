/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of chardev/. */
#ifndef CHARDEV_CHARDEV_INTERNAL_H
#define CHARDEV_CHARDEV_INTERNAL_H

#include "chardev/chardev.h"

Chardev *chardev_stdio_open(const char *arg, bool signals, GError **errp);
Chardev *chardev_file_open(const char *path, bool signals, GError **errp);

/* What the front end of @c can take now; 0 without one. */
size_t chardev_front_room(const Chardev *c);
void chardev_front_receive(Chardev *c, const uint8_t *buf, size_t len);
void chardev_front_can_send(Chardev *c);

#endif
