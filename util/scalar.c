/*
 * Scalars as users type them.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/scalar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"

bool scalar_parse_u64(const char *text, uint64_t *value)
{
    unsigned long long v;
    char *end;

    /* strtoull() would skip blanks and take a sign */
    if (!g_ascii_isdigit(text[0])) {
        return false;
    }
    errno = 0;
    v = strtoull(text, &end, 0);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    *value = v;
    return true;
}

bool scalar_parse_i64(const char *text, int64_t *value)
{
    bool negative = text[0] == '-';
    uint64_t v;

    if (!scalar_parse_u64(text + ((negative || text[0] == '+') ? 1 : 0), &v)) {
        return false;
    }
    if (negative) {
        if (v > (uint64_t)INT64_MAX + 1) {
            return false;
        }
        *value = (int64_t)-v;
    } else {
        if (v > INT64_MAX) {
            return false;
        }
        *value = (int64_t)v;
    }
    return true;
}

/* The power of two behind a suffix, or -1. */
static int suffix_shift(char suffix)
{
    static const char suffixes[] = "BKMGTPE";
    const char *at;

    if (suffix == '\0') {
        return -1;
    }
    at = strchr(suffixes, g_ascii_toupper(suffix));
    return at ? 10 * (int)(at - suffixes) : -1;
}

/*
 * The digits behind the point as a fraction of 10^18. Leaves *text behind
 * them; false without any digit or with too many to be exact.
 */
static bool parse_fraction(const char **text, uint64_t *fraction)
{
    uint64_t scale = 100000000000000000;
    const char *p = *text;

    *fraction = 0;
    if (!g_ascii_isdigit(*p)) {
        return false;
    }
    for (; g_ascii_isdigit(*p); p++) {
        if (scale == 0) {
            return false;
        }
        *fraction += (uint64_t)(*p - '0') * scale;
        scale /= 10;
    }
    *text = p;
    return true;
}

bool scalar_parse_size(const char *text, char unit, uint64_t *bytes)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    uint64_t whole, fraction = 0;
    unsigned __int128 total;
    const char *rest;
    char *end;
    int shift;

    if (!g_ascii_isdigit(text[0]) || (hex && !g_ascii_isxdigit(text[2]))) {
        return false;
    }
    errno = 0;
    whole = strtoull(text, &end, hex ? 16 : 10);
    if (errno != 0) {
        return false;
    }
    rest = end;
    if (*rest == '.') {
        rest++;
        if (hex || !parse_fraction(&rest, &fraction)) {
            return false;
        }
    }
    if (*rest != '\0') {
        unit = *rest++;
    }
    shift = suffix_shift(unit);
    if (shift < 0 || *rest != '\0' || (shift == 0 && fraction != 0)) {
        return false;
    }
    total = ((unsigned __int128)whole << shift) +
            ((unsigned __int128)fraction << shift) / 1000000000000000000;
    if (total > UINT64_MAX) {
        return false;
    }
    *bytes = (uint64_t)total;
    return true;
}

bool scalar_parse_bool(const char *text, bool *value)
{
    static const char *const names[2][4] = {
        { "off", "no", "false", "n" },
        { "on", "yes", "true", "y" },
    };

    for (int v = 0; v < 2; v++) {
        for (int i = 0; i < 4; i++) {
            if (strcmp(text, names[v][i]) == 0) {
                *value = v != 0;
                return true;
            }
        }
    }
    return false;
}

bool scalar_is_identifier(const char *text)
{
    if (!g_ascii_isalpha(text[0])) {
        return false;
    }
    for (const char *p = text; *p != '\0'; p++) {
        if (!g_ascii_isalnum(*p) && *p != '-' && *p != '.' && *p != '_') {
            return false;
        }
    }
    return true;
}

void scalar_err_number(GError **errp, const char *param, int64_t min, uint64_t max,
                       const char *given)
{
    err_set(errp, "Parameter '%s' expects a number from %" PRId64 " to %" PRIu64
            ", not '%.200s'", param, min, max, given);
}

void scalar_err_size(GError **errp, const char *param, int64_t min, uint64_t max,
                     const char *given)
{
    err_set(errp, "Parameter '%s' expects a size from %" PRId64 " to %" PRIu64
            " bytes (suffixes k, M, G, T, P, E allowed), not '%.200s'", param, min, max, given);
}

void scalar_err_bool(GError **errp, const char *param, const char *given)
{
    err_set(errp, "Parameter '%s' expects 'on' or 'off', not '%.200s'", param, given);
}
