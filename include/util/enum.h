/*
 * Enumerations by name.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A table gives the names of the values 0 to count - 1 of a C enum, as users
 * type them. The schema's enums come with a generated table.
 */
#ifndef UTIL_ENUM_H
#define UTIL_ENUM_H

#include <glib.h>
#include <stdbool.h>

typedef struct EnumTable {
    const char *type;           /* as in the schema, e.g. "OnOffAuto" */
    const char *const *names;
    int count;
} EnumTable;

/* The schema names this type too; it stands here for the object model. */
typedef enum OnOffAuto {
    ON_OFF_AUTO_AUTO,
    ON_OFF_AUTO_ON,
    ON_OFF_AUTO_OFF,
    ON_OFF_AUTO__MAX,
} OnOffAuto;
extern const EnumTable OnOffAuto_table;

/* @value must be one of the table's. */
const char *enum_name(const EnumTable *table, int value);

/* The value named @text, or -1. */
int enum_find(const EnumTable *table, const char *text);

/*
 * The same for a value that a user gave to @param: on failure -1, and the
 * message names the parameter, the value given, all that are allowed, and
 * the one that was probably meant.
 */
int enum_parse(const EnumTable *table, const char *param, const char *text,
               GError **errp);

#endif
