/*
 * Error objects and messages for the user.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A function that can fail while things are being set up takes a
 * GError **errp as its last parameter and fills it by the functions below.
 * Only main() and the monitors print: they call report_error_gerror().
 *
 * Thread: any. The location stack belongs to the calling thread.
 */
#ifndef UTIL_ERR_H
#define UTIL_ERR_H

#include <glib.h>
#include <stdarg.h>
#include <stdbool.h>

/*
 * The domain of the errors made here; the code is an ErrClass.
 * The classes are those that a QMP client can tell apart.
 */
#define ERR_DOMAIN (err_quark())
GQuark err_quark(void);

typedef enum ErrClass {
    ERR_CLASS_GENERIC,
    ERR_CLASS_COMMAND_NOT_FOUND,
    ERR_CLASS_DEVICE_NOT_ACTIVE,
    ERR_CLASS_DEVICE_NOT_FOUND,
    ERR_CLASS_KVM_MISSING_CAP,
} ErrClass;

/*
 * Fill *errp with one line of text, without a newline or a full stop at its
 * end. @errp may be NULL: then nothing happens. *errp must be NULL before.
 */
void err_set(GError **errp, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
void err_set_class(GError **errp, ErrClass cls, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);

/* The same with ": " and the text of @errnum at its end. -errno will do. */
void err_set_errno(GError **errp, int errnum, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);

/* Put text before that of *errp. Nothing happens when there is no error. */
void err_prepend(GError **errp, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* Put text after that of *errp. Nothing happens when there is no error. */
void err_append(GError **errp, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* The class of an error: ERR_CLASS_GENERIC for one of a foreign domain. */
ErrClass err_class(const GError *err);

/*
 * Messages on stderr: "PROGNAME: [LOCATION: ][warning: |info: ]TEXT\n",
 * written at once, so that lines of several threads do not mix.
 * PROGNAME is g_get_prgname(), or what the kernel calls us.
 */
void report_error(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void report_warning(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void report_info(const char *fmt, ...) G_GNUC_PRINTF(1, 2);

/* Print @err as an error or a warning. The caller still owns it. */
void report_error_gerror(const GError *err);
void report_warning_gerror(const GError *err);

/* Sets what messages begin with; only the part after the last '/' counts. */
void report_set_progname(const char *argv0);

/*
 * Where the thing that we complain about was said. The parser of the command
 * line or of a file pushes a location before it looks at an item and pops it
 * afterwards; messages of this thread then begin with it. @loc is the
 * caller's (usually on its stack) from push to pop; locations nest, and only
 * the innermost is printed.
 */
typedef struct ErrLocation {
    struct ErrLocation *outer;
    char *text;
    bool is_file;
} ErrLocation;

/* Free text, e.g. "guest.cfg:12". */
void err_location_push(ErrLocation *loc, const char *fmt, ...)
    G_GNUC_PRINTF(2, 3);
/* A line of a file; messages then begin with "PROGNAME:PATH:LINE: ". */
void err_location_push_file(ErrLocation *loc, const char *path, unsigned line);
/* @count words of @argv, e.g. "-device virtio-blk-pci,drive=f0". */
void err_location_push_args(ErrLocation *loc, char *const *argv, int count);
/* Hide the outer locations, for code that runs long after parsing. */
void err_location_push_none(ErrLocation *loc);
/* @loc must be the innermost one. */
void err_location_pop(ErrLocation *loc);
/* The innermost location's text, or NULL. */
const char *err_location_text(void);

#endif
