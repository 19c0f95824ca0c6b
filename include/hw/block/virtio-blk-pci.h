/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The type that -device virtio-blk-pci makes. */
#ifndef HW_BLOCK_VIRTIO_BLK_PCI_H
#define HW_BLOCK_VIRTIO_BLK_PCI_H

#include "util/object.h"

extern const ObjType type_virtio_blk_pci;

#endif
