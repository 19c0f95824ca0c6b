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
    uint16_t *chain;            /* shared descriptors: those that the chain is made of */
    uint16_t nchain;
} Slot;

typedef struct BlkQ {
    Vq *vq;
    Slot *slots;
    uint16_t nslots;
    uint16_t max_desc;          /* descriptors per slot */
    bool indirect;
    bool shared;                /* slots share the free descriptors: no indirect tables */
    uint16_t *free;             /* that list, a stack */
    uint16_t nfree;
    uint16_t *slot_of;          /* by descriptor index; NO_SLOT: not the head of any slot's chain */
    uint64_t bad_ids;           /* completions of what was not in flight */
    uint32_t last_len;          /* bytes written, as the device said for the last slot reaped */
} BlkQ;

/*
 * @nslots requests at once, each with @max_segs data segments at most and @data_bytes of buffer
 * (0: none). Indirect descriptors are used when they were negotiated. Ends the guest if the ring
 * is too small.
 */
void blkq_init(BlkQ *b, Vq *q, unsigned nslots, unsigned max_segs, uint64_t data_bytes);

/*
 * As blkq_init() without buffers, but where there are no indirect descriptors, the slots share the
 * ring's: chains are as long as they need to be and come in any order of indices, and
 * slot_describe_raw() fails while too few are free.
 */
void blkq_init_shared(BlkQ *b, Vq *q, unsigned nslots, unsigned max_segs);

/* Write @slot's chain: the header, @segs, the status byte. */
void slot_describe(BlkQ *b, Slot *s, const Seg *segs, unsigned nsegs);
/* Write @slot's chain from @segs alone, which hold header and status wherever the caller likes. */
bool slot_describe_raw(BlkQ *b, Slot *s, const Seg *segs, unsigned nsegs);

/* Queue what is described; it starts with the next vq_publish(). */
static inline void slot_queue(BlkQ *b, Slot *s)
{
    s->busy = true;
    vq_add(b->vq, s->id);
}

/* The same with the slot's own header and status byte. */
static inline void slot_submit(BlkQ *b, Slot *s, uint32_t type, uint64_t sector)
{
    s->head->hdr.type = type;
    s->head->hdr.sector = sector;
    s->head->status = STATUS_UNSET;
    slot_queue(b, s);
}

/* Take one completion; NULL when there is none. Answers for unknown requests are counted and
 * skipped. */
Slot *blkq_reap(BlkQ *b);

/*
 * One request from start to end, polled: the status byte, or -1 when nothing came back within
 * @timeout_ms.
 */
int blkq_sync(BlkQ *b, uint32_t type, uint64_t sector, const Seg *segs, unsigned nsegs,
              uint64_t timeout_ms);

/*
 * Wait for an interrupt of one of @n queues unless a used ring has something already; interrupts
 * are wanted only meanwhile. @halt: in HLT, else watching the interrupt counter. Returns after
 * about 100 ms at the latest (lapic_timer() must tick for @halt). False: a completion has come for
 * which the device owes an interrupt, and none came.
 */
bool blkq_wait(Vq *const *queues, unsigned n, bool halt);

/* Print what the queue looks like and leave: a request was not answered in time. */
__attribute__((noreturn)) void blkq_stalled(const BlkQ *b, const char *op);

#endif
