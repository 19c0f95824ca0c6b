/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log-linear histogram: 128 buckets per power of two, so that a value is known to better than 0.8
 * %.
 */
#ifndef GUEST_HISTOGRAM_H
#define GUEST_HISTOGRAM_H

#include <stdint.h>

#define HIST_SUB_BITS 7
#define HIST_SUB      (1u << HIST_SUB_BITS)
#define HIST_BUCKETS  ((64 - HIST_SUB_BITS + 1) * HIST_SUB)

typedef struct Histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t min, max;
    uint32_t bucket[HIST_BUCKETS];
} Histogram;

static inline unsigned hist_bucket(uint64_t v)
{
    unsigned shift;

    if (v < HIST_SUB) {
        return v;
    }
    shift = 63 - __builtin_clzll(v) - HIST_SUB_BITS;
    return (shift + 1) * HIST_SUB + (v >> shift) - HIST_SUB;
}

/* Middle of a bucket. */
static inline uint64_t hist_value(unsigned bucket)
{
    unsigned shift;

    if (bucket < HIST_SUB) {
        return bucket;
    }
    shift = bucket / HIST_SUB - 1;
    return ((uint64_t)(bucket % HIST_SUB + HIST_SUB) << shift) + ((1ull << shift) >> 1);
}

static inline void hist_add(Histogram *h, uint64_t v)
{
    h->count++;
    h->sum += v;
    h->min = v < h->min ? v : h->min;
    h->max = v > h->max ? v : h->max;
    h->bucket[hist_bucket(v)]++;
}

static inline void hist_clear(Histogram *h)
{
    *h = (Histogram) { .min = UINT64_MAX };
}

/* The value that @parts in 10000 of all values do not exceed. */
static inline uint64_t hist_quantile(const Histogram *h, uint64_t parts)
{
    uint64_t rank = (h->count * parts + 9999) / 10000, seen = 0;

    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen >= rank && seen > 0) {
            uint64_t v = hist_value(i);

            return v > h->max ? h->max : v < h->min ? h->min : v;
        }
    }
    return h->max;
}

#endif
