/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Start of ring 3: reads the command line, runs what it asks for, leaves. */
#include "console.h"
#include "cpu.h"
#include "mem.h"
#include "ops.h"

static const struct {
    const char *name;
    uint64_t (*run)(const Params *p);
} ops[] = {
    { "read", op_bench },
    { "write", op_bench },
    { "rw", op_bench },
    { "flush", op_bench },
    { "integrity", op_integrity },
    { "stamp", op_stamp },
    { "verify", op_verify },
    { "reset", op_reset },
    { "discard", op_zeroes },
    { "write_zeroes", op_zeroes },
    { "hostile", op_hostile },
    { "fuzz", op_fuzz },
    { "info", op_info },
    { "getid", op_getid },
    { "wce", op_wce },
    { "watch", op_watch },
    { "idle", op_idle },
    { "clock", op_clock },
    { "fault", op_fault },
};

VirtioDev *op_device(const Params *p)
{
    if (p->dev.bits == 0 || (p->dev.bits & (p->dev.bits - 1)) != 0) {
        fail("this operation wants one device: dev=INDEX, not", "a list");
    }
    if ((unsigned)__builtin_ctzll(p->dev.bits) >= virtio_count()) {
        fail_num("no such virtio-blk device; there are", virtio_count());
    }
    return virtio_dev(__builtin_ctzll(p->dev.bits));
}

static uint64_t run_one(const Params *p)
{
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        if (str_eq(p->op, ops[i].name)) {
            return ops[i].run(p);
        }
    }
    fail("unknown op", p->op);
}

/* Devices are quiet and memory is free again before the next run. */
static void run_end(uint64_t mark)
{
    for (unsigned i = 0; i < virtio_count(); i++) {
        if (virtio_dev(i)->started && !virtio_reset(virtio_dev(i), 10000)) {
            fail_num("the device does not finish its reset, device", i);
        }
    }
    virtio_run_begin();
    mem_release(mark);
}

/* The next run is on the command line or, with ask=1, what comes from the console. */
static bool next_run(const char *cmdline, unsigned i, bool ask, Params *p)
{
    static char line[1024];

    if (!ask) {
        return params_run(cmdline, i, p);
    }
    out_begin("ready");
    out_u64("runs", i);
    out_end();
    console_read_line(line, sizeof(line));
    params_line(cmdline, line, p);
    return line[0] != '\0';
}

/* Called by boot.S. */
__attribute__((noreturn)) void guest_main(void);

void guest_main(void)
{
    const char *cmdline;
    uint64_t mark, errors = 0;
    unsigned runs = 0;
    bool ask;
    Params p;

    console_init();
    cpu_init();
    cmdline = mem_init();
    params_run(cmdline, 0, &p);
    ask = p.ask;
    if (p.hello) {
        out_begin("hello");
        out_end();
    }
    if (!clock_init(p.clock)) {
        fail("the TSC's frequency can't be learned from", p.clock);
    }
    virtio_probe();
    mark = mem_mark();
    while (next_run(cmdline, runs, ask, &p)) {
        errors += run_one(&p);
        run_end(mark);
        runs++;
    }
    params_run(cmdline, 0, &p);
    out_begin("done");
    out_u64("runs", runs);
    out_u64("tsc_khz", tsc_khz);
    out_str("tsc_source", tsc_source);
    out_u64("errors", errors);
    out_end();
    cpu_exit(p.exit, errors == 0 ? p.code : 1);
}
