/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small operations: what the device says of itself, and what it does on request. */
#include <stddef.h>

#include "blkio.h"
#include "console.h"
#include "mem.h"
#include "ops.h"

static void print_config(const VirtioDev *d, const struct virtio_blk_config *c)
{
    out_u64("capacity", c->capacity * SECTOR);
    out_u64("size_max", c->size_max);
    out_u64("seg_max", c->seg_max);
    out_u64("blk_size", c->blk_size);
    out_u64("physical_block_exp", c->physical_block_exp);
    out_u64("min_io_size", c->min_io_size);
    out_u64("opt_io_size", c->opt_io_size);
    out_u64("wce", c->wce);
    out_u64("config_num_queues", c->num_queues);
    out_u64("max_discard_sectors", c->max_discard_sectors);
    out_u64("max_discard_seg", c->max_discard_seg);
    out_u64("discard_sector_alignment", c->discard_sector_alignment);
    out_u64("max_write_zeroes_sectors", c->max_write_zeroes_sectors);
    out_u64("max_write_zeroes_seg", c->max_write_zeroes_seg);
    out_u64("write_zeroes_may_unmap", c->write_zeroes_may_unmap);
    out_bool("read_only", d->offered & F(VIRTIO_BLK_F_RO));
}

static void print_device(VirtioDev *d, const Params *p)
{
    struct virtio_blk_config c;

    virtio_begin(d, p);
    virtio_read_config(d, &c);
    out_begin(p->op);
    out_u64("devices", virtio_count());
    out_u64("dev", d->index);
    out_u64("bus", d->pci.bus);
    out_u64("slot", d->pci.slot);
    out_u64("function", d->pci.fn);
    out_u64("pci_device", d->pci.device);
    out_bool("transitional", d->transitional);
    out_hex("features", d->offered);
    out_u64("num_queues", d->num_queues);
    out_array_begin("queue_sizes");
    for (unsigned i = 0; i < d->num_queues && i < MAX_QUEUES; i++) {
        d->common->queue_select = i;
        out_array_u64(d->common->queue_size);
    }
    out_array_end();
    out_u64("vectors", d->msix_vectors);
    out_hex("common_at", (uintptr_t)d->common);
    out_u64("interrupt_line", pci_read8(&d->pci, 0x3c));
    print_config(d, &c);
    out_u64("tsc_khz", tsc_khz);
    out_str("tsc_source", tsc_source);
    out_u64("ram_end", mem_end());
    out_u64("errors", 0);
    out_end();
    virtio_reset(d, p->timeout_ms);
}

uint64_t op_info(const Params *p)
{
    unsigned printed = 0;

    for (unsigned i = 0; i < virtio_count(); i++) {
        if (p->dev.bits >> i & 1) {
            print_device(virtio_dev(i), p);
            printed++;
        }
    }
    if (printed == 0) {
        fail_num("no such virtio-blk device; there are", virtio_count());
    }
    return 0;
}

uint64_t op_getid(const Params *p)
{
    VirtioDev *d = op_device(p);
    char id[VIRTIO_BLK_ID_BYTES + 1];
    uint64_t errors = 0;
    int status;
    BlkQ q;

    virtio_start(d, p, 1);
    blkq_init(&q, &d->vq[0], 1, 1, VIRTIO_BLK_ID_BYTES + 8);
    memset(q.slots[0].data, 0xee, VIRTIO_BLK_ID_BYTES + 8);
    status = blkq_sync(&q, VIRTIO_BLK_T_GET_ID, 0,
                       &(Seg) { q.slots[0].data, VIRTIO_BLK_ID_BYTES, true }, 1, p->timeout_ms);
    errors = status != VIRTIO_BLK_S_OK;
    for (unsigned i = 0; i < 8; i++) {
        errors += q.slots[0].data[VIRTIO_BLK_ID_BYTES + i] != 0xee;
    }
    memcpy(id, q.slots[0].data, VIRTIO_BLK_ID_BYTES);
    id[VIRTIO_BLK_ID_BYTES] = '\0';
    out_begin(p->op);
    out_str("id", status == VIRTIO_BLK_S_OK ? id : "");
    out_u64("status", (uint8_t)status);
    out_u64("errors", errors);
    out_end();
    return errors;
}

/* Flip the write cache with writes in flight, and flush on each side. */
static uint64_t flip_cache(const Params *p, VirtioDev *d, BlkQ *q, bool on)
{
    volatile uint8_t *wce = d->config + offsetof(struct virtio_blk_config, wce);
    uint64_t last = rdtsc(), errors = 0;
    unsigned busy = q->nslots - 1;
    Slot *s;

    for (unsigned i = 1; i < q->nslots; i++) {
        Seg seg = { q->slots[i].data, p->bs, false };

        slot_describe(q, &q->slots[i], &seg, 1);
        slot_submit(q, &q->slots[i], VIRTIO_BLK_T_OUT, i * p->bs / SECTOR);
    }
    vq_publish(q->vq);
    *wce = on;
    errors += *wce != on;
    while (busy > 0) {
        if ((s = blkq_reap(q)) != NULL) {
            errors += s->head->status != VIRTIO_BLK_S_OK;
            busy--;
        } else if (rdtsc() - last > tsc_khz * p->timeout_ms) {
            blkq_stalled(q, p->op);
        }
    }
    return errors + (blkq_sync(q, VIRTIO_BLK_T_FLUSH, 0, NULL, 0, p->timeout_ms) != 0);
}

uint64_t op_wce(const Params *p)
{
    VirtioDev *d = op_device(p);
    uint64_t flips = p->count != 0 ? p->count : 2, errors = 0;
    struct virtio_blk_config c;
    BlkQ q;

    virtio_start(d, p, 1);
    if (!(d->accepted & F(VIRTIO_BLK_F_CONFIG_WCE))) {
        fail("the device does not offer to change its write cache", NULL);
    }
    virtio_read_config(d, &c);
    blkq_init(&q, &d->vq[0], p->qd + 1, 1, p->bs);
    if (c.capacity < (p->qd + 1) * p->bs / SECTOR) {
        fail("the disk is too small for qd", NULL);
    }
    for (uint64_t i = 0; i < flips; i++) {
        errors += flip_cache(p, d, &q, c.wce ^ (~i & 1));
    }
    out_begin(p->op);
    out_u64("before", c.wce);
    out_u64("flips", flips);
    out_u64("after", d->config[offsetof(struct virtio_blk_config, wce)]);
    out_u64("errors", errors);
    out_end();
    return errors;
}

uint64_t op_watch(const Params *p)
{
    uint64_t begin = rdtsc(), seen, changes = 0, capacity, before;
    VirtioDev *d = op_device(p);

    virtio_start(d, p, 1);
    seen = *d->config_irqs;
    capacity = before = virtio_capacity(d);
    out_begin("begin");
    out_str("of", p->op);
    out_u64("capacity", capacity);
    out_end();
    while (rdtsc() - begin < tsc_khz * p->seconds_ms && (p->count == 0 || changes < p->count)) {
        if (*d->config_irqs == seen) {
            cpu_pause();
            continue;
        }
        seen = *d->config_irqs;
        changes++;
        capacity = virtio_capacity(d);
        out_begin("config");
        out_u64("capacity", capacity);
        out_u64("interrupts", seen);
        out_hex("device_status", virtio_status(d));
        out_end();
    }
    out_begin(p->op);
    out_u64("changes", changes);
    out_u64("capacity_before", before);
    out_u64("capacity", virtio_capacity(d));
    out_u64("errors", p->count != 0 && changes < p->count);
    out_end();
    return p->count != 0 && changes < p->count;
}

/* Devices started, nothing asked of them, the vCPU halted but for a tick every 100 ms. */
uint64_t op_idle(const Params *p)
{
    uint64_t begin, until;

    for (unsigned i = 0; i < virtio_count(); i++) {
        if (p->dev.bits >> i & 1) {
            virtio_start(virtio_dev(i), p, p->queues);
        }
    }
    lapic_timer(100);
    out_begin("begin");
    out_str("of", p->op);
    out_end();
    begin = rdtsc();
    until = begin + tsc_khz * p->seconds_ms;
    while (rdtsc() < until) {
        cpu_wait_irq(irq_total);
    }
    lapic_timer(0);
    out_begin(p->op);
    out_u64("elapsed_ns", cycles_to_ns(rdtsc() - begin));
    out_u64("errors", 0);
    out_end();
    return 0;
}

/* Two lines, @seconds apart by the guest's clock, for a host that has a watch. */
uint64_t op_clock(const Params *p)
{
    uint64_t begin = rdtsc();

    out_begin("begin");
    out_str("of", p->op);
    out_end();
    while (rdtsc() - begin < tsc_khz * p->seconds_ms) {
        cpu_pause();
    }
    out_begin(p->op);
    out_u64("elapsed_ns", cycles_to_ns(rdtsc() - begin));
    out_u64("errors", 0);
    out_end();
    return 0;
}

uint64_t op_fault(const Params *p)
{
    out_begin(p->op);
    out_u64("errors", 0);
    out_end();
    *(volatile uint8_t *)(1ull << 46) = 0;
    return 1;
}
