/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request path, step 6 of 6: the interrupt. With MSI-X one write to an eventfd
 * that the kernel injects by itself; without, the ISR byte and the pin, which
 * the main thread sets.
 * Before: virtio/virtqueue.c.
 */
#include <linux/virtio_config.h>
#include <unistd.h>

#include "trace/trace-hw-virtio.h"
#include "util/err.h"
#include "virtio-pci-priv.h"

/* Any thread. */
static void intx_raise(VirtioPci *v, uint8_t bit)
{
    __atomic_fetch_or(&v->isr, bit, __ATOMIC_SEQ_CST);
    aio_bh_schedule(v->intx_bh);
}

/* Main thread. The driver may have taken the bits meanwhile. */
void virtio_pci_intx_update(void *opaque)
{
    VirtioPci *v = opaque;

    pci_irq_set(&v->pci, __atomic_load_n(&v->isr, __ATOMIC_SEQ_CST) != 0);
}

void virtio_pci_queue_interrupt(VirtioPci *v, unsigned i)
{
    VirtioPciQueue *q = &v->queues[i];

    if (G_LIKELY(q->call_fd >= 0)) {
        pci_msix_raise(q->call_fd);
    } else if (q->intx) {
        intx_raise(v, 1);
    }
}

/*
 * The vector of configuration changes stays in use while the driver may want it: what
 * is raised while it is masked waits in it. Main thread.
 */
void virtio_pci_irq_config_update(VirtioPci *v)
{
    bool on = pci_msix_enabled(&v->pci) && (v->status & VIRTIO_CONFIG_S_DRIVER_OK);
    unsigned vector = on ? v->config_vector : VIRTIO_MSI_NO_VECTOR;
    unsigned old = v->config_used_vector;

    if (vector == old) {
        return;
    }
    v->config_fd = vector != VIRTIO_MSI_NO_VECTOR ? pci_msix_use(&v->pci, vector) : -1;
    v->config_used_vector = v->config_fd >= 0 ? vector : VIRTIO_MSI_NO_VECTOR;
    if (old != VIRTIO_MSI_NO_VECTOR) {
        pci_msix_unuse(&v->pci, old);
    }
}

void virtio_pci_config_changed(VirtioPci *v)
{
    v->config_generation++;
    if (!(v->status & VIRTIO_CONFIG_S_DRIVER_OK)) {
        return;
    }
    trace_virtio_config_changed(v, v->config_generation);
    virtio_pci_irq_config_update(v);
    if (!pci_msix_enabled(&v->pci)) {
        intx_raise(v, 2);
    } else if (v->config_fd >= 0) {
        pci_msix_raise(v->config_fd);
    }
}

/* ---- which eventfd a queue writes: changed in the queue's home thread -------- */

typedef struct CallChange {
    VirtioPciQueue *q;
    int fd;
    bool intx;
} CallChange;

static void call_change(void *opaque)
{
    CallChange *c = opaque;

    c->q->call_fd = c->fd;
    c->q->intx = c->intx;
}

/* Main thread. */
static void queue_call_set(VirtioPci *v, unsigned i, unsigned vector, bool intx)
{
    VirtioPciQueue *q = &v->queues[i];
    unsigned old = q->used_vector;
    CallChange c = { q, -1, intx };

    if (vector != VIRTIO_MSI_NO_VECTOR) {
        c.fd = pci_msix_use(&v->pci, vector);
        if (c.fd < 0) {
            report_warning("%s: no interrupt for queue %u: %s", device_name(&v->pci.dev), i,
                           g_strerror(-c.fd));
            vector = VIRTIO_MSI_NO_VECTOR;
            c.fd = -1;
        }
    }
    aio_run_sync(v->cls->queue_context(v, i), call_change, &c);
    q->used_vector = vector;
    if (old != VIRTIO_MSI_NO_VECTOR) {
        pci_msix_unuse(&v->pci, old);
    }
}

void virtio_pci_irq_queue_update(VirtioPci *v, unsigned i)
{
    VirtioPciQueue *q = &v->queues[i];
    bool msix = pci_msix_enabled(&v->pci);
    unsigned vector = msix ? q->vector : VIRTIO_MSI_NO_VECTOR;

    if (vector != q->used_vector || q->intx != !msix) {
        queue_call_set(v, i, vector, !msix);
    }
}

void virtio_pci_irq_queue_release(VirtioPci *v, unsigned i)
{
    queue_call_set(v, i, VIRTIO_MSI_NO_VECTOR, false);
}
