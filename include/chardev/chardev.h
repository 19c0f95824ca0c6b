/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Character devices: a stream of bytes between a device model or a monitor
 * (the front end) and the host (the back end).
 *
 * Thread: BQL. Back ends watch their descriptors from GLib's main loop.
 */
#ifndef CHARDEV_CHARDEV_H
#define CHARDEV_CHARDEV_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Chardev Chardev;
typedef struct ChardevOps ChardevOps;

/* The front end's side; each may be NULL. */
typedef struct ChardevFront {
    /* How many bytes it can take now. */
    size_t (*can_receive)(void *opaque);
    /* Never more than it said. */
    void (*receive)(void *opaque, const uint8_t *buf, size_t len);
    /* A break came. */
    void (*receive_break)(void *opaque);
    /* After a write that took less than all: try again. */
    void (*can_send)(void *opaque);
} ChardevFront;

/* A back end's state begins with this. */
struct Chardev {
    const ChardevOps *ops;
    const ChardevFront *front;      /* NULL: nobody listens */
    void *opaque;
};

struct ChardevOps {
    const char *name;
    size_t (*write)(Chardev *c, const uint8_t *buf, size_t len);
    void (*accept_input)(Chardev *c);   /* NULL: has no input */
    void (*begin)(Chardev *c);          /* NULL: nothing to do */
    void (*free)(Chardev *c);
};

/*
 * "null", "stdio" or "file:PATH", as -serial knows them; "none" isn't one.
 * At most one stdio at a time. @signals: Ctrl-C and the like on a terminal
 * stay signals to us instead of bytes to the front end.
 */
Chardev *chardev_open(const char *spec, bool signals, GError **errp);
void chardev_free(Chardev *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Chardev, chardev_free)

/*
 * Everything was set up: before, a back end changes nothing on the host (a file
 * keeps its old content, a terminal its mode), so that a mistake elsewhere on
 * the command line harms nothing. Once, before the first write.
 */
void chardev_begin(Chardev *c);
/* @front and @opaque live until replaced or until the end; NULL: detach. */
void chardev_set_front(Chardev *c, const ChardevFront *front, void *opaque);
/* Returns how many bytes it took, and calls can_send() when there is room
 * for the rest. Never waits. */
size_t chardev_write(Chardev *c, const uint8_t *buf, size_t len);
/* can_receive() grew. */
void chardev_accept_input(Chardev *c);

/* ---- mux: Ctrl-A commands on a stream ---- */

typedef struct ChardevMuxCommand {
    char key;                       /* after Ctrl-A */
    const char *help;
    void (*run)(void *opaque);
} ChardevMuxCommand;

/*
 * A chardev on top of @below, which it owns from now on. After Ctrl-A comes a
 * command: one of @commands (ended by key 0; lives as long), h for help, b for
 * a break, Ctrl-A for itself.
 */
Chardev *chardev_mux_new(Chardev *below, const ChardevMuxCommand *commands, void *opaque);

/* ---- the terminal ---- */

/* Put the terminal back as it was found. Safe in a signal handler; also done
 * at exit. */
void chardev_terminal_restore(void);

#endif
