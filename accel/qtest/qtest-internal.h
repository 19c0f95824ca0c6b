/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of accel/qtest. Main thread, BQL, but where it says otherwise. */
#ifndef ACCEL_QTEST_QTEST_INTERNAL_H
#define ACCEL_QTEST_QTEST_INTERNAL_H

#include "accel/qtest.h"

#define QTEST_PINS 24

typedef struct QtestServer QtestServer;

/* An eventfd that raises a GSI. */
typedef struct QtestIrqFd {
    struct QtestVm *q;
    unsigned gsi;
    int fd;
    guint watch;                /* GLib source id */
} QtestIrqFd;

typedef struct QtestVm {
    Vm vm;
    GArray *ram;                /* of VmRam */
    GArray *ioeventfds;         /* of VmIoEventFd */
    GPtrArray *irqfds;          /* of QtestIrqFd */
    GArray *routes;             /* of QtestRoute: GSI QTEST_PINS + index */
    bool level[QTEST_PINS];
    bool intercept;             /* tell of interrupts */
    QtestServer *server;        /* NULL: nobody is connected */
} QtestVm;

/* RAM at @gpa, NULL unless all of it is. */
void *qtest_ram(const QtestVm *q, uint64_t gpa, uint64_t size);
/* What a guest's access would do; eventfds before handlers. */
void qtest_guest_write(QtestVm *q, VmSpace space, uint64_t addr, uint64_t value, unsigned size);
uint64_t qtest_guest_read(QtestVm *q, VmSpace space, uint64_t addr, unsigned size);

/* server.c: a line that no command asked for */
void qtest_server_tell(QtestServer *s, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
void qtest_server_free(QtestServer *s);

#endif
