/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From options to a virtual machine that is ready to run, in the order in which
 * its parts need each other: machine, objects, block nodes, devices, vCPUs.
 */
#include "vm.h"

#include <string.h>
#include <sys/prctl.h>

#include "config-host.h"
#ifdef CONFIG_QTEST
#include "accel/qtest.h"
#endif
#include "block/blockdev.h"
#include "hw/core/device.h"
#include "util/err.h"
#include "util/iothread.h"

/* ---- the serial port ---- */

static void quit_command(void *opaque)
{
    SystemVm *vm = opaque;

    machine_request_shutdown(vm->machine, SHUTDOWN_HOST_UI, 0);
}

static const ChardevMuxCommand mux_commands[] = {
    { 'x', "end the process", quit_command },
    { 0 },
};

static bool serial_open(SystemVm *vm, GError **errp)
{
    const Options *o = vm->options;
    const char *spec = o->serial;
    bool mux;

    if (spec == NULL) {
        if (o->nodefaults) {
            return true;
        }
        spec = o->nographic ? "mon:stdio" : "null";
    }
    if (strcmp(spec, "none") == 0) {
        return true;
    }
    mux = g_str_has_prefix(spec, "mon:");
    vm->serial = chardev_open(mux ? spec + 4 : spec, !mux, errp);
    if (vm->serial == NULL) {
        err_prepend(errp, "-serial %s: ", spec);
        return false;
    }
    if (mux) {
        vm->serial = chardev_mux_new(vm->serial, mux_commands, vm);
    }
    return true;
}

/* ---- the machine ---- */

static bool context_init(SystemVm *vm, GError **errp)
{
    vm->ctx = aio_context_new("main-loop", errp);
    if (vm->ctx == NULL) {
        return false;
    }
    aio_context_enter(vm->ctx);
    vm->ctx_source = aio_context_gsource(vm->ctx, errp);
    if (vm->ctx_source == NULL) {
        return false;
    }
    g_source_attach(vm->ctx_source, NULL);
    return true;
}

static bool machine_create(SystemVm *vm, GError **errp)
{
    const Options *o = vm->options;
    MachineConfig config = {
        .ram_size = o->ram_size,
        .vm = {
            .cpus = o->cpus, .sockets = o->sockets, .cores = o->cores, .threads = o->threads,
            .cpu_model = o->cpu_model,
            .debug_threads = o->debug_threads,
        },
        .accel = o->accel,
        .kernel = o->kernel,
        .initrd = o->initrd,
        .append = o->append,
        .serial = vm->serial,
        .ctx = vm->ctx,
    };

    vm->machine = o->machine->create(&config, vm->tree, errp);
    return vm->machine != NULL;
}

/* ---- -object, -blockdev, -drive, -device ---- */

/* Obey every item of @code by @add. */
static bool for_each(SystemVm *vm, OptionCode code,
                     bool (*add)(SystemVm *vm, const CmdlineItem *item, GError **errp),
                     GError **errp)
{
    const CmdlineItem *item;

    for (size_t at = 0; (item = cmdline_find(vm->options->cl, code, &at)) != NULL; ) {
        ErrLocation loc;
        bool ok;

        err_location_push_args(&loc, item->words, item->word_count);
        ok = add(vm, item, errp);
        if (!ok) {
            err_prepend(errp, "%s: ", err_location_text());
        }
        err_location_pop(&loc);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool object_item(SystemVm *vm, const CmdlineItem *item, GError **errp)
{
    g_auto(Keyval) kv = { 0 };

    return keyval_parse(&kv, item->arg, "qom-type", KEYVAL_JSON, errp) &&
           object_add(vm->tree, kv.options, kv.texts, errp) != NULL;
}

static bool blockdev_item(SystemVm *vm, const CmdlineItem *item, GError **errp)
{
    return blockdev_add_arg(item->arg, errp);
}

/* This machine's disks are virtio ones. */
static bool drive_item(SystemVm *vm, const CmdlineItem *item, GError **errp)
{
    return drive_add_arg(item->arg, DRIVE_IF_VIRTIO, errp);
}

/* The devices that -drive if=virtio stands for, after those given by name. */
static bool drives_attach(SystemVm *vm, GError **errp)
{
    for (const Drive *d = drive_next(NULL); d != NULL; d = drive_next(d)) {
        g_autoptr(JsonValue) options = json_object_new_object();

        if (d->interface != DRIVE_IF_VIRTIO) {
            continue;
        }
        json_object_object_add(options, "driver", json_object_new_string("virtio-blk-pci"));
        json_object_object_add(options, "drive", json_object_new_string(d->id));
        if (device_add(vm->machine, vm->tree, options, true, errp) == NULL) {
            err_prepend(errp, "-drive id=%s: ", d->id);
            return false;
        }
    }
    return true;
}

static bool device_item(SystemVm *vm, const CmdlineItem *item, GError **errp)
{
    g_auto(Keyval) kv = { 0 };

    return keyval_parse(&kv, item->arg, "driver", KEYVAL_JSON | KEYVAL_SHORT_BOOL, errp) &&
           device_add(vm->machine, vm->tree, kv.options, kv.texts, errp) != NULL;
}

/* ---- -qtest ---- */

#ifdef CONFIG_QTEST
static void qtest_closed(void *opaque)
{
    SystemVm *vm = opaque;

    machine_request_shutdown(vm->machine, SHUTDOWN_HOST_UI, 0);
}

static bool qtest_start(SystemVm *vm, GError **errp)
{
    const char *spec = vm->options->qtest;

    return spec == NULL || qtest_serve(vm->machine->vm, spec, qtest_closed, vm, errp);
}
#else
static bool qtest_start(SystemVm *vm, GError **errp)
{
    return true;                /* the option isn't in the table */
}
#endif

/* ---- all of it ---- */

static bool check_runnable(const SystemVm *vm, GError **errp)
{
    const Options *o = vm->options;

    if (o->kernel == NULL && vm->machine->vm->ops->has(vm->machine->vm, VM_CAP_VCPUS)) {
        err_set(errp, "there is no firmware yet: give a kernel with -kernel");
        return false;
    }
    return true;
}

bool vm_start(SystemVm *vm, const Options *options, ObjectTree *tree, GError **errp)
{
    vm->options = options;
    vm->tree = tree;
    if (options->process_name != NULL) {
        prctl(PR_SET_NAME, options->process_name);
    }
    return context_init(vm, errp) && serial_open(vm, errp) && machine_create(vm, errp) &&
           check_runnable(vm, errp) &&
           for_each(vm, OPT_OBJECT, object_item, errp) &&
           for_each(vm, OPT_BLOCKDEV, blockdev_item, errp) &&
           for_each(vm, OPT_DRIVE, drive_item, errp) &&
           for_each(vm, OPT_DEVICE, device_item, errp) && drives_attach(vm, errp) &&
           vm->machine->type->complete(vm->machine, errp) &&
           vm->machine->type->reset(vm->machine, errp) && qtest_start(vm, errp) &&
           (options->pidfile == NULL || pidfile_write(options->pidfile, errp));
}

static void devices_remove(SystemVm *vm)
{
    GPtrArray *devices = vm->machine->devices;

    /* the last added first; the board's own go with the board */
    for (unsigned i = devices->len; i > 0; i--) {
        Device *dev = g_ptr_array_index(devices, i - 1);

        if (dev->obj.type->flags & OBJ_DEVICE) {
            device_del(dev);
        }
    }
}

void vm_stop(SystemVm *vm)
{
    if (vm->machine != NULL) {
        devices_remove(vm);
        vm->machine->type->free(vm->machine);
    }
    blockdev_close_all();
    object_tree_free(vm->tree);         /* objects, IOThreads among them */
    chardev_free(vm->serial);
    if (vm->ctx_source != NULL) {
        g_source_destroy(vm->ctx_source);
        g_source_unref(vm->ctx_source);
    }
    if (vm->ctx != NULL) {
        aio_context_leave(vm->ctx);
        aio_context_free(vm->ctx);
    }
    pidfile_remove();
}
