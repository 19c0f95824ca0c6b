/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -pidfile: locked while we live, so that two processes can't claim one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/err.h"
#include "vm.h"

static char *pidfile_path;

void pidfile_remove(void)
{
    if (pidfile_path != NULL) {
        unlink(pidfile_path);
        g_clear_pointer(&pidfile_path, g_free);
    }
}

bool pidfile_write(const char *path, GError **errp)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char text[24];

    if (fd < 0) {
        err_set_errno(errp, errno, "cannot create pid file '%s'", path);
        return false;
    }
    if (fcntl(fd, F_SETLK, &lock) < 0) {
        err_set_errno(errp, errno, "pid file '%s' is in use", path);
        close(fd);
        return false;
    }
    snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        err_set_errno(errp, errno, "cannot write pid file '%s'", path);
        close(fd);
        return false;
    }
    /* fd stays open for the lock */
    pidfile_path = g_canonicalize_filename(path, NULL);
    return true;
}
