/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The split virtqueue against a driver that keeps the rules, and one that doesn't. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "driver/vq-driver.h"

#define QSIZE 8

typedef struct Fixture {
    TestRam ram;
    VqDriver d;
    VirtQueue vq;
    VirtQueueElem e;
    struct iovec iov[QSIZE + 4];
    void *buf;
} Fixture;

static void fixture_start(Fixture *f, bool event_idx, bool indirect)
{
    g_autoptr(GError) err = NULL;
    VirtQueueConfig cfg;

    memset(f, 0, sizeof(*f));
    test_ram_init(&f->ram, 1 << 20, true);
    vq_driver_init(&f->d, &f->ram, QSIZE, event_idx);
    f->buf = test_ram_alloc(&f->ram, 65536);
    cfg = vq_driver_config(&f->d, indirect);
    virtqueue_start(&f->vq, f->ram.mem, &cfg, &err);
    g_assert_no_error(err);
    f->e = (VirtQueueElem) { .iov = f->iov, .iov_max = G_N_ELEMENTS(f->iov) };
}

static void fixture_end(Fixture *f)
{
    virtqueue_stop(&f->vq);
    vq_driver_cleanup(&f->d);
    test_ram_cleanup(&f->ram);
}

static void add_one(Fixture *f)
{
    VqBuf b[2] = { { f->buf, 16, false }, { (char *)f->buf + 64, 100, true } };

    g_assert_true(vq_driver_add(&f->d, b, 2, NULL, f->buf));
}

static void test_chain_reaches_the_device_and_comes_back(void)
{
    Fixture f;
    uint32_t len;

    fixture_start(&f, false, false);
    g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, 0);
    add_one(&f);
    g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, 0);     /* not published */
    g_assert_true(vq_driver_publish(&f.d));
    g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, 1);
    g_assert_cmpuint(f.e.n_out, ==, 1);
    g_assert_cmpuint(f.e.n_in, ==, 1);
    g_assert_true(f.iov[0].iov_base == f.buf && f.iov[0].iov_len == 16);
    g_assert_true(f.iov[1].iov_base == (char *)f.buf + 64 && f.iov[1].iov_len == 100);
    g_assert_cmpuint(f.vq.in_flight, ==, 1);
    virtqueue_push(&f.vq, f.e.head, 42);
    g_assert_null(vq_driver_get(&f.d, &len));
    g_assert_true(virtqueue_publish(&f.vq));
    g_assert_true(vq_driver_get(&f.d, &len) == f.buf);
    g_assert_cmpuint(len, ==, 42);
    g_assert_false(virtqueue_publish(&f.vq));               /* nothing new */
    fixture_end(&f);
}

static void test_indices_wrap_around(void)
{
    Fixture f;

    fixture_start(&f, true, false);
    for (unsigned i = 0; i < 200000; i++) {
        add_one(&f);
        vq_driver_publish(&f.d);
        g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, 1);
        virtqueue_push(&f.vq, f.e.head, 1);
        virtqueue_publish(&f.vq);
        g_assert_nonnull(vq_driver_get(&f.d, NULL));
    }
    fixture_end(&f);
}

static void test_no_kick_while_notifications_are_off(gconstpointer opaque)
{
    bool event_idx = GPOINTER_TO_INT(opaque);
    unsigned kicks = 0;
    Fixture f;

    fixture_start(&f, event_idx, false);
    virtqueue_notify_off(&f.vq);
    /* More than a whole turn of the index, one and several chains at a time. */
    for (unsigned i = 0; i < 70000; i++) {
        unsigned batch = 1 + i % (QSIZE / 2);

        for (unsigned j = 0; j < batch; j++) {
            add_one(&f);
        }
        kicks += vq_driver_publish(&f.d);
        for (unsigned j = 0; j < batch; j++) {
            g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, 1);
            virtqueue_push(&f.vq, f.e.head, 1);
        }
        virtqueue_publish(&f.vq);
        while (vq_driver_get(&f.d, NULL) != NULL) {
        }
    }
    g_assert_cmpuint(kicks, ==, 0);
    g_assert_false(virtqueue_notify_on(&f.vq));
    add_one(&f);
    g_assert_true(vq_driver_publish(&f.d));                 /* and on again */
    fixture_end(&f);
}

static void test_enabling_kicks_reports_what_came_meanwhile(gconstpointer opaque)
{
    Fixture f;

    fixture_start(&f, GPOINTER_TO_INT(opaque), false);
    virtqueue_notify_off(&f.vq);
    add_one(&f);
    g_assert_false(vq_driver_publish(&f.d));
    g_assert_true(virtqueue_notify_on(&f.vq));
    g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, 1);
    fixture_end(&f);
}

static void test_interrupt_only_where_the_driver_asks(gconstpointer opaque)
{
    Fixture f;

    fixture_start(&f, GPOINTER_TO_INT(opaque), false);
    for (unsigned i = 0; i < 4; i++) {
        bool want = i % 2 == 1 || i == 0;   /* the first is always announced */

        vq_driver_want_interrupt(&f.d, i % 2 == 1);
        add_one(&f);
        vq_driver_publish(&f.d);
        virtqueue_pop(&f.vq, &f.e);
        virtqueue_push(&f.vq, f.e.head, 1);
        if (i == 0 && !f.d.event_idx) {
            want = false;                   /* the flag needs no history */
        }
        g_assert_cmpint(virtqueue_publish(&f.vq), ==, want);
        vq_driver_get(&f.d, NULL);
    }
    fixture_end(&f);
}

static void test_indirect_table(void)
{
    Fixture f;
    struct vring_desc *table;
    VqBuf b[6];

    fixture_start(&f, true, true);
    table = test_ram_alloc(&f.ram, sizeof(*table) * 6);
    for (unsigned i = 0; i < 6; i++) {
        b[i] = (VqBuf) { (char *)f.buf + 512 * i, 512, i >= 2 };
    }
    g_assert_true(vq_driver_add(&f.d, b, 6, table, f.buf));
    vq_driver_publish(&f.d);
    g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, 1);
    g_assert_cmpuint(f.e.n_out, ==, 2);
    g_assert_cmpuint(f.e.n_in, ==, 4);
    fixture_end(&f);
}

static void test_buffer_across_regions_is_split(void)
{
    Fixture f;
    VqBuf b;

    fixture_start(&f, true, false);
    b = (VqBuf) { f.ram.host + f.ram.size / 2 - 100, 300, true };
    g_assert_true(vq_driver_add(&f.d, &b, 1, NULL, f.buf));
    vq_driver_publish(&f.d);
    g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, 1);
    g_assert_cmpuint(f.e.n_in, ==, 2);
    g_assert_cmpuint(f.iov[0].iov_len, ==, 100);
    g_assert_cmpuint(f.iov[1].iov_len, ==, 200);
    fixture_end(&f);
}

/* ---- a driver that breaks the rules ------------------------------------------ */

typedef struct BadCase {
    const char *name;
    bool indirect;
    void (*spoil)(Fixture *f);
    const char *why;                    /* part of the reason */
} BadCase;

static void bad_expose(Fixture *f, struct vring_desc d0)
{
    f->d.desc[0] = d0;
    f->d.avail->ring[0] = 0;
    f->d.avail->idx = 1;
}

static uint64_t gpa(Fixture *f)
{
    return test_ram_gpa(&f->ram, f->buf);
}

static void bad_loop(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 1, VRING_DESC_F_NEXT, 0 });
}

static void bad_next(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 1, VRING_DESC_F_NEXT, QSIZE });
}

static void bad_head(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 1, 0, 0 });
    f->d.avail->ring[0] = QSIZE;
}

static void bad_jump(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 1, 0, 0 });
    f->d.avail->idx = QSIZE + 1;
}

static void bad_address(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { f->ram.gpa + f->ram.size - 10, 20, 0, 0 });
}

static void bad_wrap(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { UINT64_MAX - 10, 20, 0, 0 });
}

static void bad_giant(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), UINT32_MAX, VRING_DESC_F_WRITE, 0 });
}

static void bad_zero(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 0, 0, 0 });
}

static void bad_order(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 1, VRING_DESC_F_WRITE | VRING_DESC_F_NEXT, 1 });
    f->d.desc[1] = (struct vring_desc) { gpa(f), 1, 0, 0 };
}

static void bad_indirect(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 16, VRING_DESC_F_INDIRECT, 0 });
}

static void bad_table_size(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 24, VRING_DESC_F_INDIRECT, 0 });
}

static void bad_table_big(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 16 * 4096, VRING_DESC_F_INDIRECT, 0 });
}

static void bad_table_next(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 16, VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT, 1 });
}

static void bad_table_outside(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { 0, 16, VRING_DESC_F_INDIRECT, 0 });
}

static void bad_nested(Fixture *f)
{
    struct vring_desc *t = f->buf;

    t[0] = (struct vring_desc) { gpa(f), 16, VRING_DESC_F_INDIRECT, 0 };
    bad_indirect(f);
}

static void bad_table_loop(Fixture *f)
{
    struct vring_desc *t = f->buf;

    t[0] = (struct vring_desc) { gpa(f), 1, VRING_DESC_F_NEXT, 0 };
    bad_indirect(f);
}

static void bad_segments(Fixture *f)
{
    struct vring_desc *t = f->buf;

    for (unsigned i = 0; i < 64; i++) {
        t[i] = (struct vring_desc) { gpa(f), 1, VRING_DESC_F_NEXT, i + 1 };
    }
    bad_expose(f, (struct vring_desc) { gpa(f), 16 * 64, VRING_DESC_F_INDIRECT, 0 });
}

static void bad_twice(Fixture *f)
{
    bad_expose(f, (struct vring_desc) { gpa(f), 1, 0, 0 });
    f->d.avail->ring[1] = 0;
    f->d.avail->idx = 2;
    g_assert_cmpint(virtqueue_pop(&f->vq, &f->e), ==, 1);
}

static const BadCase bad_cases[] = {
    { "loop", false, bad_loop, "loop" },
    { "next-out-of-range", false, bad_next, "next descriptor out of range" },
    { "head-out-of-range", false, bad_head, "head" },
    { "index-jump", false, bad_jump, "index moved" },
    { "address-outside-ram", false, bad_address, "outside guest RAM" },
    { "address-wraps", false, bad_wrap, "outside guest RAM" },
    { "giant-length", false, bad_giant, "outside guest RAM" },
    { "zero-length", false, bad_zero, "length zero" },
    { "readable-after-writable", false, bad_order, "after a device-writable" },
    { "indirect-not-negotiated", false, bad_indirect, "wasn't negotiated" },
    { "indirect-size", true, bad_table_size, "multiple of 16" },
    { "indirect-too-big", true, bad_table_big, "too many entries" },
    { "indirect-with-next", true, bad_table_next, "with a next" },
    { "indirect-outside-ram", true, bad_table_outside, "outside guest RAM" },
    { "indirect-nested", true, bad_nested, "inside an indirect" },
    { "indirect-loop", true, bad_table_loop, "loop" },
    { "too-many-segments", true, bad_segments, "more segments" },
    { "head-in-flight-again", false, bad_twice, "while in flight" },
};

static void test_bad_driver_breaks_only_its_queue(gconstpointer opaque)
{
    const BadCase *c = opaque;
    Fixture f;

    fixture_start(&f, false, c->indirect);
    c->spoil(&f);
    g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, -EINVAL);
    g_assert_nonnull(f.vq.broken);
    g_assert_nonnull(strstr(f.vq.broken, c->why));
    /* From now on there is nothing to do. */
    g_assert_false(virtqueue_pending(&f.vq));
    g_assert_cmpint(virtqueue_pop(&f.vq, &f.e), ==, -EINVAL);
    g_assert_false(virtqueue_notify_on(&f.vq));
    fixture_end(&f);
}

static void test_start_refuses_bad_rings(void)
{
    Fixture f;
    VirtQueueConfig good, cfg;
    VirtQueue vq = { 0 };
    struct { const char *what; size_t field; uint64_t value; } cases[] = {
        { "descriptor table", offsetof(VirtQueueConfig, desc_gpa), TRUE },
        { "driver area", offsetof(VirtQueueConfig, avail_gpa), TRUE },
        { "device area", offsetof(VirtQueueConfig, used_gpa), TRUE },
    };

    fixture_start(&f, false, false);
    good = vq_driver_config(&f.d, false);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t bad[] = { 1, f.ram.gpa + 1, f.ram.gpa + f.ram.size - 16, UINT64_MAX & ~15,
                           f.ram.gpa + f.ram.size / 2 - 16, 0 };

        for (unsigned j = 0; j < G_N_ELEMENTS(bad); j++) {
            g_autoptr(GError) err = NULL;

            cfg = good;
            *(uint64_t *)((char *)&cfg + cases[i].field) = bad[j];
            g_assert_false(virtqueue_start(&vq, f.ram.mem, &cfg, &err));
            g_assert_nonnull(strstr(err->message, cases[i].what));
        }
    }
    for (unsigned size = 0; size < 65536; size = size < 20 ? size + 1 : size * 2 + 1) {
        cfg = good;
        cfg.size = size;
        if (size == 0 || (size & (size - 1)) != 0 || size > VIRTQUEUE_SIZE_MAX) {
            g_autoptr(GError) err = NULL;

            g_assert_false(virtqueue_start(&vq, f.ram.mem, &cfg, &err));
            g_assert_nonnull(strstr(err->message, "size"));
        }
    }
    fixture_end(&f);
}

/* ---- two threads -------------------------------------------------------------- */

typedef struct Race {
    Fixture f;
    unsigned rounds;
    unsigned kicks;                     /* atomic: a semaphore that is counted */
    bool stop;
} Race;

/* A device that sleeps until it is kicked, polls a little, and sleeps again. */
static void *race_device(void *opaque)
{
    Race *r = opaque;
    VirtQueue *vq = &r->f.vq;
    unsigned done = 0;

    while (done < r->rounds) {
        int spins = done % 7;

        virtqueue_notify_off(vq);
        do {
            while (virtqueue_pop(vq, &r->f.e) == 1) {
                virtqueue_push(vq, r->f.e.head, 1);
                done++;
            }
            virtqueue_publish(vq);
        } while (spins-- > 0 || virtqueue_notify_on(vq));
        while (done < r->rounds && __atomic_exchange_n(&r->kicks, 0, __ATOMIC_ACQ_REL) == 0) {
            g_thread_yield();
        }
    }
    return NULL;
}

/* If a kick were lost, both sides would wait for ever (and meson ends the test). */
static void test_no_kick_is_lost_in_a_race(gconstpointer opaque)
{
    Race r = { .rounds = g_test_thorough() ? 20000000 : 200000 };
    unsigned sent = 0, got = 0;
    GThread *t;

    fixture_start(&r.f, GPOINTER_TO_INT(opaque), false);
    t = g_thread_new("device", race_device, &r);
    while (got < r.rounds) {
        unsigned burst = 1 + sent % 3;

        while (burst-- > 0 && sent < r.rounds && r.f.d.nfree >= 2) {
            add_one(&r.f);
            sent++;
        }
        if (vq_driver_publish(&r.f.d)) {
            __atomic_fetch_add(&r.kicks, 1, __ATOMIC_ACQ_REL);
        }
        while (vq_driver_get(&r.f.d, NULL) != NULL) {
            got++;
        }
    }
    g_thread_join(t);
    fixture_end(&r.f);
}

int main(int argc, char **argv)
{
    void *on = GINT_TO_POINTER(true), *off = GINT_TO_POINTER(false);

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/virtqueue/round-trip", test_chain_reaches_the_device_and_comes_back);
    g_test_add_func("/virtqueue/wrap", test_indices_wrap_around);
    g_test_add_data_func("/virtqueue/no-kick-while-off/event-idx", on,
                         test_no_kick_while_notifications_are_off);
    g_test_add_data_func("/virtqueue/no-kick-while-off/flag", off,
                         test_no_kick_while_notifications_are_off);
    g_test_add_data_func("/virtqueue/kicks-on-again/event-idx", on,
                         test_enabling_kicks_reports_what_came_meanwhile);
    g_test_add_data_func("/virtqueue/kicks-on-again/flag", off,
                         test_enabling_kicks_reports_what_came_meanwhile);
    g_test_add_data_func("/virtqueue/interrupt/event-idx", on,
                         test_interrupt_only_where_the_driver_asks);
    g_test_add_data_func("/virtqueue/interrupt/flag", off,
                         test_interrupt_only_where_the_driver_asks);
    g_test_add_func("/virtqueue/indirect", test_indirect_table);
    g_test_add_func("/virtqueue/buffer-across-regions", test_buffer_across_regions_is_split);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_cases); i++) {
        g_autofree char *path = g_strdup_printf("/virtqueue/bad-driver/%s", bad_cases[i].name);

        g_test_add_data_func(path, &bad_cases[i], test_bad_driver_breaks_only_its_queue);
    }
    g_test_add_func("/virtqueue/bad-rings", test_start_refuses_bad_rings);
    g_test_add_data_func("/virtqueue/race/event-idx", on, test_no_kick_is_lost_in_a_race);
    g_test_add_data_func("/virtqueue/race/flag", off, test_no_kick_is_lost_in_a_race);
    return g_test_run();
}
