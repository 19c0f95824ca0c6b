/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * isa-debug-exit: a write of VALUE to its port ends the process with status
 * (VALUE << 1) | 1, so that a guest test can say how it went.
 */
#include "hw/core/device.h"
#include "hw/i386/pc.h"
#include "util/err.h"

typedef struct DebugExit {
    Device dev;
    uint32_t iobase, iosize;
} DebugExit;

static uint64_t debug_exit_read(void *opaque, uint64_t off, unsigned size)
{
    return 0;
}

static void debug_exit_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    DebugExit *d = opaque;

    machine_request_shutdown(d->dev.machine, SHUTDOWN_GUEST_SHUTDOWN,
                             ((unsigned)value << 1 | 1) & 0xff);
}

static const IoOps debug_exit_ops = {
    .name = "isa-debug-exit", .read = debug_exit_read, .write = debug_exit_write, .max_size = 4,
};

static bool debug_exit_realize(Object *obj, GError **errp)
{
    DebugExit *d = (DebugExit *)obj;

    return io_bus_add(d->dev.machine->pio, d->iobase, d->iosize, &debug_exit_ops, d, errp);
}

static void debug_exit_unrealize(Object *obj)
{
    DebugExit *d = (DebugExit *)obj;

    io_bus_remove(d->dev.machine->pio, d->iobase);
}

static const ObjProp debug_exit_props[] = {
    { .name = "iobase", .type = &prop_u32, PROP_FIELD(DebugExit, iobase), .def = "0x501",
      .min = 0, .max = 0xffff, .help = "the port" },
    { .name = "iosize", .type = &prop_u32, PROP_FIELD(DebugExit, iosize), .def = "0x2",
      .min = 1, .max = 4, .help = "how many ports it takes" },
    { 0 },
};

const ObjType type_isa_debug_exit = {
    .name = "isa-debug-exit",
    .parent = &type_device,
    .desc = "ends the process with a status that the guest chooses",
    .category = "Misc",
    .bus = "ISA",
    .size = sizeof(DebugExit),
    .flags = OBJ_DEVICE,
    .props = debug_exit_props,
    .realize = debug_exit_realize,
    .unrealize = debug_exit_unrealize,
};
