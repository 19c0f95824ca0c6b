/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "hw/core/io-bus.h"

typedef struct Regs {
    uint8_t bytes[16];
    unsigned accesses;
    unsigned last_size;
} Regs;

static uint64_t regs_read(void *opaque, uint64_t off, unsigned size)
{
    Regs *r = opaque;
    uint64_t value = 0;

    g_assert_cmpuint(off + size, <=, sizeof(r->bytes));
    memcpy(&value, r->bytes + off, size);
    r->accesses++;
    r->last_size = size;
    return value | (size < 8 ? ~0ull << (size * 8) : 0);    /* what is above must be cut off */
}

static void regs_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    Regs *r = opaque;

    g_assert_cmpuint(off + size, <=, sizeof(r->bytes));
    memcpy(r->bytes + off, &value, size);
    r->accesses++;
    r->last_size = size;
}

static const IoOps ops8 = { .name = "wide", .read = regs_read, .write = regs_write };
static const IoOps ops1 = {
    .name = "narrow", .read = regs_read, .write = regs_write, .max_size = 1,
};

static void test_nobody_answers(void)
{
    IoBus *bus = io_bus_new("t", 0x100);

    g_assert_cmphex(io_bus_read(bus, 0x10, 4), ==, 0xffffffff);
    io_bus_write(bus, 0x10, 1, 4);
    io_bus_free(bus);
}

static void test_overlap_is_refused(void)
{
    IoBus *bus = io_bus_new("t", 0x100);
    Regs r = { 0 };
    static const uint64_t bad[][2] = {
        { 0x20, 16 }, { 0x1f, 2 }, { 0x2f, 1 }, { 0x10, 0x100 }, { 0x28, 1 }, { 0x10, 0x11 },
        { 0xf8, 16 }, { 0x100, 1 }, { 0xff, UINT64_MAX },
    };

    g_assert_true(io_bus_add(bus, 0x20, 16, &ops8, &r, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *err = NULL;

        g_assert_false(io_bus_add(bus, bad[i][0], bad[i][1], &ops8, &r, &err));
        g_assert_nonnull(strstr(err->message, "wide"));
        g_error_free(err);
    }
    g_assert_true(io_bus_add(bus, 0x10, 16, &ops8, &r, NULL));
    g_assert_true(io_bus_add(bus, 0x30, 16, &ops8, &r, NULL));
    io_bus_remove(bus, 0x20);
    g_assert_true(io_bus_add(bus, 0x20, 16, &ops8, &r, NULL));
    io_bus_free(bus);
}

static void test_accesses_are_split(void)
{
    IoBus *bus = io_bus_new("t", 0x100);
    Regs wide = { 0 }, narrow = { 0 };

    g_assert_true(io_bus_add(bus, 0x10, 16, &ops8, &wide, NULL));
    g_assert_true(io_bus_add(bus, 0x20, 16, &ops1, &narrow, NULL));
    io_bus_write(bus, 0x20, 0x44332211, 4);
    g_assert_cmpuint(narrow.accesses, ==, 4);
    g_assert_cmpuint(narrow.last_size, ==, 1);
    g_assert_cmphex(io_bus_read(bus, 0x20, 4), ==, 0x44332211);
    io_bus_write(bus, 0x10, 0x8877665544332211, 8);
    g_assert_cmpuint(wide.accesses, ==, 1);
    g_assert_cmphex(io_bus_read(bus, 0x11, 2), ==, 0x3322);
    /* over the border of two regions, and beyond the last */
    g_assert_cmphex(io_bus_read(bus, 0x1e, 4), ==, 0x22110000);
    g_assert_cmphex(io_bus_read(bus, 0x2e, 4), ==, 0xffff0000);
    io_bus_write(bus, 0x2e, 0xaabbccdd, 4);
    g_assert_cmphex(narrow.bytes[15], ==, 0xcc);
    /* a size that is no power of two */
    g_assert_cmphex(io_bus_read(bus, 0x10, 3), ==, 0x332211);
    io_bus_free(bus);
}

static void test_end_of_the_space(void)
{
    IoBus *bus = io_bus_new("t", 0);
    Regs r = { 0 };

    g_assert_true(io_bus_add(bus, UINT64_MAX - 15, 16, &ops8, &r, NULL));
    io_bus_write(bus, UINT64_MAX - 7, 0x1122334455667788, 8);
    g_assert_cmphex(io_bus_read(bus, UINT64_MAX, 1), ==, 0x11);
    io_bus_free(bus);
}

typedef struct Mover {
    IoBus *bus;
    uint64_t at;
} Mover;

static uint64_t mover_read(void *opaque, uint64_t off, unsigned size)
{
    return 0x42;
}

static const IoOps mover_ops;

static void mover_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    Mover *m = opaque;

    io_bus_remove(m->bus, m->at);
    m->at = value;
    g_assert_true(io_bus_add(m->bus, m->at, 4, &mover_ops, m, NULL));
}

static const IoOps mover_ops = {
    .name = "mover", .read = mover_read, .write = mover_write, .max_size = 1,
};

static void test_handler_moves_itself(void)
{
    IoBus *bus = io_bus_new("t", 0x100);
    Mover m = { bus, 0x10 };

    g_assert_true(io_bus_add(bus, 0x10, 4, &mover_ops, &m, NULL));
    io_bus_write(bus, 0x10, 0x40, 4);   /* of four bytes the first moves it away */
    g_assert_cmphex(m.at, ==, 0x40);
    g_assert_cmphex(io_bus_read(bus, 0x40, 1), ==, 0x42);
    g_assert_cmphex(io_bus_read(bus, 0x10, 1), ==, 0xff);
    io_bus_free(bus);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/io-bus/nobody-answers", test_nobody_answers);
    g_test_add_func("/io-bus/overlap-is-refused", test_overlap_is_refused);
    g_test_add_func("/io-bus/accesses-are-split", test_accesses_are_split);
    g_test_add_func("/io-bus/end-of-the-space", test_end_of_the_space);
    g_test_add_func("/io-bus/handler-moves-itself", test_handler_moves_itself);
    return g_test_run();
}
