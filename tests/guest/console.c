/* SPDX-License-Identifier: GPL-2.0-or-later */
/* COM1 (16550A, polled) and the JSON lines that are written to it. */
#include "console.h"
#include "cpu.h"

#define COM1      0x3f8
#define COM_IER   (COM1 + 1)
#define COM_FCR   (COM1 + 2)
#define COM_LCR   (COM1 + 3)
#define COM_LSR   (COM1 + 5)
#define LSR_DATA  0x01
#define LSR_EMPTY 0x20
#define FIFO_SIZE 16

static char line[8192];
static unsigned line_len;
static bool first_in_array;

void console_init(void)
{
    outb(COM_IER, 0);
    outb(COM_LCR, 0x83);            /* divisor latch, 8n1 */
    outb(COM1, 1);
    outb(COM_IER, 0);
    outb(COM_LCR, 0x03);
    outb(COM_FCR, 0xc7);            /* FIFOs on and empty, input in pieces of up to 14 bytes */
}

static void line_write(void)
{
    for (unsigned i = 0; i < line_len; i++) {
        for (unsigned spins = 0; i % FIFO_SIZE == 0 && spins < 100000; spins++) {
            if (inb(COM_LSR) & LSR_EMPTY) {
                break;
            }
        }
        outb(COM1, line[i]);
    }
    line_len = 0;
}

void console_read_line(char *buf, size_t size)
{
    size_t len = 0;

    for (;;) {
        char c;

        while (!(inb(COM_LSR) & LSR_DATA)) {
            /* Each look is an exit that stock QEMU handles under its global lock; the thread that
             * is to read the input needs that lock as well. */
            for (uint64_t begin = rdtsc(); rdtsc() - begin < 1000000;) {
                cpu_pause();
            }
        }
        c = inb(COM1);
        if (c == '\n') {
            buf[len] = '\0';
            return;
        }
        if (len == size - 1) {
            fail("the line of input is too long", NULL);
        }
        buf[len++] = c;
    }
}

static void put(char c)
{
    if (line_len < sizeof(line) - 1) {
        line[line_len++] = c;
    }
}

static void put_raw(const char *s)
{
    while (*s != '\0') {
        put(*s++);
    }
}

static void put_string(const char *s)
{
    put('"');
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\') {
            put('\\');
            put(*s);
        } else if (*s < 0x20 || *s > 0x7e) {
            put('?');
        } else {
            put(*s);
        }
    }
    put('"');
}

static void put_u64(uint64_t v)
{
    char digits[20];
    unsigned n = 0;

    do {
        digits[n++] = '0' + v % 10;
        v /= 10;
    } while (v != 0);
    while (n > 0) {
        put(digits[--n]);
    }
}

static void put_key(const char *key)
{
    put(',');
    put_string(key);
    put(':');
}

void out_begin(const char *op)
{
    line_len = 0;
    put_raw("{\"op\":");
    put_string(op);
}

void out_str(const char *key, const char *value)
{
    put_key(key);
    put_string(value);
}

void out_u64(const char *key, uint64_t value)
{
    put_key(key);
    put_u64(value);
}

void out_hex(const char *key, uint64_t value)
{
    put_key(key);
    put_raw("\"0x");
    for (int shift = 60, seen = 0; shift >= 0; shift -= 4) {
        unsigned digit = value >> shift & 15;

        seen |= digit;
        if (seen || shift == 0) {
            put("0123456789abcdef"[digit]);
        }
    }
    put('"');
}

void out_bool(const char *key, bool value)
{
    put_key(key);
    put_raw(value ? "true" : "false");
}

void out_tenths(const char *key, uint64_t tenths)
{
    put_key(key);
    put_u64(tenths / 10);
    put('.');
    put('0' + tenths % 10);
}

void out_array_begin(const char *key)
{
    put_key(key);
    put('[');
    first_in_array = true;
}

void out_array_u64(uint64_t value)
{
    if (!first_in_array) {
        put(',');
    }
    first_in_array = false;
    put_u64(value);
}

void out_array_end(void)
{
    put(']');
}

void out_end(void)
{
    put('}');
    put('\n');
    line_write();
}

void fail(const char *message, const char *detail)
{
    out_begin("error");
    out_str("message", message);
    if (detail != NULL) {
        out_str("detail", detail);
    }
    out_u64("errors", 1);
    out_end();
    cpu_exit("auto", 1);
}

void fail_num(const char *message, uint64_t value)
{
    out_begin("error");
    out_str("message", message);
    out_u64("value", value);
    out_u64("errors", 1);
    out_end();
    cpu_exit("auto", 1);
}
