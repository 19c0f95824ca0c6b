/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Device discovery, reset, negotiation and configuration. The virtqueue is in virtqueue.c. */
#include <linux/pci_regs.h>

#include "console.h"
#include "mem.h"
#include "virtio.h"

#define VENDOR_VIRTIO       0x1af4
#define DEVICE_BLK          0x1042
#define DEVICE_BLK_TRANS    0x1001

static VirtioDev devs[MAX_DEVICES];
static unsigned ndevs;
static unsigned next_slot;

/* Location of one structure that a vendor capability describes (VIRTIO 1.2 §4.1.4). */
static volatile void *map_cap(const PciFunc *f, unsigned cap, uint32_t *len)
{
    uint32_t offset = pci_read32(f, cap + 8);

    *len = pci_read32(f, cap + 12);
    return pci_map_bar(f, pci_read8(f, cap + 4), offset, *len);
}

static void walk_caps(VirtioDev *d)
{
    const PciFunc *f = &d->pci;
    uint32_t len;
    unsigned cap = 0;

    while ((cap = pci_next_cap(f, cap, PCI_CAP_ID_VNDR)) != 0) {
        switch (pci_read8(f, cap + 3)) {
        case VIRTIO_PCI_CAP_COMMON_CFG:
            d->common = map_cap(f, cap, &len);
            break;
        case VIRTIO_PCI_CAP_ISR_CFG:
            d->isr = map_cap(f, cap, &len);
            break;
        case VIRTIO_PCI_CAP_DEVICE_CFG:
            d->config = map_cap(f, cap, &d->config_len);
            break;
        case VIRTIO_PCI_CAP_NOTIFY_CFG:
            d->notify = map_cap(f, cap, &d->notify_len);
            d->notify_multiplier = pci_read32(f, cap + 16);
            break;
        }
    }
}

static void map_msix(VirtioDev *d)
{
    const PciFunc *f = &d->pci;
    uint32_t where;

    d->msix_cap = pci_next_cap(f, 0, PCI_CAP_ID_MSIX);
    if (d->msix_cap == 0) {
        return;
    }
    d->msix_vectors = (pci_read16(f, d->msix_cap + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_QSIZE) + 1;
    where = pci_read32(f, d->msix_cap + PCI_MSIX_TABLE);
    d->msix_table = pci_map_bar(f, where & PCI_MSIX_TABLE_BIR, where & PCI_MSIX_TABLE_OFFSET,
                                d->msix_vectors * PCI_MSIX_ENTRY_SIZE);
    if (d->msix_table == NULL) {
        d->msix_cap = 0;
    }
}

static void probe_one(const PciFunc *f)
{
    VirtioDev *d = &devs[ndevs];
    uint16_t command;

    if (f->vendor != VENDOR_VIRTIO || ndevs == MAX_DEVICES ||
        (f->device != DEVICE_BLK && f->device != DEVICE_BLK_TRANS)) {
        return;
    }
    d->pci = *f;
    d->index = ndevs;
    d->transitional = f->device == DEVICE_BLK_TRANS;
    command = pci_read16(f, PCI_COMMAND);
    pci_write16(f, PCI_COMMAND, command | PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    walk_caps(d);
    map_msix(d);
    if (d->common == NULL || d->isr == NULL || d->config == NULL || d->notify == NULL) {
        fail_num("a virtio-blk device has no modern interface, PCI slot", f->slot);
    }
    ndevs++;
}

void virtio_probe(void)
{
    ndevs = 0;
    pci_scan(probe_one);
}

unsigned virtio_count(void)
{
    return ndevs;
}

VirtioDev *virtio_dev(unsigned i)
{
    return &devs[i];
}

uint8_t virtio_status(VirtioDev *d)
{
    return d->common->device_status;
}

void virtio_add_status(VirtioDev *d, uint8_t bits)
{
    d->common->device_status = d->common->device_status | bits;
}

bool virtio_reset(VirtioDev *d, uint64_t timeout_ms)
{
    uint64_t until = rdtsc() + ns_to_cycles(timeout_ms * 1000000);

    d->common->device_status = 0;
    while (d->common->device_status != 0) {
        if (rdtsc() > until) {
            return false;
        }
    }
    d->started = false;
    d->nvq = 0;
    return true;
}

void virtio_begin(VirtioDev *d, const Params *p)
{
    if (!virtio_reset(d, p->timeout_ms)) {
        fail_num("the device does not finish its reset, device", d->index);
    }
    virtio_add_status(d, VIRTIO_CONFIG_S_ACKNOWLEDGE);
    virtio_add_status(d, VIRTIO_CONFIG_S_DRIVER);
    d->common->device_feature_select = 0;
    d->offered = d->common->device_feature;
    d->common->device_feature_select = 1;
    d->offered |= (uint64_t)d->common->device_feature << 32;
    d->num_queues = d->common->num_queues;
}

uint64_t virtio_wanted(const Params *p)
{
    uint64_t f = F(VIRTIO_BLK_F_SIZE_MAX) | F(VIRTIO_BLK_F_SEG_MAX) | F(VIRTIO_BLK_F_GEOMETRY) |
                 F(VIRTIO_BLK_F_RO) | F(VIRTIO_BLK_F_BLK_SIZE) | F(VIRTIO_BLK_F_FLUSH) |
                 F(VIRTIO_BLK_F_TOPOLOGY) | F(VIRTIO_BLK_F_CONFIG_WCE) | F(VIRTIO_BLK_F_MQ) |
                 F(VIRTIO_BLK_F_DISCARD) | F(VIRTIO_BLK_F_WRITE_ZEROES) | F(VIRTIO_F_VERSION_1);

    if (p->event_idx) {
        f |= F(VIRTIO_RING_F_EVENT_IDX);
    }
    if (p->indirect) {
        f |= F(VIRTIO_RING_F_INDIRECT_DESC);
    }
    return f & ~p->deny;
}

void virtio_negotiate(VirtioDev *d, uint64_t features)
{
    d->accepted = features & d->offered;
    d->common->guest_feature_select = 0;
    d->common->guest_feature = d->accepted;
    d->common->guest_feature_select = 1;
    d->common->guest_feature = d->accepted >> 32;
    virtio_add_status(d, VIRTIO_CONFIG_S_FEATURES_OK);
    if (!(virtio_status(d) & VIRTIO_CONFIG_S_FEATURES_OK)) {
        fail_num("the device refuses the features, device", d->index);
    }
}

void virtio_run_begin(void)
{
    intx_reset();
    next_slot = 0;
}

/* The last message slot is the timer's. */
static unsigned take_slot(void)
{
    if (next_slot >= MSI_VECTORS - 1) {
        fail("out of interrupt vectors", NULL);
    }
    irq_count[next_slot] = 0;
    return next_slot++;
}

static void msix_aim(VirtioDev *d, unsigned entry, unsigned slot)
{
    volatile uint32_t *e = d->msix_table + entry * (PCI_MSIX_ENTRY_SIZE / 4);

    e[3] = PCI_MSIX_ENTRY_CTRL_MASKBIT;
    e[0] = msi_address();
    e[1] = 0;
    e[2] = msi_data(slot);
    e[3] = 0;
}

static void setup_msix(VirtioDev *d, unsigned vectors, unsigned nqueues)
{
    uint16_t flags = pci_read16(&d->pci, d->msix_cap + PCI_MSIX_FLAGS);
    unsigned slots[MAX_QUEUES + 1];

    vectors = MIN(MIN(vectors, d->msix_vectors), nqueues + 1);
    pci_write16(&d->pci, d->msix_cap + PCI_MSIX_FLAGS,
                (flags & ~PCI_MSIX_FLAGS_MASKALL) | PCI_MSIX_FLAGS_ENABLE);
    for (unsigned i = 0; i < vectors; i++) {
        slots[i] = take_slot();
        msix_aim(d, i, slots[i]);
    }
    d->common->msix_config = 0;
    if (d->common->msix_config != 0) {
        fail_num("the device refuses its configuration vector, device", d->index);
    }
    d->config_irqs = &irq_count[slots[0]];
    for (unsigned i = 0; i < nqueues; i++) {
        unsigned entry = vectors > nqueues ? 1 + i : vectors - 1;

        d->vq[i].irqs = &irq_count[slots[entry]];
        d->common->queue_select = i;
        d->common->queue_msix_vector = entry;
        if (d->common->queue_msix_vector != entry) {
            fail_num("the device refuses a queue's vector, queue", i);
        }
    }
}

void virtio_setup_irqs(VirtioDev *d, const Params *p, unsigned nqueues)
{
    uint16_t command = pci_read16(&d->pci, PCI_COMMAND), flags;
    unsigned n;

    if (d->msix_cap != 0 && p->vectors > 0) {
        pci_write16(&d->pci, PCI_COMMAND, command | PCI_COMMAND_INTX_DISABLE);
        setup_msix(d, p->vectors, nqueues);
        return;
    }
    if (d->msix_cap != 0) {
        flags = pci_read16(&d->pci, d->msix_cap + PCI_MSIX_FLAGS);
        pci_write16(&d->pci, d->msix_cap + PCI_MSIX_FLAGS, flags & ~PCI_MSIX_FLAGS_ENABLE);
    }
    n = intx_attach(d->isr, pci_read8(&d->pci, PCI_INTERRUPT_LINE), str_eq(p->irqchip, "ioapic"));
    pci_write16(&d->pci, PCI_COMMAND, command & ~PCI_COMMAND_INTX_DISABLE);
    d->config_irqs = &intx_config[n];
    for (unsigned i = 0; i < nqueues; i++) {
        d->vq[i].irqs = &intx_queue[n];
    }
}

void virtio_driver_ok(VirtioDev *d)
{
    virtio_add_status(d, VIRTIO_CONFIG_S_DRIVER_OK);
    d->started = true;
}

void virtio_start(VirtioDev *d, const Params *p, unsigned nqueues)
{
    virtio_begin(d, p);
    virtio_negotiate(d, virtio_wanted(p));
    if (nqueues > MIN(d->num_queues, MAX_QUEUES)) {
        fail_num("the device has fewer queues than asked for, it has", d->num_queues);
    }
    virtio_setup_irqs(d, p, nqueues);
    for (unsigned i = 0; i < nqueues; i++) {
        virtio_setup_queue(d, i, p->qsize);
    }
    virtio_driver_ok(d);
}

/* Fields are read in their own width, and only where their feature is offered (VIRTIO 1.2
 * §4.1.3.1). */
#define CONFIG_FIELD(field, feature) \
    { offsetof(struct virtio_blk_config, field), \
      sizeof(((struct virtio_blk_config *)0)->field), feature }

static const struct {
    uint8_t offset, size, feature;
} config_fields[] = {
    CONFIG_FIELD(size_max, VIRTIO_BLK_F_SIZE_MAX),
    CONFIG_FIELD(seg_max, VIRTIO_BLK_F_SEG_MAX),
    CONFIG_FIELD(geometry.cylinders, VIRTIO_BLK_F_GEOMETRY),
    CONFIG_FIELD(geometry.heads, VIRTIO_BLK_F_GEOMETRY),
    CONFIG_FIELD(geometry.sectors, VIRTIO_BLK_F_GEOMETRY),
    CONFIG_FIELD(blk_size, VIRTIO_BLK_F_BLK_SIZE),
    CONFIG_FIELD(physical_block_exp, VIRTIO_BLK_F_TOPOLOGY),
    CONFIG_FIELD(alignment_offset, VIRTIO_BLK_F_TOPOLOGY),
    CONFIG_FIELD(min_io_size, VIRTIO_BLK_F_TOPOLOGY),
    CONFIG_FIELD(opt_io_size, VIRTIO_BLK_F_TOPOLOGY),
    CONFIG_FIELD(wce, VIRTIO_BLK_F_CONFIG_WCE),
    CONFIG_FIELD(num_queues, VIRTIO_BLK_F_MQ),
    CONFIG_FIELD(max_discard_sectors, VIRTIO_BLK_F_DISCARD),
    CONFIG_FIELD(max_discard_seg, VIRTIO_BLK_F_DISCARD),
    CONFIG_FIELD(discard_sector_alignment, VIRTIO_BLK_F_DISCARD),
    CONFIG_FIELD(max_write_zeroes_sectors, VIRTIO_BLK_F_WRITE_ZEROES),
    CONFIG_FIELD(max_write_zeroes_seg, VIRTIO_BLK_F_WRITE_ZEROES),
    CONFIG_FIELD(write_zeroes_may_unmap, VIRTIO_BLK_F_WRITE_ZEROES),
};

static void read_field(VirtioDev *d, unsigned offset, unsigned size, void *to)
{
    volatile uint8_t *from = d->config + offset;
    uint32_t v = size == 1 ? *from :
                 size == 2 ? *(volatile uint16_t *)from : *(volatile uint32_t *)from;

    memcpy(to, &v, size);
}

void virtio_read_config(VirtioDev *d, struct virtio_blk_config *c)
{
    uint8_t generation, *to = (uint8_t *)c;

    memset(c, 0, sizeof(*c));
    do {
        generation = d->common->config_generation;
        read_field(d, 0, 4, to);            /* capacity, in two halves */
        read_field(d, 4, 4, to + 4);
        for (unsigned i = 0; i < ARRAY_SIZE(config_fields); i++) {
            unsigned at = config_fields[i].offset;

            if (d->offered & F(config_fields[i].feature)) {
                read_field(d, at, config_fields[i].size, to + at);
            }
        }
    } while (d->common->config_generation != generation);
}

uint64_t virtio_capacity(VirtioDev *d)
{
    struct virtio_blk_config c;

    virtio_read_config(d, &c);
    return c.capacity * 512;
}
