/*
 * A command line split into options, by a table.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * All options are recognized before the first is acted upon. The order in
 * which main() acts (objects before the devices that need them) is its own:
 * it goes over the items once for each kind.
 *
 *     for (i = 0; (item = cmdline_find(cl, OPT_OBJECT, &i)) != NULL; ) {
 *         err_location_push_args(&loc, item->words, item->word_count);
 *         ok = add_object(item->arg, &err);
 *         ...
 *         err_location_pop(&loc);
 *     }
 */
#ifndef UTIL_CMDLINE_H
#define UTIL_CMDLINE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct CmdlineOption {
    const char *name;           /* without its dash; NULL ends a table */
    int code;                   /* the program's own number for it, from 0 on */
    const char *arg;            /* what follows, for help; NULL: nothing does */
    const char *help;           /* lines, separated by '\n' */
} CmdlineOption;

typedef struct CmdlineItem {
    const CmdlineOption *option;    /* NULL: a word without a dash */
    const char *arg;            /* the argument or that word; NULL: none */
    char *const *words;         /* as typed, for err_location_push_args() */
    int word_count;
} CmdlineItem;

typedef struct Cmdline {
    CmdlineItem *items;
    size_t count;
} Cmdline;

/*
 * Both "-name" and "--name" are recognized; @argv[0] is skipped. @table and
 * @argv must outlive the result. NULL with *errp set for an unknown option
 * and for a missing argument; the message begins with the option.
 */
Cmdline *cmdline_parse(const CmdlineOption *table, int argc, char *const *argv,
                       GError **errp);
void cmdline_free(Cmdline *cl);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Cmdline, cmdline_free)

/* The next item with @code from *at on, which moves behind it; NULL: no more. */
const CmdlineItem *cmdline_find(const Cmdline *cl, int code, size_t *at);
/* The last one, for options of which the last counts; NULL: none. */
const CmdlineItem *cmdline_last(const Cmdline *cl, int code);

/* Append the table as -help prints it. */
void cmdline_help(const CmdlineOption *table, GString *out);

#endif
