/*
 * C values to JSON, freeing and copying, as the type tables say.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qapi/qapi.h"

#include <string.h>

#include "qapi-int.h"

/* ---- to JSON ------------------------------------------------------------------ */

static JsonValue *write_pointed_to(const QapiType *type, const void *value);

static int64_t load_signed(const QapiType *type, const void *slot)
{
    switch (type->size) {
    case 1:
        return *(const int8_t *)slot;
    case 2:
        return *(const int16_t *)slot;
    case 4:
        return *(const int32_t *)slot;
    default:
        return *(const int64_t *)slot;
    }
}

static uint64_t load_unsigned(const QapiType *type, const void *slot)
{
    switch (type->size) {
    case 1:
        return *(const uint8_t *)slot;
    case 2:
        return *(const uint16_t *)slot;
    case 4:
        return *(const uint32_t *)slot;
    default:
        return *(const uint64_t *)slot;
    }
}

static JsonValue *write_slot(const QapiType *type, const void *slot)
{
    switch (type->kind) {
    case QAPI_BOOL:
        return json_object_new_boolean(*(const bool *)slot);
    case QAPI_INT:
        return json_object_new_int64(load_signed(type, slot));
    case QAPI_UINT:
    case QAPI_SIZE:
        return json_object_new_uint64(load_unsigned(type, slot));
    case QAPI_NUMBER:
        return json_object_new_double(*(const double *)slot);
    case QAPI_STR: {
        const char *text = *(char *const *)slot;

        return json_object_new_string(text ? text : "");
    }
    case QAPI_ANY:
        return json_object_get(*(JsonValue *const *)slot);
    case QAPI_ENUM:
        return json_object_new_string(enum_name(type->names, *(const int *)slot));
    case QAPI_OBJECT:
    case QAPI_ALTERNATE:
    case QAPI_LIST:
        return write_pointed_to(type, *(void *const *)slot);
    }
    return NULL;
}

static void write_members(const QapiType *type, const void *object, JsonValue *json)
{
    for (size_t i = 0; i < type->member_count; i++) {
        const QapiMember *m = &type->members[i];

        if (qapi_is_present(m, object)) {
            json_object_object_add(json, m->name,
                                   write_slot(m->type, (const char *)object + m->offset));
        }
    }
}

static JsonValue *write_object(const QapiType *type, const void *object)
{
    const QapiType *branch = qapi_branch(type, object);
    JsonValue *json = json_object_new_object();

    write_members(type, object, json);
    if (branch) {
        write_members(branch, (const char *)object + type->branch_offset, json);
    }
    return json;
}

static JsonValue *write_pointed_to(const QapiType *type, const void *value)
{
    if (type->kind == QAPI_LIST) {
        const QapiList *list = value;
        size_t size = qapi_slot_size(type->element);
        JsonValue *json = json_object_new_array();

        for (size_t i = 0; i < list->count; i++) {
            json_object_array_add(json, write_slot(type->element,
                                                   (const char *)list->items + i * size));
        }
        return json;
    }
    if (type->kind == QAPI_ALTERNATE) {
        const QapiMember *m = qapi_alternative(type, value);

        return write_slot(m->type, (const char *)value + m->offset);
    }
    return write_object(type, value);
}

JsonValue *qapi_to_json(const QapiType *type, const void *value)
{
    g_assert(qapi_is_pointed_to(type));
    return write_pointed_to(type, value);
}

/* ---- freeing ------------------------------------------------------------------ */

static void free_slot(const QapiType *type, void *slot)
{
    if (qapi_is_pointed_to(type)) {
        qapi_free(type, *(void **)slot);
    } else if (type->kind == QAPI_STR) {
        g_free(*(char **)slot);
    } else if (type->kind == QAPI_ANY) {
        json_object_put(*(JsonValue **)slot);
    }
}

static void free_members(const QapiType *type, void *object)
{
    for (size_t i = 0; i < type->member_count; i++) {
        free_slot(type->members[i].type, (char *)object + type->members[i].offset);
    }
}

void qapi_free(const QapiType *type, void *value)
{
    if (!value) {
        return;
    }
    if (type->kind == QAPI_LIST) {
        QapiList *list = value;
        size_t size = qapi_slot_size(type->element);

        for (size_t i = 0; i < list->count; i++) {
            free_slot(type->element, (char *)list->items + i * size);
        }
        g_free(list->items);
    } else if (type->kind == QAPI_ALTERNATE) {
        const QapiMember *m = qapi_alternative(type, value);

        free_slot(m->type, (char *)value + m->offset);
    } else {
        const QapiType *branch = qapi_branch(type, value);

        free_members(type, value);
        if (branch) {
            free_members(branch, (char *)value + type->branch_offset);
        }
    }
    g_free(value);
}

/* ---- copying ------------------------------------------------------------------ */

/* The slot holds the same bits as the original's: make it its own. */
static void own_slot(const QapiType *type, void *slot)
{
    if (qapi_is_pointed_to(type)) {
        *(void **)slot = qapi_clone(type, *(void **)slot);
    } else if (type->kind == QAPI_STR) {
        *(char **)slot = g_strdup(*(char **)slot);
    } else if (type->kind == QAPI_ANY) {
        JsonValue *copy = NULL;

        json_object_deep_copy(*(JsonValue **)slot, &copy, NULL);
        *(JsonValue **)slot = copy;
    }
}

static void own_members(const QapiType *type, void *object)
{
    for (size_t i = 0; i < type->member_count; i++) {
        own_slot(type->members[i].type, (char *)object + type->members[i].offset);
    }
}

void *qapi_clone(const QapiType *type, const void *value)
{
    void *copy;

    if (!value) {
        return NULL;
    }
    copy = g_memdup2(value, type->size);
    if (type->kind == QAPI_LIST) {
        QapiList *list = copy;
        size_t size = qapi_slot_size(type->element);

        list->items = g_memdup2(list->items, list->count * size);
        for (size_t i = 0; i < list->count; i++) {
            own_slot(type->element, (char *)list->items + i * size);
        }
    } else if (type->kind == QAPI_ALTERNATE) {
        const QapiMember *m = qapi_alternative(type, value);

        own_slot(m->type, (char *)copy + m->offset);
    } else {
        const QapiType *branch = qapi_branch(type, value);

        own_members(type, copy);
        if (branch) {
            own_members(branch, (char *)copy + type->branch_offset);
        }
    }
    return copy;
}
