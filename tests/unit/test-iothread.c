/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IOThreads as users create and tune them.
 */
#include "util/iothread.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>


typedef struct Fixture {
    ObjectTree *tree;
} Fixture;

static void setup(Fixture *f, const void *data)
{
    static const ObjType *const types[] = { &type_iothread };

    f->tree = object_tree_new(types, G_N_ELEMENTS(types));
}

static void teardown(Fixture *f, const void *data)
{
    object_tree_free(f->tree);
}

/* @props: name and value in turn. */
static IOThread *add(Fixture *f, const char *id, const char *const props[], GError **errp)
{
    g_autoptr(JsonValue) options = json_object_new_object();

    json_object_object_add(options, "qom-type", json_object_new_string("iothread"));
    json_object_object_add(options, "id", json_object_new_string(id));
    for (unsigned i = 0; props && props[i]; i += 2) {
        json_object_object_add(options, props[i], json_object_new_string(props[i + 1]));
    }
    return (IOThread *)object_add(f->tree, options, true, errp);
}

static void look_around(void *opaque)
{
    char name[16];
    sigset_t set;

    pthread_getname_np(pthread_self(), name, sizeof(name));
    g_assert_cmpstr(name, ==, "IO io0");
    g_assert_cmpint(prctl(PR_GET_TIMERSLACK), ==, 1);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    g_assert_true(sigismember(&set, SIGTERM));
    *(pid_t *)opaque = gettid();
}

static void test_thread_runs_its_context(Fixture *f, const void *data)
{
    g_autoptr(GError) err = NULL;
    IOThread *t = add(f, "io0", NULL, &err);
    pid_t tid = 0;

    g_assert_no_error(err);
    aio_run_sync(iothread_context(t), look_around, &tid);
    g_assert_cmpint(tid, ==, iothread_thread_id(t));
    g_assert_cmpint(tid, !=, gettid());
    g_assert_true(object_del(f->tree, "io0", &err));
    g_assert_no_error(err);
}

static void test_defaults_and_live_changes(Fixture *f, const void *data)
{
    g_autoptr(GError) err = NULL;
    IOThread *t = add(f, "io0", (const char *const[]) { "poll-grow", "3", NULL }, &err);
    AioPollParams p;

    g_assert_no_error(err);
    p = aio_get_poll_params(iothread_context(t));
    g_assert_cmpint(p.max_ns, ==, 32768);
    g_assert_cmpint(p.grow, ==, 3);
    g_assert_cmpint(p.shrink, ==, 0);
    g_assert_true(object_set_text((Object *)t, "poll-max-ns", "200000", &err));
    g_assert_true(object_set_text((Object *)t, "poll-shrink", "2", &err));
    p = aio_get_poll_params(iothread_context(t));
    g_assert_cmpint(p.max_ns, ==, 200000);
    g_assert_cmpint(p.grow, ==, 3);
    g_assert_cmpint(p.shrink, ==, 2);
}

static void test_bad_values_are_refused_by_name(Fixture *f, const void *data)
{
    static const char *const bad[][2] = {
        { "poll-max-ns", "-1" },
        { "poll-max-ns", "9223372036854775808" },
        { "poll-max-ns", "32k" },
        { "poll-grow", "-1" },
        { "poll-shrink", "x" },
        { "poll-weight", "3" },
        { "aio-max-batch", "1" },
        { "thread-pool-max", "8" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(add(f, "io0", (const char *const[]) { bad[i][0], bad[i][1], NULL }, &err));
        g_assert_nonnull(err);
        g_assert_nonnull(strstr(err->message, bad[i][0]));
        g_assert_null(object_find_user(f->tree, "io0"));
    }
}

static void count_call(void *opaque)
{
    (*(unsigned *)opaque)++;
}

static void test_changes_under_load_lose_nothing(Fixture *f, const void *data)
{
    g_autoptr(GError) err = NULL;
    IOThread *t = add(f, "io0", NULL, &err);
    unsigned calls = 0;

    for (unsigned i = 1; i <= 1000; i++) {
        g_autofree char *value = g_strdup_printf("%u", i % 5 * 10000);

        g_assert_true(object_set_text((Object *)t, "poll-max-ns", value, &err));
        aio_run_sync(iothread_context(t), count_call, &calls);
        g_assert_cmpuint(calls, ==, i);
    }
}

static void test_many_threads_start_and_stop(Fixture *f, const void *data)
{
    g_autoptr(GError) err = NULL;
    unsigned calls = 0;

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 8; i++) {
            g_autofree char *id = g_strdup_printf("io%u", i);
            IOThread *t = add(f, id, NULL, &err);

            g_assert_no_error(err);
            aio_run_sync(iothread_context(t), count_call, &calls);
        }
        for (unsigned i = 0; i < 8; i++) {
            g_autofree char *id = g_strdup_printf("io%u", i);

            g_assert_true(object_del(f->tree, id, &err));
        }
    }
    g_assert_cmpuint(calls, ==, 160);
}

int main(int argc, char **argv)
{
#define CASE(path_, fn_) g_test_add("/iothread/" path_, Fixture, NULL, setup, fn_, teardown)
    g_test_init(&argc, &argv, NULL);
    CASE("thread-runs-its-context", test_thread_runs_its_context);
    CASE("defaults-and-live-changes", test_defaults_and_live_changes);
    CASE("bad-values-are-refused-by-name", test_bad_values_are_refused_by_name);
    CASE("changes-under-load-lose-nothing", test_changes_under_load_lose_nothing);
    CASE("many-threads-start-and-stop", test_many_threads_start_and_stop);
    return g_test_run();
}
