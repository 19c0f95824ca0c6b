/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers used wrongly: order of initialization, impossible values, odd widths. Most cases only
 * ask that the device and its VMM live and that a reset brings the device back; where VIRTIO 1.2
 * says what must not happen, that is checked.
 */
#include <linux/pci_regs.h>

#include "hostile.h"
#include "mem.h"

static void settle_ms(unsigned ms)
{
    uint64_t until = rdtsc() + tsc_khz * ms;

    while (rdtsc() < until) {
        cpu_pause();
    }
}

/* §3.1.1: the device does not touch a queue before DRIVER_OK. */
static const char *kick_before_driver_ok(Hostile *h)
{
    hostile_begin(h, true, false);
    hostile_kick(h);
    settle_ms(50);
    if (vq_used_idx(h->q) != 0) {
        return "served a queue before DRIVER_OK";
    }
    virtio_driver_ok(h->dev);
    *h->q->notify = 0;
    return hostile_outcome(h) == ANSWER_OK ? NULL : "did not serve after DRIVER_OK";
}

static const char *driver_ok_without_features(Hostile *h)
{
    virtio_reset(h->dev, h->p->timeout_ms);
    h->dev->common->device_status = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;
    virtio_setup_queue(h->dev, 0, 0);
    virtio_driver_ok(h->dev);
    *h->dev->vq[0].notify = 0;
    settle_ms(10);
    return NULL;
}

static const char *features_after_driver_ok(Hostile *h)
{
    hostile_begin(h, true, true);
    h->dev->common->guest_feature_select = 0;
    h->dev->common->guest_feature = 0;
    hostile_kick(h);
    settle_ms(10);
    return NULL;
}

/* §2.2.2: other than a subset of what is offered, nothing may get FEATURES_OK. */
static const char *feature_not_offered(Hostile *h)
{
    virtio_begin(h->dev, h->p);
    for (unsigned select = 0; select < 2; select++) {
        h->dev->common->guest_feature_select = select;
        h->dev->common->guest_feature = UINT32_MAX;
    }
    virtio_add_status(h->dev, VIRTIO_CONFIG_S_FEATURES_OK);
    return virtio_status(h->dev) & VIRTIO_CONFIG_S_FEATURES_OK ?
           "FEATURES_OK with features that it does not offer" : NULL;
}

static const char *feature_select_unknown(Hostile *h)
{
    virtio_begin(h->dev, h->p);
    h->dev->common->device_feature_select = 7;
    if (h->dev->common->device_feature != 0) {
        return "offers features beyond the 64 that there are";
    }
    h->dev->common->guest_feature_select = UINT32_MAX;
    h->dev->common->guest_feature = UINT32_MAX;
    return NULL;
}

static const char *queue_size_bad(Hostile *h)
{
    static const uint16_t sizes[] = { 0, 3, 129, 0x8000, 0xffff };

    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        hostile_begin(h, true, false);
        h->dev->common->queue_select = 0;
        h->dev->common->queue_enable = 0;
        h->dev->common->queue_size = sizes[i];
        h->dev->common->queue_enable = 1;
        virtio_driver_ok(h->dev);
        hostile_kick(h);
        settle_ms(5);
    }
    return NULL;
}

typedef enum RingPart { PART_DESC, PART_AVAIL, PART_USED, PART_COUNT } RingPart;

/* The queue's addresses, one of them wrong; then a kick. */
static unsigned ring_at(Hostile *h, RingPart part, uint64_t addr)
{
    volatile struct virtio_pci_common_cfg *c = h->dev->common;

    virtio_begin(h->dev, h->p);
    virtio_negotiate(h->dev, virtio_wanted(h->p));
    c->queue_select = 0;
    c->queue_desc_lo = part == PART_DESC ? addr : (uintptr_t)h->q->desc;
    c->queue_desc_hi = part == PART_DESC ? addr >> 32 : 0;
    c->queue_avail_lo = part == PART_AVAIL ? addr : (uintptr_t)h->q->avail;
    c->queue_avail_hi = part == PART_AVAIL ? addr >> 32 : 0;
    c->queue_used_lo = part == PART_USED ? addr : (uintptr_t)h->q->used;
    c->queue_used_hi = part == PART_USED ? addr >> 32 : 0;
    c->queue_enable = 1;
    virtio_driver_ok(h->dev);
    hostile_kick(h);
    settle_ms(5);
    return virtio_status(h->dev);
}

static const char *ring_everywhere(Hostile *h, uint64_t addr)
{
    for (RingPart part = PART_DESC; part < PART_COUNT; part++) {
        hostile_begin(h, true, false);
        ring_at(h, part, addr);
    }
    return NULL;
}

static const char *ring_outside_ram(Hostile *h)
{
    return ring_everywhere(h, NOWHERE);
}

static const char *ring_at_end_of_addresses(Hostile *h)
{
    return ring_everywhere(h, -(uint64_t)64);
}

static const char *ring_across_ram_end(Hostile *h)
{
    return ring_everywhere(h, h->ram_top - 16);
}

static const char *ring_in_registers(Hostile *h)
{
    return ring_everywhere(h, (uintptr_t)h->dev->common);
}

static const char *ring_unaligned(Hostile *h)
{
    uint8_t *area = mem_alloc(32768, 4096);

    for (RingPart part = PART_DESC; part < PART_COUNT; part++) {
        hostile_begin(h, true, false);
        ring_at(h, part, (uintptr_t)area + 1);
    }
    return NULL;
}

/* All three parts of the ring in the same memory. */
static const char *ring_overlaps(Hostile *h)
{
    hostile_begin(h, true, false);
    ring_at(h, PART_USED, (uintptr_t)h->q->desc);
    ring_at(h, PART_AVAIL, (uintptr_t)h->q->desc);
    ring_at(h, PART_USED, (uintptr_t)h->q->avail);
    return NULL;
}

static const char *queue_never_set_up(Hostile *h)
{
    virtio_begin(h->dev, h->p);
    virtio_negotiate(h->dev, virtio_wanted(h->p));
    h->dev->common->queue_select = 0;
    virtio_driver_ok(h->dev);
    *(volatile uint16_t *)h->dev->notify = 0;
    settle_ms(5);
    return NULL;
}

static const char *queue_enabled_twice(Hostile *h)
{
    hostile_begin(h, true, true);
    h->dev->common->queue_select = 0;
    h->dev->common->queue_desc_lo = NOWHERE & UINT32_MAX;
    h->dev->common->queue_desc_hi = NOWHERE >> 32;
    h->dev->common->queue_enable = 1;
    hostile_kick(h);
    settle_ms(5);
    return NULL;
}

/* §4.1.4.3: a queue that is not there has size 0. */
static const char *queue_select_unknown(Hostile *h)
{
    volatile struct virtio_pci_common_cfg *c = h->dev->common;

    hostile_begin(h, true, true);
    c->queue_select = 0xffff;
    if (c->queue_size != 0) {
        return "a queue that is not there has a size";
    }
    c->queue_size = 128;
    c->queue_msix_vector = 0;
    c->queue_desc_lo = 0x1000;
    c->queue_enable = 1;
    hostile_kick(h);
    return hostile_outcome(h) == ANSWER_OK ? NULL : "stopped serving the queue that is there";
}

static const char *notify_unknown_queue(Hostile *h)
{
    hostile_begin(h, true, true);
    for (unsigned at = 0; at + 4 <= MIN(h->dev->notify_len, 4096); at += 4) {
        *(volatile uint16_t *)(h->dev->notify + at) = 0xffff;
    }
    *(volatile uint8_t *)h->q->notify = 0xff;
    *(volatile uint32_t *)h->q->notify = UINT32_MAX;
    hostile_kick(h);
    return hostile_outcome(h) == ANSWER_OK ? NULL : "stopped serving the queue that is there";
}

/* §4.1.5.1.2: a vector that can't be had reads back as NO_VECTOR. */
static const char *vector_unknown(Hostile *h)
{
    hostile_begin(h, true, false);
    if (h->dev->msix_cap == 0) {
        return NULL;
    }
    h->dev->common->queue_select = 0;
    h->dev->common->queue_msix_vector = 0x7ff;
    h->dev->common->msix_config = 0x7ff;
    if (h->dev->common->queue_msix_vector != NO_VECTOR ||
        h->dev->common->msix_config != NO_VECTOR) {
        return "accepted a vector that it does not have";
    }
    virtio_driver_ok(h->dev);
    hostile_kick(h);
    return hostile_outcome(h) == ANSWER_OK ? NULL : "does not serve without a vector";
}

static const char *vector_garbage(Hostile *h)
{
    hostile_begin(h, true, true);
    for (unsigned i = 0; i < h->dev->msix_vectors && h->dev->msix_cap != 0; i++) {
        volatile uint32_t *e = h->dev->msix_table + 4 * i;

        e[0] = 0xfffffffc;
        e[1] = 0xffffffff;
        e[2] = 0xffffffff;
        e[3] = 0;
    }
    vq_irq_on(h->q);
    hostile_kick(h);
    return hostile_outcome(h) == ANSWER_OK ? NULL : "does not serve with a useless vector";
}

static const char *config_is_read_only(Hostile *h)
{
    hostile_begin(h, true, true);
    *(volatile uint32_t *)h->dev->config = 1;
    *(volatile uint32_t *)(h->dev->config + 4) = 1;
    return virtio_capacity(h->dev) / SECTOR == h->capacity ? NULL : "the capacity could be written";
}

static const char *config_past_end(Hostile *h)
{
    uint32_t len = MIN(h->dev->config_len, 4096);

    hostile_begin(h, true, true);
    for (uint32_t at = 0; at + 4 <= len; at += 4) {
        uint32_t v = *(volatile uint32_t *)(h->dev->config + at);

        *(volatile uint32_t *)(h->dev->config + at) = ~v;
    }
    hostile_kick(h);
    return hostile_outcome(h) == ANSWER_OK ? NULL : "stopped serving";
}

/* Every width at every offset of the common registers and the ISR. */
static const char *register_widths(Hostile *h)
{
    volatile uint8_t *regs = (volatile uint8_t *)h->dev->common;
    uint64_t sum = 0;

    hostile_begin(h, true, true);
    for (unsigned at = 0; at < 64; at++) {
        sum += regs[at];
        sum += *(volatile uint16_t *)(regs + at);
        sum += *(volatile uint32_t *)(regs + at);
        sum += *(volatile uint64_t *)(regs + at);
        regs[at] = sum;
        *(volatile uint16_t *)(regs + at) = sum;
        *(volatile uint32_t *)(regs + at) = sum;
        *(volatile uint64_t *)(regs + at) = sum;
    }
    sum += *(volatile uint32_t *)h->dev->isr;
    *h->dev->isr = sum;
    return NULL;
}

/* The window in configuration space (§4.1.4.9) with BARs, lengths and offsets that make no
 * sense. */
static const char *pci_window(Hostile *h)
{
    static const uint32_t values[] = { 0, 1, 2, 3, 4, 5, 8, 0xff };
    const PciFunc *f = &h->dev->pci;
    unsigned cap = 0;

    hostile_begin(h, true, true);
    while ((cap = pci_next_cap(f, cap, PCI_CAP_ID_VNDR)) != 0) {
        if (pci_read8(f, cap + 3) != VIRTIO_PCI_CAP_PCI_CFG) {
            continue;
        }
        for (unsigned i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(values); i++) {
            pci_write32(f, cap + 4, values[i / ARRAY_SIZE(values)]);
            pci_write32(f, cap + 12, values[i % ARRAY_SIZE(values)]);
            pci_write32(f, cap + 8, i & 1 ? 0xfffffffc : i & 2 ? 0x3ffe : 0x13);
            pci_read32(f, cap + 16);
            pci_write32(f, cap + 16, 0);
        }
    }
    return NULL;
}

static const char *config_space_garbage(Hostile *h)
{
    const PciFunc *f = &h->dev->pci;
    uint32_t bars[6];

    hostile_begin(h, true, true);
    for (unsigned i = 0; i < 6; i++) {
        bars[i] = pci_read32(f, PCI_BASE_ADDRESS_0 + 4 * i);
    }
    for (unsigned at = 0; at < 0x100; at += 4) {
        uint32_t v = pci_read32(f, at);

        if (at != PCI_COMMAND) {
            pci_write32(f, at, UINT32_MAX);
            pci_write32(f, at, v);
        }
    }
    for (unsigned i = 0; i < 6; i++) {
        pci_write32(f, PCI_BASE_ADDRESS_0 + 4 * i, bars[i]);
    }
    hostile_kick(h);
    return hostile_outcome(h) == ANSWER_OK ? NULL : "does not serve when all is as it was";
}

static const char *decoding_off(Hostile *h)
{
    const PciFunc *f = &h->dev->pci;
    uint16_t command = pci_read16(f, PCI_COMMAND);

    hostile_begin(h, true, true);
    pci_write16(f, PCI_COMMAND, command & ~(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER));
    hostile_kick(h);
    settle_ms(5);
    pci_write16(f, PCI_COMMAND, command);
    return NULL;
}

static const char *status_garbage(Hostile *h)
{
    static const uint8_t values[] = { 0xff, 0x80, 0x40, 0x04, 0x0b, 0x01, 0x08 };

    for (unsigned i = 0; i < ARRAY_SIZE(values); i++) {
        hostile_begin(h, true, true);
        hostile_kick(h);
        h->dev->common->device_status = values[i];
        *h->q->notify = 0;
        settle_ms(1);
    }
    return NULL;
}

static const char *reset_storm(Hostile *h)
{
    for (unsigned i = 0; i < 20; i++) {
        hostile_begin(h, i & 1, true);
        hostile_kick(h);
        for (unsigned k = 0; k < 10; k++) {
            h->dev->common->device_status = 0;
            *h->q->notify = 0;
        }
    }
    return NULL;
}

/* One queue breaks while the device waits, for its reset, for a slow request of another. */
static const char *broken_while_resetting(Hostile *h)
{
    Vq *second;

    hostile_begin(h, true, false);
    if (h->dev->num_queues < 2) {
        return NULL;
    }
    second = virtio_setup_queue(h->dev, 1, 0);
    virtio_driver_ok(h->dev);
    hostile_kick(h);
    settle_ms(1);
    h->dev->common->device_status = 0;
    for (unsigned i = 1; i <= 20; i++) {
        second->avail->ring[0] = 0xffff;
        __atomic_store_n(&second->avail->idx, i, __ATOMIC_RELEASE);
        *second->notify = 1;
        settle_ms(1);
    }
    return NULL;
}

const RegisterCase register_cases[] = {
    { "kick-before-driver-ok", kick_before_driver_ok },
    { "driver-ok-without-features", driver_ok_without_features },
    { "features-after-driver-ok", features_after_driver_ok },
    { "feature-not-offered", feature_not_offered },
    { "feature-select-unknown", feature_select_unknown },
    { "queue-size-bad", queue_size_bad },
    { "ring-outside-ram", ring_outside_ram },
    { "ring-at-end-of-addresses", ring_at_end_of_addresses },
    { "ring-across-ram-end", ring_across_ram_end },
    { "ring-in-registers", ring_in_registers },
    { "ring-unaligned", ring_unaligned },
    { "ring-overlaps", ring_overlaps },
    { "queue-never-set-up", queue_never_set_up },
    { "queue-enabled-twice", queue_enabled_twice },
    { "queue-select-unknown", queue_select_unknown },
    { "notify-unknown-queue", notify_unknown_queue },
    { "vector-unknown", vector_unknown },
    { "vector-garbage", vector_garbage },
    { "config-is-read-only", config_is_read_only },
    { "config-past-end", config_past_end },
    { "register-widths", register_widths },
    { "pci-window", pci_window },
    { "config-space-garbage", config_space_garbage },
    { "decoding-off", decoding_off },
    { "status-garbage", status_garbage },
    { "reset-storm", reset_storm },
    { "broken-while-resetting", broken_while_resetting },
};
const unsigned register_case_count = ARRAY_SIZE(register_cases);
