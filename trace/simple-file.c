/*
 * The simple backend, second half: the writer empties the rings into a file.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * simpletrace v4, native byte order, nothing aligned:
 *   header    u64 ~0, u64 magic, u64 4
 *   mapping   u64 0, u64 id, u32 length, name without NUL
 *   event     u64 1, u64 id, u64 ns, u32 length (from id to the last argument), u32 pid, arguments
 *   dropped   an event with id ~1 and one argument, the count
 *
 * A pass takes what the rings held when it began, the oldest stamp first, so the file is in
 * order but for an event that was stamped before and published after a pass began.
 */
#include "trace/simple.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace/control.h"
#include "trace/simple-ring.h"

#define FILE_MAGIC UINT64_C(0xf2b177cb0aa429b4)
#define FILE_VERSION 4
#define TYPE_MAPPING 0
#define TYPE_EVENT 1
#define ID_DROPPED UINT64_C(0xfffffffffffffffe)
#define EVENT_HEAD 32                   /* bytes of an event before its arguments */
#define EVENT_LENGTH(args) (24 + (args))
#define ARGS_MAX (10 * (4 + TRACE_SIMPLE_STRING_MAX))

#define OUT_BYTES (256 * 1024)
#define IDLE_MS 100                     /* the file is at most this late */
#define SIGNAL_WAIT_MS 1000             /* a dying process waits this long for its flush */
#define TAIL_EVERY 256                  /* records between two updates of a tail */

/* Of the writer thread while it runs, else of the main thread; but for the atomics. */
static struct {
    int fd;                             /* -1: not open */
    char *path;
    pid_t pid;
    bool is_regular, broken, complained;
    off_t good_size;                    /* the file up to the last whole record */
    uint8_t *out;
    size_t out_len;
    uint64_t out_events;                /* events in out */
    uint64_t out_lost;                  /* what its dropped records say */
    uint64_t unsaid;                    /* lost events that no record in the file tells yet */
    TraceClockPair last;
    uint64_t written, lost;             /* relaxed, for statistics */

    bool running;
    pthread_t thread;
    pid_t writer_tid;
    uint32_t wake_word;                 /* release: whoever wants a pass; acquire: the writer */
    uint32_t flush_wanted;              /* ordered by wake_word */
    uint32_t flush_done;                /* release: the writer; acquire: who waits */
    bool stop;                          /* ordered by wake_word */
} file = { .fd = -1 };

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

void trace_simple_wake_writer(void)
{
    __atomic_fetch_add(&file.wake_word, 1, __ATOMIC_RELEASE);
    futex(&file.wake_word, FUTEX_WAKE, 1, NULL);
}

/* ---- the file ---- */

/* The file took no more: cut it after the last whole record and count what is gone. */
static void out_failed(int err)
{
    file.unsaid += file.out_events + file.out_lost;
    __atomic_fetch_add(&file.lost, file.out_events, __ATOMIC_RELAXED);
    if (!file.is_regular || ftruncate(file.fd, file.good_size) < 0 ||
        lseek(file.fd, file.good_size, SEEK_SET) < 0) {
        file.broken = true;
    }
    if (!file.complained) {
        file.complained = true;
        dprintf(STDERR_FILENO, "trace: could not write '%s': %s; events are lost\n", file.path,
                g_strerror(err));
    }
}

static void out_flush(void)
{
    size_t done = 0;
    ssize_t n;

    while (done < file.out_len && !file.broken) {
        n = write(file.fd, file.out + done, file.out_len - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        done += (size_t)n;
    }
    if (done < file.out_len) {
        out_failed(errno);
    } else {
        file.good_size += (off_t)done;
        __atomic_fetch_add(&file.written, file.out_events, __ATOMIC_RELAXED);
    }
    file.out_len = 0;
    file.out_events = 0;
    file.out_lost = 0;
}

static void out_need(size_t bytes)
{
    if (file.out_len + bytes > OUT_BYTES) {
        out_flush();
    }
}

static void out_put(const void *data, size_t bytes)
{
    memcpy(file.out + file.out_len, data, bytes);
    file.out_len += bytes;
}

static void out_u64(uint64_t value)
{
    out_put(&value, sizeof(value));
}

static void out_u32(uint32_t value)
{
    out_put(&value, sizeof(value));
}

static void out_event(uint64_t id, uint64_t ns, const void *args, uint32_t bytes)
{
    out_need(EVENT_HEAD + bytes);
    out_u64(TYPE_EVENT);
    out_u64(id);
    out_u64(ns);
    out_u32(EVENT_LENGTH(bytes));
    out_u32((uint32_t)file.pid);
    out_put(args, bytes);
}

static void out_header(void)
{
    TraceEventIter iter;
    const TraceEvent *ev;

    out_u64(UINT64_MAX);
    out_u64(FILE_MAGIC);
    out_u64(FILE_VERSION);
    trace_event_iter_init(&iter, NULL);
    while ((ev = trace_event_iter_next(&iter)) != NULL) {
        size_t len = strlen(ev->name);

        out_need(20 + len);
        out_u64(TYPE_MAPPING);
        out_u64(ev->id);
        out_u32((uint32_t)len);
        out_put(ev->name, len);
    }
    out_flush();
    /* Without its head the file means nothing. */
    file.broken = file.broken || file.complained;
}

/* ---- a pass ---- */

typedef struct Cursor {
    TraceRing *ring;
    uint64_t pos, end;
} Cursor;

static const uint64_t *cursor_record(const Cursor *c)
{
    return &c->ring->words[c->pos % TRACE_SIMPLE_RING_WORDS];
}

/* Release: pairs with trace_simple_make_room(); the words may be written again. */
static void cursor_publish(const Cursor *c)
{
    __atomic_store_n(&c->ring->tail, c->pos, __ATOMIC_RELEASE);
}

/* Step over filler. False: nothing is left for this pass. */
static bool cursor_settle(Cursor *c)
{
    while (c->pos < c->end) {
        uint64_t word = *cursor_record(c);

        if ((uint32_t)word != TRACE_SIMPLE_PAD) {
            return true;
        }
        c->pos += word >> 32;
    }
    cursor_publish(c);
    return false;
}

static unsigned cursors_fill(Cursor *cursors)
{
    unsigned count = 0;

    for (TraceRing *ring = trace_simple_rings(); ring; ring = ring->next) {
        Cursor *c = &cursors[count];

        c->ring = ring;
        c->pos = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
        /* Acquire: pairs with trace_simple_end(). */
        c->end = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
        if (cursor_settle(c)) {
            count++;
        }
    }
    return count;
}

/* Write the records of @c up to stamp @until. False: the cursor has reached its end. */
static bool cursor_drain(Cursor *c, uint64_t until, const TraceClockLine *line)
{
    unsigned taken = 0;

    do {
        const uint64_t *rec = cursor_record(c);
        uint32_t bytes = (uint32_t)(rec[0] >> 32);

        if (rec[1] > until) {
            return true;
        }
        out_event((uint32_t)rec[0], trace_clock_convert(line, rec[1]), rec + 2, bytes);
        file.out_events++;
        c->pos += trace_simple_words(bytes);
        if (++taken % TAIL_EVERY == 0) {
            cursor_publish(c);
        }
    } while (cursor_settle(c));
    return false;
}

static void write_lost(uint64_t ns)
{
    uint64_t lost = trace_simple_take_lost();

    __atomic_fetch_add(&file.lost, lost, __ATOMIC_RELAXED);
    file.unsaid += lost;
    if (file.unsaid > 0) {
        out_event(ID_DROPPED, ns, &file.unsaid, sizeof(file.unsaid));
        file.out_lost += file.unsaid;
        file.unsaid = 0;
    }
}

static void pass(void)
{
    static Cursor cursors[TRACE_SIMPLE_RINGS_MAX];
    unsigned count = cursors_fill(cursors);
    TraceClockPair now;
    TraceClockLine line;

    /* After the heads were read: nearly all stamps lie between the two pairs. */
    trace_clock_pair(&now);
    trace_clock_line(&line, &file.last, &now);
    while (count > 0) {
        unsigned first = 0;
        uint64_t until = UINT64_MAX;

        for (unsigned i = 1; i < count; i++) {
            uint64_t stamp = cursor_record(&cursors[i])[1];
            uint64_t best = cursor_record(&cursors[first])[1];

            until = MIN(until, MAX(stamp, best));
            first = stamp < best ? i : first;
        }
        if (!cursor_drain(&cursors[first], until, &line)) {
            cursors[first] = cursors[--count];
        }
    }
    write_lost(now.ns);
    out_flush();
    file.last = now;
}

/* ---- the writer thread ---- */

static void *writer(void *opaque)
{
    const struct timespec idle = { .tv_nsec = IDLE_MS * 1000000L };
    bool stop;

    __atomic_store_n(&file.writer_tid, gettid(), __ATOMIC_RELAXED);
    out_header();
    do {
        /* Acquire: pairs with trace_simple_wake_writer(). */
        uint32_t seen = __atomic_load_n(&file.wake_word, __ATOMIC_ACQUIRE);
        uint32_t flush = __atomic_load_n(&file.flush_wanted, __ATOMIC_RELAXED);

        stop = __atomic_load_n(&file.stop, __ATOMIC_RELAXED);
        pass();
        if (flush != file.flush_done) {
            /* Release: pairs with flush_wait(). */
            __atomic_store_n(&file.flush_done, flush, __ATOMIC_RELEASE);
            futex(&file.flush_done, FUTEX_WAKE, INT_MAX, NULL);
        }
        if (!stop) {
            futex(&file.wake_word, FUTEX_WAIT, seen, &idle);
        }
    } while (!stop);
    return NULL;
}

/* Signal-safe. False: not done within @timeout_ms (-1: wait for ever). */
static bool flush_wait(int timeout_ms)
{
    const struct timespec step = { .tv_nsec = 10 * 1000000L };
    uint32_t want = __atomic_add_fetch(&file.flush_wanted, 1, __ATOMIC_RELAXED);
    uint32_t done;

    trace_simple_wake_writer();
    /* Acquire: pairs with writer(). */
    while ((int32_t)((done = __atomic_load_n(&file.flush_done, __ATOMIC_ACQUIRE)) - want) < 0) {
        if (timeout_ms >= 0 && (timeout_ms -= 10) < 0) {
            return false;
        }
        futex(&file.flush_done, FUTEX_WAIT, done, &step);
    }
    return true;
}

void trace_simple_flush(void)
{
    if (__atomic_load_n(&file.running, __ATOMIC_RELAXED)) {
        flush_wait(-1);
    }
}

/* ---- signals and exit ---- */

static const int fatal_signals[] = {
    /* faults: whatever stands behind us, e.g. a sanitizer, gets them after us */
    SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS,
    /* only while nobody handles or ignores them */
    SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE,
};
#define FAULTS 6

static struct sigaction old_actions[G_N_ELEMENTS(fatal_signals)];
static bool handled[G_N_ELEMENTS(fatal_signals)];

static void on_fatal_signal(int sig, siginfo_t *info, void *context)
{
    int saved = errno;

    for (unsigned i = 0; i < G_N_ELEMENTS(fatal_signals); i++) {
        if (fatal_signals[i] == sig) {
            sigaction(sig, &old_actions[i], NULL);
        }
    }
    if (getpid() == file.pid &&
        gettid() != __atomic_load_n(&file.writer_tid, __ATOMIC_RELAXED)) {
        flush_wait(SIGNAL_WAIT_MS);
    }
    errno = saved;
    /* A fault comes again by itself; what was sent must be sent again. */
    if (info->si_code <= 0) {
        raise(sig);
    }
}

static void signals_take(void)
{
    struct sigaction action = { .sa_flags = SA_SIGINFO, .sa_sigaction = on_fatal_signal };

    sigfillset(&action.sa_mask);
    for (unsigned i = 0; i < G_N_ELEMENTS(fatal_signals); i++) {
        handled[i] = sigaction(fatal_signals[i], NULL, &old_actions[i]) == 0 &&
            (i < FAULTS || old_actions[i].sa_handler == SIG_DFL) &&
            sigaction(fatal_signals[i], &action, NULL) == 0;
    }
}

static void signals_give_back(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(fatal_signals); i++) {
        struct sigaction now;

        if (handled[i] && sigaction(fatal_signals[i], NULL, &now) == 0 &&
            now.sa_sigaction == on_fatal_signal) {
            sigaction(fatal_signals[i], &old_actions[i], NULL);
        }
        handled[i] = false;
    }
}

/* ---- from open to stop ---- */

static void file_close(void)
{
    close(file.fd);
    file.fd = -1;
    g_clear_pointer(&file.path, g_free);
    g_clear_pointer(&file.out, g_free);
}

bool trace_simple_open(const char *path, GError **errp)
{
    static bool exit_hooked;
    struct stat st;
    int fd;

    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int err = errno;

        if (fd >= 0) {
            close(fd);
        }
        g_set_error(errp, G_FILE_ERROR, g_file_error_from_errno(err),
                    "Could not open trace file '%s': %s", path, g_strerror(err));
        return false;
    }
    if (file.running) {
        trace_simple_stop();
    } else if (file.fd >= 0) {
        file_close();
    }
    file.fd = fd;
    file.path = g_strdup(path);
    file.pid = getpid();
    file.is_regular = S_ISREG(st.st_mode);
    file.broken = file.complained = false;
    file.good_size = 0;
    file.unsaid = 0;
    file.out = g_malloc(OUT_BYTES);
    __atomic_store_n(&file.written, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&file.lost, 0, __ATOMIC_RELAXED);
    trace_clock_init();
    trace_clock_pair(&file.last);
    trace_simple_discard();
    __atomic_store_n(&trace_simple_active, true, __ATOMIC_RELAXED);
    if (!exit_hooked) {
        exit_hooked = true;
        atexit(trace_simple_stop);
    }
    return true;
}

bool trace_simple_is_open(void)
{
    return file.fd >= 0;
}

static bool file_empty(GError **errp)
{
    if (file.is_regular && ftruncate(file.fd, 0) < 0) {
        g_set_error(errp, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "Could not empty trace file '%s': %s", file.path, g_strerror(errno));
        return false;
    }
    return true;
}

bool trace_simple_start(GError **errp)
{
    sigset_t all, old;
    int err;

    g_assert(file.fd >= 0 && !file.running);
    if (!file_empty(errp)) {
        return false;
    }
    file.pid = getpid();
    file.stop = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&file.thread, NULL, writer, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err != 0) {
        g_set_error(errp, G_FILE_ERROR, g_file_error_from_errno(err),
                    "Could not start the trace writer: %s", g_strerror(err));
        return false;
    }
    pthread_setname_np(file.thread, "trace-writer");
    __atomic_store_n(&file.running, true, __ATOMIC_RELAXED);
    signals_take();
    return true;
}

static void say_lost(void)
{
    TraceSimpleStats stats;

    trace_simple_get_stats(&stats);
    if (stats.lost > 0) {
        dprintf(STDERR_FILENO,
                "trace: '%s': %" PRIu64 " of %" PRIu64 " events (%.2f %%) are lost\n",
                file.path, stats.lost, stats.written + stats.lost,
                100.0 * (double)stats.lost / (double)(stats.written + stats.lost));
    }
}

void trace_simple_stop(void)
{
    /* A forked child has neither the thread nor a claim on the file. */
    if (file.fd < 0 || file.pid != getpid()) {
        return;
    }
    __atomic_store_n(&trace_simple_active, false, __ATOMIC_RELAXED);
    if (file.running) {
        signals_give_back();
        __atomic_store_n(&file.stop, true, __ATOMIC_RELAXED);
        trace_simple_wake_writer();
        pthread_join(file.thread, NULL);
        __atomic_store_n(&file.running, false, __ATOMIC_RELAXED);
    } else if (file_empty(NULL)) {
        out_header();
        pass();
    }
    say_lost();
    file_close();
}

void trace_simple_get_stats(TraceSimpleStats *stats)
{
    stats->written = __atomic_load_n(&file.written, __ATOMIC_RELAXED);
    stats->lost = __atomic_load_n(&file.lost, __ATOMIC_RELAXED);
}
