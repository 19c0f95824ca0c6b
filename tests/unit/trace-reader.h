/*
 * A reader of simpletrace v4 for tests, written after the layout and not after the writer.
 * Aborts the test when the file is not what it should be.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_UNIT_TRACE_READER_H
#define TESTS_UNIT_TRACE_READER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DROPPED UINT64_C(0xfffffffffffffffe)

typedef struct Reader {
    GBytes *bytes;
    const uint8_t *p, *end;
    GHashTable *names;              /* id -> name */
} Reader;

typedef struct Record {
    char *name;                     /* of the reader; "" for dropped */
    uint64_t ns;
    uint32_t pid;
    const uint8_t *args, *args_end;
} Record;

static inline uint64_t get_u64(Reader *r)
{
    uint64_t v;

    g_assert_cmpint(r->end - r->p, >=, 8);
    memcpy(&v, r->p, 8);
    r->p += 8;
    return v;
}

static inline uint32_t get_u32(Reader *r)
{
    uint32_t v;

    g_assert_cmpint(r->end - r->p, >=, 4);
    memcpy(&v, r->p, 4);
    r->p += 4;
    return v;
}

static inline void reader_on(Reader *r, GBytes *bytes)
{
    gsize len;

    r->bytes = bytes;
    r->p = g_bytes_get_data(bytes, &len);
    r->end = r->p + len;
    r->names = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    g_assert_cmphex(get_u64(r), ==, UINT64_MAX);
    g_assert_cmphex(get_u64(r), ==, UINT64_C(0xf2b177cb0aa429b4));
    g_assert_cmpuint(get_u64(r), ==, 4);
}

static inline void reader_open(Reader *r, const char *path)
{
    char *text;
    gsize len;

    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    reader_on(r, g_bytes_new_take(text, len));
}

static inline void reader_close(Reader *r)
{
    g_hash_table_destroy(r->names);
    g_bytes_unref(r->bytes);
}

static inline bool reader_next(Reader *r, Record *rec)
{
    while (r->p < r->end) {
        uint64_t type = get_u64(r), id = get_u64(r);
        uint32_t len;

        if (type == 0) {
            len = get_u32(r);
            g_assert_cmpint(r->end - r->p, >=, len);
            g_hash_table_insert(r->names, g_memdup2(&id, 8), g_strndup((const char *)r->p, len));
            r->p += len;
            continue;
        }
        g_assert_cmpuint(type, ==, 1);
        rec->name = id == DROPPED ? (char *)"" : g_hash_table_lookup(r->names, &id);
        g_assert_nonnull(rec->name);
        rec->ns = get_u64(r);
        len = get_u32(r);
        rec->pid = get_u32(r);
        g_assert_cmpuint(len, >=, 24);
        g_assert_cmpint(r->end - r->p, >=, len - 24);
        rec->args = r->p;
        r->p += len - 24;
        rec->args_end = r->p;
        return true;
    }
    return false;
}

static inline uint64_t arg_u64(Record *rec)
{
    uint64_t v;

    g_assert_cmpint(rec->args_end - rec->args, >=, 8);
    memcpy(&v, rec->args, 8);
    rec->args += 8;
    return v;
}

static inline char *arg_string(Record *rec)
{
    uint32_t len;
    char *s;

    g_assert_cmpint(rec->args_end - rec->args, >=, 4);
    memcpy(&len, rec->args, 4);
    g_assert_cmpint(rec->args_end - rec->args, >=, 4 + len);
    s = g_strndup((const char *)rec->args + 4, len);
    rec->args += 4 + len;
    return s;
}

static inline void expect_string(Record *rec, const char *want)
{
    g_autofree char *have = arg_string(rec);

    g_assert_cmpstr(have, ==, want);
}

static inline void expect(Reader *r, Record *rec, const char *name)
{
    g_assert_true(reader_next(r, rec));
    g_assert_cmpstr(rec->name, ==, name);
}

#endif
