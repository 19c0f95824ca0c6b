/*
 * The interpreter of type tables, on a schema that uses everything.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qapi/qapi-test-types.h"
#include "qapi/test-schema.h"

#include <string.h>

#include "util/keyval.h"

static JsonValue *json_of(const char *text)
{
    g_autoptr(GError) err = NULL;
    JsonValue *json = json_parse(text, strlen(text), &err);

    g_assert_no_error(err);
    return json;
}

static void *read_json(const QapiType *type, const char *text, GError **errp)
{
    g_autoptr(JsonValue) json = json_of(text);

    return qapi_from_json(type, json, false, errp);
}

static void *read_text(const QapiType *type, const char *text, GError **errp)
{
    g_auto(Keyval) kv = { 0 };

    if (!keyval_parse(&kv, text, NULL, 0, errp)) {
        return NULL;
    }
    return qapi_from_json(type, kv.options, true, errp);
}

typedef void *ReadFn(const QapiType *type, const char *text, GError **errp);

static void assert_refused(ReadFn *fn, const QapiType *type, const char *text,
                           const char *message)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(fn(type, text, &err));
    g_assert_nonnull(err);
    g_assert_cmpstr(err->message, ==, message);
}

/* Through C and back, and through a copy: the same text. */
static void assert_round_trip(const QapiType *type, const char *text)
{
    g_autoptr(GError) err = NULL;
    void *value = read_json(type, text, &err);
    void *copy = qapi_clone(type, value);
    g_autoptr(JsonValue) json = NULL;
    g_autofree char *out = NULL;

    g_assert_no_error(err);
    qapi_free(type, value);
    json = qapi_to_json(type, copy);
    qapi_free(type, copy);
    out = json_text(json);
    g_assert_cmpstr(out, ==, text);
}

static void test_values_survive_the_way_through_c(void)
{
    assert_round_trip(&qapi_type_TestScalars, "{}");
    assert_round_trip(&qapi_type_TestScalars,
                      "{\"b\":true,\"i\":-9223372036854775808,\"i8\":-128,\"i16\":-32768,"
                      "\"i32\":-2147483648,\"i64\":9223372036854775807,\"u8\":255,"
                      "\"u16\":65535,\"u32\":4294967295,\"u64\":18446744073709551615,"
                      "\"size\":18446744073709551615,\"d\":1.5,\"s\":\"\\\"\\u0001\xc3\xa4\","
                      "\"x\":[null,{\"y\":1}],\"colour\":\"4k\",\"default\":\"\","
                      "\"under_score\":1,\"with-dash\":2}");
    assert_round_trip(&qapi_type_TestLists, "{\"ints\":[]}");
    assert_round_trip(&qapi_type_TestLists,
                      "{\"ints\":[1,-2],\"strs\":[\"a\",\"\"],\"u8s\":[0,255,7],"
                      "\"bools\":[true,false],\"colours\":[\"red\",\"dark-blue\"],"
                      "\"points\":[{\"x\":1,\"y\":2}],\"numbers\":[0.5],"
                      "\"choices\":[true,1,\"t\",{\"x\":0,\"y\":0}],\"anys\":[1,\"x\",{}]}");
    assert_round_trip(&qapi_type_TestTree,
                      "{\"name\":\"a\",\"left\":{\"name\":\"b\",\"right\":{\"name\":\"c\"}},"
                      "\"more\":[{\"name\":\"d\",\"more\":[]}]}");
    assert_round_trip(&qapi_type_TestShape, "{\"colour\":\"red\",\"x\":1,\"y\":2}");
    assert_round_trip(&qapi_type_TestShape,
                      "{\"colour\":\"dark-blue\",\"name\":\"n\",\"x\":1,\"y\":2,\"z\":3}");
    assert_round_trip(&qapi_type_TestShape, "{\"colour\":\"green\"}");
    assert_round_trip(&qapi_type_TestShape, "{\"colour\":\"4k\"}");
    assert_round_trip(&qapi_type_TestHolder,
                      "{\"choice\":\"x\",\"flag-or-point\":{\"x\":1,\"y\":1},\"there\":5}");
    assert_round_trip(&qapi_type_TestPoint3_List, "[{\"x\":1,\"y\":2,\"z\":3}]");
}

static void test_members_look_as_documented(void)
{
    g_autoptr(TestScalars) s = read_json(&qapi_type_TestScalars,
                                         "{\"b\":true,\"u8\":7,\"default\":\"d\"}", NULL);
    g_autoptr(TestShape) shape = read_json(&qapi_type_TestShape,
                                           "{\"colour\":\"dark-blue\",\"x\":1,\"y\":2,\"z\":3}",
                                           NULL);
    g_autoptr(TestHolder) h = read_json(&qapi_type_TestHolder, "{\"choice\":17}", NULL);

    g_assert_true(s->has_b && s->b && s->has_u8 && s->u8 == 7 && !s->has_i);
    g_assert_cmpstr(s->q_default, ==, "d");
    g_assert_null(s->s);
    g_assert_cmpint(shape->u.dark_blue.z, ==, 3);
    g_assert_null(shape->name);
    g_assert_cmpint(h->choice->kind, ==, TEST_CHOICE_NUMBER);
    g_assert_cmpint(h->choice->u.number, ==, 17);
}

static void test_text_is_converted(void)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(TestScalars) s = read_text(&qapi_type_TestScalars,
                                         "b=off,i=-0x10,u8=255,size=1.5k,d=2.5,s=12,x=on,"
                                         "colour=4k", &err);
    g_autoptr(TestLists) l = read_text(&qapi_type_TestLists,
                                       "ints.0=5,ints.1=6,points.0.x=1,points.0.y=2,"
                                       "choices.0=on,choices.1.x=3,choices.1.y=4", NULL);
    g_autoptr(TestHolder) h = read_text(&qapi_type_TestHolder, "choice=3,flag-or-point=on",
                                        NULL);

    g_assert_no_error(err);
    g_assert_true(s->has_b && !s->b && s->i == -16 && s->u8 == 255 && s->size == 1536);
    g_assert_true(s->d == 2.5 && s->colour == TEST_COLOUR_4K);
    g_assert_cmpstr(s->s, ==, "12");
    g_assert_cmpstr(json_object_get_string(s->x), ==, "on");
    g_assert_cmpuint(l->ints->count, ==, 2);
    g_assert_cmpint(l->ints->items[1], ==, 6);
    g_assert_cmpint(l->points->items[0]->y, ==, 2);
    g_assert_cmpint(l->choices->items[0]->kind, ==, TEST_CHOICE_TEXT);
    g_assert_cmpint(l->choices->items[1]->u.point->x, ==, 3);
    g_assert_cmpint(h->choice->kind, ==, TEST_CHOICE_TEXT);
    g_assert_true(h->flag_or_point->kind == TEST_FLAG_OR_POINT_FLAG &&
                  h->flag_or_point->u.flag);
}

static void test_wrong_json_is_refused(void)
{
    static const struct {
        const QapiType *type;
        const char *text, *message;
    } bad[] = {
        { &qapi_type_TestScalars, "3",
          "Invalid parameter type for 'argument', expected: object (got integer)" },
        { &qapi_type_TestScalars, "null",
          "Invalid parameter type for 'argument', expected: object (got null)" },
        { &qapi_type_TestScalars, "{\"i8\":128}",
          "Parameter 'i8' expects a number from -128 to 127, not '128'" },
        { &qapi_type_TestScalars, "{\"i8\":-129}",
          "Parameter 'i8' expects a number from -128 to 127, not '-129'" },
        { &qapi_type_TestScalars, "{\"u8\":256}",
          "Parameter 'u8' expects a number from 0 to 255, not '256'" },
        { &qapi_type_TestScalars, "{\"u64\":-1}",
          "Parameter 'u64' expects a number from 0 to 18446744073709551615, not '-1'" },
        { &qapi_type_TestScalars, "{\"i\":18446744073709551615}",
          "Parameter 'i' expects a number from -9223372036854775808 to 9223372036854775807, "
          "not '18446744073709551615'" },
        { &qapi_type_TestScalars, "{\"i\":1.0}",
          "Invalid parameter type for 'i', expected: integer (got number)" },
        { &qapi_type_TestScalars, "{\"i\":true}",
          "Invalid parameter type for 'i', expected: integer (got boolean)" },
        { &qapi_type_TestScalars, "{\"b\":\"on\"}",
          "Invalid parameter type for 'b', expected: boolean (got string)" },
        { &qapi_type_TestScalars, "{\"d\":\"1\"}",
          "Invalid parameter type for 'd', expected: number (got string)" },
        { &qapi_type_TestScalars, "{\"colour\":\"gren\"}",
          "Parameter 'colour' does not accept value 'gren' (allowed: red, green, dark-blue, "
          "4k); did you mean 'green'?" },
        { &qapi_type_TestScalars, "{\"\":1}", "Parameter '' is unexpected" },
        { &qapi_type_TestScalars, "{\"under-score\":1}",
          "Parameter 'under-score' is unexpected; did you mean 'under_score'?" },
        { &qapi_type_TestLists, "{\"ints\":3}",
          "Invalid parameter type for 'ints', expected: array (got integer)" },
        { &qapi_type_TestLists, "{\"points\":[{\"x\":1,\"y\":2},{\"x\":1}]}",
          "Parameter 'points.1.y' is missing" },
        { &qapi_type_TestLists, "{\"strs\":[\"a\",null]}",
          "Invalid parameter type for 'strs.1', expected: string (got null)" },
        { &qapi_type_TestShape, "{\"x\":1}", "Parameter 'colour' is missing" },
        { &qapi_type_TestShape, "{\"colour\":\"red\",\"x\":1,\"y\":2,\"z\":3}",
          "Parameter 'z' is unexpected" },
        { &qapi_type_TestShape, "{\"colour\":\"red\",\"x\":1}", "Parameter 'y' is missing" },
        { &qapi_type_TestShape, "{\"colour\":\"4k\",\"x\":1}", "Parameter 'x' is unexpected" },
        { &qapi_type_TestHolder, "{\"choice\":1.5}",
          "Invalid parameter type for 'choice', expected: TestChoice (got number)" },
        { &qapi_type_TestHolder, "{\"choice\":1,\"flag-or-point\":\"on\"}", "Invalid parameter "
          "type for 'flag-or-point', expected: TestFlagOrPoint (got string)" },
        { &qapi_type_TestHolder, "{\"choice\":1,\"never\":1}",
          "Parameter 'never' is unexpected" },
        { &qapi_type_TestTree, "{\"name\":\"a\",\"left\":{\"name\":\"b\",\"left\":{}}}",
          "Parameter 'left.left.name' is missing" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        assert_refused(read_json, bad[i].type, bad[i].text, bad[i].message);
    }
}

static void test_wrong_text_is_refused(void)
{
    assert_refused(read_text, &qapi_type_TestScalars, "i=",
                   "Parameter 'i' expects a number from -9223372036854775808 to "
                   "9223372036854775807, not ''");
    assert_refused(read_text, &qapi_type_TestScalars, "d=inf",
                   "Parameter 'd' expects a number, not 'inf'");
    assert_refused(read_text, &qapi_type_TestScalars, "d=1e999",
                   "Parameter 'd' expects a number, not '1e999'");
    assert_refused(read_text, &qapi_type_TestScalars, "d= 1",
                   "Parameter 'd' expects a number, not ' 1'");
    assert_refused(read_text, &qapi_type_TestScalars, "b.0=on",
                   "Invalid parameter type for 'b', expected: boolean (got array)");
    assert_refused(read_text, &qapi_type_TestHolder, "choice=1,flag-or-point=3",
                   "Parameter 'flag-or-point' expects 'on' or 'off', not '3'");
    assert_refused(read_text, &qapi_type_TestLists, "ints.0=1,ints.1=x",
                   "Parameter 'ints.1' expects a number from -9223372036854775808 to "
                   "9223372036854775807, not 'x'");
}

static void test_deep_trees_are_bounded(void)
{
    g_autoptr(JsonValue) root = json_object_new_object();
    g_autoptr(GError) err = NULL;
    JsonValue *at = root;

    /* deeper than any parser would let through: the interpreter minds, too */
    for (int i = 0; i < 400; i++) {
        JsonValue *next = json_object_new_object();

        json_object_object_add(at, "name", json_object_new_string("n"));
        json_object_object_add(at, "left", next);
        at = next;
    }
    g_assert_null(qapi_from_json(&qapi_type_TestTree, root, false, &err));
    g_assert_nonnull(strstr(err->message, "nested deeper than 128"));
}

static void test_schema_lists_everything(void)
{
    g_assert_cmpuint(test_schema.command_count, ==, 3);
    g_assert_cmpstr(test_schema.commands[0].name, ==, "test-boxed");
    g_assert_true(test_schema.commands[0].arg == &qapi_type_TestShape);
    g_assert_null(test_schema.commands[1].arg);
    g_assert_cmpstr(test_schema.commands[2].arg->name, ==, "TestRunArg");
    g_assert_true(test_schema.commands[2].allow_oob && !test_schema.commands[0].allow_oob);
    g_assert_true(test_schema.commands[2].ret == &qapi_type_TestPoint3_List);
    g_assert_cmpuint(test_schema.event_count, ==, 2);
    g_assert_cmpstr(test_schema.events[0].data->name, ==, "TestDoneEventData");
    g_assert_null(test_schema.events[1].data);
    for (size_t i = 1; i < test_schema.type_count; i++) {
        g_assert_cmpstr(test_schema.types[i - 1]->name, <, test_schema.types[i]->name);
    }
}

/* Random JSON of the right names must be read or refused, and never leak. */
static JsonValue *random_json(int depth)
{
    static const char *const names[] = {
        "name", "left", "right", "more", "colour", "x", "y", "z", "choice", "flag-or-point",
        "points", "ints", "choices", "u8", "s",
    };
    static const char *const words[] = { "red", "dark-blue", "on", "", "1", "4k" };
    JsonValue *json;

    switch (g_test_rand_int_range(0, depth > 0 ? 7 : 5)) {
    case 0:
        return json_object_new_int64(g_test_rand_int_range(-3, 300));
    case 1:
        return json_object_new_boolean(g_test_rand_bit());
    case 2:
    case 3:
        return json_object_new_string(words[g_test_rand_int_range(0, G_N_ELEMENTS(words))]);
    case 4:
        return NULL;
    case 5:
        json = json_object_new_array();
        for (int n = g_test_rand_int_range(0, 4); n > 0; n--) {
            json_object_array_add(json, random_json(depth - 1));
        }
        return json;
    default:
        json = json_object_new_object();
        for (int n = g_test_rand_int_range(0, 5); n > 0; n--) {
            json_object_object_add(json, names[g_test_rand_int_range(0, G_N_ELEMENTS(names))],
                                   random_json(depth - 1));
        }
        return json;
    }
}

static void test_random_json_does_no_harm(void)
{
    unsigned good = 0;

    for (int round = 0; round < 100000; round++) {
        const QapiType *type = test_schema.types[g_test_rand_int_range(
            0, (gint32)test_schema.type_count)];
        g_autoptr(JsonValue) json = random_json(4);
        g_autoptr(GError) err = NULL;
        void *value;

        if (type->kind == QAPI_ENUM) {
            continue;
        }
        value = qapi_from_json(type, json, g_test_rand_bit(), &err);
        g_assert_true((value != NULL) != (err != NULL));
        if (value) {
            JsonValue *back = qapi_to_json(type, value);

            json_object_put(back);
            good++;
        }
        qapi_free(type, value);
    }
    g_assert_cmpuint(good, >, 100);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qapi/round-trip", test_values_survive_the_way_through_c);
    g_test_add_func("/qapi/members", test_members_look_as_documented);
    g_test_add_func("/qapi/text", test_text_is_converted);
    g_test_add_func("/qapi/wrong-json", test_wrong_json_is_refused);
    g_test_add_func("/qapi/wrong-text", test_wrong_text_is_refused);
    g_test_add_func("/qapi/deep", test_deep_trees_are_bounded);
    g_test_add_func("/qapi/schema", test_schema_lists_everything);
    g_test_add_func("/qapi/random", test_random_json_does_no_harm);
    return g_test_run();
}
