/*
 * The near miss: which known name was probably meant.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/suggest.h"

#include <string.h>

#include "util/err.h"

enum {
    WORD_MAX = 63,              /* longer words are never compared */
    PREFIX_MIN = 4,             /* letters that make the beginning of a name */
};

/* One row of the edit-distance table from the two before it. */
static unsigned distance_row(const char *a, size_t i, const char *b, size_t blen,
                             const unsigned *two, const unsigned *one, unsigned *row)
{
    unsigned least = i + 1;

    row[0] = i + 1;
    for (size_t j = 0; j < blen; j++) {
        char ca = g_ascii_tolower(a[i]);
        char cb = g_ascii_tolower(b[j]);
        unsigned cost = MIN(one[j + 1], row[j]) + 1;

        cost = MIN(cost, one[j] + (ca != cb));
        if (i > 0 && j > 0 && ca == g_ascii_tolower(b[j - 1]) &&
            cb == g_ascii_tolower(a[i - 1])) {
            cost = MIN(cost, two[j - 1] + 1);
        }
        row[j + 1] = cost;
        least = MIN(least, cost);
    }
    return least;
}

unsigned suggest_distance(const char *a, const char *b, unsigned limit)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *two = rows[0], *one = rows[1], *row = rows[2];
    size_t alen = strnlen(a, WORD_MAX + 1);
    size_t blen = strnlen(b, WORD_MAX + 1);

    if (alen > WORD_MAX || blen > WORD_MAX || MAX(alen, blen) - MIN(alen, blen) > limit) {
        return limit + 1;
    }
    for (size_t j = 0; j <= blen; j++) {
        two[j] = one[j] = j;
    }
    for (size_t i = 0; i < alen; i++) {
        unsigned *spare = two;

        if (distance_row(a, i, b, blen, two, one, row) > limit) {
            return limit + 1;
        }
        two = one;
        one = row;
        row = spare;
    }
    return MIN(one[blen], limit + 1);
}

void suggest_start(Suggest *s, const char *word)
{
    size_t len = strnlen(word, WORD_MAX + 1);

    s->word = word;
    s->best = NULL;
    /* a third of the letters may be wrong; of one or two letters, one */
    s->distance = MAX(len / 3, 1);
    if (len == 0 || len > WORD_MAX) {
        s->word = NULL;
    }
}

void suggest_offer(Suggest *s, const char *candidate)
{
    unsigned distance;

    /* a word all of whose letters are replaced is no near miss */
    if (!s->word || strlen(candidate) <= 1) {
        return;
    }
    distance = suggest_distance(s->word, candidate, s->distance);
    if (distance > s->distance && strlen(s->word) >= PREFIX_MIN &&
        g_ascii_strncasecmp(s->word, candidate, strlen(s->word)) == 0) {
        distance = s->distance;         /* cut short: the weakest of reasons */
    }
    if (distance < s->distance || (distance == s->distance && !s->best)) {
        s->best = candidate;
        s->distance = distance;
    }
}

void suggest_append(const Suggest *s, GError **errp)
{
    if (s->best) {
        err_append(errp, "; did you mean '%s'?", s->best);
    }
}
