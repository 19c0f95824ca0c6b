/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio over PCI: the device's life and its control in the main thread. The
 * registers are in virtio-pci-regs.c, interrupts in virtio-pci-irq.c.
 */
#include "hw/virtio/virtio-pci.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "trace/trace-hw-virtio.h"
#include "util/err.h"
#include "virtio-pci-priv.h"

#define BROKEN_LOG_NS 1000000000        /* at most one line about a broken queue in this time */

/* ---- queues, main thread ------------------------------------------------------ */

static GuestMemory *memory_map(const Machine *m, GError **errp)
{
    GuestRegion regions[MACHINE_RAM_MAX];

    for (unsigned i = 0; i < m->n_ram; i++) {
        regions[i] = (GuestRegion) { m->ram[i].gpa, m->ram[i].size, m->ram[i].host };
    }
    return guest_memory_new(regions, m->n_ram, errp);
}

static void doorbell_add(VirtioPci *v, unsigned i)
{
    const VmOps *ops = v->pci.dev.machine->vm->ops;
    unsigned len = ops->has(v->pci.dev.machine->vm, VM_CAP_IOEVENTFD_ANY_LENGTH) ? 0 : 2;
    VirtioPciQueue *q = &v->queues[i];

    if (v->use_ioeventfd && !q->ioeventfd) {
        int ret = pci_ioeventfd_add(&v->pci, VIRTIO_PCI_BAR, NOTIFY_OFF + i * NOTIFY_MULT, len,
                                    false, 0, q->kick_fd);

        /* Refused: the doorbell's handler does the same, only slower. */
        q->ioeventfd = ret == 0;
        if (ret < 0) {
            report_warning("%s: no ioeventfd for queue %u: %s", device_name(&v->pci.dev), i,
                           g_strerror(-ret));
        }
    }
}

static void doorbell_del(VirtioPci *v, unsigned i)
{
    VirtioPciQueue *q = &v->queues[i];

    if (q->ioeventfd) {
        pci_ioeventfd_del(&v->pci, VIRTIO_PCI_BAR, NOTIFY_OFF + i * NOTIFY_MULT, q->kick_fd);
        q->ioeventfd = false;
    }
}

static void queue_start(VirtioPci *v, unsigned i)
{
    VirtioPciQueue *q = &v->queues[i];
    g_autoptr(GError) err = NULL;
    g_autoptr(GuestMemory) mem = memory_map(v->pci.dev.machine, &err);
    VirtQueueConfig cfg = {
        .size = q->size,
        .desc_gpa = q->desc,
        .avail_gpa = q->avail,
        .used_gpa = q->used,
        .event_idx = v->features & UINT64_C(1) << VIRTIO_RING_F_EVENT_IDX,
        .indirect = v->features & UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC,
    };

    virtio_pci_irq_queue_update(v, i);
    if (mem == NULL || !v->cls->queue_start(v, i, mem, &cfg, q->kick_fd, &err)) {
        virtio_pci_irq_queue_release(v, i);
        if (v->set_up_error == NULL) {
            v->set_up_error = g_strdup(err->message);
            virtio_pci_queue_broken(v, i, v->set_up_error);
        }
        return;
    }
    q->state = VIRTIO_PCI_QUEUE_RUNNING;
    doorbell_add(v, i);
}

static void queue_stop(VirtioPci *v, unsigned i)
{
    VirtioPciQueue *q = &v->queues[i];

    if (q->state != VIRTIO_PCI_QUEUE_STOPPED) {
        uint64_t count;

        doorbell_del(v, i);
        v->cls->queue_stop(v, i);
        virtio_pci_irq_queue_release(v, i);
        q->state = VIRTIO_PCI_QUEUE_STOPPED;
        /* A kick that nobody took belongs to the past. */
        if (read(q->kick_fd, &count, sizeof(count)) < 0) {
            g_assert(errno == EAGAIN);
        }
    }
}

static void queues_stop(VirtioPci *v)
{
    /* First all of them stop taking requests, so that they drain together. */
    for (unsigned i = 0; i < v->num_queues; i++) {
        if (v->queues[i].state == VIRTIO_PCI_QUEUE_RUNNING) {
            v->cls->queue_pause(v, i);
            v->queues[i].state = VIRTIO_PCI_QUEUE_PAUSED;
        }
    }
    for (unsigned i = 0; i < v->num_queues; i++) {
        queue_stop(v, i);
    }
}

/* Bring each queue to where the driver and the machine want it. */
static void queues_settle(VirtioPci *v)
{
    bool live = (v->status & VIRTIO_CONFIG_S_DRIVER_OK)
        && !(v->status & VIRTIO_CONFIG_S_NEEDS_RESET);
    bool go = live && v->vm_running && pci_bus_master(&v->pci);

    if (live && !v->driver_ok_done) {
        v->driver_ok_done = true;
        v->cls->driver_ok(v);
    }
    virtio_pci_irq_config_update(v);
    for (unsigned i = 0; i < v->num_queues; i++) {
        VirtioPciQueue *q = &v->queues[i];

        switch (q->state) {
        case VIRTIO_PCI_QUEUE_STOPPED:
            if (go && q->enabled) {
                queue_start(v, i);
            }
            break;
        case VIRTIO_PCI_QUEUE_PAUSED:
            virtio_pci_irq_queue_update(v, i);
            if (go) {
                v->cls->queue_resume(v, i);
                q->state = VIRTIO_PCI_QUEUE_RUNNING;
            }
            break;
        case VIRTIO_PCI_QUEUE_RUNNING:
            virtio_pci_irq_queue_update(v, i);
            if (!go) {
                v->cls->queue_pause(v, i);
                q->state = VIRTIO_PCI_QUEUE_PAUSED;
            }
            break;
        }
    }
}

/* ---- reset, broken, control ------------------------------------------------------ */

static void driver_view_clear(VirtioPci *v)
{
    v->status = 0;
    v->device_feature_select = v->driver_feature_select = 0;
    v->features = 0;
    v->queue_select = 0;
    v->config_vector = VIRTIO_MSI_NO_VECTOR;
    v->driver_ok_done = false;
    virtio_pci_irq_config_update(v);
    v->reset_pending = false;
    __atomic_store_n(&v->broken_claimed, false, __ATOMIC_RELAXED);
    __atomic_store_n(&v->broken_why, NULL, __ATOMIC_RELAXED);
    g_clear_pointer(&v->set_up_error, g_free);
    __atomic_store_n(&v->isr, 0, __ATOMIC_SEQ_CST);
    pci_irq_set(&v->pci, false);
    for (unsigned i = 0; i < v->num_queues; i++) {
        VirtioPciQueue *q = &v->queues[i];

        q->size = v->queue_size;
        q->vector = VIRTIO_MSI_NO_VECTOR;
        q->enabled = false;
        q->desc = q->avail = q->used = 0;
    }
}

static void device_reset(VirtioPci *v)
{
    trace_virtio_reset(v);
    queues_stop(v);
    v->cls->reset(v);
    driver_view_clear(v);
}

void virtio_pci_reset_request(VirtioPci *v)
{
    for (unsigned i = 0; i < v->num_queues; i++) {
        if (v->queues[i].state != VIRTIO_PCI_QUEUE_STOPPED) {
            /* There is something to drain. DRIVER_OK is set, so the driver reads
             * a status other than 0 until that is done. */
            v->reset_pending = true;
            virtio_pci_control(v);
            return;
        }
    }
    device_reset(v);
}

void virtio_pci_queue_broken(VirtioPci *v, unsigned i, const char *why)
{
    /* The first reason stays; the main thread takes it from here. */
    if (!__atomic_exchange_n(&v->broken_claimed, true, __ATOMIC_RELAXED)) {
        v->broken_queue = i;
        __atomic_store_n(&v->broken_why, why, __ATOMIC_RELEASE);   /* pairs with broken_tell() */
        virtio_pci_control(v);
    }
}

/* A guest may break and reset its device in a loop: it can't fill the log. */
static void broken_log(VirtioPci *v, const char *why)
{
    int64_t now = aio_clock_ns();

    if (v->broken_logged_ns != 0 && now - v->broken_logged_ns < BROKEN_LOG_NS) {
        v->broken_silent++;
        return;
    }
    report_warning("%s: queue %u: %s; the device needs a reset", device_name(&v->pci.dev),
                   v->broken_queue, why);
    if (v->broken_silent > 0) {
        report_warning("%s: the same kind of trouble %u more times before",
                       device_name(&v->pci.dev), v->broken_silent);
    }
    v->broken_logged_ns = now;
    v->broken_silent = 0;
}

static void broken_tell(VirtioPci *v)
{
    const char *why = __atomic_load_n(&v->broken_why, __ATOMIC_ACQUIRE);

    if (why != NULL && !(v->status & VIRTIO_CONFIG_S_NEEDS_RESET)) {
        broken_log(v, why);
        v->status |= VIRTIO_CONFIG_S_NEEDS_RESET;
        virtio_pci_config_changed(v);
    }
}

static void control(void *opaque)
{
    VirtioPci *v = opaque;

    /* Draining runs this thread's bottom halves, this one among them: the outer call goes on. */
    v->control_again = true;
    if (v->in_control) {
        return;
    }
    v->in_control = true;
    while (v->control_again) {
        v->control_again = false;
        if (v->reset_pending) {
            device_reset(v);
        }
        broken_tell(v);
        queues_settle(v);
        broken_tell(v);                 /* a queue's set-up may have been wrong */
    }
    v->in_control = false;
}

void virtio_pci_control(VirtioPci *v)
{
    aio_bh_schedule(v->control_bh);
}

static void run_state_changed(void *opaque, bool running, RunState state)
{
    VirtioPci *v = opaque;

    (void)state;
    v->vm_running = running;
    control(v);
}

/* ---- life ------------------------------------------------------------------------------ */

void virtio_pci_mode_changed(PciDevice *dev)
{
    virtio_pci_control((VirtioPci *)dev);
}

/* A system reset goes the way of the driver's own, which is never begun in the middle of itself. */
void virtio_pci_reset(PciDevice *dev)
{
    VirtioPci *v = (VirtioPci *)dev;

    v->reset_pending = true;
    control(v);
}

static bool queues_make(VirtioPci *v, GError **errp)
{
    v->queues = g_new0(VirtioPciQueue, v->num_queues);
    for (unsigned i = 0; i < v->num_queues; i++) {
        v->queues[i].v = v;
        v->queues[i].call_fd = -1;
        v->queues[i].used_vector = VIRTIO_MSI_NO_VECTOR;
        v->queues[i].kick_fd = -1;
    }
    for (unsigned i = 0; i < v->num_queues; i++) {
        v->queues[i].kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (v->queues[i].kick_fd < 0) {
            err_set_errno(errp, errno, "no eventfd for queue %u", i);
            return false;
        }
    }
    return true;
}

static void queues_free(VirtioPci *v)
{
    for (unsigned i = 0; v->queues != NULL && i < v->num_queues; i++) {
        if (v->queues[i].kick_fd >= 0) {
            close(v->queues[i].kick_fd);
        }
    }
    g_clear_pointer(&v->queues, g_free);
}

/* The leaf is ready and has said how many queues it has. */
static bool virtio_pci_complete(Object *obj, GError **errp)
{
    VirtioPci *v = (VirtioPci *)obj;
    Machine *m = v->pci.dev.machine;
    unsigned vectors = v->vectors == VIRTIO_PCI_VECTORS_AUTO ? v->num_queues + 1 : v->vectors;

    v->cls = object_class_data(obj->type);
    v->config_used_vector = VIRTIO_MSI_NO_VECTOR;
    v->config_fd = -1;
    g_assert(v->num_queues > 0 && v->num_queues <= VIRTIO_PCI_QUEUES_MAX);
    if (!queues_make(v, errp)
        || (vectors > 0 && !pci_msix_init(&v->pci, vectors, VIRTIO_PCI_BAR_MSIX, errp))) {
        queues_free(v);
        return false;
    }
    pci_irq_pin(&v->pci, 1);
    pci_bar_add(&v->pci, VIRTIO_PCI_BAR, PCI_BAR_MEM64_PREFETCH, VIRTIO_PCI_BAR_SIZE,
                &virtio_pci_bar_ops, v);
    virtio_pci_caps_add(v);
    v->control_bh = aio_bh_new(m->ctx, "virtio-pci-control", control, v);
    v->intx_bh = aio_bh_new(m->ctx, "virtio-pci-intx", virtio_pci_intx_update, v);
    v->vm_running = machine_running(m);
    v->listener = (RunStateListener) { run_state_changed, v };
    machine_add_listener(m, &v->listener);
    driver_view_clear(v);
    return true;
}

void virtio_pci_shut(VirtioPci *v)
{
    if (v->control_bh == NULL) {
        return;
    }
    queues_stop(v);
    v->status = 0;
    virtio_pci_irq_config_update(v);
    machine_remove_listener(v->pci.dev.machine, &v->listener);
    g_clear_pointer(&v->control_bh, aio_bh_delete);
    g_clear_pointer(&v->intx_bh, aio_bh_delete);
}

static void virtio_pci_unrealize(Object *obj)
{
    VirtioPci *v = (VirtioPci *)obj;

    virtio_pci_shut(v);
    g_clear_pointer(&v->set_up_error, g_free);
    queues_free(v);
}

/* ---- properties -------------------------------------------------------------------------- */

/* Of options that are known elsewhere only the value that we are is accepted. */
static bool check_is_off(Object *obj, const ObjProp *prop, const PropValue *value, GError **errp)
{
    (void)obj;
    if (value->b) {
        err_set(errp, "Property '%s' can't be on: not supported by this device", prop->name);
        return false;
    }
    return true;
}

static bool check_disable_legacy(Object *obj, const ObjProp *prop, const PropValue *value,
                                 GError **errp)
{
    (void)obj;
    (void)prop;
    if (value->e == ON_OFF_AUTO_OFF) {
        err_set(errp, "Property 'disable-legacy' can't be off: this is a VIRTIO 1.x device "
                "without the legacy interface");
        return false;
    }
    return true;
}

static const ObjProp virtio_pci_props[] = {
    { .name = "ioeventfd", .type = &prop_bool, PROP_FIELD(VirtioPci, use_ioeventfd), .def = "on",
      .help = "kicks signal an eventfd instead of leaving the guest" },
    { .name = "vectors", .type = &prop_u32, PROP_FIELD(VirtioPci, vectors), .def = "4294967295",
      .help = "MSI-X vectors, 0 for INTx only (default: one a queue and one)" },
    { .name = "event_idx", .type = &prop_bool, PROP_FIELD(VirtioPci, event_idx), .def = "on",
      .help = "offer VIRTIO_RING_F_EVENT_IDX" },
    { .name = "indirect_desc", .type = &prop_bool, PROP_FIELD(VirtioPci, indirect_desc),
      .def = "on", .help = "offer VIRTIO_RING_F_INDIRECT_DESC" },
    { .name = "disable-legacy", .type = &prop_on_off_auto,
      PROP_FIELD(VirtioPci, disable_legacy), .def = "auto", .check = check_disable_legacy,
      .help = "on or auto: there is no legacy interface" },
    { .name = "disable-modern", .type = &prop_bool, PROP_FIELD(VirtioPci, disable_modern),
      .def = "off", .check = check_is_off, .help = "off only" },
    { .name = "packed", .type = &prop_bool, PROP_FIELD(VirtioPci, packed),
      .def = "off", .check = check_is_off, .help = "off only: split virtqueues" },
    { .name = "iommu_platform", .type = &prop_bool, PROP_FIELD(VirtioPci, iommu_platform),
      .def = "off", .check = check_is_off, .help = "off only" },
    { .name = "ats", .type = &prop_bool, PROP_FIELD(VirtioPci, ats),
      .def = "off", .check = check_is_off, .help = "off only" },
    { .name = NULL },
};

static bool virtio_pci_check(Object *obj, GError **errp)
{
    const VirtioPci *v = (const VirtioPci *)obj;

    if (v->vectors != VIRTIO_PCI_VECTORS_AUTO && v->vectors > 2048) {
        err_set(errp, "Property 'vectors' is %u, but MSI-X has at most 2048", v->vectors);
        return false;
    }
    return true;
}

const ObjType type_virtio_pci = {
    .name = "virtio-pci",
    .parent = &type_pci_device,
    .size = sizeof(VirtioPci),
    .flags = OBJ_ABSTRACT,
    .props = virtio_pci_props,
    .check = virtio_pci_check,
    .complete = virtio_pci_complete,
    .unrealize = virtio_pci_unrealize,
};
