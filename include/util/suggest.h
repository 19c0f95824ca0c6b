/*
 * The near miss: which known name was probably meant.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 *     Suggest s;
 *     suggest_start(&s, given);
 *     for each known name: suggest_offer(&s, name);
 *     suggest_append(&s, errp);
 */
#ifndef UTIL_SUGGEST_H
#define UTIL_SUGGEST_H

#include <glib.h>

typedef struct Suggest {
    const char *word;
    const char *best;           /* borrowed from what was offered, or NULL */
    unsigned distance;          /* of @best; no worse one is taken */
} Suggest;

/* @word is borrowed as long as @s is used. */
void suggest_start(Suggest *s, const char *word);
void suggest_offer(Suggest *s, const char *candidate);

/* Append "; did you mean 'BEST'?" to *errp if something was near enough. */
void suggest_append(const Suggest *s, GError **errp);

/*
 * Letters to insert, delete, replace or swap with their neighbour to make @b
 * of @a, case ignored; @limit + 1 when more than @limit are needed.
 */
unsigned suggest_distance(const char *a, const char *b, unsigned limit);

#endif
