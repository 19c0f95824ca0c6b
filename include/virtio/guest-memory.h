/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GuestMemory: where guest-physical addresses are in this process.
 *
 * An immutable, reference-counted snapshot. A machine builds one from its
 * memory slots, a vhost-user connection from its memory table. Whoever changes
 * the layout builds a new one and hands it over while the queues are drained.
 * Any thread may read. Source of the model: VIRTIO 1.2 §2.7 (all addresses in a
 * virtqueue are guest-physical).
 */
#ifndef VIRTIO_GUEST_MEMORY_H
#define VIRTIO_GUEST_MEMORY_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct GuestRegion {
    uint64_t gpa;               /* bytes */
    uint64_t size;              /* bytes, > 0 */
    uint8_t *host;              /* mapped read-write for the life of the map */
} GuestRegion;

typedef struct GuestMemory {
    int refs;                   /* atomic */
    unsigned nregions;
    GuestRegion regions[];      /* sorted by gpa, no overlap */
} GuestMemory;

/* @regions are copied. Errors: overlap, wrap-around, empty region, none at all. */
GuestMemory *guest_memory_new(const GuestRegion *regions, unsigned nregions, GError **errp);
GuestMemory *guest_memory_ref(GuestMemory *mem);
void guest_memory_unref(GuestMemory *mem);

/* The region that holds @gpa, NULL if none does. */
static inline const GuestRegion *guest_memory_region(const GuestMemory *mem, uint64_t gpa)
{
    for (unsigned i = 0; i < mem->nregions; i++) {
        const GuestRegion *r = &mem->regions[i];

        if (gpa - r->gpa < r->size) {
            return r;
        }
    }
    return NULL;
}

/* Host address of [@gpa, @gpa + @len), NULL unless one region holds all of it. */
static inline void *guest_memory_ptr(const GuestMemory *mem, uint64_t gpa, uint64_t len)
{
    const GuestRegion *r = guest_memory_region(mem, gpa);

    if (r == NULL || len > r->size - (gpa - r->gpa)) {
        return NULL;
    }
    return r->host + (gpa - r->gpa);
}

/* Copy to or from guest memory, across regions if need be; false and nothing
 * outside guest RAM touched when a part isn't RAM. */
bool guest_memory_read(const GuestMemory *mem, uint64_t gpa, void *buf, size_t len);
bool guest_memory_write(const GuestMemory *mem, uint64_t gpa, const void *buf, size_t len);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(GuestMemory, guest_memory_unref)

#endif
