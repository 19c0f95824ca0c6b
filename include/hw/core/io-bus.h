/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IoBus: who answers at which address. A machine has one for ports and one
 * for memory-mapped registers; vCPU exits and the qtest socket dispatch
 * through it.
 *
 * Thread: BQL. Regions don't overlap. A handler may add and remove regions,
 * its own too.
 */
#ifndef HW_CORE_IO_BUS_H
#define HW_CORE_IO_BUS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct IoBus IoBus;

/*
 * @off counts from the region's start; off + size never passes its end.
 * @size: 1, 2, 4 or 8, of any alignment; a device that knows only some sizes
 * says so and the bus splits wider and widens narrower accesses for reads.
 */
typedef struct IoOps {
    const char *name;               /* for logs and trace */
    uint64_t (*read)(void *opaque, uint64_t off, unsigned size);
    void (*write)(void *opaque, uint64_t off, uint64_t value, unsigned size);
    unsigned max_size;              /* wider accesses arrive as several; 0: 8 */
} IoOps;

/* @size: of the whole space (0x10000 for ports, 0: 64 bits). */
IoBus *io_bus_new(const char *name, uint64_t size);
void io_bus_free(IoBus *bus);

/* @ops and @opaque live until io_bus_remove(). Fails when it would overlap
 * another region or pass the end of the space. */
bool io_bus_add(IoBus *bus, uint64_t addr, uint64_t size, const IoOps *ops, void *opaque,
                GError **errp);
void io_bus_remove(IoBus *bus, uint64_t addr);

/* Where nobody answers reads give all ones and writes vanish. */
uint64_t io_bus_read(IoBus *bus, uint64_t addr, unsigned size);
void io_bus_write(IoBus *bus, uint64_t addr, uint64_t value, unsigned size);

#endif
