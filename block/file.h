/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file and host_device drivers: fields and functions that their source
 * files share. file.c is the request path, file-open.c set-up, file-worker.c
 * what runs in a pool worker, file-lock.c the locks against other processes.
 */
#ifndef BLOCK_FILE_H
#define BLOCK_FILE_H

#include "engine.h"
#include "util/enum.h"

/* Constant while the node is open, unless a comment says otherwise. */
typedef struct FileState {
    int fd;
    unsigned special;                   /* bits of BlkOp that don't go straight to the engine */
    bool direct;                        /* opened with O_DIRECT */
    bool no_flush;
    bool unmap;
    bool is_device;                     /* a block device, else a regular file */
    uint32_t request_align;             /* of offset and bytes, for O_DIRECT; else 1 */
    uint32_t mem_align;                 /* of buffers, for O_DIRECT; else 1 */
    const BlkEngine *engine;
    struct RmwTracker *rmw;             /* file-rmw.c's, NULL: not needed */
    char *filename;

    /* file-lock.c's, main thread. Bits of BLK_PERM_*. */
    bool locking;
    unsigned perm, unshared;            /* committed */
    unsigned new_perm, new_unshared;    /* between check and commit */
    unsigned locked_perm, locked_unshared; /* what we hold of the file's bytes */

    /* Learned on the way, by any thread: not tried again. */
    atomic_bool engine_flush;           /* the engine can flush this file */
    atomic_bool no_punch_hole, no_zero_range;
} FileState;

/* BlockDriver.submit of both drivers. */
int file_submit(BlockNode *node, BlkReq *req);
/* The same once file-rmw.c has let it pass. */
int file_submit_tracked(FileState *f, BlkReq *req);

typedef struct RmwTracker RmwTracker;
RmwTracker *rmw_new(void);
void rmw_free(RmwTracker *t);
/* What changes a file that has a tracker goes through here. As BlockDriver.submit. */
int rmw_submit(FileState *f, BlkReq *req);

/* BlockDriver's permission calls of both drivers, and their set-up. */
bool file_perm_check(BlockNode *node, unsigned perm, unsigned shared, GError **errp);
void file_perm_commit(BlockNode *node);
void file_perm_abort(BlockNode *node);
bool file_lock_init(FileState *f, OnOffAuto locking, GError **errp);

/*
 * Finish @req in a pool worker, from byte @skip on: everything that the engine
 * can't do or did by halves. The engine has let go of the request.
 */
int file_worker_submit(FileState *f, BlkReq *req, int64_t skip);

#endif
