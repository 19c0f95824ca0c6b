/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ctrl-A commands. Input waits here for a front end without room, so that a
 * command behind it is seen even when the guest doesn't listen.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chardev-internal.h"

#define ESCAPE 0x01             /* Ctrl-A */
#define WAITING_MAX 64

typedef struct MuxChardev {
    Chardev chr;
    Chardev *below;
    const ChardevMuxCommand *commands;
    void *opaque;
    bool escaped;               /* the last byte was Ctrl-A */
    bool typed;                 /* by a human: rather lose input than commands */
    uint8_t waiting[WAITING_MAX];
    size_t n_waiting;
} MuxChardev;

static void say(MuxChardev *m, const char *text)
{
    chardev_write(m->below, (const uint8_t *)text, strlen(text));
}

static void say_help(MuxChardev *m)
{
    say(m, "\r\nCtrl-A h    this help\r\n");
    for (const ChardevMuxCommand *c = m->commands; c->key != 0; c++) {
        char line[80];

        snprintf(line, sizeof(line), "Ctrl-A %c    %s\r\n", c->key, c->help);
        say(m, line);
    }
    say(m, "Ctrl-A b    send a break\r\n"
           "Ctrl-A Ctrl-A    send Ctrl-A\r\n");
}

static void command(MuxChardev *m, char key)
{
    if (key == 'h' || key == '?') {
        say_help(m);
        return;
    }
    if (key == 'b') {
        if (m->chr.front != NULL && m->chr.front->receive_break != NULL) {
            m->chr.front->receive_break(m->chr.opaque);
        }
        return;
    }
    for (const ChardevMuxCommand *c = m->commands; c->key != 0; c++) {
        if (c->key == key) {
            c->run(m->opaque);
        }
    }
}

/* Hand over what waits, as far as there is room. */
static void deliver(MuxChardev *m)
{
    size_t n = MIN(m->n_waiting, chardev_front_room(&m->chr));

    if (n > 0) {
        uint8_t out[WAITING_MAX];

        memcpy(out, m->waiting, n);
        m->n_waiting -= n;
        memmove(m->waiting, m->waiting + n, m->n_waiting);
        chardev_front_receive(&m->chr, out, n);
    }
}

static size_t mux_can_receive(void *opaque)
{
    MuxChardev *m = opaque;

    return m->typed ? 1 : WAITING_MAX - m->n_waiting;
}

static void mux_receive(void *opaque, const uint8_t *buf, size_t len)
{
    MuxChardev *m = opaque;

    for (size_t i = 0; i < len; i++) {
        bool was_escaped = m->escaped;

        m->escaped = !was_escaped && buf[i] == ESCAPE;
        if (m->escaped) {
            continue;
        }
        if (was_escaped && buf[i] != ESCAPE) {
            command(m, buf[i]);
        } else if (m->n_waiting < WAITING_MAX) {
            m->waiting[m->n_waiting++] = buf[i];
        }
    }
    deliver(m);
}

static void mux_can_send(void *opaque)
{
    MuxChardev *m = opaque;

    chardev_front_can_send(&m->chr);
}

static const ChardevFront mux_front = {
    .can_receive = mux_can_receive, .receive = mux_receive, .can_send = mux_can_send,
};

static size_t mux_write(Chardev *c, const uint8_t *buf, size_t len)
{
    return chardev_write(((MuxChardev *)c)->below, buf, len);
}

static void mux_accept_input(Chardev *c)
{
    MuxChardev *m = (MuxChardev *)c;

    deliver(m);
    chardev_accept_input(m->below);
}

static void mux_begin(Chardev *c)
{
    chardev_begin(((MuxChardev *)c)->below);
}

static void mux_free(Chardev *c)
{
    chardev_free(((MuxChardev *)c)->below);
    g_free(c);
}

static const ChardevOps mux_ops = {
    .name = "mux", .write = mux_write, .accept_input = mux_accept_input, .begin = mux_begin,
    .free = mux_free,
};

Chardev *chardev_mux_new(Chardev *below, const ChardevMuxCommand *commands, void *opaque)
{
    MuxChardev *m = g_new0(MuxChardev, 1);

    m->chr.ops = &mux_ops;
    m->below = below;
    m->commands = commands;
    m->opaque = opaque;
    m->typed = isatty(STDIN_FILENO);
    chardev_set_front(below, &mux_front, m);
    return &m->chr;
}
