/*
 * The argument of an option: key=value,... or JSON.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 *     driver=raw,node-name=r,file.driver=file,file.filename=a,,b,list.0=x
 *
 * A comma within a value is doubled. Dots in a key make objects within
 * objects; parts that are all numbers 0, 1, ... make an array. Of equal keys
 * the last counts. All leaves are strings; what reads them (a visitor in
 * keyval mode, object_set_all() with @texts) converts them.
 */
#ifndef UTIL_KEYVAL_H
#define UTIL_KEYVAL_H

#include <stdbool.h>

#include "util/json.h"

enum {
    /*
     * "key" without a value means key=on, "nokey" key=off where such a key
     * makes sense to the caller; warned of as deprecated. For the options
     * that users have written so for long (-device, -chardev, ...).
     */
    KEYVAL_SHORT_BOOL = 1 << 0,
    /* The argument may be a JSON object, too: it begins with '{'. */
    KEYVAL_JSON = 1 << 1,
};

enum {
    KEYVAL_PART_MAX = 127,      /* bytes in a part of a key between two dots */
};

typedef struct Keyval {
    JsonValue *options;         /* an object */
    bool texts;                 /* leaves are strings; false: typed JSON */
    bool help;                  /* "help" or "?" stood among the keys */
} Keyval;

/*
 * Parse @text. A first item without '=' is the value of @implied_key (NULL:
 * there is none). Returns false with *errp set and @kv empty on failure.
 */
bool keyval_parse(Keyval *kv, const char *text, const char *implied_key,
                  unsigned flags, GError **errp);
/* Frees what keyval_parse() left in @kv, which may be all zeroes. */
void keyval_clear(Keyval *kv);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Keyval, keyval_clear)

/*
 * The string member @key, borrowed, or NULL if it is absent (or no string).
 * keyval_take() removes the member as well and hands over a copy: options
 * that main() reads itself are taken one by one, and keyval_check_empty()
 * then refuses what is left.
 */
const char *keyval_get(const Keyval *kv, const char *key);
char *keyval_take(Keyval *kv, const char *key);

/*
 * Fails when any member is left, naming it; @known (NULL-terminated) are the
 * keys that would have been taken, for the near miss.
 */
bool keyval_check_empty(const Keyval *kv, const char *const *known, GError **errp);

#endif
