/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hw/core/io-bus.h"

#include <assert.h>
#include <string.h>

#include "util/err.h"

typedef struct IoRegion {
    uint64_t addr;
    uint64_t size;
    const IoOps *ops;
    void *opaque;
} IoRegion;

struct IoBus {
    char *name;
    uint64_t last;              /* the highest address */
    GArray *regions;            /* of IoRegion, by ascending address */
};

IoBus *io_bus_new(const char *name, uint64_t size)
{
    IoBus *bus = g_new0(IoBus, 1);

    bus->name = g_strdup(name);
    bus->last = size - 1;
    bus->regions = g_array_new(false, false, sizeof(IoRegion));
    return bus;
}

void io_bus_free(IoBus *bus)
{
    if (bus != NULL) {
        g_array_unref(bus->regions);
        g_free(bus->name);
        g_free(bus);
    }
}

static IoRegion *region_at(IoBus *bus, unsigned i)
{
    return &g_array_index(bus->regions, IoRegion, i);
}

/* Index of the first region that begins above @addr. */
static unsigned region_above(IoBus *bus, uint64_t addr)
{
    unsigned lo = 0;
    unsigned hi = bus->regions->len;

    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;

        if (region_at(bus, mid)->addr <= addr) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* The region with @addr in it, or NULL. */
static IoRegion *region_find(IoBus *bus, uint64_t addr)
{
    unsigned i = region_above(bus, addr);
    IoRegion *r;

    if (i == 0) {
        return NULL;
    }
    r = region_at(bus, i - 1);
    return addr - r->addr < r->size ? r : NULL;
}

bool io_bus_add(IoBus *bus, uint64_t addr, uint64_t size, const IoOps *ops, void *opaque,
                GError **errp)
{
    IoRegion region = { .addr = addr, .size = size, .ops = ops, .opaque = opaque };
    unsigned i = region_above(bus, addr);
    const IoRegion *clash = NULL;

    assert(size > 0);
    if (addr > bus->last || size - 1 > bus->last - addr) {
        err_set(errp, "%s: 0x%" G_GINT64_MODIFIER "x+0x%" G_GINT64_MODIFIER
                "x passes the end of the %s space", ops->name, addr, size, bus->name);
        return false;
    }
    if (i > 0 && addr - region_at(bus, i - 1)->addr < region_at(bus, i - 1)->size) {
        clash = region_at(bus, i - 1);
    } else if (i < bus->regions->len && region_at(bus, i)->addr - addr < size) {
        clash = region_at(bus, i);
    }
    if (clash != NULL) {
        err_set(errp, "%s: %s 0x%" G_GINT64_MODIFIER "x+0x%" G_GINT64_MODIFIER
                "x is taken by %s", ops->name, bus->name, addr, size, clash->ops->name);
        return false;
    }
    g_array_insert_val(bus->regions, i, region);
    return true;
}

void io_bus_remove(IoBus *bus, uint64_t addr)
{
    unsigned i = region_above(bus, addr);

    assert(i > 0 && region_at(bus, i - 1)->addr == addr);
    g_array_remove_index(bus->regions, i - 1);
}

/* How much of an access at @addr its region takes at once. */
static unsigned access_size(const IoRegion *r, uint64_t addr, unsigned size)
{
    unsigned max = r->ops->max_size != 0 ? r->ops->max_size : 8;

    if ((size & (size - 1)) != 0 || size > r->size - (addr - r->addr)) {
        return 1;               /* odd, or over the region's end */
    }
    return MIN(size, max);
}

static uint64_t size_mask(unsigned size)
{
    return size >= 8 ? UINT64_MAX : (1ULL << (size * 8)) - 1;
}

uint64_t io_bus_read(IoBus *bus, uint64_t addr, unsigned size)
{
    uint64_t value = 0;
    unsigned done = 0;

    while (done < size) {
        /* looked up each time: a handler may change the map */
        IoRegion *found = region_find(bus, addr + done);
        unsigned n = 1;
        uint64_t part = 0xff;

        if (found != NULL) {
            IoRegion r = *found;

            n = access_size(&r, addr + done, size - done);
            part = r.ops->read(r.opaque, addr + done - r.addr, n) & size_mask(n);
        }
        value |= part << (done * 8);
        done += n;
    }
    return value;
}

void io_bus_write(IoBus *bus, uint64_t addr, uint64_t value, unsigned size)
{
    unsigned done = 0;

    while (done < size) {
        IoRegion *found = region_find(bus, addr + done);
        unsigned n = 1;

        if (found != NULL) {
            IoRegion r = *found;

            n = access_size(&r, addr + done, size - done);
            r.ops->write(r.opaque, addr + done - r.addr,
                         value >> (done * 8) & size_mask(n), n);
        }
        done += n;
    }
}
