/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Back ends on file descriptors: stdio and file.
 *
 * The descriptors of stdio are shared with whoever started us, so they are not
 * made non-blocking: poll() says whether a short write goes through.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chardev-internal.h"
#include "terminal.h"
#include "util/err.h"

#define READ_MAX 1024
#define WRITE_MAX 512           /* what a pipe or terminal that is writable takes at once */

typedef struct FdChardev {
    Chardev chr;
    int in_fd;                  /* -1: none */
    int out_fd;
    bool close_out;
    bool begun;
    bool signals;               /* stdio: see chardev_open() */
    bool out_waits;             /* out_fd may block: ask poll() */
    guint in_watch, out_watch;  /* GLib source ids, 0: none */
} FdChardev;

static bool stdio_in_use;

/* ---- output ---- */

static gboolean writable_cb(gint fd, GIOCondition cond, gpointer opaque)
{
    FdChardev *f = opaque;

    f->out_watch = 0;
    chardev_front_can_send(&f->chr);
    return G_SOURCE_REMOVE;
}

static bool out_ready(const FdChardev *f)
{
    struct pollfd p = { .fd = f->out_fd, .events = POLLOUT };

    return !f->out_waits || poll(&p, 1, 0) != 0;
}

/* Output that the host refuses (a closed pipe, a full disk) is lost, as on a wire. */
static size_t fd_write(Chardev *c, const uint8_t *buf, size_t len)
{
    FdChardev *f = (FdChardev *)c;
    size_t done = 0;

    while (done < len && out_ready(f)) {
        ssize_t n = write(f->out_fd, buf + done, MIN(len - done, WRITE_MAX));

        if (n > 0) {
            done += n;
        } else if (n < 0 && errno == EAGAIN) {
            break;
        } else if (n == 0 || errno != EINTR) {
            return len;
        }
    }
    if (done < len && f->out_watch == 0) {
        f->out_watch = g_unix_fd_add(f->out_fd, G_IO_OUT | G_IO_ERR | G_IO_HUP, writable_cb, f);
    }
    return done;
}

/* ---- input ---- */

static gboolean readable_cb(gint fd, GIOCondition cond, gpointer opaque)
{
    FdChardev *f = opaque;
    size_t room = MIN(chardev_front_room(&f->chr), READ_MAX);
    uint8_t buf[READ_MAX];
    ssize_t n;

    if (room == 0) {
        f->in_watch = 0;        /* until chardev_accept_input() */
        return G_SOURCE_REMOVE;
    }
    n = read(fd, buf, room);
    if (n > 0) {
        chardev_front_receive(&f->chr, buf, n);
        return G_SOURCE_CONTINUE;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return G_SOURCE_CONTINUE;
    }
    f->in_watch = 0;            /* end of input */
    f->in_fd = -1;
    return G_SOURCE_REMOVE;
}

static void fd_accept_input(Chardev *c)
{
    FdChardev *f = (FdChardev *)c;

    if (f->begun && f->in_fd >= 0 && f->in_watch == 0 && chardev_front_room(c) > 0) {
        f->in_watch = g_unix_fd_add(f->in_fd, G_IO_IN | G_IO_HUP | G_IO_ERR, readable_cb, f);
    }
}

/* ---- life ---- */

static void stdio_begin(Chardev *c)
{
    FdChardev *f = (FdChardev *)c;

    f->begun = true;
    terminal_raw(f->signals);
}

static void file_begin(Chardev *c)
{
    FdChardev *f = (FdChardev *)c;

    f->begun = true;
    if (!f->out_waits && ftruncate(f->out_fd, 0) < 0) {
        report_warning("cannot empty the file of a character device: %s", g_strerror(errno));
    }
}

static void fd_free(Chardev *c)
{
    FdChardev *f = (FdChardev *)c;

    if (f->in_watch != 0) {
        g_source_remove(f->in_watch);
    }
    if (f->out_watch != 0) {
        g_source_remove(f->out_watch);
    }
    if (f->close_out) {
        close(f->out_fd);
    }
    g_free(f);
}

static void stdio_free(Chardev *c)
{
    chardev_terminal_restore();
    stdio_in_use = false;
    fd_free(c);
}

static const ChardevOps stdio_ops = {
    .name = "stdio", .write = fd_write, .accept_input = fd_accept_input, .begin = stdio_begin,
    .free = stdio_free,
};
static const ChardevOps file_ops = {
    .name = "file", .write = fd_write, .begin = file_begin, .free = fd_free,
};

Chardev *chardev_stdio_open(const char *arg, bool signals, GError **errp)
{
    FdChardev *f;
    struct stat st;

    if (stdio_in_use) {
        err_set(errp, "stdio can be used only once (mon:stdio shares it)");
        return NULL;
    }
    stdio_in_use = true;
    f = g_new0(FdChardev, 1);
    f->chr.ops = &stdio_ops;
    f->in_fd = STDIN_FILENO;
    f->out_fd = STDOUT_FILENO;
    f->out_waits = fstat(f->out_fd, &st) != 0 || !S_ISREG(st.st_mode);
    f->signals = signals;
    return &f->chr;
}

Chardev *chardev_file_open(const char *path, bool signals, GError **errp)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    FdChardev *f;
    struct stat st;

    if (fd < 0) {
        err_set_errno(errp, errno, "cannot open '%s'", path);
        return NULL;
    }
    f = g_new0(FdChardev, 1);
    f->chr.ops = &file_ops;
    f->in_fd = -1;
    f->out_fd = fd;
    f->close_out = true;
    f->out_waits = fstat(fd, &st) != 0 || !S_ISREG(st.st_mode);
    return &f->chr;
}
