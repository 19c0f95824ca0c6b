/*
 * Error objects and messages for the user.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread ErrLocation *innermost;

G_DEFINE_QUARK(vmm-error-quark, err)

static void err_set_va(GError **errp, ErrClass cls, const char *suffix,
                       const char *fmt, va_list ap)
{
    g_autofree char *text = NULL;

    if (!errp) {
        return;
    }
    g_assert(*errp == NULL);
    text = g_strdup_vprintf(fmt, ap);
    *errp = g_error_new(ERR_DOMAIN, (int)cls, "%s%s%s", text,
                        suffix ? ": " : "", suffix ? suffix : "");
}

void err_set(GError **errp, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err_set_va(errp, ERR_CLASS_GENERIC, NULL, fmt, ap);
    va_end(ap);
}

void err_set_class(GError **errp, ErrClass cls, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err_set_va(errp, cls, NULL, fmt, ap);
    va_end(ap);
}

void err_set_errno(GError **errp, int errnum, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err_set_va(errp, ERR_CLASS_GENERIC, g_strerror(abs(errnum)), fmt, ap);
    va_end(ap);
}

void err_prepend(GError **errp, const char *fmt, ...)
{
    g_autofree char *text = NULL;
    char *joined;
    va_list ap;

    if (!errp || !*errp) {
        return;
    }
    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    joined = g_strconcat(text, (*errp)->message, NULL);
    g_free((*errp)->message);
    (*errp)->message = joined;
}

void err_append(GError **errp, const char *fmt, ...)
{
    g_autofree char *text = NULL;
    char *joined;
    va_list ap;

    if (!errp || !*errp) {
        return;
    }
    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    joined = g_strconcat((*errp)->message, text, NULL);
    g_free((*errp)->message);
    (*errp)->message = joined;
}

ErrClass err_class(const GError *err)
{
    return err->domain == ERR_DOMAIN ? (ErrClass)err->code : ERR_CLASS_GENERIC;
}

static void report_text(const char *kind, const char *text)
{
    const char *prog = g_get_prgname();
    const char *loc = err_location_text();
    g_autofree char *line = NULL;

    line = g_strdup_printf("%s:%s%s%s%s%s\n",
                           prog ? prog : program_invocation_short_name,
                           loc && innermost->is_file ? "" : " ",
                           loc ? loc : "", loc ? ": " : "", kind, text);
    fflush(stdout);
    fputs(line, stderr);
    fflush(stderr);
}

static void report_va(const char *kind, const char *fmt, va_list ap)
{
    g_autofree char *text = g_strdup_vprintf(fmt, ap);

    report_text(kind, text);
}

void report_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report_va("", fmt, ap);
    va_end(ap);
}

void report_warning(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report_va("warning: ", fmt, ap);
    va_end(ap);
}

void report_info(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    report_va("info: ", fmt, ap);
    va_end(ap);
}

void report_error_gerror(const GError *err)
{
    report_text("", err->message);
}

void report_warning_gerror(const GError *err)
{
    report_text("warning: ", err->message);
}

void report_set_progname(const char *argv0)
{
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL;

    g_set_prgname(slash ? slash + 1 : argv0);
}

static void location_link(ErrLocation *loc, char *text)
{
    loc->outer = innermost;
    loc->text = text;
    loc->is_file = false;
    innermost = loc;
}

void err_location_push(ErrLocation *loc, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    location_link(loc, g_strdup_vprintf(fmt, ap));
    va_end(ap);
}

void err_location_push_file(ErrLocation *loc, const char *path, unsigned line)
{
    location_link(loc, g_strdup_printf("%s:%u", path, line));
    loc->is_file = true;
}

void err_location_push_args(ErrLocation *loc, char *const *argv, int count)
{
    GString *text = g_string_new(NULL);

    for (int i = 0; i < count; i++) {
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", argv[i]);
    }
    location_link(loc, g_string_free(text, FALSE));
}

void err_location_push_none(ErrLocation *loc)
{
    location_link(loc, NULL);
}

void err_location_pop(ErrLocation *loc)
{
    g_assert(innermost == loc);
    innermost = loc->outer;
    g_free(loc->text);
    loc->text = NULL;
}

const char *err_location_text(void)
{
    return innermost ? innermost->text : NULL;
}
