/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk features and configuration space (VIRTIO 1.2 §5.2.3 to §5.2.5). */
#include <stddef.h>
#include <string.h>

#include "virtio/virtio-blk.h"

#define BIT(f) (UINT64_C(1) << (f))

uint64_t virtio_blk_features(const VirtioBlk *vb)
{
    uint64_t f = BIT(VIRTIO_BLK_F_SEG_MAX) | BIT(VIRTIO_BLK_F_GEOMETRY)
        | BIT(VIRTIO_BLK_F_BLK_SIZE) | BIT(VIRTIO_BLK_F_TOPOLOGY);

    if (vb->config_wce) {
        f |= BIT(VIRTIO_BLK_F_CONFIG_WCE);
    }
    /* A driver that can switch the cache on needs flushes, so offer both. */
    if (vb->config_wce || vb->write_cache_default) {
        f |= BIT(VIRTIO_BLK_F_FLUSH);
    }
    if (vb->read_only) {
        f |= BIT(VIRTIO_BLK_F_RO);
    }
    if (vb->num_queues > 1) {
        f |= BIT(VIRTIO_BLK_F_MQ);
    }
    if (vb->discard) {
        f |= BIT(VIRTIO_BLK_F_DISCARD);
    }
    if (vb->write_zeroes) {
        f |= BIT(VIRTIO_BLK_F_WRITE_ZEROES);
    }
    return f;
}

/* A CHS geometry is a courtesy to old software: 16 heads of 63 sectors. */
static void config_geometry(struct virtio_blk_config *cfg, uint64_t sectors)
{
    uint64_t cylinders = sectors / (16 * 63);

    cfg->geometry.cylinders = GUINT16_TO_LE((uint16_t)CLAMP(cylinders, 2, 16383));
    cfg->geometry.heads = 16;
    cfg->geometry.sectors = 63;
}

void virtio_blk_get_config(const VirtioBlk *vb, struct virtio_blk_config *cfg)
{
    uint64_t capacity = __atomic_load_n(&vb->capacity, __ATOMIC_RELAXED);

    memset(cfg, 0, sizeof(*cfg));
    cfg->capacity = GUINT64_TO_LE(capacity);
    cfg->seg_max = GUINT32_TO_LE(vb->seg_max);
    config_geometry(cfg, capacity);
    cfg->blk_size = GUINT32_TO_LE(vb->logical_block);
    cfg->physical_block_exp = __builtin_ctz(vb->physical_block / vb->logical_block);
    cfg->min_io_size = GUINT16_TO_LE(vb->min_io / vb->logical_block);
    cfg->opt_io_size = GUINT32_TO_LE(vb->opt_io / vb->logical_block);
    cfg->wce = blk_write_cache(vb->blk);
    cfg->num_queues = GUINT16_TO_LE(vb->num_queues);
    if (vb->discard) {
        cfg->max_discard_sectors = GUINT32_TO_LE(vb->max_discard_sectors);
        cfg->max_discard_seg = GUINT32_TO_LE(1);
        cfg->discard_sector_alignment = GUINT32_TO_LE(vb->discard_align_sectors);
    }
    if (vb->write_zeroes) {
        cfg->max_write_zeroes_sectors = GUINT32_TO_LE(vb->max_write_zeroes_sectors);
        cfg->max_write_zeroes_seg = GUINT32_TO_LE(1);
        cfg->write_zeroes_may_unmap = 1;
    }
}

bool virtio_blk_set_config_byte(VirtioBlk *vb, uint64_t features, unsigned offset, uint8_t value)
{
    if (offset != offsetof(struct virtio_blk_config, wce)
        || !(features & BIT(VIRTIO_BLK_F_CONFIG_WCE))) {
        return false;
    }
    blk_set_write_cache(vb->blk, value & 1);
    return true;
}

void virtio_blk_driver_ok(VirtioBlk *vb, uint64_t features)
{
    /* Without CONFIG_WCE the cache is on exactly if the driver can flush it. */
    if (!(features & BIT(VIRTIO_BLK_F_CONFIG_WCE))) {
        blk_set_write_cache(vb->blk, features & BIT(VIRTIO_BLK_F_FLUSH));
    }
}

void virtio_blk_reset(VirtioBlk *vb)
{
    blk_set_write_cache(vb->blk, vb->write_cache_default);
}

bool virtio_blk_update_capacity(VirtioBlk *vb)
{
    int64_t len = blk_length(vb->blk);
    /* Whole logical blocks only. */
    uint64_t sectors = len < 0 ? 0 : (uint64_t)len / vb->logical_block
        * (vb->logical_block / VIRTIO_BLK_SECTOR);

    if (len < 0 || sectors == vb->capacity) {
        return false;
    }
    __atomic_store_n(&vb->capacity, sectors, __ATOMIC_RELAXED);
    return true;
}
