/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hw/block/virtio-blk-pci.h"
#include "hw/i386/pc.h"
#include "hw/pci/pci.h"
#include "hw/virtio/virtio-pci.h"
#include "util/iothread.h"
#include "vm.h"

static const ObjType *const types[] = {
    &type_device,
    &type_iothread,
    &type_isa_debug_exit,
    &type_pc_host_bridge,
    &type_pci_device,
    &type_virtio_blk_pci,
    &type_virtio_pci,
};

ObjectTree *system_object_tree(void)
{
    return object_tree_new(types, G_N_ELEMENTS(types));
}
