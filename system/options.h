/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line of qemu-system-x86_64: its table, and what it says once
 * parsed. Nothing here creates anything. Main thread.
 */
#ifndef SYSTEM_OPTIONS_H
#define SYSTEM_OPTIONS_H

#include "hw/core/cpu-model.h"
#include "hw/core/machine.h"
#include "util/cmdline.h"
#include "util/keyval.h"

typedef enum OptionCode {
    OPT_ACCEL, OPT_APPEND, OPT_BLOCKDEV, OPT_CPU, OPT_D, OPT_DEVICE, OPT_DISPLAY, OPT_DRIVE,
    OPT_ENABLE_KVM, OPT_HELP, OPT_INITRD, OPT_KERNEL, OPT_LOG_ITEMS, OPT_M, OPT_MACHINE,
    OPT_MONITOR, OPT_MSG, OPT_NAME, OPT_NODEFAULTS, OPT_NOGRAPHIC, OPT_NO_REBOOT,
    OPT_NO_USER_CONFIG, OPT_OBJECT, OPT_PIDFILE, OPT_QTEST, OPT_SERIAL, OPT_SMP, OPT_TRACE,
    OPT_VERSION,
} OptionCode;

extern const CmdlineOption option_table[];

typedef struct Options {
    Cmdline *cl;                /* the repeatable ones are read from it when their turn comes */
    const MachineType *machine;
    const VmOps *accel;
    uint64_t ram_size;
    unsigned cpus, sockets, cores, threads;
    VmCpuModel *cpu_model;
    char *guest_name;
    char *process_name;         /* NULL: not given */
    bool debug_threads;
    bool nographic, nodefaults, no_reboot;
    const char *kernel, *initrd, *append, *pidfile;     /* borrowed from argv */
    const char *qtest;
    const char *serial;         /* NULL: the default */
} Options;

typedef enum OptionsResult {
    OPTIONS_OK,
    OPTIONS_HELP,               /* asked for help, which was printed */
    OPTIONS_BAD,                /* *errp is set */
} OptionsResult;

/* @argv outlives @o. @tree: for -device help and the like. */
OptionsResult options_parse(Options *o, ObjectTree *tree, int argc, char **argv, GError **errp);
void options_clear(Options *o);

/* machines.c: what there is. NULL and near misses when @name isn't. */
const MachineType *machine_type_find(const char *name, GError **errp);
void machine_type_help(void);
const VmOps *accel_find(const char *name, GError **errp);
void accel_help(void);
const MachineType *machine_type_default(void);

#endif
