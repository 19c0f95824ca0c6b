/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hw/char/serial.h"

#include <linux/serial_reg.h>
#include <string.h>

#define FIFO_SIZE 16
#define PORTS 8

typedef struct Fifo {
    uint8_t data[FIFO_SIZE];
    unsigned first, count;
} Fifo;

struct Serial {
    Machine *machine;
    Chardev *chr;
    ResetHook reset_hook;
    uint16_t port;
    unsigned gsi;

    uint8_t ier, iir, lcr, mcr, lsr, scr, fcr;
    uint16_t divisor;
    uint8_t msr_delta;          /* bits 0..3: changes of inputs, seen in loop-back */
    bool thr_pending;           /* transmitter-empty interrupt not yet taken */
    Fifo rx, tx;
};

static void fifo_clear(Fifo *f)
{
    f->first = 0;
    f->count = 0;
}

static void fifo_push(Fifo *f, uint8_t byte)
{
    f->data[(f->first + f->count++) % FIFO_SIZE] = byte;
}

static uint8_t fifo_pop(Fifo *f)
{
    uint8_t byte = f->data[f->first];

    f->first = (f->first + 1) % FIFO_SIZE;
    f->count--;
    return byte;
}

static bool fifo_enabled(const Serial *s)
{
    return s->fcr & UART_FCR_ENABLE_FIFO;
}

static unsigned fifo_depth(const Serial *s)
{
    return fifo_enabled(s) ? FIFO_SIZE : 1;
}

static unsigned rx_trigger(const Serial *s)
{
    static const uint8_t levels[] = { 1, 4, 8, 14 };

    return fifo_enabled(s) ? levels[s->fcr >> 6] : 1;
}

/* ---- modem lines ---- */

/*
 * In loop-back the outputs drive the inputs (data sheet, MCR bit 4); otherwise
 * the other end is always there.
 */
static uint8_t modem_inputs(const Serial *s)
{
    uint8_t in = 0;

    if (!(s->mcr & UART_MCR_LOOP)) {
        return UART_MSR_DCD | UART_MSR_DSR | UART_MSR_CTS;
    }
    in |= s->mcr & UART_MCR_DTR ? UART_MSR_DSR : 0;
    in |= s->mcr & UART_MCR_RTS ? UART_MSR_CTS : 0;
    in |= s->mcr & UART_MCR_OUT1 ? UART_MSR_RI : 0;
    in |= s->mcr & UART_MCR_OUT2 ? UART_MSR_DCD : 0;
    return in;
}

static void modem_changed(Serial *s, uint8_t before)
{
    uint8_t after = modem_inputs(s);
    uint8_t change = before ^ after;

    s->msr_delta |= change & UART_MSR_CTS ? UART_MSR_DCTS : 0;
    s->msr_delta |= change & UART_MSR_DSR ? UART_MSR_DDSR : 0;
    s->msr_delta |= change & UART_MSR_DCD ? UART_MSR_DDCD : 0;
    s->msr_delta |= change & before & UART_MSR_RI ? UART_MSR_TERI : 0;  /* its trailing edge */
}

/* ---- interrupts ---- */

/* By priority; the receiver's time-out is what a FIFO below its trigger level raises. */
static uint8_t interrupt_id(const Serial *s)
{
    if ((s->ier & UART_IER_RLSI) && (s->lsr & UART_LSR_BRK_ERROR_BITS)) {
        return UART_IIR_RLSI;
    }
    if ((s->ier & UART_IER_RDI) && s->rx.count > 0) {
        return s->rx.count >= rx_trigger(s) ? UART_IIR_RDI : UART_IIR_RX_TIMEOUT;
    }
    if ((s->ier & UART_IER_THRI) && s->thr_pending) {
        return UART_IIR_THRI;
    }
    if ((s->ier & UART_IER_MSI) && s->msr_delta != 0) {
        return UART_IIR_MSI;
    }
    return UART_IIR_NO_INT;
}

/* OUT2 gates the line on a PC. */
static void irq_update(Serial *s)
{
    bool level;

    s->iir = interrupt_id(s);
    level = s->iir != UART_IIR_NO_INT && (s->mcr & UART_MCR_OUT2) && !(s->mcr & UART_MCR_LOOP);
    s->machine->vm->ops->irq_set(s->machine->vm, s->gsi, level);
}

/* ---- receiving ---- */

static void rx_put(Serial *s, uint8_t byte)
{
    if (s->rx.count < fifo_depth(s)) {
        fifo_push(&s->rx, byte);
    } else {
        s->lsr |= UART_LSR_OE;
    }
    s->lsr |= UART_LSR_DR;
}

static size_t serial_can_receive(void *opaque)
{
    Serial *s = opaque;

    return s->mcr & UART_MCR_LOOP ? 0 : fifo_depth(s) - MIN(s->rx.count, fifo_depth(s));
}

static void serial_receive(void *opaque, const uint8_t *buf, size_t len)
{
    Serial *s = opaque;

    for (size_t i = 0; i < len; i++) {
        rx_put(s, buf[i]);
    }
    irq_update(s);
}

static void serial_receive_break(void *opaque)
{
    Serial *s = opaque;

    rx_put(s, 0);
    s->lsr |= UART_LSR_BI;
    irq_update(s);
}

static uint8_t rx_get(Serial *s)
{
    uint8_t byte = 0;

    if (s->rx.count > 0) {
        byte = fifo_pop(&s->rx);
    }
    if (s->rx.count == 0) {
        s->lsr &= ~UART_LSR_DR;
    }
    irq_update(s);
    chardev_accept_input(s->chr);
    return byte;
}

/* ---- sending ---- */

/* Hand the FIFO to the host; what it doesn't take yet stays. */
static void tx_flush(Serial *s)
{
    while (s->tx.count > 0) {
        uint8_t byte = s->tx.data[s->tx.first];

        if (s->mcr & UART_MCR_LOOP) {
            rx_put(s, byte);
        } else if (chardev_write(s->chr, &byte, 1) == 0) {
            break;
        }
        fifo_pop(&s->tx);
    }
    if (s->tx.count == 0 && !(s->lsr & UART_LSR_THRE)) {
        s->lsr |= UART_LSR_THRE | UART_LSR_TEMT;
        s->thr_pending = true;
    }
    irq_update(s);
}

static void serial_can_send(void *opaque)
{
    tx_flush(opaque);
}

static void tx_put(Serial *s, uint8_t byte)
{
    if (s->tx.count == fifo_depth(s)) {
        return;                 /* the guest didn't look: overwritten on the wire */
    }
    fifo_push(&s->tx, byte);
    s->lsr &= ~(UART_LSR_THRE | UART_LSR_TEMT);
    s->thr_pending = false;
    tx_flush(s);
}

/* ---- registers ---- */

static void set_ier(Serial *s, uint8_t value)
{
    bool thri_on = (value & UART_IER_THRI) && !(s->ier & UART_IER_THRI);

    s->ier = value & 0x0f;
    if (thri_on && (s->lsr & UART_LSR_THRE)) {
        s->thr_pending = true;
    }
    irq_update(s);
}

static void set_fcr(Serial *s, uint8_t value)
{
    if ((value ^ s->fcr) & UART_FCR_ENABLE_FIFO) {
        value |= UART_FCR_CLEAR_RCVR | UART_FCR_CLEAR_XMIT;
    }
    if (value & UART_FCR_CLEAR_RCVR) {
        fifo_clear(&s->rx);
        s->lsr &= ~(UART_LSR_DR | UART_LSR_BRK_ERROR_BITS);
    }
    if (value & UART_FCR_CLEAR_XMIT) {
        fifo_clear(&s->tx);
        s->lsr |= UART_LSR_THRE | UART_LSR_TEMT;
        s->thr_pending = true;
    }
    s->fcr = value & (UART_FCR_ENABLE_FIFO | UART_FCR_TRIGGER_MASK);
    irq_update(s);
    chardev_accept_input(s->chr);
}

static void set_mcr(Serial *s, uint8_t value)
{
    uint8_t before = modem_inputs(s);

    s->mcr = value & 0x1f;
    modem_changed(s, before);
    irq_update(s);
    chardev_accept_input(s->chr);
}

static uint8_t take_iir(Serial *s)
{
    uint8_t iir = s->iir | (fifo_enabled(s) ? 0xc0 : 0);

    if (s->iir == UART_IIR_THRI) {
        s->thr_pending = false;
        irq_update(s);
    }
    return iir;
}

static uint8_t take_lsr(Serial *s)
{
    uint8_t lsr = s->lsr;

    if (lsr & UART_LSR_BRK_ERROR_BITS) {
        s->lsr &= ~UART_LSR_BRK_ERROR_BITS;
        irq_update(s);
    }
    return lsr;
}

static uint8_t take_msr(Serial *s)
{
    uint8_t msr = modem_inputs(s) | s->msr_delta;

    if (s->msr_delta != 0) {
        s->msr_delta = 0;
        irq_update(s);
    }
    return msr;
}

static uint64_t serial_read(void *opaque, uint64_t off, unsigned size)
{
    Serial *s = opaque;
    bool dlab = s->lcr & UART_LCR_DLAB;

    switch (off) {
    case UART_RX:
        return dlab ? s->divisor & 0xff : rx_get(s);
    case UART_IER:
        return dlab ? s->divisor >> 8 : s->ier;
    case UART_IIR:
        return take_iir(s);
    case UART_LCR:
        return s->lcr;
    case UART_MCR:
        return s->mcr;
    case UART_LSR:
        return take_lsr(s);
    case UART_MSR:
        return take_msr(s);
    default:
        return s->scr;
    }
}

static void serial_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    Serial *s = opaque;
    bool dlab = s->lcr & UART_LCR_DLAB;

    switch (off) {
    case UART_TX:
        if (dlab) {
            s->divisor = (s->divisor & 0xff00) | value;
        } else {
            tx_put(s, value);
        }
        break;
    case UART_IER:
        if (dlab) {
            s->divisor = (s->divisor & 0xff) | value << 8;
        } else {
            set_ier(s, value);
        }
        break;
    case UART_FCR:
        set_fcr(s, value);
        break;
    case UART_LCR:
        s->lcr = value;
        break;
    case UART_MCR:
        set_mcr(s, value);
        break;
    case UART_SCR:
        s->scr = value;
        break;
    default:
        break;                  /* LSR and MSR are read only */
    }
}

static const IoOps serial_ops = {
    .name = "serial", .read = serial_read, .write = serial_write, .max_size = 1,
};

static const ChardevFront serial_front = {
    .can_receive = serial_can_receive,
    .receive = serial_receive,
    .receive_break = serial_receive_break,
    .can_send = serial_can_send,
};

/* ---- life ---- */

static void serial_reset(void *opaque)
{
    Serial *s = opaque;

    s->ier = 0;
    s->lcr = 0;
    s->mcr = 0;
    s->scr = 0;
    s->fcr = 0;
    s->divisor = 12;            /* 9600 baud */
    s->msr_delta = 0;
    s->lsr = UART_LSR_THRE | UART_LSR_TEMT;
    s->thr_pending = false;
    fifo_clear(&s->rx);
    fifo_clear(&s->tx);
    irq_update(s);
}

Serial *serial_new(Machine *m, uint16_t port, unsigned gsi, Chardev *chr, GError **errp)
{
    Serial *s = g_new0(Serial, 1);

    if (!io_bus_add(m->pio, port, PORTS, &serial_ops, s, errp)) {
        g_free(s);
        return NULL;
    }
    s->machine = m;
    s->chr = chr;
    s->port = port;
    s->gsi = gsi;
    s->reset_hook = (ResetHook) { serial_reset, s };
    machine_add_reset(m, &s->reset_hook);
    chardev_set_front(chr, &serial_front, s);
    return s;
}

void serial_free(Serial *s)
{
    if (s != NULL) {
        chardev_set_front(s->chr, NULL, NULL);
        machine_remove_reset(s->machine, &s->reset_hook);
        io_bus_remove(s->machine->pio, s->port);
        g_free(s);
    }
}
