/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workers for calls that block, and how their results come back.
 */
#include "util/thread-pool.h"

#include <stdatomic.h>
#include <string.h>

#include "aio-cases.h"

typedef struct Job {
    PoolWork work;
    GThread *home;
    unsigned ran;                       /* the worker's, then ours */
    unsigned done;
    unsigned delay_us;
} Job;

static _Atomic unsigned running, most_running;

static void job_run(PoolWork *work)
{
    Job *job = (Job *)work;
    unsigned now = atomic_fetch_add(&running, 1) + 1;
    unsigned most = atomic_load(&most_running);

    while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now)) {
    }
    g_assert_true(g_thread_self() != job->home);
    if (job->delay_us > 0) {
        g_usleep(job->delay_us);
    }
    job->ran++;
    atomic_fetch_sub(&running, 1);
}

static void job_done(PoolWork *work)
{
    Job *job = (Job *)work;

    g_assert_true(g_thread_self() == job->home);
    job->done++;
}

static void submit(AioContext *ctx, Job *job)
{
    job->home = g_thread_self();
    job->work = (PoolWork) { .run = job_run, .done = job_done };
    g_assert_cmpint(thread_pool_submit(ctx, &job->work), ==, 0);
    g_assert_cmpuint(job->done, ==, 0);
}

static void wait_for(AioContext *ctx, const Job *jobs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        while (jobs[i].done == 0) {
            aio_poll(ctx, true);
        }
        g_assert_cmpuint(jobs[i].ran, ==, 1);
        g_assert_cmpuint(jobs[i].done, ==, 1);
    }
}

static void test_every_job_runs_and_completes_once(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);

    for (unsigned round = 0; round < rounds(200); round++) {
        Job jobs[50] = { 0 };
        unsigned n = 1 + round % G_N_ELEMENTS(jobs);

        for (unsigned i = 0; i < n; i++) {
            submit(ctx, &jobs[i]);
            if (g_test_rand_int_range(0, 8) == 0) {
                aio_poll(ctx, false);
            }
        }
        wait_for(ctx, jobs, n);
    }
}

static void test_jobs_run_side_by_side_up_to_the_limit(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Job jobs[20] = { 0 };

    g_assert_cmpint(thread_pool_set_limits(ctx, 2, 5), ==, 0);
    atomic_store(&most_running, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(jobs); i++) {
        jobs[i].delay_us = 5000;
        submit(ctx, &jobs[i]);
    }
    wait_for(ctx, jobs, G_N_ELEMENTS(jobs));
    g_assert_cmpuint(atomic_load(&most_running), ==, 5);

    /* fewer from now on */
    g_assert_cmpint(thread_pool_set_limits(ctx, 0, 1), ==, 0);
    g_usleep(20000);
    atomic_store(&most_running, 0);
    memset(jobs, 0, sizeof(jobs));
    for (unsigned i = 0; i < 5; i++) {
        jobs[i].delay_us = 1000;
        submit(ctx, &jobs[i]);
    }
    wait_for(ctx, jobs, 5);
    g_assert_cmpuint(atomic_load(&most_running), ==, 1);
}

/* Polled for, a result is seen without a system call of the loop. */
static void test_results_are_seen_by_polling(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    AioStats before, after;
    unsigned polled = 0;

    aio_set_poll_params(ctx, &(AioPollParams) { .max_ns = 5000000000 });
    for (unsigned i = 0; i < 50; i++) {
        Job job = { .delay_us = 100 };

        aio_get_stats(ctx, &before);
        submit(ctx, &job);
        wait_for(ctx, &job, 1);
        aio_get_stats(ctx, &after);
        polled += after.waits == before.waits && after.fd_checks == before.fd_checks &&
                  after.wakeups_poll > before.wakeups_poll;
    }
    g_assert_cmpuint(polled, >, 0);
}

static void again(PoolWork *work)
{
    Job *job = (Job *)work;

    if (job->delay_us > 0) {            /* here: how often to go round */
        job->delay_us--;
        g_assert_cmpint(thread_pool_submit(aio_context_current(), &job->work), ==, 0);
    } else {
        job->done++;
    }
}

static void run_nothing(PoolWork *work)
{
}

/* The race between looking and sleeping, again and again: hangs if one is lost. */
static void test_no_result_is_lost(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Job jobs[3] = { 0 };

    aio_set_poll_params(ctx, &(AioPollParams) { .max_ns = 20000, .shrink = 2 });
    for (unsigned i = 0; i < G_N_ELEMENTS(jobs); i++) {
        jobs[i].delay_us = rounds(3000);
        jobs[i].work = (PoolWork) { .run = run_nothing, .done = again };
        g_assert_cmpint(thread_pool_submit(ctx, &jobs[i].work), ==, 0);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(jobs); i++) {
        while (jobs[i].done == 0) {
            aio_poll(ctx, true);
        }
    }
}

int main(int argc, char **argv)
{
    static const AioCase cases[] = {
        { "every-job-runs-and-completes-once", test_every_job_runs_and_completes_once },
        { "jobs-run-side-by-side-up-to-the-limit", test_jobs_run_side_by_side_up_to_the_limit },
        { "results-are-seen-by-polling", test_results_are_seen_by_polling },
        { "no-result-is-lost", test_no_result_is_lost },
    };

    g_test_init(&argc, &argv, NULL);
    aio_cases_add("thread-pool", cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
