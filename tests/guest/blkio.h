/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block requests on a virtqueue. A BlkQ owns a fixed set of slots; each has its header, status byte
 * and descriptors for life, so that a request costs a few stores.
 */
#ifndef GUEST_BLKIO_H
#define GUEST_BLKIO_H

#include "virtio.h"

#define SECTOR        512
#define MAX_SEGS      256
#define NO_SLOT       0xffff
#define STATUS_UNSET  0xff

/* One piece of a request; @in: the device writes it. */
typedef struct Seg {
    const volatile void *p;
    uint32_t len;
    bool in;
} Seg;

/* Header and status share a cache line, as in most drivers. */
typedef struct ReqHead {
    struct virtio_blk_outhdr hdr;
    volatile uint8_t status;
    uint8_t pad[47];
} ReqHead;

typedef struct Slot {
    ReqHead *head;
    uint8_t *data;
    struct vring_desc *table;   /* where its chain is written */
    uint16_t first;             /* index of table[0]; 0 for an indirect table */
    uint16_t id;                /* what goes into the available ring */
    bool busy;
    uint64_t started;           /* TSC */
    uint64_t tag;               /* the user's */
} Slot;

typedef struct BlkQ {
    Vq *vq;
    Slot *slots;
    uint16_t nslots;
    uint16_t max_desc;          /* descriptors per slot */
    bool indirect;
    uint16_t *slot_of;          /* by descriptor index; NO_SLOT: not the head of any slot's chain */
    uint64_t bad_ids;           /* completions of what was not in flight */
    uint32_t last_len;          /* bytes written, as the device said for the last slot reaped */
} BlkQ;

/*
 * @nslots requests at once, each with @max_segs data segments at most and @data_bytes of buffer (0:
 * none). Indirect descriptors are used when they were negotiated. Ends the guest if the ring is too small.
 */
void blkq_init(BlkQ *b, Vq *q, unsigned nslots, unsigned max_segs, uint64_t data_bytes);

/* Write @slot's chain: the header, @segs, the status byte. */
void slot_describe(BlkQ *b, Slot *s, const Seg *segs, unsigned nsegs);
/* Write @slot's chain from @segs alone, which hold header and status wherever the caller likes. */
void slot_describe_raw(BlkQ *b, Slot *s, const Seg *segs, unsigned nsegs);

/* Queue the request; it starts with the next vq_publish(). */
static inline void slot_submit(BlkQ *b, Slot *s, uint32_t type, uint64_t sector)
{
    s->head->hdr.type = type;
    s->head->hdr.sector = sector;
    s->head->status = STATUS_UNSET;
    s->busy = true;
    vq_add(b->vq, s->id);
}

/* Take one completion; NULL when there is none. Answers for unknown requests are counted and skipped. */
Slot *blkq_reap(BlkQ *b);

/*
 * One request from start to end, polled: the status byte, or -1 when nothing came back within
 * @timeout_ms.
 */
int blkq_sync(BlkQ *b, uint32_t type, uint64_t sector, const Seg *segs, unsigned nsegs,
              uint64_t timeout_ms);

/* Print what the queue looks like and leave: a request was not answered in time. */
__attribute__((noreturn)) void blkq_stalled(const BlkQ *b, const char *op);

#endif
