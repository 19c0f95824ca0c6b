/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver that breaks the rules. Each case starts from a fresh device, does one thing wrong and
 * looks at what comes of it; then the device is reset and has to serve a good request. The disk's
 * content is not spared.
 */
#ifndef GUEST_HOSTILE_H
#define GUEST_HOSTILE_H

#include "blkio.h"

/* An address that is no RAM on any machine that this guest runs on. */
#define NOWHERE       (1ull << 40)
#define HOSTILE_DATA  4096
#define HOSTILE_TABLE 2048 /* entries of the indirect table */

/* What can come of a malformed request; also masks of what is allowed. */
enum {
    ANSWER_OK = 1,              /* used, status 0 */
    ANSWER_ERROR = 2,           /* used, another status */
    ANSWER_NONE = 4,            /* used, status byte untouched */
    NEEDS_RESET = 8,            /* the device says that it is broken */
    SILENT = 16,                /* nothing for half a second */
};

typedef struct Hostile {
    const Params *p;
    VirtioDev *dev;
    Vq *q;
    struct vring_desc *desc;    /* the ring's; a good read of sector 0 in 0, 1, 2 */
    struct vring_desc *table;   /* the same as an indirect table */
    ReqHead *head;
    uint8_t *data;
    uint16_t avail_idx;         /* published: 1 unless the case changes it */
    uint64_t capacity;          /* sectors */
    uint64_t ram_top;           /* first address after the RAM that the guest lives in */
} Hostile;

/* A malformed request in an otherwise well-run queue. */
typedef struct QueueCase {
    const char *name;
    void (*spoil)(Hostile *h);
    unsigned allowed;
    bool no_indirect;           /* run without that feature */
} QueueCase;

/* Registers used wrongly: NULL, or what is wrong with the device's behaviour. */
typedef struct RegisterCase {
    const char *name;
    const char *(*run)(Hostile *h);
} RegisterCase;

extern const QueueCase queue_cases[];
extern const unsigned queue_case_count;
extern const RegisterCase register_cases[];
extern const unsigned register_case_count;

/* Reset, negotiate, one queue, a good chain prepared but not published. @ready: DRIVER_OK is
 * set. */
void hostile_begin(Hostile *h, bool indirect, bool ready);
/* Publish h->avail_idx and kick. */
void hostile_kick(Hostile *h);
/* Wait for the outcome, half a second at most. */
unsigned hostile_outcome(Hostile *h);
/* A fresh start and a good read; false if that fails. */
bool hostile_recovers(Hostile *h);

#endif
