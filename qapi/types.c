/*
 * The schema's built-in types, and what all types have in common.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qapi/qapi.h"

#include "qapi-int.h"

/* One macro, because bool is one itself and must not be expanded on the way. */
#define BUILTIN(name_, kind_, ctype_, ...) \
    const QapiType qapi_type_##name_ = { \
        .name = #name_, \
        .kind = kind_, \
        .size = sizeof(ctype_), \
        __VA_ARGS__ \
    }; \
    const QapiType qapi_type_##name_##_List = { \
        .name = #name_ "_List", \
        .kind = QAPI_LIST, \
        .size = sizeof(QapiList), \
        .element = &qapi_type_##name_, \
    }

BUILTIN(bool, QAPI_BOOL, bool,);
BUILTIN(int, QAPI_INT, int64_t, .min = INT64_MIN, .max = INT64_MAX);
BUILTIN(int8, QAPI_INT, int8_t, .min = INT8_MIN, .max = INT8_MAX);
BUILTIN(int16, QAPI_INT, int16_t, .min = INT16_MIN, .max = INT16_MAX);
BUILTIN(int32, QAPI_INT, int32_t, .min = INT32_MIN, .max = INT32_MAX);
BUILTIN(int64, QAPI_INT, int64_t, .min = INT64_MIN, .max = INT64_MAX);
BUILTIN(uint8, QAPI_UINT, uint8_t, .max = UINT8_MAX);
BUILTIN(uint16, QAPI_UINT, uint16_t, .max = UINT16_MAX);
BUILTIN(uint32, QAPI_UINT, uint32_t, .max = UINT32_MAX);
BUILTIN(uint64, QAPI_UINT, uint64_t, .max = UINT64_MAX);
BUILTIN(size, QAPI_SIZE, uint64_t, .max = UINT64_MAX);
BUILTIN(number, QAPI_NUMBER, double,);
BUILTIN(str, QAPI_STR, char *,);
BUILTIN(any, QAPI_ANY, JsonValue *,);

bool qapi_is_pointed_to(const QapiType *type)
{
    return type->kind == QAPI_OBJECT || type->kind == QAPI_ALTERNATE || type->kind == QAPI_LIST;
}

size_t qapi_slot_size(const QapiType *type)
{
    return qapi_is_pointed_to(type) ? sizeof(void *) : type->size;
}

const QapiType *qapi_branch(const QapiType *type, const void *object)
{
    int tag;

    if (!type->tag) {
        return NULL;
    }
    tag = *(const int *)((const char *)object + type->tag->offset);
    g_assert(tag >= 0 && tag < type->tag->type->names->count);
    return type->branches[tag];
}

const QapiMember *qapi_alternative(const QapiType *type, const void *alternate)
{
    int kind = *(const int *)alternate;

    g_assert(kind >= 0 && (size_t)kind < type->member_count);
    return &type->members[kind];
}

bool qapi_is_present(const QapiMember *member, const void *object)
{
    const char *base = object;

    if (!member->optional) {
        return true;
    }
    if (member->has_offset != QAPI_NO_HAS) {
        return *(const bool *)(base + member->has_offset);
    }
    return *(void *const *)(base + member->offset) != NULL;
}
