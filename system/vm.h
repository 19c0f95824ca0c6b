/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The virtual machine of this process: made from the options, run, taken down.
 * Main thread, BQL.
 */
#ifndef SYSTEM_VM_H
#define SYSTEM_VM_H

#include "chardev/chardev.h"
#include "options.h"

typedef struct SystemVm {
    const Options *options;
    ObjectTree *tree;
    AioContext *ctx;
    GSource *ctx_source;
    Chardev *serial;
    Machine *machine;
    guint request_watch;        /* GLib source id */
    bool quit;                  /* the main loop ends ... */
    int status;                 /* ... and the process with this */
} SystemVm;

/* types.c: every type there is. */
ObjectTree *system_object_tree(void);

/* vm.c. Make it: nothing runs yet. On failure vm_stop() takes down what there is. */
bool vm_start(SystemVm *vm, const Options *options, ObjectTree *tree, GError **errp);
/* run.c. Returns the process' status. */
int vm_run(SystemVm *vm);
void vm_stop(SystemVm *vm);

/* signals.c: SIGINT, SIGTERM and SIGHUP become @fd readable. */
bool signals_init(GError **errp);
/* Which signal came since the last call, 0: none; @pid: who sent it. */
int signals_take(int *pid);
int signals_fd(void);

/* pidfile.c */
bool pidfile_write(const char *path, GError **errp);
void pidfile_remove(void);

#endif
