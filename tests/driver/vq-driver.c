/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vq-driver.h"

#include <glib.h>
#include <string.h>
#include <sys/mman.h>

#define TEST_RAM_GPA 0x100000u

void test_ram_init(TestRam *ram, size_t size, bool split)
{
    GuestRegion r[2];

    memset(ram, 0, sizeof(*ram));
    ram->size = size;
    ram->gpa = TEST_RAM_GPA;
    ram->host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_assert_true(ram->host != MAP_FAILED);
    r[0] = (GuestRegion) { ram->gpa, split ? size / 2 : size, ram->host };
    r[1] = (GuestRegion) { ram->gpa + size / 2, size / 2, ram->host + size / 2 };
    ram->mem = guest_memory_new(r, split ? 2 : 1, NULL);
    g_assert_nonnull(ram->mem);
}

void test_ram_cleanup(TestRam *ram)
{
    g_clear_pointer(&ram->mem, guest_memory_unref);
    munmap(ram->host, ram->size);
}

void *test_ram_alloc(TestRam *ram, size_t size)
{
    void *p = ram->host + ram->next;

    ram->next = (ram->next + size + 63) & ~(size_t)63;
    g_assert_cmpuint(ram->next, <=, ram->size);
    return p;
}

uint64_t test_ram_gpa(const TestRam *ram, const void *host)
{
    return ram->gpa + ((const uint8_t *)host - ram->host);
}

void vq_driver_init(VqDriver *d, TestRam *ram, uint16_t size, bool event_idx)
{
    memset(d, 0, sizeof(*d));
    d->ram = ram;
    d->size = size;
    d->event_idx = event_idx;
    d->desc = test_ram_alloc(ram, size * sizeof(*d->desc));
    d->avail = test_ram_alloc(ram, 6 + size * 2);
    d->used = test_ram_alloc(ram, 6 + size * sizeof(struct vring_used_elem));
    d->used_event = &d->avail->ring[size];
    d->avail_event = (uint16_t *)&d->used->ring[size];
    d->free = g_new(uint16_t, size);
    d->cookies = g_new0(void *, size);
    d->chain_len = g_new0(uint16_t, size);
    for (unsigned i = 0; i < size; i++) {
        d->free[i] = size - 1 - i;
    }
    d->nfree = size;
}

void vq_driver_cleanup(VqDriver *d)
{
    g_free(d->free);
    g_free(d->cookies);
    g_free(d->chain_len);
}

VirtQueueConfig vq_driver_config(const VqDriver *d, bool indirect)
{
    return (VirtQueueConfig) {
        .size = d->size,
        .desc_gpa = test_ram_gpa(d->ram, d->desc),
        .avail_gpa = test_ram_gpa(d->ram, d->avail),
        .used_gpa = test_ram_gpa(d->ram, d->used),
        .event_idx = d->event_idx,
        .indirect = indirect,
    };
}

static struct vring_desc buf_desc(const VqDriver *d, const VqBuf *b)
{
    return (struct vring_desc) {
        .addr = test_ram_gpa(d->ram, b->host),
        .len = b->len,
        .flags = b->writable ? VRING_DESC_F_WRITE : 0,
    };
}

static uint16_t add_indirect(VqDriver *d, const VqBuf *bufs, unsigned n, struct vring_desc *table)
{
    uint16_t head = d->free[--d->nfree];

    for (unsigned i = 0; i < n; i++) {
        table[i] = buf_desc(d, &bufs[i]);
        if (i + 1 < n) {
            table[i].flags |= VRING_DESC_F_NEXT;
            table[i].next = i + 1;
        }
    }
    d->desc[head] = (struct vring_desc) {
        .addr = test_ram_gpa(d->ram, table),
        .len = n * sizeof(*table),
        .flags = VRING_DESC_F_INDIRECT,
    };
    d->chain_len[head] = 1;
    return head;
}

static uint16_t add_direct(VqDriver *d, const VqBuf *bufs, unsigned n)
{
    uint16_t head = d->free[d->nfree - 1];

    for (unsigned i = 0; i < n; i++) {
        uint16_t at = d->free[--d->nfree];

        d->desc[at] = buf_desc(d, &bufs[i]);
        if (i + 1 < n) {
            d->desc[at].flags |= VRING_DESC_F_NEXT;
            d->desc[at].next = d->free[d->nfree - 1];
        }
    }
    d->chain_len[head] = n;
    return head;
}

bool vq_driver_add(VqDriver *d, const VqBuf *bufs, unsigned n, struct vring_desc *indirect_table,
                   void *cookie)
{
    uint16_t head;

    if (d->nfree < (indirect_table != NULL ? 1 : n)) {
        return false;
    }
    head = indirect_table != NULL ? add_indirect(d, bufs, n, indirect_table)
                                  : add_direct(d, bufs, n);
    d->cookies[head] = cookie;
    __atomic_store_n(&d->avail->ring[d->next_avail & (d->size - 1)], head, __ATOMIC_RELAXED);
    d->next_avail++;
    return true;
}

bool vq_driver_publish(VqDriver *d)
{
    uint16_t old = d->published;

    /* Releases the ring; ordered before the look at what the device asks for. */
    __atomic_store_n(&d->avail->idx, d->next_avail, __ATOMIC_SEQ_CST);
    d->published = d->next_avail;
    if (d->event_idx) {
        return vring_need_event(__atomic_load_n(d->avail_event, __ATOMIC_SEQ_CST),
                                d->next_avail, old);
    }
    return !(__atomic_load_n(&d->used->flags, __ATOMIC_SEQ_CST) & VRING_USED_F_NO_NOTIFY);
}

static void chain_free(VqDriver *d, uint16_t head)
{
    uint16_t at = head;

    for (unsigned n = d->chain_len[head]; n > 0; n--) {
        d->free[d->nfree++] = at;
        at = d->desc[at].next;
    }
    d->chain_len[head] = 0;
}

void *vq_driver_get(VqDriver *d, uint32_t *len)
{
    const struct vring_used_elem *e = &d->used->ring[d->last_used & (d->size - 1)];
    uint32_t id;

    if (!vq_driver_has_used(d)) {
        return NULL;
    }
    id = __atomic_load_n(&e->id, __ATOMIC_RELAXED);
    if (len != NULL) {
        *len = __atomic_load_n(&e->len, __ATOMIC_RELAXED);
    }
    d->last_used++;
    g_assert_cmpuint(id, <, d->size);
    g_assert_cmpuint(d->chain_len[id], !=, 0);  /* in flight, not answered before */
    chain_free(d, id);
    return d->cookies[id];
}

bool vq_driver_want_interrupt(VqDriver *d, bool on)
{
    if (d->event_idx) {
        __atomic_store_n(d->used_event, on ? d->last_used : (uint16_t)(d->last_used + 0x8000),
                         __ATOMIC_SEQ_CST);
    } else {
        __atomic_store_n(&d->avail->flags, on ? 0 : VRING_AVAIL_F_NO_INTERRUPT,
                         __ATOMIC_SEQ_CST);
    }
    return __atomic_load_n(&d->used->idx, __ATOMIC_SEQ_CST) != d->last_used;
}
