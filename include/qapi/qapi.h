/*
 * Types of the schema, as tables, and what is done with them.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * scripts/qapi-gen.py makes from qapi/NAME.json a header "qapi/NAME-types.h"
 * with C types and, for each, a const QapiType that describes its layout.
 * One interpreter (qapi/read.c, write.c, free.c) works on these tables;
 * introspection reads them too.
 *
 * How the schema's types look in C:
 *   bool, int8 ... uint64, number    the C type (number is double)
 *   int, size                        int64_t, uint64_t
 *   str                              char *
 *   any                              JsonValue *
 *   an enum                          a C enum, NAME_VALUE
 *   struct, union, alternate         a pointer to a struct of that name
 *   ['T']                            a pointer to a struct T_List {count, items}
 * An optional member that is a pointer is NULL when absent; any other has a
 * bool has_NAME beside it. A union has its base's members, then u.BRANCH.
 * An alternate has kind and u.BRANCH.
 *
 * Thread: any; the tables are const, values belong to their owner.
 */
#ifndef QAPI_QAPI_H
#define QAPI_QAPI_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/enum.h"
#include "util/json.h"

typedef enum QapiKind {
    QAPI_BOOL,
    QAPI_INT,           /* signed, of .size bytes */
    QAPI_UINT,
    QAPI_SIZE,          /* uint64_t; suffixes allowed in option text */
    QAPI_NUMBER,
    QAPI_STR,
    QAPI_ANY,
    QAPI_ENUM,
    QAPI_OBJECT,        /* struct or union */
    QAPI_ALTERNATE,
    QAPI_LIST,
} QapiKind;

typedef struct QapiType QapiType;

typedef struct QapiMember {
    const char *name;           /* as in JSON */
    const QapiType *type;
    size_t offset;              /* in the C struct */
    size_t has_offset;          /* of has_NAME, QAPI_NO_HAS without one */
    bool optional;
} QapiMember;

#define QAPI_NO_HAS SIZE_MAX

struct QapiType {
    const char *name;
    QapiKind kind;
    size_t size;                /* of the C type; OBJECT etc.: of the struct */
    int64_t min;                /* INT, UINT, SIZE */
    uint64_t max;
    const EnumTable *names;     /* ENUM */
    const QapiMember *members;  /* OBJECT: base's first; ALTERNATE: by kind */
    size_t member_count;
    const QapiMember *tag;      /* union: one of .members, an enum */
    const QapiType *const *branches;    /* union: by tag; NULL: no members */
    size_t branch_offset;       /* union, ALTERNATE: of u */
    const QapiType *element;    /* LIST */
};

/* The layout shared by all lists: items are kept as struct members are. */
typedef struct QapiList {
    size_t count;
    void *items;
} QapiList;

typedef struct QapiCommand {
    const char *name;
    const QapiType *arg;        /* NULL: none */
    const QapiType *ret;        /* NULL: an empty object */
    bool allow_oob;
} QapiCommand;

typedef struct QapiEvent {
    const char *name;
    const QapiType *data;       /* NULL: none */
} QapiEvent;

/* All that the schema defines, sorted by name. */
typedef struct QapiSchema {
    const QapiType *const *types;
    size_t type_count;
    const QapiCommand *commands;
    size_t command_count;
    const QapiEvent *events;
    size_t event_count;
} QapiSchema;

extern const QapiType qapi_type_bool, qapi_type_int, qapi_type_int8, qapi_type_int16;
extern const QapiType qapi_type_int32, qapi_type_int64, qapi_type_uint8, qapi_type_uint16;
extern const QapiType qapi_type_uint32, qapi_type_uint64, qapi_type_size, qapi_type_number;
extern const QapiType qapi_type_str, qapi_type_any;

/* Lists of built-in types. */
typedef struct bool_List { size_t count; bool *items; } bool_List;
typedef struct int_List { size_t count; int64_t *items; } int_List;
typedef struct int8_List { size_t count; int8_t *items; } int8_List;
typedef struct int16_List { size_t count; int16_t *items; } int16_List;
typedef struct int32_List { size_t count; int32_t *items; } int32_List;
typedef struct int64_List { size_t count; int64_t *items; } int64_List;
typedef struct uint8_List { size_t count; uint8_t *items; } uint8_List;
typedef struct uint16_List { size_t count; uint16_t *items; } uint16_List;
typedef struct uint32_List { size_t count; uint32_t *items; } uint32_List;
typedef struct uint64_List { size_t count; uint64_t *items; } uint64_List;
typedef struct size_List { size_t count; uint64_t *items; } size_List;
typedef struct number_List { size_t count; double *items; } number_List;
typedef struct str_List { size_t count; char **items; } str_List;
typedef struct any_List { size_t count; JsonValue **items; } any_List;
extern const QapiType qapi_type_bool_List, qapi_type_int_List, qapi_type_int8_List;
extern const QapiType qapi_type_int16_List, qapi_type_int32_List, qapi_type_int64_List;
extern const QapiType qapi_type_uint8_List, qapi_type_uint16_List, qapi_type_uint32_List;
extern const QapiType qapi_type_uint64_List, qapi_type_size_List, qapi_type_number_List;
extern const QapiType qapi_type_str_List, qapi_type_any_List;

/*
 * Read @json as an OBJECT, ALTERNATE or LIST. Strict: an unknown member is
 * refused by name with the near miss, a missing one named, types and ranges
 * checked, messages carry the whole path ("file.filename"). With @texts
 * the leaves are strings, from key=value, and are converted. The result is
 * the caller's, for qapi_free(); NULL with *errp set on failure.
 */
void *qapi_from_json(const QapiType *type, JsonValue *json, bool texts, GError **errp);

/* The reverse; absent members are left out. The caller owns the result. */
JsonValue *qapi_to_json(const QapiType *type, const void *value);

/* Free @value and all below it; NULL is fine. */
void qapi_free(const QapiType *type, void *value);

/* A deep copy. */
void *qapi_clone(const QapiType *type, const void *value);

/* Bytes that a value takes inside a struct or list: a pointer for most. */
size_t qapi_slot_size(const QapiType *type);

#endif
