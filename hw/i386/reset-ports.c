/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ports by which PC software resets the machine: the keyboard controller's
 * command 0xFE at 0x64 (there is no keyboard), the reset control register 0xCF9.
 */
#include "pc-internal.h"

#define PORT_KBD 0x64
#define KBD_PULSE_RESET 0xfe
#define CF9_RESET_CPU 0x04      /* with its rising edge; bit 1 chooses hard or soft */

struct PcReset {
    Machine *machine;
};

static uint64_t kbd_read(void *opaque, uint64_t off, unsigned size)
{
    return 0;                   /* ready for a command, nothing to read */
}

static void kbd_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    PcReset *r = opaque;

    if ((value & 0xff) == KBD_PULSE_RESET) {
        machine_request_reset(r->machine);
    }
}

static const IoOps kbd_ops = {
    .name = "keyboard-reset", .read = kbd_read, .write = kbd_write, .max_size = 1,
};

void pc_reset_cf9(Machine *m, uint8_t value)
{
    if (value & CF9_RESET_CPU) {
        machine_request_reset(m);
    }
}

PcReset *pc_reset_new(Machine *m, GError **errp)
{
    PcReset *r = g_new0(PcReset, 1);

    r->machine = m;
    if (!io_bus_add(m->pio, PORT_KBD, 1, &kbd_ops, r, errp)) {
        g_free(r);
        return NULL;
    }
    return r;
}

void pc_reset_free(PcReset *r)
{
    if (r != NULL) {
        io_bus_remove(r->machine->pio, PORT_KBD);
        g_free(r);
    }
}
