/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks that keep two processes from using one image against each other's will.
 *
 * The protocol is the one that QEMU's tools speak: open-file-description locks
 * on single bytes of the image, bit number b being that of BLK_PERM_*:
 *   100 + b, shared: someone uses permission b
 *   200 + b, shared: someone doesn't let others use permission b
 * Whoever wants a permission first locks its bytes, then looks whether anyone
 * else holds the opposite ones. Two who come at once may both fail, never both
 * succeed.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file.h"
#include "util/err.h"

#define LOCK_PERM_BASE 100
#define LOCK_UNSHARED_BASE 200
#define LOCK_BITS 4
/* How long a lock that no process holds is waited for. */
#define NOBODY_TRIES 10
#define NOBODY_WAIT_US 50000

/* ---- who holds it ------------------------------------------------------------- */

/* "lock:\t1: OFDLCK ADVISORY  READ -1 fe:00:12345 100 101", from proc(5). */
static bool lock_line_matches(const char *line, const struct stat *st, int64_t byte)
{
    unsigned major_nr, minor_nr;
    unsigned long long inode;
    long long first, last;
    char end[24];

    if (sscanf(line, "lock: %*d: OFDLCK %*s %*s %*d %x:%x:%llu %lld %23s", &major_nr, &minor_nr,
               &inode, &first, end) != 5) {
        return false;
    }
    last = strcmp(end, "EOF") == 0 ? INT64_MAX : atoll(end);
    return major_nr == major(st->st_dev) && minor_nr == minor(st->st_dev) &&
           inode == st->st_ino && first <= byte && byte <= last;
}

static bool fdinfo_has_lock(const char *path, const struct stat *st, int64_t byte)
{
    FILE *file = fopen(path, "re");
    char line[256];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        found = lock_line_matches(line, st, byte);
    }
    if (file) {
        fclose(file);
    }
    return found;
}

static bool process_has_lock(const char *pid, int own_fd, const struct stat *st, int64_t byte)
{
    g_autofree char *folder = g_strdup_printf("/proc/%s/fdinfo", pid);
    bool own = atoi(pid) == getpid();
    GDir *dir = g_dir_open(folder, 0, NULL);
    bool found = false;
    const char *fd;

    while (dir && !found && (fd = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, fd, NULL);

        found = !(own && atoi(fd) == own_fd) && fdinfo_has_lock(path, st, byte);
    }
    if (dir) {
        g_dir_close(dir);
    }
    return found;
}

/* " It is held by ...", or NULL where /proc doesn't tell. */
static char *holder_text(const FileState *f, int64_t byte)
{
    GDir *dir = g_dir_open("/proc", 0, NULL);
    char *text = NULL;
    struct stat st;
    const char *pid;

    if (dir && fstat(f->fd, &st) == 0) {
        while (!text && (pid = g_dir_read_name(dir)) != NULL) {
            g_autofree char *comm = NULL, *path = NULL;

            if (!isdigit(pid[0]) || !process_has_lock(pid, f->fd, &st, byte)) {
                continue;
            }
            if (atoi(pid) == getpid()) {
                text = g_strdup(" It is used twice here");
                continue;
            }
            path = g_strdup_printf("/proc/%s/comm", pid);
            if (g_file_get_contents(path, &comm, NULL, NULL)) {
                g_strchomp(comm);
            }
            text = g_strdup_printf(" It is held by process %s (%s)", pid, comm ? comm : "gone");
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
    return text;
}

/* ---- bytes ---------------------------------------------------------------------- */

static int byte_lock(int fd, int64_t byte, bool on)
{
    struct flock lock = {
        .l_type = on ? F_RDLCK : F_UNLCK,
        .l_whence = SEEK_SET,
        .l_start = byte,
        .l_len = 1,
    };
    int ret;

    do {
        ret = fcntl(fd, F_OFD_SETLK, &lock);
    } while (ret < 0 && errno == EINTR);
    return ret < 0 ? -errno : 0;
}

/* 1: someone else holds it, 0: no one, or -errno. */
static int byte_is_held(int fd, int64_t byte)
{
    struct flock lock = {
        .l_type = F_WRLCK,              /* conflicts with any lock */
        .l_whence = SEEK_SET,
        .l_start = byte,
        .l_len = 1,
    };

    if (fcntl(fd, F_OFD_GETLK, &lock) < 0) {
        return -errno;
    }
    return lock.l_type != F_UNLCK;
}

/* Hold exactly @want of the bits at @base; what fails to be given back is no harm. */
static int bits_set(int fd, int64_t base, unsigned *held, unsigned want)
{
    for (unsigned bit = 0; bit < LOCK_BITS; bit++) {
        unsigned mask = 1u << bit;
        int ret = 0;

        if ((*held ^ want) & mask) {
            ret = byte_lock(fd, base + bit, want & mask);
        }
        if (ret < 0 && (want & mask)) {
            return ret;
        }
        *held = (*held & ~mask) | (want & mask);
    }
    return 0;
}

/* @nobody is set when someone holds a lock and no process has it. */
static bool bits_are_free(const FileState *f, int64_t base, unsigned bits, const char *what,
                          bool *nobody, GError **errp)
{
    for (unsigned bit = 0; bit < LOCK_BITS; bit++) {
        int ret = bits & (1u << bit) ? byte_is_held(f->fd, base + bit) : 0;

        if (ret < 0) {
            err_set_errno(errp, ret, "Could not look at the locks of '%s'", f->filename);
            return false;
        }
        if (ret > 0) {
            g_autofree char *holder = holder_text(f, base + bit);

            err_set(errp, "Failed to get %s\"%s\" lock. Is another process using the image "
                    "[%s]?%s", what, perm_name(1u << bit), f->filename, holder ? holder : "");
            *nobody = !holder;
            return false;
        }
    }
    return true;
}

/* ---- permissions ------------------------------------------------------------------- */

static int locks_hold(FileState *f, unsigned perm, unsigned unshared)
{
    int ret = bits_set(f->fd, LOCK_PERM_BASE, &f->locked_perm, perm);

    return ret < 0 ? ret : bits_set(f->fd, LOCK_UNSHARED_BASE, &f->locked_unshared, unshared);
}

void file_perm_abort(BlockNode *node)
{
    FileState *f = node->state;

    if (f->locking) {
        locks_hold(f, f->perm, f->unshared);
    }
}

void file_perm_commit(BlockNode *node)
{
    FileState *f = node->state;

    f->perm = f->new_perm;
    f->unshared = f->new_unshared;
    if (f->locking) {
        locks_hold(f, f->perm, f->unshared);
    }
}

/*
 * Locks of a process that was killed with an io_uring request on its way are held by
 * the kernel a little longer, and then /proc knows no holder: wait for them.
 */
static bool check_conflicts(FileState *f, GError **errp)
{
    for (int tries = 0; ; tries++) {
        bool nobody = false;
        GError *err = NULL;

        if (bits_are_free(f, LOCK_UNSHARED_BASE, f->new_perm, "", &nobody, &err) &&
            bits_are_free(f, LOCK_PERM_BASE, f->new_unshared, "shared ", &nobody, &err)) {
            return true;
        }
        if (!nobody || tries == NOBODY_TRIES) {
            g_propagate_error(errp, err);
            return false;
        }
        g_error_free(err);
        g_usleep(NOBODY_WAIT_US);
    }
}

bool file_perm_check(BlockNode *node, unsigned perm, unsigned shared, GError **errp)
{
    FileState *f = node->state;
    int ret;

    f->new_perm = perm;
    f->new_unshared = ~shared & BLK_PERM_ALL;
    if (!f->locking) {
        return true;
    }
    /* More before less: nobody may slip in between. */
    ret = locks_hold(f, f->perm | f->new_perm, f->unshared | f->new_unshared);
    if (ret < 0) {
        err_set_errno(errp, ret, "Could not lock '%s' (locking=off does without)", f->filename);
        file_perm_abort(node);
        return false;
    }
    if (!check_conflicts(f, errp)) {
        file_perm_abort(node);
        return false;
    }
    return true;
}

bool file_lock_init(FileState *f, OnOffAuto locking, GError **errp)
{
    int ret;

    f->locking = locking != ON_OFF_AUTO_OFF;
    ret = f->locking ? byte_is_held(f->fd, LOCK_PERM_BASE) : 0;
    if (ret >= 0) {
        return true;
    }
    if (locking == ON_OFF_AUTO_ON) {
        err_set_errno(errp, ret, "locking=on, but '%s' can't be locked", f->filename);
        return false;
    }
    f->locking = false;
    return true;
}
