/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * INTx: four lines shared by all devices, each a level-triggered pin of the
 * interrupt controllers.
 */
#include <assert.h>
#include <linux/pci_regs.h>

#include "pci-internal.h"

/* The usual swizzle, so that neighbours use different lines. */
static unsigned irq_line(const PciDevice *dev)
{
    return ((dev->devfn >> 3) + dev->config[PCI_INTERRUPT_PIN] - 1) % PCI_LINES;
}

void pci_irq_pin(PciDevice *dev, uint8_t pin)
{
    assert(pin >= 1 && pin <= 4 && dev->bus == NULL);
    dev->config[PCI_INTERRUPT_PIN] = pin;
}

int pci_irq_gsi(const PciDevice *dev)
{
    return dev->config[PCI_INTERRUPT_PIN] != 0 ? dev->bus->config.irq_gsi[irq_line(dev)] : -1;
}

/* Is any line with this GSI held up? Lines may share one. */
static bool gsi_level(const PciBus *bus, unsigned gsi)
{
    for (unsigned i = 0; i < PCI_LINES; i++) {
        if (bus->config.irq_gsi[i] == gsi && bus->line_count[i] > 0) {
            return true;
        }
    }
    return false;
}

void pci_irq_update(PciDevice *dev)
{
    bool disabled = pci_config_get16(dev, PCI_COMMAND) & PCI_COMMAND_INTX_DISABLE;
    bool shown = dev->irq_level && !disabled && dev->bus != NULL;
    Vm *vm;
    int gsi;

    if (dev->irq_level) {
        dev->config[PCI_STATUS] |= PCI_STATUS_INTERRUPT;
    } else {
        dev->config[PCI_STATUS] &= ~PCI_STATUS_INTERRUPT;
    }
    if (shown == dev->irq_shown) {
        return;
    }
    vm = dev->bus->machine->vm;
    gsi = pci_irq_gsi(dev);
    dev->irq_shown = shown;
    dev->bus->line_count[irq_line(dev)] += shown ? 1 : -1;
    vm->ops->irq_set(vm, gsi, gsi_level(dev->bus, gsi));
}

void pci_irq_set(PciDevice *dev, bool level)
{
    assert(dev->config[PCI_INTERRUPT_PIN] != 0);
    dev->irq_level = level;
    pci_irq_update(dev);
}
