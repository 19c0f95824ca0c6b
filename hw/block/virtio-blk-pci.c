/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-blk-pci: the disk of virtio/ behind the PCI transport of hw/virtio/.
 * Here are its properties, and which AioContext serves which queue.
 */
#include "hw/block/virtio-blk-pci.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/virtio_ids.h>
#include <stdlib.h>
#include <string.h>

#include "block/blockdev.h"
#include "hw/virtio/virtio-pci.h"
#include "qapi/block-types.h"
#include "util/err.h"
#include "util/iothread.h"
#include "virtio/virtio-blk.h"

#define NUM_QUEUES_AUTO 65535
#define SIZE_AUTO 0
#define GRANULARITY_AUTO UINT32_MAX
#define MAX_SECTORS ((INT32_MAX) / VIRTIO_BLK_SECTOR)   /* so that the bytes fit an int */

typedef struct VirtioBlkPci {
    VirtioPci v;

    /* Properties. */
    char *drive;
    Object *iothread;
    uint16_t num_queues;
    uint16_t queue_size;
    char *serial;
    int write_cache;                    /* an OnOffAuto */
    bool config_wce;
    uint64_t logical_block_size, physical_block_size, min_io_size, opt_io_size;
    uint64_t discard_granularity;
    bool discard, write_zeroes, share_rw, scsi;
    uint32_t max_discard_sectors, max_write_zeroes_sectors;
    int rerror, werror;                 /* BlockdevOnError */
    int32_t bootindex;

    VirtioBlk vb;
    VirtioBlkQueue **queues;
} VirtioBlkPci;

static VirtioBlkPci *from_pci(VirtioPci *v)
{
    return (VirtioBlkPci *)v;
}

/* ---- VirtioBlkOps: in the queue's AioContext ---------------------------------- */

static void disk_interrupt(void *opaque, unsigned queue)
{
    virtio_pci_queue_interrupt(opaque, queue);
}

static void disk_broken(void *opaque, unsigned queue, const char *why)
{
    virtio_pci_queue_broken(opaque, queue, why);
}

static VirtioBlkOnError disk_error(void *opaque, unsigned queue, BlkOp op, int err)
{
    VirtioBlkPci *d = opaque;
    int policy = op == BLK_READ ? d->rerror : d->werror;

    (void)queue;
    if (err == ENOTSUP) {
        return VIRTIO_BLK_REPORT;       /* not a fault of the disk */
    }
    if (policy == BLOCKDEV_ON_ERROR_IGNORE) {
        return VIRTIO_BLK_IGNORE;
    }
    if (policy == BLOCKDEV_ON_ERROR_STOP || (policy == BLOCKDEV_ON_ERROR_ENOSPC && err == ENOSPC)) {
        machine_request_stop(d->v.pci.dev.machine, RUN_STATE_IO_ERROR);
        return VIRTIO_BLK_HOLD;
    }
    return VIRTIO_BLK_REPORT;
}

static const VirtioBlkOps disk_ops = {
    .interrupt = disk_interrupt,
    .broken = disk_broken,
    .error = disk_error,
};

/* ---- VirtioPciClass: main thread -------------------------------------------------- */

static uint64_t disk_features(VirtioPci *v)
{
    return virtio_blk_features(&from_pci(v)->vb);
}

static void disk_get_config(VirtioPci *v, void *buf)
{
    virtio_blk_get_config(&from_pci(v)->vb, buf);
}

static void disk_set_config_byte(VirtioPci *v, unsigned off, uint8_t value)
{
    virtio_blk_set_config_byte(&from_pci(v)->vb, virtio_pci_features(v), off, value);
}

static void disk_driver_ok(VirtioPci *v)
{
    virtio_blk_driver_ok(&from_pci(v)->vb, virtio_pci_features(v));
}

static void disk_reset(VirtioPci *v)
{
    virtio_blk_reset(&from_pci(v)->vb);
}

static AioContext *disk_queue_context(VirtioPci *v, unsigned i)
{
    VirtioBlkPci *d = from_pci(v);

    (void)i;
    return d->iothread != NULL ? iothread_context((IOThread *)d->iothread)
                               : v->pci.dev.machine->ctx;
}

static bool disk_queue_start(VirtioPci *v, unsigned i, GuestMemory *mem,
                             const VirtQueueConfig *cfg, int kick_fd, GError **errp)
{
    return virtio_blk_queue_start(from_pci(v)->queues[i], disk_queue_context(v, i), kick_fd, mem,
                                  cfg, errp);
}

static void disk_queue_pause(VirtioPci *v, unsigned i)
{
    virtio_blk_queue_pause(from_pci(v)->queues[i]);
}

static void disk_queue_resume(VirtioPci *v, unsigned i)
{
    virtio_blk_queue_resume(from_pci(v)->queues[i]);
}

static void disk_queue_stop(VirtioPci *v, unsigned i)
{
    virtio_blk_queue_stop(from_pci(v)->queues[i]);
}

static const VirtioPciClass disk_class = {
    .pci = {
        .vendor_id = 0x1af4,
        .device_id = 0x1040 + VIRTIO_ID_BLOCK,
        .subsystem_vendor_id = 0x1af4,
        .subsystem_id = 0x1100,
        .revision = 1,
        .class_code = 0x010000,         /* mass storage, SCSI: what stock says */
        .config_read = virtio_pci_cfg_read,
        .config_written = virtio_pci_cfg_written,
        .mode_changed = virtio_pci_mode_changed,
        .reset = virtio_pci_reset,
    },
    .config_size = sizeof(struct virtio_blk_config),
    .features = disk_features,
    .get_config = disk_get_config,
    .set_config_byte = disk_set_config_byte,
    .driver_ok = disk_driver_ok,
    .reset = disk_reset,
    .queue_start = disk_queue_start,
    .queue_pause = disk_queue_pause,
    .queue_resume = disk_queue_resume,
    .queue_stop = disk_queue_stop,
    .queue_context = disk_queue_context,
};

/* ---- checks that concern several properties -------------------------------------- */

static bool check_sizes(const VirtioBlkPci *d, GError **errp)
{
    uint64_t logical = d->logical_block_size != SIZE_AUTO ? d->logical_block_size : 512;

    if (d->physical_block_size != SIZE_AUTO && d->physical_block_size < logical) {
        err_set(errp, "logical_block_size > physical_block_size not supported");
        return false;
    }
    if (d->min_io_size % logical != 0 || d->min_io_size / logical > UINT16_MAX) {
        err_set(errp, "min_io_size must be a multiple of logical_block_size and at most "
                "65535 blocks");
        return false;
    }
    if (d->opt_io_size % logical != 0 || d->opt_io_size / logical > UINT32_MAX) {
        err_set(errp, "opt_io_size must be a multiple of logical_block_size");
        return false;
    }
    if (d->discard_granularity != GRANULARITY_AUTO && d->discard_granularity % logical != 0) {
        err_set(errp, "discard_granularity must be a multiple of logical_block_size");
        return false;
    }
    return true;
}

static bool check_queues(const VirtioBlkPci *d, GError **errp)
{
    if (d->num_queues == 0) {
        err_set(errp, "num-queues property must be larger than 0");
        return false;
    }
    if (d->num_queues != NUM_QUEUES_AUTO && d->num_queues > VIRTIO_PCI_QUEUES_MAX) {
        err_set(errp, "invalid num-queues property (%u), must be at most %d", d->num_queues,
                VIRTIO_PCI_QUEUES_MAX);
        return false;
    }
    if (d->queue_size <= 2) {
        err_set(errp, "invalid queue-size property (%u), must be > 2", d->queue_size);
        return false;
    }
    if (d->queue_size > VIRTQUEUE_SIZE_MAX || (d->queue_size & (d->queue_size - 1)) != 0) {
        err_set(errp, "invalid queue-size property (%u), must be a power of 2 (max %d)",
                d->queue_size, VIRTQUEUE_SIZE_MAX);
        return false;
    }
    return true;
}

static bool disk_check(Object *obj, GError **errp)
{
    const VirtioBlkPci *d = (const VirtioBlkPci *)obj;

    if (d->drive == NULL) {
        err_set(errp, "drive property not set");
        return false;
    }
    if (d->serial != NULL && strlen(d->serial) > VIRTIO_BLK_ID_BYTES) {
        err_set(errp, "serial '%s' is %zu bytes long, at most %d fit", d->serial,
                strlen(d->serial), VIRTIO_BLK_ID_BYTES);
        return false;
    }
    return check_sizes(d, errp) && check_queues(d, errp);
}

/* ---- life ------------------------------------------------------------------------------ */

static void disk_resized(void *opaque)
{
    VirtioBlkPci *d = opaque;

    if (virtio_blk_update_capacity(&d->vb)) {
        virtio_pci_config_changed(&d->v);
    }
}

static void limits_apply(VirtioBlkPci *d)
{
    VirtioBlk *vb = &d->vb;
    BlkLimits limits;
    uint64_t granularity;

    blk_get_limits(vb->blk, &limits);
    vb->logical_block = d->logical_block_size != SIZE_AUTO ? d->logical_block_size : 512;
    vb->physical_block = d->physical_block_size != SIZE_AUTO ? d->physical_block_size
                                                             : vb->logical_block;
    vb->min_io = d->min_io_size;
    vb->opt_io = d->opt_io_size;
    granularity = d->discard_granularity != GRANULARITY_AUTO
        ? d->discard_granularity : MAX(limits.discard_align, vb->logical_block);
    vb->discard_align_sectors = granularity / VIRTIO_BLK_SECTOR;
}

/* What the device says counts before what its -drive says. */
static int on_error(int device, int drive, int otherwise)
{
    int policy = device != BLOCKDEV_ON_ERROR_AUTO ? device : drive;

    return policy != BLOCKDEV_ON_ERROR_AUTO ? policy : otherwise;
}

static void policies_apply(VirtioBlkPci *d)
{
    const Drive *drive = blk_drive(d->vb.blk);

    d->rerror = on_error(d->rerror, drive ? drive->rerror : BLOCKDEV_ON_ERROR_AUTO,
                         BLOCKDEV_ON_ERROR_REPORT);
    d->werror = on_error(d->werror, drive ? drive->werror : BLOCKDEV_ON_ERROR_AUTO,
                         BLOCKDEV_ON_ERROR_ENOSPC);
}

static void disk_settings(VirtioBlkPci *d)
{
    VirtioBlk *vb = &d->vb;

    vb->ops = &disk_ops;
    vb->opaque = d;
    vb->name = device_name(&d->v.pci.dev);
    vb->read_only = blk_is_read_only(vb->blk);
    vb->num_queues = d->num_queues == NUM_QUEUES_AUTO
        ? MIN(d->v.pci.dev.machine->vm->config.cpus, VIRTIO_PCI_QUEUES_MAX) : d->num_queues;
    vb->seg_max = d->queue_size - 2;    /* header and status take one entry each */
    vb->discard = d->discard;
    vb->write_zeroes = d->write_zeroes;
    vb->max_discard_sectors = d->max_discard_sectors;
    vb->max_write_zeroes_sectors = d->max_write_zeroes_sectors;
    vb->config_wce = d->config_wce;
    if (d->serial != NULL) {
        memcpy(vb->serial, d->serial, strlen(d->serial));
    }
    vb->write_cache_default = d->write_cache == ON_OFF_AUTO_AUTO
        ? blk_default_write_cache(vb->blk) : d->write_cache == ON_OFF_AUTO_ON;
    policies_apply(d);
    limits_apply(d);
}

static BlockBackend *disk_open(VirtioBlkPci *d, GError **errp)
{
    unsigned shared = BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE_UNCHANGED | BLK_PERM_RESIZE
        | (d->share_rw ? BLK_PERM_WRITE : 0);

    return blk_open(d->drive, device_name(&d->v.pci.dev),
                    BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE, shared, errp);
}

static void disk_unrealize(Object *obj)
{
    VirtioBlkPci *d = (VirtioBlkPci *)obj;

    virtio_pci_shut(&d->v);
    for (unsigned i = 0; d->queues != NULL && i < d->vb.num_queues; i++) {
        virtio_blk_queue_free(d->queues[i]);
    }
    g_clear_pointer(&d->queues, g_free);
    g_clear_pointer(&d->vb.blk, blk_close);
}

static bool disk_realize(Object *obj, GError **errp)
{
    VirtioBlkPci *d = (VirtioBlkPci *)obj;
    int64_t length;

    d->vb.blk = disk_open(d, errp);
    if (d->vb.blk == NULL) {
        return false;
    }
    disk_settings(d);
    length = blk_length(d->vb.blk);
    if (length < 0) {
        err_set_errno(errp, -length, "can't find the size of '%s'", d->drive);
        g_clear_pointer(&d->vb.blk, blk_close);
        return false;
    }
    virtio_blk_update_capacity(&d->vb);
    virtio_blk_reset(&d->vb);
    blk_set_resize_cb(d->vb.blk, disk_resized, d);
    d->v.num_queues = d->vb.num_queues;
    d->v.queue_size = d->queue_size;
    d->queues = g_new0(VirtioBlkQueue *, d->vb.num_queues);
    for (unsigned i = 0; i < d->vb.num_queues; i++) {
        d->queues[i] = virtio_blk_queue_new(&d->vb, i);
    }
    return true;
}

/* ---- properties --------------------------------------------------------------------------- */

/* 0: the default. */
static bool check_block_size(Object *obj, const ObjProp *prop, const PropValue *value,
                             GError **errp)
{
    (void)obj;
    if (value->u != 0 && (value->u < 512 || (value->u & (value->u - 1)) != 0)) {
        err_set(errp, "Property '%s' doesn't take value '%" PRIu64 "', it must be a power of two "
                "between 512 and 2097152", prop->name, value->u);
        return false;
    }
    return true;
}

static bool check_scsi(Object *obj, const ObjProp *prop, const PropValue *value, GError **errp)
{
    (void)obj;
    (void)prop;
    if (value->b) {
        err_set(errp, "Please set scsi=off for virtio-blk devices in order to use virtio 1.0");
        return false;
    }
    return true;
}

#define FIELD(member) PROP_FIELD(VirtioBlkPci, member)

static const ObjProp disk_props[] = {
    { .name = "drive", .type = &prop_str, FIELD(drive),
      .help = "Node name or ID of a block device to use as a backend" },
    { .name = "iothread", .type = &prop_link, FIELD(iothread), .link_type = "iothread",
      .help = "thread that serves all queues; without it the main loop does" },
    { .name = "num-queues", .type = &prop_u16, FIELD(num_queues), .def = "65535",
      .help = "request queues (default: one a vCPU)" },
    { .name = "queue-size", .type = &prop_u16, FIELD(queue_size), .def = "256",
      .help = "entries of a queue, a power of 2 from 4 to 1024" },
    { .name = "serial", .type = &prop_str, FIELD(serial),
      .help = "serial number, at most 20 bytes" },
    { .name = "write-cache", .type = &prop_on_off_auto, FIELD(write_cache), .def = "auto",
      .help = "off: every write is durable when it completes (default: as the drive's cache=)" },
    { .name = "config-wce", .type = &prop_bool, FIELD(config_wce), .def = "on",
      .help = "the guest may switch the write cache" },
    { .name = "logical_block_size", .type = &prop_size, FIELD(logical_block_size), .def = "0",
      .min = 0, .max = 2 << 20, .check = check_block_size,
      .help = "A power of two between 512 B and 2 MiB" },
    { .name = "physical_block_size", .type = &prop_size, FIELD(physical_block_size), .def = "0",
      .min = 0, .max = 2 << 20, .check = check_block_size,
      .help = "A power of two between 512 B and 2 MiB" },
    { .name = "min_io_size", .type = &prop_size, FIELD(min_io_size), .def = "0",
      .help = "bytes that are efficient at least, 0: not said" },
    { .name = "opt_io_size", .type = &prop_size, FIELD(opt_io_size), .def = "0",
      .max = UINT32_MAX, .help = "bytes that are most efficient, 0: not said" },
    { .name = "discard_granularity", .type = &prop_size, FIELD(discard_granularity),
      .def = "4294967295", .max = UINT32_MAX,
      .help = "alignment of discards in bytes (default: the drive's)" },
    { .name = "discard", .type = &prop_bool, FIELD(discard), .def = "on",
      .help = "offer discard" },
    { .name = "write-zeroes", .type = &prop_bool, FIELD(write_zeroes), .def = "on",
      .help = "offer write zeroes" },
    { .name = "max-discard-sectors", .type = &prop_u32, FIELD(max_discard_sectors),
      .def = "4194303", .min = 1, .max = MAX_SECTORS, .help = "most of one discard" },
    { .name = "max-write-zeroes-sectors", .type = &prop_u32, FIELD(max_write_zeroes_sectors),
      .def = "4194303", .min = 1, .max = MAX_SECTORS, .help = "most of one write zeroes" },
    { .name = "share-rw", .type = &prop_bool, FIELD(share_rw), .def = "off",
      .help = "other devices may write to the same drive" },
    { .name = "rerror", .type = &prop_enum, FIELD(rerror), .names = &BlockdevOnError_table,
      .def = "auto", .help = "what a failed read does (default: report)" },
    { .name = "werror", .type = &prop_enum, FIELD(werror), .names = &BlockdevOnError_table,
      .def = "auto", .help = "what a failed write does (default: enospc)" },
    { .name = "scsi", .type = &prop_bool, FIELD(scsi), .def = "off", .check = check_scsi,
      .help = "off only" },
    DEVICE_PROP_BOOTINDEX(VirtioBlkPci, bootindex),
    { .name = NULL },
};

const ObjType type_virtio_blk_pci = {
    .name = "virtio-blk-pci",
    .alias = "virtio-blk",
    .parent = &type_virtio_pci,
    .desc = "VIRTIO 1.x block device",
    .category = "Storage",
    .bus = "PCI",
    .size = sizeof(VirtioBlkPci),
    .flags = OBJ_DEVICE | OBJ_HOTPLUG,
    .props = disk_props,
    .class_data = &disk_class,
    .check = disk_check,
    .realize = disk_realize,
    .unrealize = disk_unrealize,
};
