/*
 * The simple backend: binary records (simpletrace v4) in a file.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Each thread writes its events to a ring of its own, without a lock or a system call; one
 * writer thread empties the rings into the file. A full ring loses the event, which is counted,
 * and the count goes to the file. Not for use in signal handlers.
 *
 * A record in a ring consists of 64-bit words: id (low half) and bytes of payload (high half),
 * time stamp, payload as it will stand in the file, padded to a whole word.
 *
 * trace_simple_begin() to trace_simple_end() are for generated code, in any thread.
 */
#ifndef TRACE_SIMPLE_H
#define TRACE_SIMPLE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "trace/clock.h"

#define TRACE_SIMPLE_HEAD 16            /* bytes of a record before its payload */
#define TRACE_SIMPLE_STRING_MAX 512     /* bytes of a string; longer ones are cut */
#define TRACE_SIMPLE_RING_WORDS (1u << 18)
#define TRACE_SIMPLE_PAD UINT32_MAX     /* id of filler; its payload is a count of words */

/* A ring: one thread puts, the writer takes. Positions count words and only grow. */
typedef struct TraceRing TraceRing;
struct TraceRing {
    /* of the thread */
    uint64_t *words;
    uint64_t pos;                       /* where its next record begins */
    uint64_t limit;                     /* it may write up to here without looking at tail */
    uint64_t woken_tail;                /* the tail when it last woke the writer, plus 1 */
    uint64_t lost;                      /* events; relaxed, only this thread writes */
    /* shared */
    uint64_t head __attribute__((aligned(64))); /* release: thread; acquire: writer */
    uint64_t tail __attribute__((aligned(64))); /* release: writer; acquire: thread */
    uint32_t state;                     /* see simple.c */
    uint64_t lost_seen;                 /* of the writer: part of lost already in the file */
    TraceRing *next;                    /* constant once the ring is on the list */
};

/* Relaxed: pairs with trace_simple_open() and trace_simple_stop(), publishes nothing. */
extern bool trace_simple_active;
extern __thread TraceRing *trace_simple_ring;

static inline bool trace_simple_on(void)
{
    return __atomic_load_n(&trace_simple_active, __ATOMIC_RELAXED);
}

/* The calling thread's ring with room for @words, or NULL: the event is counted as lost. */
TraceRing *trace_simple_make_room(unsigned words);

static inline unsigned trace_simple_words(uint32_t bytes)
{
    return (TRACE_SIMPLE_HEAD + bytes + 7) / 8;
}

/* Begin a record with @bytes of payload: where it stands, or NULL if it is lost. */
static inline uint8_t *trace_simple_begin(uint32_t id, uint32_t bytes)
{
    TraceRing *ring = trace_simple_ring;
    unsigned words = trace_simple_words(bytes);
    uint64_t *rec;

    if (__builtin_expect(!ring || ring->pos + words > ring->limit, 0)) {
        ring = trace_simple_make_room(words);
        if (!ring) {
            return NULL;
        }
    }
    rec = &ring->words[ring->pos % TRACE_SIMPLE_RING_WORDS];
    rec[0] = (uint64_t)bytes << 32 | id;
    rec[1] = trace_clock_read();
    return (uint8_t *)rec;
}

/* Publish it: the writer's acquire load of head sees all of it. */
static inline void trace_simple_end(uint8_t *rec, uint32_t bytes)
{
    TraceRing *ring = trace_simple_ring;

    ring->pos += trace_simple_words(bytes);
    __atomic_store_n(&ring->head, ring->pos, __ATOMIC_RELEASE);
}

static inline uint8_t *trace_simple_u64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline uint32_t trace_simple_strlen(const char *s)
{
    return s ? (uint32_t)strnlen(s, TRACE_SIMPLE_STRING_MAX) : 0;
}

static inline uint8_t *trace_simple_str(uint8_t *at, const char *s, uint32_t len)
{
    memcpy(at, &len, sizeof(len));
    if (len > 0) {
        memcpy(at + sizeof(len), s, len);
    }
    return at + sizeof(len) + len;
}

/*
 * Main thread. open() makes or takes @path, leaves its content alone, and lets threads record;
 * start() empties the file, starts the writer thread, and arranges for a flush at exit() and at
 * a fatal signal; stop() writes what the rings hold and ends all this. An open file that was
 * never started gets its records at stop(), or is forgotten when another one is opened.
 */
bool trace_simple_open(const char *path, GError **errp);
bool trace_simple_is_open(void);
bool trace_simple_start(GError **errp);
void trace_simple_stop(void);

/* Any thread; between start() and stop(). What was recorded before is in the file (or counted
 * as lost) when this returns. */
void trace_simple_flush(void);

/* Since open(): events in the file, and events lost to full rings or a file that took no more.
 * Exact once trace_simple_stop() has returned. */
typedef struct TraceSimpleStats {
    uint64_t written;
    uint64_t lost;
} TraceSimpleStats;

void trace_simple_get_stats(TraceSimpleStats *stats);

#endif
