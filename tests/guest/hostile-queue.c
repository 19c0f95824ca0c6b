/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Malformed requests. Each function spoils the good read that hostile_begin() laid out in
 * descriptors 0 (header), 1 (4096 bytes of data) and 2 (status), and in the indirect table. VIRTIO
 * 1.2 §2.7.5, §2.7.13, §5.2.6.
 */
#include "hostile.h"
#include "mem.h"

#define REFUSED (ANSWER_ERROR | NEEDS_RESET)
/* Where the status byte can't be found, an answer without one is all that is possible. */
#define MUTE    (ANSWER_ERROR | ANSWER_NONE | NEEDS_RESET)

static void set_type(Hostile *h, uint32_t type, uint64_t sector)
{
    h->head->hdr.type = type;
    h->head->hdr.sector = sector;
}

/* Data flows from driver to device. */
static void make_write(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_OUT, 0);
    h->desc[1].flags = VRING_DESC_F_NEXT;
}

/* The chain is one indirect descriptor; the table holds the good read. */
static void make_indirect(Hostile *h, uint32_t entries)
{
    h->desc[0] = (struct vring_desc) { (uintptr_t)h->table, entries * sizeof(h->table[0]),
                                       VRING_DESC_F_INDIRECT, 0 };
}

/* -- the shape of chains -- */

static void desc_loop(Hostile *h)
{
    h->desc[2].flags |= VRING_DESC_F_NEXT;
    h->desc[2].next = 1;
}

static void desc_loop_readable(Hostile *h)
{
    h->desc[1].flags = VRING_DESC_F_NEXT;
    h->desc[1].next = 0;
}

static void desc_self_loop(Hostile *h)
{
    h->desc[0].next = 0;
}

static void head_out_of_range(Hostile *h)
{
    h->q->avail->ring[0] = h->q->size;
}

static void head_65535(Hostile *h)
{
    h->q->avail->ring[0] = 0xffff;
}

static void next_out_of_range(Hostile *h)
{
    h->desc[0].next = h->q->size;
}

static void next_65535(Hostile *h)
{
    h->desc[1].next = 0xffff;
}

static void head_in_middle(Hostile *h)
{
    h->q->avail->ring[0] = 1;
}

static void readable_after_writable(Hostile *h)
{
    h->desc[2].flags |= VRING_DESC_F_NEXT;
    h->desc[2].next = 3;
    h->desc[3] = (struct vring_desc) { (uintptr_t)h->data, SECTOR, 0, 0 };
}

static void duplicate_head(Hostile *h)
{
    h->q->avail->ring[1] = 0;
    h->avail_idx = 2;
}

static void avail_jump(Hostile *h)
{
    h->avail_idx = h->q->size + 1;
}

static void avail_jump_half_turn(Hostile *h)
{
    h->avail_idx = 0x8000;
}

static void avail_backwards(Hostile *h)
{
    hostile_kick(h);
    hostile_outcome(h);
    h->q->last_used = vq_used_idx(h->q);
    h->head->status = STATUS_UNSET;
    h->avail_idx = 0;
}

/* As many descriptors as the queue has: allowed. */
static void chain_longest(Hostile *h)
{
    uint16_t last = h->q->size - 1;

    for (uint16_t i = 1; i < last; i++) {
        h->desc[i] = (struct vring_desc) { (uintptr_t)h->data, SECTOR,
                                           VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, i + 1 };
    }
    h->desc[last] = (struct vring_desc) { (uintptr_t)&h->head->status, 1, VRING_DESC_F_WRITE, 0 };
}

/* -- addresses and lengths -- */

static void header_outside_ram(Hostile *h)
{
    h->desc[0].addr = NOWHERE;
}

static void data_outside_ram(Hostile *h)
{
    h->desc[1].addr = NOWHERE;
}

static void write_outside_ram(Hostile *h)
{
    make_write(h);
    h->desc[1].addr = NOWHERE;
}

static void status_outside_ram(Hostile *h)
{
    h->desc[2].addr = NOWHERE;
}

static void data_across_ram_end(Hostile *h)
{
    make_write(h);
    h->desc[1].addr = h->ram_top - SECTOR;
}

static void data_address_wraps(Hostile *h)
{
    h->desc[1].addr = -(uint64_t)SECTOR;
}

static void header_address_wraps(Hostile *h)
{
    h->desc[0].addr = -8ull;
}

static void data_in_registers(Hostile *h)
{
    h->desc[1].addr = (uintptr_t)h->dev->common;
}

static void data_in_lapic(Hostile *h)
{
    make_write(h);
    h->desc[1].addr = 0xfee00000;
}

static void header_empty(Hostile *h)
{
    h->desc[0].len = 0;
}

static void header_short(Hostile *h)
{
    h->desc[0].len = 8;
}

static void data_empty(Hostile *h)
{
    h->desc[1].len = 0;
}

static void status_empty(Hostile *h)
{
    h->desc[2].len = 0;
}

static void data_giant(Hostile *h)
{
    make_write(h);
    h->desc[1].len = -(uint32_t)SECTOR;
}

static void data_giant_odd(Hostile *h)
{
    make_write(h);
    h->desc[1].len = UINT32_MAX;
}

/* Lengths whose sum is small modulo 2^32. */
static void lengths_overflow(Hostile *h)
{
    make_write(h);
    h->desc[1].len = 0x80000000;
    h->desc[1].next = 3;
    h->desc[3] = (struct vring_desc) { (uintptr_t)h->data, 0x80000000, VRING_DESC_F_NEXT, 4 };
    h->desc[4] = (struct vring_desc) { (uintptr_t)h->data, SECTOR, VRING_DESC_F_NEXT, 2 };
}

static void header_giant(Hostile *h)
{
    h->desc[0].len = UINT32_MAX;
}

static void header_only(Hostile *h)
{
    h->desc[0].flags = 0;
}

static void header_writable(Hostile *h)
{
    h->desc[0].flags |= VRING_DESC_F_WRITE;
}

static void status_missing(Hostile *h)
{
    make_write(h);
    h->desc[1].flags = 0;
}

static void status_only(Hostile *h)
{
    h->q->avail->ring[0] = 2;
}

/* -- indirect tables -- */

static void indirect_of_indirect(Hostile *h)
{
    make_indirect(h, 3);
    h->table[1] = (struct vring_desc) { (uintptr_t)h->table, 48,
                                        VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT, 2 };
}

static void indirect_in_itself(Hostile *h)
{
    make_indirect(h, 3);
    h->table[0] = h->desc[0];
}

static void indirect_length_odd(Hostile *h)
{
    make_indirect(h, 3);
    h->desc[0].len = 40;
}

static void indirect_length_zero(Hostile *h)
{
    make_indirect(h, 0);
}

static void indirect_length_giant(Hostile *h)
{
    make_indirect(h, 3);
    h->desc[0].len = 0xfffffff0;
}

static void indirect_next_out_of_table(Hostile *h)
{
    make_indirect(h, 3);
    h->table[1].next = 3;
}

static void indirect_loop(Hostile *h)
{
    make_indirect(h, 3);
    h->table[2].flags |= VRING_DESC_F_NEXT;
    h->table[2].next = 1;
}

static void indirect_and_next(Hostile *h)
{
    make_indirect(h, 3);
    h->desc[0].flags |= VRING_DESC_F_NEXT;
    h->desc[0].next = 2;
}

static void indirect_outside_ram(Hostile *h)
{
    make_indirect(h, 3);
    h->desc[0].addr = NOWHERE;
}

static void indirect_across_ram_end(Hostile *h)
{
    make_indirect(h, 3);
    h->desc[0].addr = h->ram_top - 16;
}

/* More data segments than the queue has entries: a driver must not, a device may cope. */
static void indirect_too_many(Hostile *h)
{
    uint16_t last = HOSTILE_TABLE - 1;

    for (uint16_t i = 1; i < last; i++) {
        h->table[i] = (struct vring_desc) { (uintptr_t)h->data, SECTOR,
                                            VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, i + 1 };
    }
    h->table[last] = (struct vring_desc) { (uintptr_t)&h->head->status, 1, VRING_DESC_F_WRITE, 0 };
    make_indirect(h, HOSTILE_TABLE);
}

/* The device ignores the write flag of the descriptor that points to the table. */
static void indirect_writable(Hostile *h)
{
    make_indirect(h, 3);
    h->desc[0].flags |= VRING_DESC_F_WRITE;
}

/* Ordinary descriptors first, then one table: allowed, though no driver is known to do it. */
static void indirect_after_direct(Hostile *h)
{
    h->desc[0].next = 1;
    h->desc[1] = (struct vring_desc) { (uintptr_t)h->table, 32, VRING_DESC_F_INDIRECT, 0 };
    h->table[0] = h->table[1];
    h->table[0].next = 1;
    h->table[1] = h->table[2];
}

static void indirect_plain(Hostile *h)
{
    make_indirect(h, 3);
}

/* -- requests -- */

static void type_unknown(Hostile *h)
{
    set_type(h, 0x55, 0);
}

static void type_max(Hostile *h)
{
    set_type(h, UINT32_MAX, 0);
}

static void type_scsi(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_SCSI_CMD, 0);
}

static void type_secure_erase(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_SECURE_ERASE, 0);
}

static void sector_at_capacity(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_IN, h->capacity);
}

static void sector_across_capacity(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_IN, h->capacity - 1);
}

static void write_across_capacity(Hostile *h)
{
    make_write(h);
    h->head->hdr.sector = h->capacity - 1;
}

static void sector_wraps(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_IN, 1ull << 55);
}

static void sector_max(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_IN, UINT64_MAX);
}

static void write_sector_max(Hostile *h)
{
    make_write(h);
    h->head->hdr.sector = UINT64_MAX - 1;
}

static void length_odd(Hostile *h)
{
    h->desc[1].len = 1000;
}

static void write_length_odd(Hostile *h)
{
    make_write(h);
    h->desc[1].len = 513;
}

static void flush_with_data(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_FLUSH, 0);
}

static void getid_short(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_GET_ID, 0);
    h->desc[1].len = 8;
}

static void getid_without_data(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_GET_ID, 0);
    h->desc[0].next = 2;
}

static void discard_payload(Hostile *h, uint32_t type, uint32_t bytes)
{
    make_write(h);
    h->head->hdr.type = type;
    h->desc[1].len = bytes;
    memset(h->data, 0, HOSTILE_DATA);
}

static void discard_empty(Hostile *h)
{
    discard_payload(h, VIRTIO_BLK_T_DISCARD, 0);
}

static void discard_short(Hostile *h)
{
    discard_payload(h, VIRTIO_BLK_T_DISCARD, 8);
}

static void discard_length_odd(Hostile *h)
{
    discard_payload(h, VIRTIO_BLK_T_DISCARD, 24);
}

static void discard_too_many(Hostile *h)
{
    discard_payload(h, VIRTIO_BLK_T_DISCARD, HOSTILE_DATA);
}

static void write_zeroes_past_end(Hostile *h)
{
    struct virtio_blk_discard_write_zeroes *r = (void *)h->data;

    discard_payload(h, VIRTIO_BLK_T_WRITE_ZEROES, sizeof(*r));
    r->sector = h->capacity;
    r->num_sectors = 8;
}

static void discard_sector_wraps(Hostile *h)
{
    struct virtio_blk_discard_write_zeroes *r = (void *)h->data;

    discard_payload(h, VIRTIO_BLK_T_DISCARD, sizeof(*r));
    r->sector = UINT64_MAX - 3;
    r->num_sectors = 8;
}

static void write_zeroes_readable_payload(Hostile *h)
{
    set_type(h, VIRTIO_BLK_T_WRITE_ZEROES, 0);
}

#define ANY (ANSWER_OK | ANSWER_ERROR | ANSWER_NONE | NEEDS_RESET)

const QueueCase queue_cases[] = {
    { "desc-loop", desc_loop, REFUSED, false },
    { "desc-loop-readable", desc_loop_readable, REFUSED, false },
    { "desc-self-loop", desc_self_loop, REFUSED, false },
    { "head-out-of-range", head_out_of_range, NEEDS_RESET, false },
    { "head-65535", head_65535, NEEDS_RESET, false },
    { "next-out-of-range", next_out_of_range, REFUSED, false },
    { "next-65535", next_65535, REFUSED, false },
    { "head-in-middle", head_in_middle, MUTE, false },
    { "readable-after-writable", readable_after_writable, REFUSED, false },
    { "duplicate-head", duplicate_head, ANSWER_OK | NEEDS_RESET, false },
    { "avail-jump", avail_jump, NEEDS_RESET, false },
    { "avail-jump-half-turn", avail_jump_half_turn, NEEDS_RESET, false },
    { "avail-backwards", avail_backwards, NEEDS_RESET, false },
    { "chain-longest", chain_longest, ANSWER_OK, false },
    { "header-outside-ram", header_outside_ram, REFUSED, false },
    { "data-outside-ram", data_outside_ram, REFUSED, false },
    { "write-outside-ram", write_outside_ram, REFUSED, false },
    { "status-outside-ram", status_outside_ram, MUTE, false },
    { "data-across-ram-end", data_across_ram_end, REFUSED, false },
    { "data-address-wraps", data_address_wraps, REFUSED, false },
    { "header-address-wraps", header_address_wraps, REFUSED, false },
    { "data-in-registers", data_in_registers, REFUSED, false },
    { "data-in-lapic", data_in_lapic, REFUSED, false },
    { "header-empty", header_empty, MUTE, false },
    { "header-short", header_short, MUTE, false },
    { "header-giant", header_giant, REFUSED, false },
    { "header-only", header_only, MUTE, false },
    { "header-writable", header_writable, MUTE, false },
    { "data-empty", data_empty, ANY, false },
    { "data-giant", data_giant, REFUSED, false },
    { "data-giant-odd", data_giant_odd, REFUSED, false },
    { "lengths-overflow", lengths_overflow, REFUSED, false },
    { "status-empty", status_empty, MUTE, false },
    { "status-missing", status_missing, MUTE, false },
    { "status-only", status_only, MUTE, false },
    { "indirect-plain", indirect_plain, ANSWER_OK, false },
    { "indirect-of-indirect", indirect_of_indirect, REFUSED, false },
    { "indirect-in-itself", indirect_in_itself, REFUSED, false },
    { "indirect-length-odd", indirect_length_odd, REFUSED, false },
    { "indirect-length-zero", indirect_length_zero, REFUSED, false },
    { "indirect-length-giant", indirect_length_giant, REFUSED, false },
    { "indirect-next-out-of-table", indirect_next_out_of_table, REFUSED, false },
    { "indirect-loop", indirect_loop, REFUSED, false },
    { "indirect-and-next", indirect_and_next, REFUSED, false },
    { "indirect-outside-ram", indirect_outside_ram, REFUSED, false },
    { "indirect-across-ram-end", indirect_across_ram_end, REFUSED, false },
    { "indirect-too-many", indirect_too_many, ANSWER_OK | REFUSED, false },
    { "indirect-writable", indirect_writable, ANSWER_OK, false },
    { "indirect-after-direct", indirect_after_direct, ANSWER_OK | NEEDS_RESET, false },
    { "indirect-not-negotiated", indirect_plain, MUTE, true },
    { "type-unknown", type_unknown, ANSWER_ERROR, false },
    { "type-max", type_max, ANSWER_ERROR, false },
    { "type-scsi", type_scsi, ANSWER_ERROR, false },
    { "type-secure-erase", type_secure_erase, ANSWER_ERROR, false },
    { "sector-at-capacity", sector_at_capacity, ANSWER_ERROR, false },
    { "sector-across-capacity", sector_across_capacity, ANSWER_ERROR, false },
    { "sector-wraps", sector_wraps, ANSWER_ERROR, false },
    { "sector-max", sector_max, ANSWER_ERROR, false },
    { "write-across-capacity", write_across_capacity, ANSWER_ERROR, false },
    { "write-sector-max", write_sector_max, ANSWER_ERROR, false },
    { "length-odd", length_odd, ANSWER_ERROR, false },
    { "write-length-odd", write_length_odd, ANSWER_ERROR, false },
    { "flush-with-data", flush_with_data, ANSWER_OK | ANSWER_ERROR, false },
    { "getid-short", getid_short, ANSWER_OK | ANSWER_ERROR, false },
    { "getid-without-data", getid_without_data, ANSWER_OK | ANSWER_ERROR, false },
    { "discard-empty", discard_empty, REFUSED, false },
    { "discard-short", discard_short, REFUSED, false },
    { "discard-length-odd", discard_length_odd, REFUSED, false },
    { "discard-too-many", discard_too_many, ANSWER_ERROR, false },
    { "discard-sector-wraps", discard_sector_wraps, ANSWER_ERROR, false },
    { "write-zeroes-past-end", write_zeroes_past_end, ANSWER_ERROR, false },
    { "write-zeroes-without-payload", write_zeroes_readable_payload, REFUSED, false },
};
const unsigned queue_case_count = ARRAY_SIZE(queue_cases);
