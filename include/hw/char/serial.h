/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serial: a 16550A UART with FIFOs at eight ports (PC16550D data sheet).
 * Transmission and the receiver's time-out take no time. BQL.
 */
#ifndef HW_CHAR_SERIAL_H
#define HW_CHAR_SERIAL_H

#include "chardev/chardev.h"
#include "hw/core/machine.h"

typedef struct Serial Serial;

/* @chr stays the caller's and outlives it. */
Serial *serial_new(Machine *m, uint16_t port, unsigned gsi, Chardev *chr, GError **errp);
void serial_free(Serial *s);

#endif
