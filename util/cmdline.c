/*
 * A command line split into options, by a table.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/cmdline.h"

#include <string.h>

#include "util/err.h"
#include "util/suggest.h"

static const CmdlineOption *option_find(const CmdlineOption *table, const char *name)
{
    for (; table->name; table++) {
        if (strcmp(table->name, name) == 0) {
            return table;
        }
    }
    return NULL;
}

static void refuse_unknown(const CmdlineOption *table, const char *word, const char *name,
                           GError **errp)
{
    g_autofree char *best = NULL;
    Suggest near;

    err_set(errp, "%.200s: invalid option", word);
    suggest_start(&near, name);
    for (; table->name; table++) {
        suggest_offer(&near, table->name);
    }
    if (near.best) {
        best = g_strdup_printf("-%s", near.best);
        near.best = best;
        suggest_append(&near, errp);
    }
}

/* The item that begins with argv[0], of @argc words left; false on failure. */
static bool item_parse(CmdlineItem *item, const CmdlineOption *table, int argc,
                       char *const *argv, GError **errp)
{
    const char *word = argv[0];
    const char *name;

    *item = (CmdlineItem){ .words = argv, .word_count = 1 };
    if (word[0] != '-' || word[1] == '\0') {
        item->arg = word;
        return true;
    }
    name = word + (word[1] == '-' ? 2 : 1);
    item->option = option_find(table, name);
    if (!item->option) {
        refuse_unknown(table, word, name, errp);
        return false;
    }
    if (item->option->arg) {
        if (argc < 2) {
            err_set(errp, "%s: requires an argument", word);
            return false;
        }
        item->arg = argv[1];
        item->word_count = 2;
    }
    return true;
}

Cmdline *cmdline_parse(const CmdlineOption *table, int argc, char *const *argv, GError **errp)
{
    g_autoptr(Cmdline) cl = g_new0(Cmdline, 1);

    cl->items = g_new0(CmdlineItem, argc > 0 ? argc : 1);
    for (int i = 1; i < argc; ) {
        CmdlineItem *item = &cl->items[cl->count];

        if (!item_parse(item, table, argc - i, argv + i, errp)) {
            return NULL;
        }
        i += item->word_count;
        cl->count++;
    }
    return g_steal_pointer(&cl);
}

void cmdline_free(Cmdline *cl)
{
    if (cl) {
        g_free(cl->items);
        g_free(cl);
    }
}

const CmdlineItem *cmdline_find(const Cmdline *cl, int code, size_t *at)
{
    while (*at < cl->count) {
        const CmdlineItem *item = &cl->items[(*at)++];

        if (item->option && item->option->code == code) {
            return item;
        }
    }
    return NULL;
}

const CmdlineItem *cmdline_last(const Cmdline *cl, int code)
{
    const CmdlineItem *last = NULL;
    const CmdlineItem *item;
    size_t at = 0;

    while ((item = cmdline_find(cl, code, &at)) != NULL) {
        last = item;
    }
    return last;
}

void cmdline_help(const CmdlineOption *table, GString *out)
{
    for (; table->name; table++) {
        g_auto(GStrv) lines = g_strsplit(table->help ? table->help : "", "\n", -1);
        gsize start = out->len;
        int indent = 1;

        g_string_append_printf(out, "-%s%s%s", table->name, table->arg ? " " : "",
                               table->arg ? table->arg : "");
        if (lines[0] && out->len - start > 15) {
            g_string_append_c(out, '\n');
            indent = 16;
        } else if (lines[0]) {
            g_string_append_printf(out, "%*s", 15 - (int)(out->len - start), "");
        }
        for (int i = 0; lines[i]; i++, indent = 16) {
            g_string_append_printf(out, "%*s%s%s", indent, "", lines[i],
                                   lines[i + 1] ? "\n" : "");
        }
        g_string_append_c(out, '\n');
    }
}
