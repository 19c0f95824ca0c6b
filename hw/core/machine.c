/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hw/core/machine.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "util/err.h"

bool machine_init(Machine *m, AioContext *ctx, GError **errp)
{
    m->ctx = ctx;
    m->ram_fd = -1;
    m->state = RUN_STATE_PRELAUNCH;
    pthread_mutex_init(&m->request_lock, NULL);
    m->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->request_fd < 0) {
        err_set_errno(errp, errno, "cannot make an eventfd");
        return false;
    }
    m->pio = io_bus_new("I/O port", 0x10000);
    m->mmio = io_bus_new("memory", 0);
    m->listeners = g_ptr_array_new();
    m->devices = g_ptr_array_new();
    m->reset_hooks = g_ptr_array_new();
    return true;
}

void machine_cleanup(Machine *m)
{
    io_bus_free(m->pio);
    io_bus_free(m->mmio);
    g_clear_pointer(&m->listeners, g_ptr_array_unref);
    g_clear_pointer(&m->devices, g_ptr_array_unref);
    g_clear_pointer(&m->reset_hooks, g_ptr_array_unref);
    if (m->request_fd >= 0) {
        close(m->request_fd);
    }
    pthread_mutex_destroy(&m->request_lock);
}

void machine_add_listener(Machine *m, RunStateListener *l)
{
    g_ptr_array_add(m->listeners, l);
}

void machine_remove_listener(Machine *m, RunStateListener *l)
{
    g_ptr_array_remove(m->listeners, l);
}

void machine_set_state(Machine *m, RunState state)
{
    bool was_running = machine_running(m);
    bool running = state == RUN_STATE_RUNNING;

    m->state = state;
    if (was_running == running) {
        return;
    }
    for (unsigned i = 0; i < m->listeners->len; i++) {
        RunStateListener *l = g_ptr_array_index(m->listeners, i);

        l->changed(l->opaque, running, state);
    }
}

void machine_add_reset(Machine *m, ResetHook *hook)
{
    g_ptr_array_add(m->reset_hooks, hook);
}

void machine_remove_reset(Machine *m, ResetHook *hook)
{
    g_ptr_array_remove(m->reset_hooks, hook);
}

void machine_run_reset_hooks(Machine *m)
{
    for (unsigned i = 0; i < m->reset_hooks->len; i++) {
        ResetHook *hook = g_ptr_array_index(m->reset_hooks, i);

        hook->reset(hook->opaque);
    }
}

void *machine_ram_ptr(const Machine *m, uint64_t gpa, uint64_t size)
{
    for (unsigned i = 0; i < m->n_ram; i++) {
        const VmRam *r = &m->ram[i];

        if (gpa >= r->gpa && gpa - r->gpa < r->size && size <= r->size - (gpa - r->gpa)) {
            return (char *)r->host + (gpa - r->gpa);
        }
    }
    return NULL;
}

/* Any thread: put the request down, then wake the main loop. */
static void request_post(Machine *m, const MachineRequest *add)
{
    MachineRequest *r = &m->request;
    uint64_t one = 1;

    pthread_mutex_lock(&m->request_lock);
    if (add->shutdown && !r->shutdown) {
        r->shutdown = true;
        r->cause = add->cause;
        r->status = add->status;
    }
    r->reset |= add->reset;
    if (add->stop && !r->stop) {
        r->stop = true;
        r->stop_state = add->stop_state;
    }
    pthread_mutex_unlock(&m->request_lock);
    if (write(m->request_fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: it is signalled already */
    }
}

void machine_request_shutdown(Machine *m, ShutdownCause cause, int status)
{
    request_post(m, &(MachineRequest) { .shutdown = true, .cause = cause, .status = status });
}

void machine_request_reset(Machine *m)
{
    request_post(m, &(MachineRequest) { .reset = true });
}

void machine_request_stop(Machine *m, RunState state)
{
    request_post(m, &(MachineRequest) { .stop = true, .stop_state = state });
}

MachineRequest machine_take_request(Machine *m)
{
    MachineRequest taken;
    uint64_t count;

    if (read(m->request_fd, &count, sizeof(count)) < 0) {
        /* EAGAIN: somebody looks without having been woken */
    }
    pthread_mutex_lock(&m->request_lock);
    taken = m->request;
    m->request = (MachineRequest) { 0 };
    pthread_mutex_unlock(&m->request_lock);
    return taken;
}
