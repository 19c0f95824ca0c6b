/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device: the base type of what -device creates.
 *
 * Thread: main, BQL.
 */
#ifndef HW_CORE_DEVICE_H
#define HW_CORE_DEVICE_H

#include "hw/core/machine.h"
#include "util/object.h"

typedef struct Device {
    Object obj;
    Machine *machine;       /* set before any property is; NULL before */
} Device;

extern const ObjType type_device;

/*
 * Create, set, attach under /machine/peripheral (or peripheral-anon without
 * an id) and realize, from an object with "driver", perhaps "id", and
 * properties. @texts: its leaves are strings. The result is borrowed.
 */
Device *device_add(Machine *m, ObjectTree *tree, JsonValue *options, bool texts,
                   GError **errp);
/* Undo it. */
void device_del(Device *dev);

/* For messages: the id, or the type's name. Borrowed. */
const char *device_name(const Device *dev);

/*
 * The property bootindex= of a type that one can boot from, kept in the
 * int32_t @member_ (-1: none). Realizing refuses one that is taken.
 */
#define DEVICE_PROP_BOOTINDEX(type_, member_) \
    { .name = "bootindex", .type = &prop_i32, PROP_FIELD(type_, member_), .def = "-1", \
      .min = -1, .max = INT32_MAX, .help = "place in the boot order, from 0 on" }

#endif
