/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening host files and block devices: what they are, what O_DIRECT wants of
 * requests, how long they are.
 */
#include "config-host.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block/drivers.h"
#include "file.h"
#include "qapi/block-types.h"
#include "util/err.h"

/* The largest alignment that we look for. */
#define ALIGN_MAX 4096

/* ---- alignment -------------------------------------------------------------- */

static bool align_from_statx(FileState *f)
{
#ifdef STATX_DIOALIGN
    struct statx st;

    if (statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) == 0 &&
        (st.stx_mask & STATX_DIOALIGN) && st.stx_dio_offset_align > 0 &&
        st.stx_dio_offset_align <= 65536) {
        f->request_align = st.stx_dio_offset_align;
        f->mem_align = MAX(st.stx_dio_mem_align, 1);
        return true;
    }
#endif
    return false;
}

/* Does reading with this alignment work? An empty file answers for nothing. */
static bool probe_read(const FileState *f, char *buf, size_t offset, size_t bytes, size_t mem)
{
    ssize_t n;

    do {
        n = pread(f->fd, buf + mem, bytes, offset);
    } while (n < 0 && errno == EINTR);
    return n >= 0 || errno != EINVAL;
}

static void align_probe(FileState *f)
{
    static const uint32_t tries[] = { 1, 512, 1024, 2048, 4096 };
    g_autofree char *memory = g_malloc0(3 * ALIGN_MAX);
    char *buf = (char *)(((uintptr_t)memory + ALIGN_MAX - 1) & ~(uintptr_t)(ALIGN_MAX - 1));

    f->request_align = ALIGN_MAX;
    f->mem_align = ALIGN_MAX;
    for (size_t i = 0; i < G_N_ELEMENTS(tries); i++) {
        if (probe_read(f, buf, 0, tries[i], 0)) {
            /* A file that takes single bytes is one that doesn't care. */
            f->request_align = tries[i];
            break;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(tries); i++) {
        if (probe_read(f, buf, 0, ALIGN_MAX, tries[i] % ALIGN_MAX)) {
            f->mem_align = tries[i];
            break;
        }
    }
}

static void align_find(FileState *f)
{
    f->request_align = 1;
    f->mem_align = 1;
    if (f->direct && !align_from_statx(f)) {
        align_probe(f);
    }
}

/* ---- length -------------------------------------------------------------------- */

static int64_t fd_exact_length(const FileState *f)
{
    struct stat st;
    uint64_t bytes;

    if (f->is_device) {
        if (ioctl(f->fd, BLKGETSIZE64, &bytes) < 0) {
            return -errno;
        }
    } else {
        if (fstat(f->fd, &st) < 0) {
            return -errno;
        }
        bytes = st.st_size;
    }
    return bytes > BLOCK_LENGTH_MAX ? -EFBIG : (int64_t)bytes;
}

/* Bytes, rounded up to whole sectors: the rest of the last one reads as zeroes. */
static int64_t fd_length(const FileState *f)
{
    int64_t bytes = fd_exact_length(f);

    return bytes < 0 ? bytes : (bytes + 511) & ~INT64_C(511);
}

static int64_t file_refresh_length(BlockNode *node)
{
    return fd_length(node->state);
}

/* ---- open and close -------------------------------------------------------------- */

static bool check_mode(const BlockNode *node, const FileState *f, mode_t mode, GError **errp)
{
    bool wants_device = node->drv == &bdrv_host_device;

    if (wants_device && !S_ISBLK(mode)) {
        err_set(errp, "'host_device' driver requires '%s' to be a block device", f->filename);
        return false;
    }
    if (!wants_device && !S_ISREG(mode)) {
        err_set(errp, "'file' driver requires '%s' to be a regular file", f->filename);
        return false;
    }
    return true;
}

static bool check_kind(BlockNode *node, FileState *f, GError **errp)
{
    struct stat st;

    if (fstat(f->fd, &st) < 0) {
        err_set_errno(errp, errno, "Could not stat '%s'", f->filename);
        return false;
    }
    f->is_device = S_ISBLK(st.st_mode);
    return check_mode(node, f, st.st_mode, errp);
}

static bool writing_is_refused(int err)
{
    return err == EACCES || err == EROFS || err == EPERM;
}

/* To open a pipe waits for its other end, and a device's driver may act: look first. */
static bool check_name(BlockNode *node, const FileState *f, GError **errp)
{
    struct stat st;

    /* what is missing or a directory open() itself says best */
    return stat(f->filename, &st) < 0 || S_ISDIR(st.st_mode) ||
           check_mode(node, f, st.st_mode, errp);
}

static bool open_fd(BlockNode *node, FileState *f, GError **errp)
{
    int flags = O_CLOEXEC | O_NOCTTY | (f->direct ? O_DIRECT : 0);

    f->fd = open(f->filename, flags | (node->flags.read_only ? O_RDONLY : O_RDWR));
    if (f->fd < 0 && !node->flags.read_only && node->flags.auto_read_only &&
        writing_is_refused(errno)) {
        f->fd = open(f->filename, flags | O_RDONLY);
        if (f->fd >= 0) {
            node->flags.read_only = true;
        }
    }
    if (f->fd < 0 && errno == EINVAL && f->direct) {
        err_set(errp, "Could not open '%s': its filesystem does not support O_DIRECT "
                "(cache.direct=on)", f->filename);
        return false;
    }
    if (f->fd < 0) {
        err_set_errno(errp, errno, "Could not open '%s'", f->filename);
        return false;
    }
    return true;
}

static const BlkEngine *const engines[] = {
    &engine_threads,
#ifdef CONFIG_LINUX_AIO
    &engine_linux_aio,
#endif
#ifdef CONFIG_LINUX_IO_URING
    &engine_io_uring,
#endif
};

static bool choose_engine(FileState *f, const char *aio, GError **errp)
{
    if (!aio) {
        aio = engine_threads.name;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(engines); i++) {
        if (strcmp(engines[i]->name, aio) == 0) {
            f->engine = engines[i];
        }
    }
    if (!f->engine) {
        err_set(errp, "aio=%s was not built into this program", aio);
        return false;
    }
    if (f->engine->needs_direct && !f->direct) {
        err_set(errp, "aio=%s was specified, but it requires cache.direct=on, which was not "
                "specified", aio);
        return false;
    }
    return f->engine->available(errp);
}

static void fill_limits(BlockNode *node, const FileState *f)
{
    node->limits = (BlkLimits) {
        .request_align = 1,             /* others are bounced inside */
        .mem_align = f->mem_align,
        .max_iov = IOV_MAX,
        .discard_align = f->unmap ? MAX(f->request_align, 512) : 0,
    };
}

static void file_free(FileState *f)
{
    if (f->fd >= 0) {
        close(f->fd);
    }
    rmw_free(f->rmw);
    g_free(f->filename);
}

bool file_open(BlockNode *node, const void *params, GError **errp)
{
    const FileParams *p = params;
    FileState *f = node->state;
    int64_t length;

    f->fd = -1;
    f->filename = g_strdup(p->filename);
    f->direct = node->flags.direct;
    f->no_flush = node->flags.no_flush;
    f->unmap = node->flags.unmap;
    f->engine_flush = true;
    if (!choose_engine(f, p->aio, errp) || !check_name(node, f, errp) ||
        !open_fd(node, f, errp) || !check_kind(node, f, errp) ||
        !file_lock_init(f, p->locking, errp)) {
        file_free(f);
        return false;
    }
    align_find(f);
    f->special = 1u << BLK_FLUSH | 1u << BLK_DISCARD | 1u << BLK_WRITE_ZEROES;
    if (f->request_align > 512) {
        f->rmw = rmw_new();
    }
    if (f->rmw || f->no_flush) {
        f->special |= 1u << BLK_WRITE;
    }
    length = fd_exact_length(f);
    node->short_image = length < 512;
    length = fd_length(f);
    if (length < 0) {
        err_set_errno(errp, length, "Could not get the size of '%s'", f->filename);
        file_free(f);
        return false;
    }
    atomic_store(&node->length, length);
    node->filename = g_strdup(f->filename);
    fill_limits(node, f);
    return true;
}

static void file_close(BlockNode *node)
{
    file_free(node->state);
}

static int file_flush_blocking(BlockNode *node)
{
    const FileState *f = node->state;

    if (f->no_flush || node->flags.read_only) {
        return 0;
    }
    return fdatasync(f->fd) < 0 ? -errno : 0;
}

/* Both branches of the union are of one type. */
static bool file_open_opts(BlockNode *node, const BlockdevOptions *opts, GError **errp)
{
    const BlockdevOptionsFile *o = opts->driver == BLOCKDEV_DRIVER_FILE ? &opts->u.file
                                                                        : &opts->u.host_device;
    FileParams p = {
        .filename = o->filename,
        .aio = o->has_aio ? enum_name(&BlockdevAioOptions_table, o->aio) : NULL,
        .locking = o->has_locking ? o->locking : ON_OFF_AUTO_AUTO,
    };

    return file_open(node, &p, errp);
}

const BlockDriver bdrv_file = {
    .name = "file",
    .state_size = sizeof(FileState),
    .is_protocol = true,
    .open = file_open_opts,
    .close = file_close,
    .submit = file_submit,
    .refresh_length = file_refresh_length,
    .flush_blocking = file_flush_blocking,
    .perm_check = file_perm_check,
    .perm_commit = file_perm_commit,
    .perm_abort = file_perm_abort,
};

const BlockDriver bdrv_host_device = {
    .name = "host_device",
    .state_size = sizeof(FileState),
    .is_protocol = true,
    .open = file_open_opts,
    .close = file_close,
    .submit = file_submit,
    .refresh_length = file_refresh_length,
    .flush_blocking = file_flush_blocking,
    .perm_check = file_perm_check,
    .perm_commit = file_perm_commit,
    .perm_abort = file_perm_abort,
};
