/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pc board.
 */
#include "hw/i386/pc.h"

#include "chardev/chardev.h"
#include "hw/char/serial.h"
#include "hw/pci/pci.h"
#include "pc-internal.h"
#include "util/err.h"

#define MIB (1ull << 20)
#define COM1_PORT 0x3f8
#define COM1_GSI 4
#define PCI_LEVEL_MASK (1u << 10 | 1u << 11 | 1u << SCI_GSI)

typedef struct PcMachine {
    Machine m;
    BootImage *boot;
    Serial *serial;
    Rtc *rtc;
    AcpiPm *pm;
    PcReset *reset_ports;
    Object *host_bridge;
} PcMachine;

/* ---- the host bridge at 00.0 ---- */

/* Software knows by its identity that this is a PC of this kind; it has no registers of its own. */
static const PciDeviceOps host_bridge_ops = {
    .vendor_id = 0x8086,
    .device_id = 0x1237,
    .subsystem_vendor_id = 0x1af4,
    .subsystem_id = 0x1100,
    .revision = 2,
    .class_code = 0x060000,
};

const ObjType type_pc_host_bridge = {
    .name = "i440FX",
    .parent = &type_pci_device,
    .desc = "Host bridge",
    .category = "Bridge",
    .bus = "PCI",
    .size = sizeof(PciDevice),
    .class_data = &host_bridge_ops,
};

static bool host_bridge_new(PcMachine *pc, ObjectTree *tree, GError **errp)
{
    g_autoptr(Object) obj = object_new(tree, &type_pc_host_bridge, NULL, errp);

    if (obj == NULL) {
        return false;
    }
    ((Device *)obj)->machine = &pc->m;
    ((PciDevice *)obj)->devfn_wanted = PCI_DEVFN_OF(0, 0);
    if (!object_attach(object_container(tree, "/machine/unattached"), "device[*]", obj, errp)) {
        return false;
    }
    if (!object_realize(obj, errp)) {
        object_detach(obj);
        return false;
    }
    pc->host_bridge = obj;      /* the tree keeps it */
    return true;
}

/* ---- life ---- */

static bool ram_init(PcMachine *pc, const MachineConfig *config, GError **errp)
{
    Machine *m = &pc->m;
    uint64_t low = MIN(config->ram_size, RAM_SPLIT);

    return machine_ram_alloc(m, config, errp) &&
           machine_ram_map(m, 0, 0, VIDEO_HOLE, errp) &&
           machine_ram_map(m, VIDEO_HOLE_END, VIDEO_HOLE_END, low - VIDEO_HOLE_END, errp) &&
           (config->ram_size == low ||
            machine_ram_map(m, RAM_ABOVE_4G, low, config->ram_size - low, errp));
}

static bool devices_init(PcMachine *pc, const MachineConfig *config, ObjectTree *tree,
                         GError **errp)
{
    static const PciBusConfig pci = {
        .pio = { PCI_PIO_BASE, PCI_PIO_LIMIT },
        .mem32 = { PCI_MEM32_BASE, PCI_MEM32_LIMIT },
        .mem64 = { PCI_MEM64_BASE, PCI_MEM64_LIMIT },
        .first_auto_slot = 2,           /* 1 is where a pc has its south bridge */
        .irq_gsi = { 10, 11, 10, 11 },  /* as dsdt.asl says */
        .port_cf9 = pc_reset_cf9,
    };
    Machine *m = &pc->m;

    if (pci_bus_new(m, &pci, errp) == NULL || !host_bridge_new(pc, tree, errp)) {
        return false;
    }
    pc->pm = acpi_pm_new(m, errp);
    if (pc->pm == NULL) {
        return false;
    }
    pc->rtc = rtc_new(m, pc->pm, errp);
    if (pc->rtc == NULL) {
        return false;
    }
    pc->reset_ports = pc_reset_new(m, errp);
    if (pc->reset_ports == NULL) {
        return false;
    }
    if (config->serial != NULL) {
        pc->serial = serial_new(m, COM1_PORT, COM1_GSI, config->serial, errp);
        return pc->serial != NULL;
    }
    return true;
}

static void pc_free(Machine *m)
{
    PcMachine *pc = (PcMachine *)m;

    if (m->vm != NULL && m->state == RUN_STATE_RUNNING) {
        m->vm->ops->cpus_pause(m->vm);
    }
    if (pc->host_bridge != NULL) {
        object_unrealize(pc->host_bridge);
    }
    serial_free(pc->serial);
    pc_reset_free(pc->reset_ports);
    rtc_free(pc->rtc);
    acpi_pm_free(pc->pm);
    pci_bus_free(m->pci);
    boot_image_free(pc->boot);
    machine_cleanup(m);
    g_free(pc);
}

static Machine *pc_create(const MachineConfig *config, ObjectTree *tree, GError **errp)
{
    PcMachine *pc = g_new0(PcMachine, 1);
    Machine *m = &pc->m;

    if (!machine_init(m, &machine_type_pc, config, errp) || !ram_init(pc, config, errp)) {
        goto fail;
    }
    if (config->kernel != NULL) {
        pc->boot = boot_image_open(config->kernel, config->initrd, config->append, m, errp);
        if (pc->boot == NULL) {
            goto fail;
        }
    }
    if (devices_init(pc, config, tree, errp)) {
        return m;
    }
fail:
    pc_free(m);
    return NULL;
}

static bool pc_complete(Machine *m, GError **errp)
{
    return m->vm->ops->cpus_create(m->vm, errp);
}

static bool pc_reset(Machine *m, GError **errp)
{
    PcMachine *pc = (PcMachine *)m;
    VmCpuStart start = { 0 };
    uint64_t rsdp;

    pci_bus_reset(m->pci);
    machine_run_reset_hooks(m);
    if (!pci_bus_assign(m->pci, errp)) {
        return false;
    }
    m->vm->ops->irq_set_level_triggered(m->vm, PCI_LEVEL_MASK);
    rsdp = acpi_build(m);
    if (rsdp == 0) {
        err_set(errp, "the ACPI tables of %u CPUs don't fit below 1 MiB", m->vm->config.cpus);
        return false;
    }
    if (pc->boot == NULL) {
        return true;            /* nothing that a CPU could start at */
    }
    if (!boot_image_load(pc->boot, m, rsdp, &start, errp)) {
        return false;
    }
    m->vm->ops->cpus_reset(m->vm, &start);
    return true;
}

const MachineType machine_type_pc = {
    .name = "pc",
    .desc = "PC with PCI, COM1 and ACPI",
    .ram_default = 128 * MIB,
    .ram_min = 4 * MIB,
    .ram_max = PCI_MEM64_BASE - (RAM_ABOVE_4G - RAM_SPLIT),
    .create = pc_create,
    .complete = pc_complete,
    .reset = pc_reset,
    .free = pc_free,
};
