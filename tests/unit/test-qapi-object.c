/*
 * The schema's ObjectOptions and the objects' own tables must agree: the same
 * objects, properties and types.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qapi/object-types.h"
#include "util/err.h"
#include "util/iothread.h"
#include "util/object.h"

#include <string.h>

static const ObjType *const types[] = { &type_iothread };

/* Is what the schema says of a member what the property takes? */
static bool types_agree(const QapiType *schema, const ObjProp *prop)
{
    switch (schema->kind) {
    case QAPI_BOOL:
        return prop->type == &prop_bool;
    case QAPI_INT:
        return schema->size == 8 ? prop->type == &prop_i64 : prop->type == &prop_i32;
    case QAPI_UINT:
        return prop->type->max == schema->max && prop->type->min == 0;
    case QAPI_SIZE:
        return prop->type == &prop_size;
    case QAPI_STR:
        return prop->type == &prop_str || prop->type == &prop_link;
    case QAPI_ENUM:
        return (prop->type == &prop_enum && prop->names == schema->names) ||
               (prop->type == &prop_on_off_auto && schema->names == &OnOffAuto_table);
    case QAPI_LIST:
    case QAPI_OBJECT:
    case QAPI_ANY:
        return prop->type == &prop_json;
    case QAPI_NUMBER:
    case QAPI_ALTERNATE:
        break;
    }
    return false;
}

static const QapiMember *member_find(const QapiType *schema, const char *name)
{
    for (size_t i = 0; schema && i < schema->member_count; i++) {
        if (strcmp(schema->members[i].name, name) == 0) {
            return &schema->members[i];
        }
    }
    return NULL;
}

static void check_prop(const ObjProp *prop, void *opaque)
{
    const QapiType *schema = opaque;
    const QapiMember *m;

    if (prop->flags & (PROP_READ_ONLY | PROP_HIDDEN)) {
        return;
    }
    m = member_find(schema, prop->name);
    if (!m) {
        g_error("property '%s' is not in the schema", prop->name);
    }
    if (!types_agree(m->type, prop)) {
        g_error("'%s' is %s in the schema but %s in the table", prop->name, m->type->name,
                prop->type->name);
    }
    g_assert_true(m->optional == !(prop->flags & PROP_MANDATORY));
}

static void test_each_schema_object_has_its_table(void)
{
    g_autoptr(ObjectTree) tree = object_tree_new(types, G_N_ELEMENTS(types));

    for (int i = 0; i < OBJECT_TYPE__MAX; i++) {
        const char *name = enum_name(&ObjectType_table, i);
        const QapiType *schema = qapi_type_ObjectOptions.branches[i];
        const ObjType *type = object_type_find(tree, name);

        g_assert_nonnull(type);
        g_assert_true(type->flags & OBJ_USER_CREATABLE);
        object_type_prop_foreach(type, check_prop, (void *)schema);
        for (size_t m = 0; schema && m < schema->member_count; m++) {
            if (!object_type_prop(type, schema->members[m].name)) {
                g_error("'%s' of the schema is no property of '%s'", schema->members[m].name,
                        name);
            }
        }
    }
}

static void test_each_table_is_in_the_schema(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        g_assert_cmpint(enum_find(&ObjectType_table, types[i]->name), >=, 0);
    }
}

/* Both read the same text; the table, which knows the ranges, may be stricter. */
static void test_both_take_the_same_options(void)
{
    static const char text[] = "{\"qom-type\":\"iothread\",\"id\":\"io0\",\"poll-max-ns\":7}";
    g_autoptr(ObjectTree) tree = object_tree_new(types, G_N_ELEMENTS(types));
    g_autoptr(JsonValue) json = json_parse(text, strlen(text), NULL);
    g_autoptr(ObjectOptions) options = ObjectOptions_from_json(json, false, NULL);
    g_autoptr(GError) err = NULL;

    g_assert_cmpint(options->u.iothread.poll_max_ns, ==, 7);
    g_assert_nonnull(object_add(tree, json, false, &err));
    g_assert_no_error(err);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qapi-object/schema-to-table", test_each_schema_object_has_its_table);
    g_test_add_func("/qapi-object/table-to-schema", test_each_table_is_in_the_schema);
    g_test_add_func("/qapi-object/same-options", test_both_take_the_same_options);
    return g_test_run();
}
