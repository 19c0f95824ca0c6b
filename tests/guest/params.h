/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's command line: key=value words. Words outside run="..." hold for every run; inside,
 * runs are separated by ';' and each may override what holds for all:
 *
 *     seconds=2 complete=poll run="op=read qd=1; op=read qd=32"
 *
 * Without run= there is one run. With ask=1 there is none of these: each run is a line of words
 * that the guest asks for on its console by {"op":"ready"}, and an empty line ends. README.md lists
 * the keys.
 */
#ifndef GUEST_PARAMS_H
#define GUEST_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_DEVICES 64

/* Devices by index in PCI order. */
typedef struct DevSet {
    uint64_t bits;
} DevSet;

typedef struct Params {
    const char *op;
    const char *hostile_case;   /* case= */
    const char *complete;       /* poll or intr */
    const char *wait;           /* hlt or spin, with complete=intr */
    const char *irqchip;        /* pic or ioapic, where there is no MSI-X */
    const char *clock;          /* auto, kvmclock, cpuid or pit */
    const char *exit;           /* auto, debug, kbd, cf9 or triple */
    const char *expect;         /* ok or ioerr: what requests are meant to return */
    DevSet dev;                 /* devices driven */
    DevSet idle;                /* devices started and left alone */
    uint64_t bs;                /* bytes per request; integrity: bytes per block */
    uint64_t qd;                /* requests in flight per queue */
    uint64_t queues;            /* queues driven per device */
    uint64_t qsize;             /* 0: the device's own */
    uint64_t segs;              /* data segments per request */
    uint64_t seconds_ms;
    uint64_t warmup_ms;
    uint64_t count;             /* requests per device, instead of seconds; 0: by time */
    uint64_t span;              /* bytes of the disk that are used; 0: all */
    uint64_t start;             /* first byte used */
    uint64_t rwmix;             /* percent of reads in op=rw and op=integrity */
    uint64_t flushmix;          /* integrity: one request in so many is a flush, 0: none */
    uint64_t maxblocks;         /* integrity: blocks per request at most */
    uint64_t maxsegs;           /* integrity: data segments per request at most */
    uint64_t seed;
    uint64_t acked;             /* verify: writes acknowledged before the first boot ended */
    uint64_t flush_every;       /* stamp: a flush after so many writes; 0: none */
    uint64_t progress_ms;       /* stamp: time between progress lines */
    uint64_t timeout_ms;        /* without any completion: give up */
    uint64_t deny;              /* feature bits not to accept */
    uint64_t code;              /* value for isa-debug-exit when all went well */
    uint64_t vectors;           /* MSI-X vectors used at most; 0: INTx */
    bool event_idx;
    bool indirect;
    bool rand;
    bool odd;                   /* integrity: header, data and status cut at any byte */
    bool pause;                 /* PAUSE in polling loops */
    bool ask;                   /* runs come from the console */
    bool hello;                 /* say so as soon as the guest runs */
} Params;

/* The i-th run's parameters; false when there is no such run. Malformed input ends the guest. */
bool params_run(const char *cmdline, unsigned i, Params *p);

/* The parameters of a run that is given by @line: what it says overrides what holds for all
 * runs. */
void params_line(const char *cmdline, const char *line, Params *p);

#endif
