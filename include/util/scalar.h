/*
 * Scalars as users type them: numbers, sizes, booleans, identifiers.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Each takes the whole text (no blanks around it, nothing behind it) and
 * returns false without touching the result when it is malformed or does
 * not fit. The messages for that are the caller's, or those at the end.
 */
#ifndef UTIL_SCALAR_H
#define UTIL_SCALAR_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Decimal, 0x hexadecimal or 0 octal; only i64 may carry a sign. */
bool scalar_parse_u64(const char *text, uint64_t *value);
bool scalar_parse_i64(const char *text, int64_t *value);

/*
 * Bytes: a decimal number, possibly with a fraction ("1.5G"), or a
 * hexadecimal one, then perhaps one of B K M G T P E (either case, powers of
 * 1024). Without a suffix the unit is @unit ('B', 'M', ...). The result is
 * rounded down to whole bytes. Refused from 2^64 on.
 */
bool scalar_parse_size(const char *text, char unit, uint64_t *bytes);

/* on, yes, true, y; off, no, false, n. */
bool scalar_parse_bool(const char *text, bool *value);

/* A letter, then letters, digits, '-', '.' and '_'. */
bool scalar_is_identifier(const char *text);

/* Messages for a parameter whose value @given is none of these. */
void scalar_err_number(GError **errp, const char *param, int64_t min, uint64_t max,
                       const char *given);
void scalar_err_size(GError **errp, const char *param, int64_t min, uint64_t max,
                     const char *given);
void scalar_err_bool(GError **errp, const char *param, const char *given);

#endif
