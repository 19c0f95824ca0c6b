/*
 * The object model: tables in, objects, help and messages out.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/err.h"
#include "util/object.h"

#include <string.h>

/* ---- a few types ----------------------------------------------------------- */

static GString *events;         /* hooks append to it */

static void note(const char *what)
{
    g_string_append_printf(events, "%s ", what);
}

typedef struct Worker {
    Object obj;
    int64_t poll_max_ns;
    int64_t seen_live;
} Worker;

static void worker_poll_changed(Object *obj, const ObjProp *prop)
{
    Worker *w = (Worker *)obj;

    w->seen_live = w->poll_max_ns;
}

static void worker_get_books(Object *obj, const ObjProp *prop, PropValue *value)
{
    value->u = UINT64_MAX;
}

static const ObjProp worker_props[] = {
    { .name = "poll-max-ns", .type = &prop_i64, PROP_FIELD(Worker, poll_max_ns),
      .min = 0, .max = INT64_MAX, .def = "32768", .flags = PROP_LIVE,
      .help = "longest time to poll", .changed = worker_poll_changed },
    { .name = "books", .type = &prop_u64, .flags = PROP_READ_ONLY, .get = worker_get_books },
    { NULL }
};

static const ObjType type_worker = {
    .name = "worker",
    .size = sizeof(Worker),
    .flags = OBJ_USER_CREATABLE,
    .props = worker_props,
};

static const char *const policy_names[] = { "report", "ignore", "stop" };
static const EnumTable policy_table = { "Policy", policy_names, G_N_ELEMENTS(policy_names) };

typedef struct Base {
    Object obj;
    bool multi;
    uint32_t vectors;
} Base;

typedef struct Disk {
    Base base;
    uint16_t queue_size;
    uint64_t bytes;
    uint32_t block;
    char *serial;
    int policy;
    int cache;
    Object *worker;
    JsonValue *map;
    bool fail_check, fail_realize;
    int custom;
} Disk;

static void base_init(Object *obj) { note("base-init"); }
static bool base_realize(Object *obj, GError **errp) { note("base-realize"); return true; }
static void base_unrealize(Object *obj) { note("base-unrealize"); }
static void base_finalize(Object *obj) { note("base-finalize"); }

static bool base_complete(Object *obj, GError **errp)
{
    note("base-complete");
    if (((Base *)obj)->vectors == 666) {
        err_set(errp, "no bus");
        return false;
    }
    return true;
}

static bool disk_check(Object *obj, GError **errp)
{
    note("disk-check");
    if (((Disk *)obj)->fail_check) {
        err_set(errp, "cross-check failed");
        return false;
    }
    return true;
}

static bool disk_realize(Object *obj, GError **errp)
{
    note("disk-realize");
    if (((Disk *)obj)->fail_realize) {
        err_set(errp, "realize failed");
        return false;
    }
    return true;
}

static void disk_unrealize(Object *obj) { note("disk-unrealize"); }
static void disk_finalize(Object *obj) { note("disk-finalize"); }
static bool disk_complete(Object *obj, GError **errp) { note("disk-complete"); return true; }

static bool disk_check_serial(Object *obj, const ObjProp *prop, const PropValue *value,
                              GError **errp)
{
    if (strlen(value->s) > 20) {
        err_set(errp, "Parameter 'serial' is longer than 20 bytes");
        return false;
    }
    return true;
}

static bool disk_set_custom(Object *obj, const ObjProp *prop, const PropValue *value,
                            GError **errp)
{
    ((Disk *)obj)->custom = (int)value->u + 1;
    return true;
}

static void disk_get_custom(Object *obj, const ObjProp *prop, PropValue *value)
{
    value->u = (uint64_t)((Disk *)obj)->custom;
}

static const ObjProp base_props[] = {
    { .name = "multifunction", .type = &prop_bool, PROP_FIELD(Base, multi), .def = "off",
      .help = "on/off" },
    { .name = "vectors", .type = &prop_u32, PROP_FIELD(Base, vectors), .def = "3" },
    { NULL }
};

static const ObjProp disk_props[] = {
    { .name = "queue-size", .type = &prop_u16, PROP_FIELD(Disk, queue_size), .min = 2,
      .max = 1024, .def = "256", .check = prop_check_power_of_two },
    { .name = "bytes", .type = &prop_size, PROP_FIELD(Disk, bytes) },
    { .name = "logical_block_size", .type = &prop_size32, PROP_FIELD(Disk, block),
      .min = 512, .max = 2097152, .def = "512", .check = prop_check_power_of_two,
      .help = "A power of two" },
    { .name = "serial", .type = &prop_str, PROP_FIELD(Disk, serial),
      .check = disk_check_serial },
    { .name = "rerror", .type = &prop_enum, PROP_FIELD(Disk, policy),
      .names = &policy_table, .def = "report" },
    { .name = "write-cache", .type = &prop_on_off_auto, PROP_FIELD(Disk, cache),
      .def = "auto" },
    { .name = "worker", .type = &prop_link, PROP_FIELD(Disk, worker), .link_type = "worker" },
    { .name = "map", .type = &prop_json, PROP_FIELD(Disk, map) },
    { .name = "vectors", .type = &prop_u32, PROP_FIELD(Base, vectors), .def = "7",
      .flags = PROP_MANDATORY },
    { .name = "custom", .type = &prop_u8, .set = disk_set_custom, .get = disk_get_custom,
      .flags = PROP_HIDDEN },
    { NULL }
};

static const ObjType type_base = {
    .name = "base-device", .size = sizeof(Base), .flags = OBJ_ABSTRACT, .props = base_props,
    .init = base_init, .realize = base_realize, .complete = base_complete,
    .unrealize = base_unrealize, .finalize = base_finalize, .class_data = "base class",
};

static const ObjType type_disk = {
    .name = "disk-pci", .alias = "disk", .parent = &type_base, .size = sizeof(Disk),
    .flags = OBJ_DEVICE, .props = disk_props, .category = "Storage", .bus = "PCI",
    .check = disk_check, .realize = disk_realize, .complete = disk_complete,
    .unrealize = disk_unrealize, .finalize = disk_finalize,
};

static const ObjType type_exit = {
    .name = "debug-exit", .size = sizeof(Object), .flags = OBJ_DEVICE, .category = "Misc",
    .bus = "ISA", .desc = "leaves",
};

static const ObjType *const types[] = { &type_worker, &type_base, &type_exit, &type_disk };

static ObjectTree *tree_new(void)
{
    if (events) {
        g_string_truncate(events, 0);
    } else {
        events = g_string_new(NULL);
    }
    return object_tree_new(types, G_N_ELEMENTS(types));
}

#define assert_fails(call_, text_) do { \
        GError *err_ = NULL; \
        GError **errp = &err_; \
        g_assert_false(call_); \
        g_assert_nonnull(err_); \
        g_assert_cmpstr(err_->message, ==, text_); \
        g_error_free(err_); \
    } while (0)

#define assert_works(call_) do { \
        GError *err_ = NULL; \
        GError **errp = &err_; \
        bool ok_ = (call_); \
        g_assert_no_error(err_); \
        g_assert_true(ok_); \
    } while (0)

static void assert_value(Object *obj, const char *name, const char *expected)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(JsonValue) value = object_get(obj, name, &err);
    g_autofree char *text = json_text(value);

    g_assert_no_error(err);
    g_assert_cmpstr(text, ==, expected);
}

static JsonValue *parse(const char *text)
{
    g_autoptr(GError) err = NULL;
    JsonValue *value = json_parse(text, strlen(text), &err);

    g_assert_no_error(err);
    return value;
}

/* ---- tests ------------------------------------------------------------------ */

static void test_defaults_come_from_the_tables(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    g_autoptr(Object) obj = object_new(tree, &type_disk, "d0", NULL);

    assert_value(obj, "queue-size", "256");
    assert_value(obj, "vectors", "7");          /* the leaf's, not the base's */
    assert_value(obj, "multifunction", "false");
    assert_value(obj, "rerror", "\"report\"");
    assert_value(obj, "write-cache", "\"auto\"");
    assert_value(obj, "serial", "\"\"");
    assert_value(obj, "worker", "\"\"");
    assert_value(obj, "map", "null");
    g_assert_false(object_given(obj, "queue-size"));
    g_assert_cmpstr(object_class_data(obj->type), ==, "base class");
}

static void test_text_sets_each_kind(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    g_autoptr(Object) obj = object_new(tree, &type_disk, NULL, NULL);

    assert_works(object_set_text(obj, "queue-size", "0x80", errp));
    assert_value(obj, "queue-size", "128");
    g_assert_true(object_given(obj, "queue-size"));
    assert_works(object_set_text(obj, "multifunction", "on", errp));
    assert_value(obj, "multifunction", "true");
    assert_works(object_set_text(obj, "bytes", "1.5G", errp));
    assert_value(obj, "bytes", "1610612736");
    assert_works(object_set_text(obj, "logical_block_size", "4k", errp));
    assert_value(obj, "logical_block_size", "4096");
    assert_works(object_set_text(obj, "serial", "a,b", errp));
    assert_works(object_set_text(obj, "serial", "abc", errp));
    assert_value(obj, "serial", "\"abc\"");
    assert_works(object_set_text(obj, "rerror", "stop", errp));
    assert_value(obj, "rerror", "\"stop\"");
    assert_works(object_set_text(obj, "write-cache", "off", errp));
    assert_value(obj, "write-cache", "\"off\"");
    assert_works(object_set_text(obj, "custom", "4", errp));
    assert_value(obj, "custom", "5");
}

static void test_bad_text_is_refused_and_changes_nothing(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    g_autoptr(Object) obj = object_new(tree, &type_disk, NULL, NULL);

    assert_fails(object_set_text(obj, "nosuch", "1", errp),
                 "Property 'disk-pci.nosuch' not found");
    assert_fails(object_set_text(obj, "qeue-size", "1", errp),
                 "Property 'disk-pci.qeue-size' not found; did you mean 'queue-size'?");
    assert_fails(object_set_text(obj, "queue-size", "70000", errp),
                 "Parameter 'queue-size' expects a number from 2 to 1024, not '70000'");
    assert_fails(object_set_text(obj, "queue-size", "-1", errp),
                 "Parameter 'queue-size' expects a number from 2 to 1024, not '-1'");
    assert_fails(object_set_text(obj, "queue-size", "1", errp),
                 "Parameter 'queue-size' expects a number from 2 to 1024, not '1'");
    assert_fails(object_set_text(obj, "queue-size", "", errp),
                 "Parameter 'queue-size' expects a number from 2 to 1024, not ''");
    assert_fails(object_set_text(obj, "queue-size", "100", errp),
                 "Parameter 'queue-size' expects a power of two, not 100");
    assert_fails(object_set_text(obj, "vectors", "4294967296", errp),
                 "Parameter 'vectors' expects a number from 0 to 4294967295, not '4294967296'");
    assert_fails(object_set_text(obj, "multifunction", "perhaps", errp),
                 "Parameter 'multifunction' expects 'on' or 'off', not 'perhaps'");
    assert_fails(object_set_text(obj, "rerror", "stpo", errp),
                 "Parameter 'rerror' does not accept value 'stpo' (allowed: report, ignore, "
                 "stop); did you mean 'stop'?");
    assert_fails(object_set_text(obj, "write-cache", "x", errp),
                 "Parameter 'write-cache' does not accept value 'x' (allowed: auto, on, off)");
    assert_fails(object_set_text(obj, "bytes", "16E", errp),
                 "Parameter 'bytes' expects a size from 0 to 18446744073709551615 bytes "
                 "(suffixes k, M, G, T, P, E allowed), not '16E'");
    assert_fails(object_set_text(obj, "serial", "123456789012345678901", errp),
                 "Parameter 'serial' is longer than 20 bytes");
    assert_fails(object_set_text(obj, "map", "x", errp),
                 "Parameter 'map' expects an array or object, as 'map.0...=' or in JSON, "
                 "not 'x'");
    assert_value(obj, "queue-size", "256");
    assert_value(obj, "serial", "\"\"");
    g_assert_false(object_given(obj, "queue-size"));
}

static void test_json_is_typed(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    g_autoptr(Object) obj = object_new(tree, &type_disk, NULL, NULL);
    g_autoptr(JsonValue) good = parse("{\"queue-size\":64,\"multifunction\":true,"
                                      "\"serial\":\"s\",\"rerror\":\"ignore\",\"map\":[1],"
                                      "\"bytes\":18446744073709551615}");
    static const struct {
        const char *options, *message;
    } bad[] = {
        { "{\"queue-size\":\"64\"}",
          "Invalid parameter type for 'queue-size', expected: integer (got string)" },
        { "{\"queue-size\":64.0}",
          "Invalid parameter type for 'queue-size', expected: integer (got number)" },
        { "{\"queue-size\":-1}",
          "Parameter 'queue-size' expects a number from 2 to 1024, not '-1'" },
        { "{\"queue-size\":null}",
          "Invalid parameter type for 'queue-size', expected: integer (got null)" },
        { "{\"multifunction\":1}",
          "Invalid parameter type for 'multifunction', expected: boolean (got integer)" },
        { "{\"serial\":7}",
          "Invalid parameter type for 'serial', expected: string (got integer)" },
        { "{\"rerror\":{}}",
          "Invalid parameter type for 'rerror', expected: string (got object)" },
        { "{\"worker\":[]}",
          "Invalid parameter type for 'worker', expected: string (got array)" },
        { "{\"map\":3}",
          "Invalid parameter type for 'map', expected: array (got integer)" },
    };

    assert_works(object_set_all(obj, good, false, errp));
    assert_value(obj, "queue-size", "64");
    assert_value(obj, "bytes", "18446744073709551615");
    assert_value(obj, "map", "[1]");
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(JsonValue) options = parse(bad[i].options);

        assert_fails(object_set_all(obj, options, false, errp), bad[i].message);
    }
}

static void test_hooks_run_in_order(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    Object *obj = object_new(tree, &type_disk, NULL, NULL);

    assert_works(object_set_text(obj, "vectors", "1", errp));
    assert_works(object_realize(obj, errp));
    g_assert_true(obj->realized);
    object_unref(obj);
    g_assert_cmpstr(events->str, ==,
                    "base-init disk-check base-realize disk-realize disk-complete "
                    "base-complete disk-unrealize base-unrealize disk-finalize "
                    "base-finalize ");
}

static void test_failed_realize_undoes_what_was_done(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    Object *obj = object_new(tree, &type_disk, NULL, NULL);

    assert_fails(object_realize(obj, errp), "Parameter 'vectors' is missing");
    assert_works(object_set_text(obj, "vectors", "1", errp));
    ((Disk *)obj)->fail_check = true;
    assert_fails(object_realize(obj, errp), "cross-check failed");
    g_assert_cmpstr(events->str, ==, "base-init disk-check ");

    g_string_truncate(events, 0);
    ((Disk *)obj)->fail_check = false;
    ((Disk *)obj)->fail_realize = true;
    assert_fails(object_realize(obj, errp), "realize failed");
    g_assert_cmpstr(events->str, ==,
                    "disk-check base-realize disk-realize base-unrealize ");

    g_string_truncate(events, 0);
    ((Disk *)obj)->fail_realize = false;
    assert_works(object_set_text(obj, "vectors", "666", errp));
    assert_fails(object_realize(obj, errp), "no bus");
    g_assert_cmpstr(events->str, ==, "disk-check base-realize disk-realize disk-complete "
                    "base-complete disk-unrealize base-unrealize ");
    g_assert_false(obj->realized);
    object_unref(obj);
}

static void test_only_live_properties_change_in_use(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    g_autoptr(JsonValue) options = parse("{\"qom-type\":\"worker\",\"id\":\"io0\"}");
    Object *worker;
    g_autoptr(Object) disk = object_new(tree, &type_disk, "d0", NULL);

    assert_works(object_add(tree, options, false, errp) != NULL);
    worker = object_find_user(tree, "io0");
    assert_works(object_set_text(worker, "poll-max-ns", "5", errp));
    g_assert_cmpint(((Worker *)worker)->seen_live, ==, 5);
    assert_fails(object_set_text(worker, "poll-max-ns", "-1", errp),
                 "Parameter 'poll-max-ns' expects a number from 0 to 9223372036854775807, "
                 "not '-1'");
    assert_value(worker, "poll-max-ns", "5");
    assert_fails(object_set_text(worker, "books", "1", errp),
                 "Property 'worker.books' is read-only");
    assert_value(worker, "books", "18446744073709551615");

    assert_works(object_set_text(disk, "vectors", "1", errp));
    assert_works(object_realize(disk, errp));
    assert_fails(object_set_text(disk, "queue-size", "2", errp),
                 "Property 'disk-pci.queue-size' cannot be changed while 'd0' is in use");
}

static void test_links_hold_their_target(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    g_autoptr(JsonValue) options = parse("{\"qom-type\":\"worker\",\"id\":\"io0\"}");
    Object *disk = object_new(tree, &type_disk, "d0", NULL);

    assert_works(object_add(tree, options, false, errp) != NULL);
    assert_fails(object_set_text(disk, "worker", "io", errp),
                 "Parameter 'worker' expects the id of an object of type 'worker', 'io' not "
                 "found; did you mean 'io0'?");
    assert_works(object_set_text(disk, "worker", "io0", errp));
    assert_works(object_set_text(disk, "worker", "/objects/io0", errp));
    assert_value(disk, "worker", "\"/objects/io0\"");
    assert_works(object_attach(object_container(tree, "/machine/peripheral"), "d0", disk,
                               errp));
    assert_fails(object_set_text(disk, "worker", "d0", errp),
                 "Parameter 'worker' expects the id of an object of type 'worker', but 'd0' "
                 "is of type 'disk-pci'");
    assert_fails(object_del(tree, "io0", errp),
                 "object 'io0' is in use, can not be deleted");
    object_detach(disk);
    object_unref(disk);
    assert_works(object_del(tree, "io0", errp));
    assert_fails(object_del(tree, "io0", errp), "object 'io0' not found");
}

static void test_object_option_is_checked(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    static const struct {
        const char *options, *message;
    } bad[] = {
        { "{}", "Parameter 'qom-type' is missing" },
        { "{\"qom-type\":\"worker\"}", "Parameter 'id' is missing" },
        { "{\"qom-type\":\"wroker\",\"id\":\"x\"}",
          "Parameter 'qom-type' does not accept value 'wroker'; did you mean 'worker'?" },
        { "{\"qom-type\":\"disk-pci\",\"id\":\"x\"}",
          "Parameter 'qom-type' does not accept value 'disk-pci'" },
        { "{\"qom-type\":3,\"id\":\"x\"}",
          "Invalid parameter type for 'qom-type', expected: string (got integer)" },
        { "{\"qom-type\":\"worker\",\"id\":\"\"}",
          "Parameter 'id' expects an identifier (letters, digits, '-', '.', '_', starting "
          "with a letter), not ''" },
        { "{\"qom-type\":\"worker\",\"id\":\"3\"}",
          "Parameter 'id' expects an identifier (letters, digits, '-', '.', '_', starting "
          "with a letter), not '3'" },
        { "{\"qom-type\":\"worker\",\"id\":\"b\",\"poll-max\":1}",
          "Property 'worker.poll-max' not found; did you mean 'poll-max-ns'?" },
        { "{\"qom-type\":\"worker\",\"id\":\"a\"}", "Duplicate ID 'a' for object" },
    };
    g_autoptr(JsonValue) good = parse("{\"qom-type\":\"worker\",\"id\":\"a\","
                                      "\"poll-max-ns\":\"7\"}");

    assert_works(object_add(tree, good, true, errp) != NULL);
    assert_value(object_find_user(tree, "a"), "poll-max-ns", "7");
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(JsonValue) options = parse(bad[i].options);

        assert_fails(object_add(tree, options, false, errp) != NULL, bad[i].message);
    }
    g_assert_cmpint(object_container(tree, "/objects")->children->len, ==, 1);
}

static void test_device_names_are_checked(void)
{
    g_autoptr(ObjectTree) tree = tree_new();

    g_assert_true(object_type_for_user(tree, "disk", OBJ_DEVICE, NULL) == &type_disk);
    assert_fails(object_type_for_user(tree, "foo", OBJ_DEVICE, errp) != NULL,
                 "'foo' is not a valid device model name");
    assert_fails(object_type_for_user(tree, "disk-pic", OBJ_DEVICE, errp) != NULL,
                 "'disk-pic' is not a valid device model name; did you mean 'disk-pci'?");
    assert_fails(object_type_for_user(tree, "base-device", OBJ_DEVICE, errp) != NULL,
                 "Parameter 'driver' expects a pluggable device type, not 'base-device'");
    assert_fails(object_new(tree, &type_base, NULL, errp) != NULL,
                 "Type 'base-device' is abstract");
}

static void test_paths(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    Object *anon = object_container(tree, "/machine/peripheral-anon");
    Object *other = object_container(tree, "/machine/unattached");
    g_autofree char *path = NULL, *root = NULL;

    for (int i = 0; i < 2; i++) {
        g_autoptr(Object) obj = object_new(tree, &type_exit, NULL, NULL);

        g_assert_null(object_path(obj));
        assert_works(object_attach(anon, "device[*]", obj, errp));
    }
    path = object_path(object_child(anon, "device[1]"));
    g_assert_cmpstr(path, ==, "/machine/peripheral-anon/device[1]");
    root = object_path(object_container(tree, "/"));
    g_assert_cmpstr(root, ==, "/");
    g_assert_true(object_resolve(tree, path, NULL) == object_child(anon, "device[1]"));
    g_assert_true(object_resolve(tree, "device[0]", NULL) == object_child(anon, "device[0]"));
    assert_fails(object_resolve(tree, "/machine/x", errp) != NULL,
                 "Device '/machine/x' not found");
    object_detach(object_child(anon, "device[0]"));
    {
        g_autoptr(Object) a = object_new(tree, &type_exit, NULL, NULL);
        g_autoptr(Object) b = object_new(tree, &type_exit, NULL, NULL);

        assert_works(object_attach(anon, "device[*]", a, errp));
        g_assert_cmpstr(a->name, ==, "device[0]");
        assert_works(object_attach(other, "device[0]", b, errp));
    }
    assert_fails(object_resolve(tree, "device[0]", errp) != NULL,
                 "Path 'device[0]' is ambiguous");
    {
        g_autoptr(Object) c = object_new(tree, &type_exit, NULL, NULL);

        assert_fails(object_attach(other, "device[0]", c, errp),
                     "Duplicate name 'device[0]' in '/machine/unattached'");
    }
}

static void test_help_texts(void)
{
    g_autoptr(ObjectTree) tree = tree_new();
    g_autoptr(GString) out = g_string_new(NULL);

    object_help_list(tree, OBJ_USER_CREATABLE, out);
    g_assert_cmpstr(out->str, ==, "List of user creatable objects:\n  worker\n");
    g_string_truncate(out, 0);
    object_help_list(tree, OBJ_DEVICE, out);
    g_assert_cmpstr(out->str, ==,
                    "Misc devices:\n"
                    "name \"debug-exit\", bus ISA, desc \"leaves\"\n"
                    "\n"
                    "Storage devices:\n"
                    "name \"disk-pci\", bus PCI, alias \"disk\"\n");
    g_string_truncate(out, 0);
    object_help_type(&type_disk, out);
    g_assert_cmpstr(out->str, ==,
                    "disk-pci options:\n"
                    "  bytes=<size>\n"
                    "  logical_block_size=<size> - A power of two (default: 512)\n"
                    "  map=<any>\n"
                    "  multifunction=<bool>   - on/off (default: false)\n"
                    "  queue-size=<uint16>    -  (default: 256)\n"
                    "  rerror=<Policy>        -  (default: \"report\")\n"
                    "  serial=<str>\n"
                    "  vectors=<uint32>       -  (default: 7)\n"
                    "  worker=<link<worker>>\n"
                    "  write-cache=<OnOffAuto> -  (default: \"auto\")\n");
    g_string_truncate(out, 0);
    object_help_type(&type_exit, out);
    g_assert_cmpstr(out->str, ==, "There are no options for debug-exit.\n");
}

static const ObjProp mistaken_props[] = {
    { .name = "p", .type = &prop_u16, PROP_FIELD(Base, vectors) },
    { NULL }
};
static const ObjType type_mistaken = {
    .name = "mistaken", .size = sizeof(Base), .props = mistaken_props,
};

static void test_a_mistake_in_a_table_stops_the_program(void)
{
    static const ObjType *const list[] = { &type_mistaken };

    if (g_test_subprocess()) {
        object_tree_new(list, 1);
        exit(0);
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*property mistaken.p: field of another size than its type*");
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/object/defaults", test_defaults_come_from_the_tables);
    g_test_add_func("/object/text", test_text_sets_each_kind);
    g_test_add_func("/object/bad-text", test_bad_text_is_refused_and_changes_nothing);
    g_test_add_func("/object/json", test_json_is_typed);
    g_test_add_func("/object/hook-order", test_hooks_run_in_order);
    g_test_add_func("/object/failed-realize", test_failed_realize_undoes_what_was_done);
    g_test_add_func("/object/live", test_only_live_properties_change_in_use);
    g_test_add_func("/object/links", test_links_hold_their_target);
    g_test_add_func("/object/object-option", test_object_option_is_checked);
    g_test_add_func("/object/device-names", test_device_names_are_checked);
    g_test_add_func("/object/paths", test_paths);
    g_test_add_func("/object/help", test_help_texts);
    g_test_add_func("/object/mistaken-table", test_a_mistake_in_a_table_stops_the_program);
    status = g_test_run();
    if (events) {
        g_string_free(events, TRUE);
    }
    return status;
}
