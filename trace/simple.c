/*
 * The simple backend, first half: threads put events into rings.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A ring belongs to one thread from its first event to its end, then waits for another thread.
 * The writer keeps taking from it all the while and needs not know whose it is.
 */
#include "trace/simple.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "trace/simple-ring.h"

enum { RING_FREE, RING_USED };

bool trace_simple_active;
__thread TraceRing *trace_simple_ring;

static TraceRing *rings;                /* release: ring_new(); acquire: the walkers */
static unsigned ring_count;             /* relaxed, a limit only */
static uint64_t lost_without_ring;      /* relaxed, a count only */
static uint64_t lost_without_ring_seen; /* of the writer */
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

/* The end of a thread. An event after this takes a ring again, and this runs again. */
static void ring_detach(void *opaque)
{
    TraceRing *ring = opaque;

    trace_simple_ring = NULL;
    /* Pairs with the exchange in ring_reuse(): its next owner sees pos and limit. */
    __atomic_store_n(&ring->state, RING_FREE, __ATOMIC_RELEASE);
}

static void exit_key_make(void)
{
    /* Without a key, rings of dead threads are not reused; nothing else is lost. */
    if (pthread_key_create(&exit_key, ring_detach) != 0) {
        exit_key = (pthread_key_t)-1;
    }
}

static TraceRing *ring_reuse(void)
{
    for (TraceRing *ring = trace_simple_rings(); ring; ring = ring->next) {
        uint32_t expected = RING_FREE;

        /* Acquire: pairs with ring_detach(). */
        if (__atomic_compare_exchange_n(&ring->state, &expected, RING_USED, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return ring;
        }
    }
    return NULL;
}

static TraceRing *ring_new(void)
{
    TraceRing *ring;
    void *words;

    if (__atomic_fetch_add(&ring_count, 1, __ATOMIC_RELAXED) >= TRACE_SIMPLE_RINGS_MAX) {
        __atomic_fetch_sub(&ring_count, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    ring = aligned_alloc(__alignof__(*ring), sizeof(*ring));
    words = mmap(NULL, TRACE_SIMPLE_RING_WORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!ring || words == MAP_FAILED) {
        if (words != MAP_FAILED) {
            munmap(words, TRACE_SIMPLE_RING_WORDS * sizeof(uint64_t));
        }
        free(ring);
        __atomic_fetch_sub(&ring_count, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    *ring = (TraceRing) { .words = words, .state = RING_USED };
    ring->next = __atomic_load_n(&rings, __ATOMIC_RELAXED);
    /* Release: pairs with trace_simple_rings(). */
    while (!__atomic_compare_exchange_n(&rings, &ring->next, ring, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return ring;
}

static TraceRing *ring_attach(void)
{
    TraceRing *ring = ring_reuse();

    if (!ring) {
        ring = ring_new();
    }
    if (ring) {
        pthread_once(&exit_key_once, exit_key_make);
        if (exit_key != (pthread_key_t)-1) {
            pthread_setspecific(exit_key, ring);
        }
        trace_simple_ring = ring;
    }
    return ring;
}

static void wake_writer_once(TraceRing *ring, uint64_t tail)
{
    if (ring->woken_tail != tail + 1) {
        ring->woken_tail = tail + 1;
        trace_simple_wake_writer();
    }
}

/* A record doesn't wrap: fill up what is left before the end if it is too short. */
static void skip_to_start(TraceRing *ring, unsigned left)
{
    ring->words[ring->pos % TRACE_SIMPLE_RING_WORDS] = (uint64_t)left << 32 | TRACE_SIMPLE_PAD;
    ring->pos += left;
    /* Release: pairs with the writer's load, as in trace_simple_end(). */
    __atomic_store_n(&ring->head, ring->pos, __ATOMIC_RELEASE);
}

TraceRing *trace_simple_make_room(unsigned words)
{
    TraceRing *ring = trace_simple_ring;
    uint64_t tail, half, end_of_lap;
    unsigned left, needed;

    if (!ring) {
        ring = ring_attach();
        if (!ring) {
            __atomic_fetch_add(&lost_without_ring, 1, __ATOMIC_RELAXED);
            return NULL;
        }
    }
    /* Acquire: pairs with the writer's release, after which it no longer reads the words. */
    tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    left = TRACE_SIMPLE_RING_WORDS - ring->pos % TRACE_SIMPLE_RING_WORDS;
    needed = words <= left ? words : left + words;
    half = tail + TRACE_SIMPLE_RING_WORDS / 2;
    if (ring->pos + needed > half) {
        wake_writer_once(ring, tail);
    }
    if (ring->pos + needed > tail + TRACE_SIMPLE_RING_WORDS) {
        __atomic_store_n(&ring->lost, ring->lost + 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (words > left) {
        skip_to_start(ring, left);
    }
    end_of_lap = ring->pos - ring->pos % TRACE_SIMPLE_RING_WORDS + TRACE_SIMPLE_RING_WORDS;
    ring->limit = ring->pos + words <= half ? half : tail + TRACE_SIMPLE_RING_WORDS;
    ring->limit = MIN(ring->limit, end_of_lap);
    return ring;
}

TraceRing *trace_simple_rings(void)
{
    /* Acquire: pairs with ring_new(). */
    return __atomic_load_n(&rings, __ATOMIC_ACQUIRE);
}

uint64_t trace_simple_take_lost(void)
{
    uint64_t now = __atomic_load_n(&lost_without_ring, __ATOMIC_RELAXED);
    uint64_t lost = now - lost_without_ring_seen;

    lost_without_ring_seen = now;
    for (TraceRing *ring = trace_simple_rings(); ring; ring = ring->next) {
        now = __atomic_load_n(&ring->lost, __ATOMIC_RELAXED);
        lost += now - ring->lost_seen;
        ring->lost_seen = now;
    }
    return lost;
}

void trace_simple_discard(void)
{
    trace_simple_take_lost();
    for (TraceRing *ring = trace_simple_rings(); ring; ring = ring->next) {
        /* Acquire and release: as the writer does. */
        uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

        __atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
    }
}
