/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "virtio/guest-memory.h"

#include <inttypes.h>
#include <string.h>

#include "util/err.h"

static int region_cmp(const void *a, const void *b)
{
    const GuestRegion *x = a, *y = b;

    return x->gpa < y->gpa ? -1 : x->gpa > y->gpa;
}

static bool regions_check(const GuestMemory *mem, GError **errp)
{
    for (unsigned i = 0; i < mem->nregions; i++) {
        const GuestRegion *r = &mem->regions[i];

        if (r->size == 0 || r->host == NULL) {
            err_set(errp, "guest memory region at 0x%" PRIx64 " is empty", r->gpa);
            return false;
        }
        if (r->gpa > UINT64_MAX - r->size) {
            err_set(errp, "guest memory region at 0x%" PRIx64 " of 0x%" PRIx64
                    " bytes wraps around", r->gpa, r->size);
            return false;
        }
        if (i > 0 && r->gpa < r[-1].gpa + r[-1].size) {
            err_set(errp, "guest memory regions at 0x%" PRIx64 " and 0x%" PRIx64 " overlap",
                    r[-1].gpa, r->gpa);
            return false;
        }
    }
    return true;
}

GuestMemory *guest_memory_new(const GuestRegion *regions, unsigned nregions, GError **errp)
{
    g_autoptr(GuestMemory) mem = NULL;

    if (nregions == 0) {
        err_set(errp, "guest memory has no region");
        return NULL;
    }
    mem = g_malloc(sizeof(*mem) + nregions * sizeof(regions[0]));
    mem->refs = 1;
    mem->nregions = nregions;
    memcpy(mem->regions, regions, nregions * sizeof(regions[0]));
    qsort(mem->regions, nregions, sizeof(regions[0]), region_cmp);
    return regions_check(mem, errp) ? g_steal_pointer(&mem) : NULL;
}

GuestMemory *guest_memory_ref(GuestMemory *mem)
{
    g_atomic_int_inc(&mem->refs);
    return mem;
}

void guest_memory_unref(GuestMemory *mem)
{
    if (mem != NULL && g_atomic_int_dec_and_test(&mem->refs)) {
        g_free(mem);
    }
}

/* True when every byte of the range is RAM. */
static bool range_is_ram(const GuestMemory *mem, uint64_t gpa, uint64_t len)
{
    while (len > 0) {
        const GuestRegion *r = guest_memory_region(mem, gpa);
        uint64_t n;

        if (r == NULL) {
            return false;
        }
        n = MIN(len, r->size - (gpa - r->gpa));
        gpa += n;
        len -= n;
    }
    return true;
}

static bool memory_copy(const GuestMemory *mem, uint64_t gpa, uint8_t *buf, size_t len, bool write)
{
    if (!range_is_ram(mem, gpa, len)) {
        return false;
    }
    while (len > 0) {
        const GuestRegion *r = guest_memory_region(mem, gpa);
        uint8_t *host = r->host + (gpa - r->gpa);
        size_t n = MIN(len, r->size - (gpa - r->gpa));

        memcpy(write ? host : buf, write ? buf : host, n);
        gpa += n;
        buf += n;
        len -= n;
    }
    return true;
}

bool guest_memory_read(const GuestMemory *mem, uint64_t gpa, void *buf, size_t len)
{
    return memory_copy(mem, gpa, buf, len, false);
}

bool guest_memory_write(const GuestMemory *mem, uint64_t gpa, const void *buf, size_t len)
{
    return memory_copy(mem, gpa, (uint8_t *)buf, len, true);
}
