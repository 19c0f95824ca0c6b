/*
 * Enumerations by name.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/enum.h"

#include <string.h>

#include "util/err.h"
#include "util/suggest.h"

static const char *const on_off_auto_names[] = {
    [ON_OFF_AUTO_AUTO] = "auto",
    [ON_OFF_AUTO_ON] = "on",
    [ON_OFF_AUTO_OFF] = "off",
};

const EnumTable OnOffAuto_table = {
    .type = "OnOffAuto",
    .names = on_off_auto_names,
    .count = ON_OFF_AUTO__MAX,
};

const char *enum_name(const EnumTable *table, int value)
{
    g_assert(value >= 0 && value < table->count);
    return table->names[value];
}

int enum_find(const EnumTable *table, const char *text)
{
    for (int i = 0; i < table->count; i++) {
        if (strcmp(table->names[i], text) == 0) {
            return i;
        }
    }
    return -1;
}

int enum_parse(const EnumTable *table, const char *param, const char *text,
               GError **errp)
{
    int value = enum_find(table, text);
    g_autoptr(GString) allowed = NULL;
    Suggest near;

    if (value >= 0) {
        return value;
    }
    allowed = g_string_new(NULL);
    suggest_start(&near, text);
    for (int i = 0; i < table->count; i++) {
        g_string_append_printf(allowed, "%s%s", i > 0 ? ", " : "", table->names[i]);
        suggest_offer(&near, table->names[i]);
    }
    err_set(errp, "Parameter '%s' does not accept value '%s' (allowed: %s)",
            param, text, allowed->str);
    suggest_append(&near, errp);
    return -1;
}
