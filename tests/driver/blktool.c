/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The block layer on a command line, for tests that need a process to kill, to
 * trace or to hold an image: nodes, then what to do with one of them.
 *
 *     blktool {-b BLOCKDEV | -d DRIVE}... [-s] NODE COMMAND...
 *
 * -s shares the node with writers. Commands, sizes in bytes:
 *     write OFF LEN BYTE     read OFF LEN BYTE (compares)    flush
 *     zero OFF LEN           discard OFF LEN                 wce on|off
 *     length                 random SEED COUNT (writes, zeroes, discards, at most 64 KiB each)
 *     hold (until stdin ends)
 *     stamp DEPTH FLUSH      for ever: number n into block n % BLOCKS, DEPTH at a time; prints n
 *                            when it is complete (FLUSH 1: and flushed)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "block/blockdev.h"
#include "driver/block-fixture.h"
#include "util/err.h"

#define BLOCK 4096

static BlockBackend *blk;

static int64_t number(const char *text)
{
    return g_ascii_strtoll(text, NULL, 0);
}

static int fill_and_write(int64_t offset, int64_t bytes, int byte)
{
    uint8_t *buf = g_aligned_alloc(1, bytes, BLOCK);
    int ret;

    memset(buf, byte, bytes);
    ret = fx_rw(blk, BLK_WRITE, offset, buf, bytes, 0);
    g_aligned_free(buf);
    return ret;
}

static int read_and_compare(int64_t offset, int64_t bytes, int byte)
{
    uint8_t *buf = g_aligned_alloc(1, bytes, BLOCK);
    int ret = fx_rw(blk, BLK_READ, offset, buf, bytes, 0);

    for (int64_t i = 0; i < bytes && ret == 0; i++) {
        if (buf[i] != byte) {
            printf("byte %" PRId64 " is 0x%02x\n", offset + i, buf[i]);
            ret = -EILSEQ;
        }
    }
    g_aligned_free(buf);
    return ret;
}

static uint64_t xorshift(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static int random_writes(uint64_t x, int64_t count)
{
    int64_t sectors = blk_length(blk) / 512;
    int ret = 0;

    for (int64_t i = 0; i < count && ret == 0; i++) {
        int64_t first = xorshift(&x) % sectors;
        int64_t n = 1 + xorshift(&x) % MIN(sectors - first, 128);
        int kind = xorshift(&x) % 8;

        if (kind == 0) {
            ret = fx_rw(blk, BLK_WRITE_ZEROES, first * 512, NULL, n * 512,
                        xorshift(&x) % 2 ? BLK_REQ_UNMAP : 0);
        } else if (kind == 1) {
            ret = fx_rw(blk, BLK_DISCARD, first * 512, NULL, n * 512, 0);
        } else {
            ret = fill_and_write(first * 512, n * 512, xorshift(&x) & 0xff);
        }
    }
    return ret;
}

/* ---- stamps ------------------------------------------------------------------------- */

typedef struct Stamp {
    BlkReq req;
    struct iovec iov;
    uint64_t n;
    bool flushing, busy;
} Stamp;

static int stamp_flush;

static void stamp_done(BlkReq *req, void *opaque, int ret)
{
    Stamp *s = opaque;

    g_assert_cmpint(ret, ==, 0);
    if (stamp_flush && !s->flushing) {
        s->flushing = true;
        blk_req_init(&s->req, BLK_FLUSH, 0, 0, NULL, 0, 0, stamp_done, s);
        g_assert_cmpint(blk_submit(blk, &s->req), ==, 0);
        return;
    }
    printf("%" PRIu64 "\n", s->n);
    fflush(stdout);
    s->busy = false;
}

static void stamp_start(Stamp *s, uint64_t n)
{
    int64_t blocks = blk_length(blk) / BLOCK;
    uint64_t *words = s->iov.iov_base;

    s->n = n;
    s->busy = true;
    s->flushing = false;
    for (size_t i = 0; i < BLOCK / sizeof(*words); i++) {
        words[i] = n;
    }
    blk_req_init(&s->req, BLK_WRITE, (int64_t)(n % blocks) * BLOCK, BLOCK, &s->iov, 1, 0,
                 stamp_done, s);
    g_assert_cmpint(blk_submit(blk, &s->req), ==, 0);
}

static int stamp(int64_t depth, int64_t flush)
{
    Stamp *stamps = g_new0(Stamp, depth);

    stamp_flush = flush;
    for (int64_t i = 0; i < depth; i++) {
        stamps[i].iov = (struct iovec) { g_aligned_alloc(1, BLOCK, BLOCK), BLOCK };
    }
    for (uint64_t n = 1; ; ) {
        for (int64_t i = 0; i < depth; i++) {
            if (!stamps[i].busy) {
                stamp_start(&stamps[i], n++);
            }
        }
        aio_poll(fx_ctx(), true);
    }
    return 0;
}

/* ---- commands ----------------------------------------------------------------------- */

static int hold(void)
{
    char byte;

    printf("holding\n");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

/* Runs one command; *@args moves behind it. */
static int run(char ***args)
{
    static const struct {
        const char *name;
        int words;
    } commands[] = {
        { "write", 3 }, { "read", 3 }, { "zero", 2 }, { "discard", 2 }, { "flush", 0 },
        { "wce", 1 }, { "random", 2 }, { "hold", 0 }, { "stamp", 2 }, { "length", 0 },
    };
    char **a = *args;

    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(a[0], commands[i].name) != 0) {
            continue;
        }
        for (int j = 1; j <= commands[i].words; j++) {
            g_assert(a[j]);
        }
        *args += 1 + commands[i].words;
        switch (i) {
        case 0:
            return fill_and_write(number(a[1]), number(a[2]), number(a[3]));
        case 1:
            return read_and_compare(number(a[1]), number(a[2]), number(a[3]));
        case 2:
            return fx_rw(blk, BLK_WRITE_ZEROES, number(a[1]), NULL, number(a[2]), BLK_REQ_UNMAP);
        case 3:
            return fx_rw(blk, BLK_DISCARD, number(a[1]), NULL, number(a[2]), 0);
        case 4:
            return fx_flush(blk);
        case 5:
            return blk_set_write_cache(blk, strcmp(a[1], "on") == 0);
        case 6:
            return random_writes(number(a[1]), number(a[2]));
        case 7:
            return hold();
        case 8:
            return stamp(number(a[1]), number(a[2]));
        default:
            printf("%" PRId64 "\n", blk_length(blk));
            return 0;
        }
    }
    g_error("no command '%s'", a[0]);
    return -EINVAL;
}

static void must(bool ok, GError *err)
{
    if (!ok) {
        report_error_gerror(err);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    unsigned shared = BLK_PERM_ALL & ~BLK_PERM_WRITE;
    GError *err = NULL;
    char **args = argv + 1;
    int ret = 0;

    fx_ctx();
    for (; *args && **args == '-'; args++) {
        bool ok = true;

        if (strcmp(*args, "-s") == 0) {
            shared = BLK_PERM_ALL;
        } else {
            bool drive = strcmp(*args++, "-d") == 0;

            ok = drive ? drive_add_arg(*args, DRIVE_IF_NONE, &err)
                       : blockdev_add_arg(*args, &err);
        }
        must(ok, err);
    }
    blk = blk_open(*args++, "blktool", BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE, shared, &err);
    must(blk != NULL, err);
    blk_set_write_cache(blk, blk_default_write_cache(blk));
    while (*args && ret == 0) {
        const char *what = *args;

        ret = run(&args);
        if (ret < 0) {
            report_error("%s: %s", what, g_strerror(-ret));
        }
    }
    blk_close(blk);
    blockdev_close_all();
    fx_ctx_free();
    return ret < 0;
}
