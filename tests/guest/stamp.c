/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stamp.h"

#define STAMP_MAGIC 0x706d61747374656eu
#define WORDS       64

enum { WORD_MAGIC, WORD_LBA, WORD_GENERATION, WORD_SEED, WORD_FILL, WORD_SUM = WORDS - 1 };

static uint64_t sum_words(const uint64_t *w)
{
    uint64_t sum = 0x243f6a8885a308d3u;

    for (unsigned i = 0; i < WORD_SUM; i++) {
        sum = (sum ^ w[i]) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return sum;
}

void stamp_write(void *sector, uint64_t lba, uint64_t generation, uint64_t seed)
{
    uint64_t *w = sector;
    uint64_t fill = lba * 0xbf58476d1ce4e5b9u + generation * 0x94d049bb133111ebu + seed;

    w[WORD_MAGIC] = STAMP_MAGIC;
    w[WORD_LBA] = lba;
    w[WORD_GENERATION] = generation;
    w[WORD_SEED] = seed;
    for (unsigned i = WORD_FILL; i < WORD_SUM; i++) {
        fill = fill * 6364136223846793005u + 1442695040888963407u;
        w[i] = fill;
    }
    w[WORD_SUM] = sum_words(w);
}

StampState stamp_check(const void *sector, uint64_t lba, uint64_t seed, uint64_t *generation)
{
    const uint64_t *w = sector;

    if (w[WORD_MAGIC] != STAMP_MAGIC) {
        return STAMP_NONE;
    }
    if (w[WORD_SUM] != sum_words(w)) {
        return STAMP_CORRUPT;
    }
    if (w[WORD_LBA] != lba || w[WORD_SEED] != seed) {
        return STAMP_MISPLACED;
    }
    *generation = w[WORD_GENERATION];
    return STAMP_GOOD;
}

const char *stamp_state_name(StampState s)
{
    static const char *const names[] = { "good", "none", "misplaced", "corrupt" };

    return names[s];
}
