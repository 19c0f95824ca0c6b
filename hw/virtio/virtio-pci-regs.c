/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The registers that a driver sees (VIRTIO 1.2 §4.1.4). They take notes; what
 * follows from them is done in virtio-pci.c.
 */
#include <linux/pci_regs.h>
#include <linux/virtio_config.h>
#include <linux/virtio_pci.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace-hw-virtio.h"
#include "virtio-pci-priv.h"

/* Before VIRTIO_F_RING_RESET and queue_notify_data there was this much. */
#define COMMON_SIZE sizeof(struct virtio_pci_common_cfg)

uint64_t virtio_pci_offered(VirtioPci *v)
{
    uint64_t f = v->cls->features(v) | UINT64_C(1) << VIRTIO_F_VERSION_1;

    if (v->event_idx) {
        f |= UINT64_C(1) << VIRTIO_RING_F_EVENT_IDX;
    }
    if (v->indirect_desc) {
        f |= UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC;
    }
    return f;
}

/* The selected queue; NULL when there is none of that number. */
static VirtioPciQueue *queue_selected(VirtioPci *v)
{
    return v->queue_select < v->num_queues ? &v->queues[v->queue_select] : NULL;
}

/* ---- common configuration ---------------------------------------------------- */

static void common_fill(VirtioPci *v, struct virtio_pci_common_cfg *c)
{
    const VirtioPciQueue *q = queue_selected(v);
    uint64_t offered = virtio_pci_offered(v);

    memset(c, 0, sizeof(*c));
    c->device_feature_select = v->device_feature_select;
    c->device_feature = v->device_feature_select < 2
        ? (uint32_t)(offered >> (32 * v->device_feature_select)) : 0;
    c->guest_feature_select = v->driver_feature_select;
    c->guest_feature = v->driver_feature_select < 2
        ? (uint32_t)(v->features >> (32 * v->driver_feature_select)) : 0;
    c->msix_config = v->config_vector;
    c->num_queues = v->num_queues;
    c->device_status = v->status;
    c->config_generation = v->config_generation;
    c->queue_select = v->queue_select;
    if (q != NULL) {
        c->queue_size = q->size;
        c->queue_msix_vector = q->vector;
        c->queue_enable = q->enabled;
        c->queue_notify_off = v->queue_select;
        c->queue_desc_lo = (uint32_t)q->desc;
        c->queue_desc_hi = q->desc >> 32;
        c->queue_avail_lo = (uint32_t)q->avail;
        c->queue_avail_hi = q->avail >> 32;
        c->queue_used_lo = (uint32_t)q->used;
        c->queue_used_hi = q->used >> 32;
    } else {
        c->queue_msix_vector = VIRTIO_MSI_NO_VECTOR;
    }
}

static uint64_t common_read(VirtioPci *v, unsigned off, unsigned size)
{
    struct virtio_pci_common_cfg c;
    uint64_t value = 0;

    if (off + size > COMMON_SIZE) {
        return 0;
    }
    common_fill(v, &c);
    memcpy(&value, (uint8_t *)&c + off, size);  /* x86 guests: little-endian as we are */
    return value;
}

/* Features are fixed once FEATURES_OK is set (§3.1.1). */
static void write_driver_feature(VirtioPci *v, uint32_t value)
{
    unsigned shift = 32 * v->driver_feature_select;

    if (v->driver_feature_select < 2 && !(v->status & VIRTIO_CONFIG_S_FEATURES_OK)) {
        v->features = (v->features & ~(UINT64_C(0xffffffff) << shift)) | (uint64_t)value << shift;
    }
}

static void write_status(VirtioPci *v, uint8_t value)
{
    trace_virtio_set_status(v, value);
    if (value == 0) {
        virtio_pci_reset_request(v);
        return;
    }
    /* Bits are only ever added; NEEDS_RESET is ours. */
    value = (value & ~VIRTIO_CONFIG_S_NEEDS_RESET) | v->status;
    if ((value & ~v->status & VIRTIO_CONFIG_S_FEATURES_OK)
        && ((v->features & ~virtio_pci_offered(v)) != 0
            || !(v->features & UINT64_C(1) << VIRTIO_F_VERSION_1))) {
        value &= ~VIRTIO_CONFIG_S_FEATURES_OK;
    }
    if ((value & ~v->status & VIRTIO_CONFIG_S_DRIVER_OK)
        && !(value & VIRTIO_CONFIG_S_FEATURES_OK)) {
        virtio_pci_queue_broken(v, 0, "DRIVER_OK without FEATURES_OK");
    }
    v->status = value;
    virtio_pci_control(v);
}

static uint64_t half(uint64_t old, uint32_t value, bool high)
{
    return high ? (old & 0xffffffff) | (uint64_t)value << 32
                : (old & ~UINT64_C(0xffffffff)) | value;
}

static void write_queue(VirtioPci *v, VirtioPciQueue *q, unsigned off, uint32_t value)
{
    switch (off) {
    case VIRTIO_PCI_COMMON_Q_MSIX:
        q->vector = value < pci_msix_vectors(&v->pci) ? value : VIRTIO_MSI_NO_VECTOR;
        virtio_pci_control(v);
        return;
    case VIRTIO_PCI_COMMON_Q_ENABLE:
        if (value == 1) {
            q->enabled = true;
            virtio_pci_control(v);
        }
        return;
    default:
        break;
    }
    if (q->enabled) {
        return;                         /* §4.1.4.3.2: set up before enabling */
    }
    switch (off) {
    case VIRTIO_PCI_COMMON_Q_SIZE:
        if (value != 0 && value <= v->queue_size && (value & (value - 1)) == 0) {
            q->size = value;
        }
        break;
    case VIRTIO_PCI_COMMON_Q_DESCLO:
    case VIRTIO_PCI_COMMON_Q_DESCHI:
        q->desc = half(q->desc, value, off == VIRTIO_PCI_COMMON_Q_DESCHI);
        break;
    case VIRTIO_PCI_COMMON_Q_AVAILLO:
    case VIRTIO_PCI_COMMON_Q_AVAILHI:
        q->avail = half(q->avail, value, off == VIRTIO_PCI_COMMON_Q_AVAILHI);
        break;
    case VIRTIO_PCI_COMMON_Q_USEDLO:
    case VIRTIO_PCI_COMMON_Q_USEDHI:
        q->used = half(q->used, value, off == VIRTIO_PCI_COMMON_Q_USEDHI);
        break;
    default:
        break;
    }
}

static void common_write(VirtioPci *v, unsigned off, uint64_t value)
{
    VirtioPciQueue *q = queue_selected(v);

    if (v->reset_pending) {
        return;                         /* the driver has to wait for status 0 */
    }
    switch (off) {
    case VIRTIO_PCI_COMMON_DFSELECT:
        v->device_feature_select = value;
        break;
    case VIRTIO_PCI_COMMON_GFSELECT:
        v->driver_feature_select = value;
        break;
    case VIRTIO_PCI_COMMON_GF:
        write_driver_feature(v, value);
        break;
    case VIRTIO_PCI_COMMON_MSIX:
        v->config_vector = value < pci_msix_vectors(&v->pci) ? value : VIRTIO_MSI_NO_VECTOR;
        virtio_pci_control(v);
        break;
    case VIRTIO_PCI_COMMON_STATUS:
        write_status(v, value);
        break;
    case VIRTIO_PCI_COMMON_Q_SELECT:
        v->queue_select = value;
        break;
    default:
        if (q != NULL) {
            write_queue(v, q, off, value);
        }
        break;
    }
}

/* ---- the other areas ------------------------------------------------------------ */

static uint64_t device_read(VirtioPci *v, unsigned off, unsigned size)
{
    uint8_t buf[VIRTIO_PCI_CONFIG_MAX];
    uint64_t value = 0;

    if (off + size > v->cls->config_size) {
        return 0;
    }
    v->cls->get_config(v, buf);
    memcpy(&value, buf + off, size);
    return value;
}

static void device_write(VirtioPci *v, unsigned off, uint64_t value, unsigned size)
{
    if (v->reset_pending || off + size > v->cls->config_size) {
        return;
    }
    for (unsigned i = 0; i < size; i++) {
        v->cls->set_config_byte(v, off + i, value >> (8 * i));
    }
}

/* Reading takes the bits and lets go of the pin (§4.1.4.5). */
static uint64_t isr_read(VirtioPci *v)
{
    uint8_t isr = __atomic_exchange_n(&v->isr, 0, __ATOMIC_SEQ_CST);

    pci_irq_set(&v->pci, false);
    return isr;
}

/* A doorbell that the accelerator didn't take. */
static void notify_write(VirtioPci *v, unsigned off)
{
    unsigned i = off / NOTIFY_MULT;

    if (i < v->num_queues) {
        uint64_t one = 1;
        ssize_t n = write(v->queues[i].kick_fd, &one, sizeof(one));

        (void)n;                        /* full: it is signalled already */
    }
}

static uint64_t bar_read(void *opaque, uint64_t off, unsigned size)
{
    VirtioPci *v = opaque;
    unsigned in = off % AREA_SIZE;

    switch (off - in) {
    case COMMON_OFF:
        return common_read(v, in, size);
    case ISR_OFF:
        return in == 0 ? isr_read(v) : 0;
    case DEVICE_OFF:
        return device_read(v, in, size);
    default:
        return 0;
    }
}

static void bar_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    VirtioPci *v = opaque;
    unsigned in = off % AREA_SIZE;

    switch (off - in) {
    case COMMON_OFF:
        common_write(v, in, value);
        break;
    case DEVICE_OFF:
        device_write(v, in, value, size);
        break;
    case NOTIFY_OFF:
        notify_write(v, in);
        break;
    default:
        break;
    }
}

const IoOps virtio_pci_bar_ops = {
    .name = "virtio-pci",
    .read = bar_read,
    .write = bar_write,
    .max_size = 4,                      /* §4.1.3.1: 64-bit fields are two halves */
};

/* ---- capabilities ------------------------------------------------------------------ */

static uint8_t cap_add(VirtioPci *v, uint8_t type, unsigned len, uint32_t off, uint32_t size)
{
    uint8_t at = pci_cap_add(&v->pci, PCI_CAP_ID_VNDR, len);
    uint8_t *c = v->pci.config + at;

    c[offsetof(struct virtio_pci_cap, cap_len)] = len;
    c[offsetof(struct virtio_pci_cap, cfg_type)] = type;
    c[offsetof(struct virtio_pci_cap, bar)] = size != 0 ? VIRTIO_PCI_BAR : 0;
    pci_config_set32(&v->pci, at + offsetof(struct virtio_pci_cap, offset), off);
    pci_config_set32(&v->pci, at + offsetof(struct virtio_pci_cap, length), size);
    return at;
}

void virtio_pci_caps_add(VirtioPci *v)
{
    unsigned len = sizeof(struct virtio_pci_cap);
    uint8_t at;

    cap_add(v, VIRTIO_PCI_CAP_COMMON_CFG, len, COMMON_OFF, AREA_SIZE);
    cap_add(v, VIRTIO_PCI_CAP_ISR_CFG, len, ISR_OFF, AREA_SIZE);
    cap_add(v, VIRTIO_PCI_CAP_DEVICE_CFG, len, DEVICE_OFF, AREA_SIZE);
    at = cap_add(v, VIRTIO_PCI_CAP_NOTIFY_CFG, sizeof(struct virtio_pci_notify_cap),
                 NOTIFY_OFF, AREA_SIZE);
    pci_config_set32(&v->pci, at + offsetof(struct virtio_pci_notify_cap,
                                            notify_off_multiplier), NOTIFY_MULT);
    at = cap_add(v, VIRTIO_PCI_CAP_PCI_CFG, len + 4, 0, 0);
    v->cfg_cap = at;
    /* The driver aims the window: BAR, offset, length, then the data. */
    v->pci.wmask[at + offsetof(struct virtio_pci_cap, bar)] = 0xff;
    memset(v->pci.wmask + at + offsetof(struct virtio_pci_cap, offset), 0xff, 12);
}

/* Does this access touch the window's data, and is the window aimed at us? */
static bool cfg_window(VirtioPci *v, unsigned off, unsigned size, uint32_t *bar_off,
                       uint32_t *len)
{
    const uint8_t *c = v->pci.config + v->cfg_cap;
    unsigned data = v->cfg_cap + sizeof(struct virtio_pci_cap);

    if (off + size <= data || off >= data + 4) {
        return false;
    }
    *bar_off = pci_config_get32(&v->pci, v->cfg_cap + offsetof(struct virtio_pci_cap, offset));
    *len = pci_config_get32(&v->pci, v->cfg_cap + offsetof(struct virtio_pci_cap, length));
    return c[offsetof(struct virtio_pci_cap, bar)] == VIRTIO_PCI_BAR
        && (*len == 1 || *len == 2 || *len == 4) && *bar_off % *len == 0
        && *bar_off <= VIRTIO_PCI_BAR_SIZE - *len;
}

void virtio_pci_cfg_read(PciDevice *dev, unsigned off, unsigned size)
{
    VirtioPci *v = (VirtioPci *)dev;
    uint32_t bar_off, len;

    if (cfg_window(v, off, size, &bar_off, &len)) {
        pci_config_set32(dev, v->cfg_cap + sizeof(struct virtio_pci_cap),
                         bar_read(v, bar_off, len));
    }
}

void virtio_pci_cfg_written(PciDevice *dev, unsigned off, unsigned size)
{
    VirtioPci *v = (VirtioPci *)dev;
    uint32_t bar_off, len;

    if (cfg_window(v, off, size, &bar_off, &len)) {
        uint32_t value = pci_config_get32(dev, v->cfg_cap + sizeof(struct virtio_pci_cap));

        bar_write(v, bar_off, len == 4 ? value : value & ((1u << (8 * len)) - 1), len);
    }
}
