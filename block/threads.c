/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request path, step 5, second half: aio=threads.
 * From file.c; the work itself is file-worker.c's.
 */
#include "file.h"
#include "util/err.h"

static bool threads_available(GError **errp)
{
    return true;
}

static int threads_submit(AioContext *ctx, BlkReq *req)
{
    return file_worker_submit(req->file, req, 0);
}

int engine_unusable_here(AioContext *ctx, BlkReq *req, const char *name, int error)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&warned)) {
        report_warning("aio=%s can't be used in '%s': %s; worker threads serve instead", name,
                       aio_context_name(ctx), g_strerror(-error));
    }
    return file_worker_submit(req->file, req, 0);
}

const BlkEngine engine_threads = {
    .name = "threads",
    .available = threads_available,
    .submit = threads_submit,
};
