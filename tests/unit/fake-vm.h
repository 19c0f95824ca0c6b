/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An accelerator that only remembers what it was told, for tests of device
 * models.
 */
#ifndef TESTS_UNIT_FAKE_VM_H
#define TESTS_UNIT_FAKE_VM_H

#include "hw/core/machine.h"

#define FAKE_GSIS 64

typedef struct FakeVm {
    Vm vm;
    bool level[24];                     /* pins */
    VmMsi route[FAKE_GSIS];             /* by GSI */
    bool route_used[FAKE_GSIS];
    int irqfd[FAKE_GSIS];               /* eventfd attached to the GSI, -1: none */
    VmIoEventFd doorbells[16];
    unsigned n_doorbells;
    unsigned changes;                   /* of routes, each dear in a kernel */
    int fail;                           /* the next irqfd, route or doorbell: -errno */
} FakeVm;

extern const VmOps fake_vm_ops;

/* A machine on it, with @ram bytes of RAM at 0. */
void fake_machine_init(Machine *m, uint64_t ram);
void fake_machine_cleanup(Machine *m);
FakeVm *fake_vm(Machine *m);
/* The GSI that @fd raises, -1: none. */
int fake_gsi_of(Machine *m, int fd);

#endif
