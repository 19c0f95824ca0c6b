/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The main loop and the run state.
 */
#include <glib-unix.h>
#include <string.h>

#include "util/bql.h"
#include "util/err.h"
#include "vm.h"

/* The BQL is ours but while the loop sleeps. */
static gint poll_without_bql(GPollFD *fds, guint n, gint timeout_ms)
{
    gint ret;

    bql_unlock();
    ret = g_poll(fds, n, timeout_ms);
    bql_lock();
    return ret;
}

static void pause_vcpus(SystemVm *vm)
{
    Vm *v = vm->machine->vm;

    v->ops->cpus_pause(v);
}

static void end(SystemVm *vm, int status)
{
    vm->quit = true;
    vm->status = status;
}

static void stop(SystemVm *vm, RunState state)
{
    pause_vcpus(vm);
    machine_set_state(vm->machine, state);
}

static void resume(SystemVm *vm)
{
    Vm *v = vm->machine->vm;

    machine_set_state(vm->machine, RUN_STATE_RUNNING);
    v->ops->cpus_resume(v);
}

static void reset(SystemVm *vm)
{
    g_autoptr(GError) err = NULL;

    pause_vcpus(vm);
    if (!vm->machine->type->reset(vm->machine, &err)) {
        report_error_gerror(err);
        end(vm, 1);
    } else if (machine_running(vm->machine)) {
        resume(vm);
    }
}

static gboolean request_cb(gint fd, GIOCondition cond, gpointer opaque)
{
    SystemVm *vm = opaque;
    MachineRequest r = machine_take_request(vm->machine);

    if (r.shutdown) {
        end(vm, r.status);
    } else if (r.reset && vm->options->no_reboot) {
        end(vm, 0);
    } else {
        if (r.stop && machine_running(vm->machine)) {
            stop(vm, r.stop_state);
        }
        if (r.reset) {
            reset(vm);
        }
    }
    return G_SOURCE_CONTINUE;
}

static gboolean signal_cb(gint fd, GIOCondition cond, gpointer opaque)
{
    SystemVm *vm = opaque;
    int pid;
    int sig = signals_take(&pid);

    if (sig != 0) {
        const char *name = vm->options->guest_name;

        report_info("%s%sterminating on signal %d from pid %d", name != NULL ? name : "",
                    name != NULL ? ": " : "", sig, pid);
        machine_request_shutdown(vm->machine, SHUTDOWN_HOST_SIGNAL, 0);
    }
    return G_SOURCE_CONTINUE;
}

int vm_run(SystemVm *vm)
{
    guint requests = g_unix_fd_add(vm->machine->request_fd, G_IO_IN, request_cb, vm);
    guint signals = g_unix_fd_add(signals_fd(), G_IO_IN, signal_cb, vm);

    g_main_context_set_poll_func(NULL, poll_without_bql);
    if (vm->serial != NULL) {
        chardev_begin(vm->serial);
    }
    resume(vm);
    while (!vm->quit) {
        g_main_context_iteration(NULL, true);
    }
    stop(vm, RUN_STATE_SHUTDOWN);
    g_source_remove(requests);
    g_source_remove(signals);
    return vm->status;
}
