/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long a cache line takes from one CPU to another and back: two threads, each on a CPU of its
 * own, hand one line to and fro. A polled virtqueue lives on exactly this, and on virtual machines
 * the cost moves by factors within minutes, so that benchmarks run this beside each pair of runs.
 *
 *     cacheline-probe [MILLISECONDS]
 *
 * Prints the median round trip, {"round_trip_ns":N,"batches":N}. Exit status 77 with fewer than two
 * CPUs.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIPS       100         /* per batch: some 10 us, shorter than a time slice */
#define MAX_BATCHES 100000
#define STOP        UINT32_MAX

typedef struct Line {
    _Alignas(128) _Atomic uint32_t ping;        /* written by main() */
    _Alignas(128) _Atomic uint32_t pong;        /* written by the other thread */
} Line;

static Line line;
static int64_t batch_ns[MAX_BATCHES];

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* The @nth CPU that this process may use, -1 if there are not so many. */
static int allowed_cpu(int nth)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return -1;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set) && nth-- == 0) {
            return cpu;
        }
    }
    return -1;
}

static void pin(pthread_t thread, int cpu)
{
    cpu_set_t set;
    int err;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    err = pthread_setaffinity_np(thread, sizeof(set), &set);
    if (err != 0) {
        fprintf(stderr, "cacheline-probe: CPU %d can't be had: %s\n", cpu, strerror(err));
        exit(1);
    }
}

/* Acquire and release pair between the threads: each sees the other's last write, as in a ring. */
static void *answer(void *opaque)
{
    uint32_t seen = 0, ping;

    do {
        while ((ping = atomic_load_explicit(&line.ping, memory_order_acquire)) == seen) {
            __builtin_ia32_pause();
        }
        seen = ping;
        atomic_store_explicit(&line.pong, ping, memory_order_release);
    } while (ping != STOP);
    return NULL;
}

static void trip(uint32_t value)
{
    atomic_store_explicit(&line.ping, value, memory_order_release);
    while (atomic_load_explicit(&line.pong, memory_order_acquire) != value) {
        __builtin_ia32_pause();
    }
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int64_t until, ms = argc > 1 ? atoi(argv[1]) : 20;
    uint32_t value = 0;
    int batches = 0, other = allowed_cpu(1), err;
    pthread_t thread;

    if (argc > 2 || ms < 1 || ms > 60000) {
        fprintf(stderr, "usage: cacheline-probe [MILLISECONDS], 1 to 60000\n");
        return 1;
    }
    if (other < 0) {
        fprintf(stderr, "cacheline-probe: two CPUs are needed\n");
        return 77;
    }
    err = pthread_create(&thread, NULL, answer, NULL);
    if (err != 0) {
        fprintf(stderr, "cacheline-probe: no thread: %s\n", strerror(err));
        return 1;
    }
    pin(pthread_self(), allowed_cpu(0));
    pin(thread, other);
    until = now_ns() + ms * 1000000;
    do {
        int64_t start = now_ns();

        for (int i = 0; i < TRIPS; i++) {
            trip(++value);
        }
        batch_ns[batches++] = now_ns() - start;
    } while (batches < MAX_BATCHES && now_ns() < until);
    trip(STOP);
    pthread_join(thread, NULL);
    qsort(batch_ns, batches, sizeof(batch_ns[0]), compare);
    printf("{\"round_trip_ns\":%" PRId64 ",\"batches\":%d}\n", batch_ns[batches / 2] / TRIPS,
           batches);
    return 0;
}
