/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hw/core/machine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/trace-hw-core.h"
#include "util/err.h"

/* ---- what vCPUs need ---- */

static uint64_t exit_pio_read(void *machine, uint16_t port, unsigned size)
{
    return io_bus_read(((Machine *)machine)->pio, port, size);
}

static void exit_pio_write(void *machine, uint16_t port, uint64_t value, unsigned size)
{
    io_bus_write(((Machine *)machine)->pio, port, value, size);
}

static uint64_t exit_mmio_read(void *machine, uint64_t addr, unsigned size)
{
    return io_bus_read(((Machine *)machine)->mmio, addr, size);
}

static void exit_mmio_write(void *machine, uint64_t addr, uint64_t value, unsigned size)
{
    io_bus_write(((Machine *)machine)->mmio, addr, value, size);
}

static void exit_shutdown(void *machine)
{
    machine_request_reset(machine);
}

static void exit_failure(void *machine, unsigned cpu, const char *text, const char *dump)
{
    report_error("CPU %u: %s", cpu, text);
    if (dump != NULL) {
        fputs(dump, stderr);
    }
    machine_request_stop(machine, RUN_STATE_INTERNAL_ERROR);
}

static const VmExits machine_exits = {
    .pio_read = exit_pio_read,
    .pio_write = exit_pio_write,
    .mmio_read = exit_mmio_read,
    .mmio_write = exit_mmio_write,
    .shutdown = exit_shutdown,
    .failure = exit_failure,
};

/* ---- life ---- */

bool machine_init(Machine *m, const MachineType *type, const MachineConfig *config,
                  GError **errp)
{
    VmConfig vm = config->vm;

    m->type = type;
    m->ctx = config->ctx;
    m->ram_fd = -1;
    m->state = RUN_STATE_PRELAUNCH;
    pthread_mutex_init(&m->request_lock, NULL);
    m->pio = io_bus_new("I/O port", 0x10000);
    m->mmio = io_bus_new("memory", 0);
    m->listeners = g_ptr_array_new();
    m->devices = g_ptr_array_new();
    m->reset_hooks = g_ptr_array_new();
    m->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->request_fd < 0) {
        err_set_errno(errp, errno, "cannot make an eventfd");
        return false;
    }
    vm.exits = &machine_exits;
    vm.machine = m;
    m->vm = config->accel->create(&vm, errp);
    return m->vm != NULL;
}

bool machine_ram_alloc(Machine *m, const MachineConfig *config, GError **errp)
{
    m->ram_size = config->ram_size;
    m->ram_fd = memfd_create("pc.ram", MFD_CLOEXEC);
    if (m->ram_fd < 0 || ftruncate(m->ram_fd, m->ram_size) < 0) {
        err_set_errno(errp, errno, "cannot make %" G_GUINT64_FORMAT " MiB of guest RAM",
                      m->ram_size >> 20);
        return false;
    }
    m->ram_base = mmap(NULL, m->ram_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                       m->ram_fd, 0);
    if (m->ram_base == MAP_FAILED) {
        m->ram_base = NULL;
        err_set_errno(errp, errno, "cannot map %" G_GUINT64_FORMAT " MiB of guest RAM",
                      m->ram_size >> 20);
        return false;
    }
    /* fewer faults where the host permits; it need not */
    madvise(m->ram_base, m->ram_size, MADV_HUGEPAGE);
    return true;
}

bool machine_ram_map(Machine *m, uint64_t gpa, uint64_t offset, uint64_t size, GError **errp)
{
    VmRam *r = &m->ram[m->n_ram];

    assert(m->n_ram < MACHINE_RAM_MAX && offset <= m->ram_size && size <= m->ram_size - offset);
    *r = (VmRam) { .gpa = gpa, .size = size, .host = (char *)m->ram_base + offset };
    if (!m->vm->ops->ram_add(m->vm, r, errp)) {
        return false;
    }
    m->n_ram++;
    return true;
}

void machine_cleanup(Machine *m)
{
    if (m->vm != NULL) {
        m->vm->ops->destroy(m->vm);
    }
    if (m->ram_base != NULL) {
        munmap(m->ram_base, m->ram_size);
    }
    if (m->ram_fd >= 0) {
        close(m->ram_fd);
    }
    if (m->request_fd >= 0) {
        close(m->request_fd);
    }
    io_bus_free(m->pio);
    io_bus_free(m->mmio);
    g_ptr_array_unref(m->listeners);
    g_ptr_array_unref(m->devices);
    g_ptr_array_unref(m->reset_hooks);
    pthread_mutex_destroy(&m->request_lock);
}

/* ---- run state ---- */

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
    /*
     * The guest shouldn't go on behind the access that asked for this. Under the
     * lock: a kick that came after the main loop had obeyed and resumed would
     * stop the vCPUs with nobody left to start them.
     */
    m->vm->ops->cpus_kick(m->vm);
    pthread_mutex_unlock(&m->request_lock);
    if (write(m->request_fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: it is signalled already */
    }
}

void machine_request_shutdown(Machine *m, ShutdownCause cause, int status)
{
    trace_machine_request_shutdown(cause, status);
    request_post(m, &(MachineRequest) { .shutdown = true, .cause = cause, .status = status });
}

void machine_request_reset(Machine *m)
{
    trace_machine_request_reset(m);
    request_post(m, &(MachineRequest) { .reset = true });
}

void machine_request_stop(Machine *m, RunState state)
{
    trace_machine_request_stop(state);
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
