/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output: one JSON object per line on COM1. A line is collected in memory and written when it ends,
 * since every byte costs a trip to the VMM.
 */
#ifndef GUEST_CONSOLE_H
#define GUEST_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void console_init(void);

/* Wait for a line of input without its end; one that is longer than @size - 1 is a failure. */
void console_read_line(char *buf, size_t size);

/* {"op": @op, ... } */
void out_begin(const char *op);
void out_str(const char *key, const char *value);
void out_u64(const char *key, uint64_t value);
void out_hex(const char *key, uint64_t value);  /* as a string "0x..." */
void out_bool(const char *key, bool value);
void out_tenths(const char *key, uint64_t tenths);  /* 123 is written as 12.3 */
void out_array_begin(const char *key);
void out_array_u64(uint64_t value);
void out_array_end(void);
void out_end(void);

/* Print {"op":"error",...,"errors":1} and leave with a failing status. @detail may be NULL. */
__attribute__((noreturn)) void fail(const char *message, const char *detail);
__attribute__((noreturn)) void fail_num(const char *message, uint64_t value);

#endif
