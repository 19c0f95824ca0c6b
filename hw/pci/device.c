/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The base type of PCI devices: configuration space, life.
 */
#include <assert.h>
#include <linux/pci_regs.h>
#include <string.h>

#include "pci-internal.h"
#include "util/err.h"
#include "util/scalar.h"

/* ---- configuration space ---- */

void pci_config_set16(PciDevice *dev, unsigned off, uint16_t value)
{
    assert(off + 2 <= PCI_CONFIG_SIZE);
    dev->config[off] = value;
    dev->config[off + 1] = value >> 8;
}

void pci_config_set32(PciDevice *dev, unsigned off, uint32_t value)
{
    pci_config_set16(dev, off, value);
    pci_config_set16(dev, off + 2, value >> 16);
}

uint16_t pci_config_get16(const PciDevice *dev, unsigned off)
{
    assert(off + 2 <= PCI_CONFIG_SIZE);
    return dev->config[off] | dev->config[off + 1] << 8;
}

uint32_t pci_config_get32(const PciDevice *dev, unsigned off)
{
    return pci_config_get16(dev, off) | (uint32_t)pci_config_get16(dev, off + 2) << 16;
}

bool pci_bus_master(const PciDevice *dev)
{
    /* one byte, so that a reader in another thread sees the old or the new */
    return __atomic_load_n(&dev->config[PCI_COMMAND], __ATOMIC_ACQUIRE) & PCI_COMMAND_MASTER;
}

uint8_t pci_cap_add(PciDevice *dev, uint8_t cap_id, unsigned len)
{
    unsigned off = dev->cap_next;

    assert(len >= 2 && off + len <= PCI_CONFIG_SIZE);
    dev->config[off + PCI_CAP_LIST_ID] = cap_id;
    dev->config[off + PCI_CAP_LIST_NEXT] = dev->config[PCI_CAPABILITY_LIST];
    dev->config[PCI_CAPABILITY_LIST] = off;
    dev->config[PCI_STATUS] |= PCI_STATUS_CAP_LIST;
    dev->cap_next = off + ((len + 3) & ~3u);
    return off;
}

uint32_t pci_config_read(PciDevice *dev, unsigned off, unsigned size)
{
    uint32_t value = 0;

    assert(off + size <= PCI_CONFIG_SIZE);
    if (dev->ops->config_read != NULL) {
        dev->ops->config_read(dev, off, size);
    }
    for (unsigned i = 0; i < size; i++) {
        value |= (uint32_t)dev->config[off + i] << (8 * i);
    }
    return value;
}

static bool hits(unsigned off, unsigned size, unsigned reg, unsigned reg_size)
{
    return off < reg + reg_size && reg < off + size;
}

void pci_config_write(PciDevice *dev, unsigned off, uint32_t value, unsigned size)
{
    assert(off + size <= PCI_CONFIG_SIZE);
    for (unsigned i = 0; i < size; i++) {
        uint8_t v = value >> (8 * i);
        uint8_t keep = ~dev->wmask[off + i];
        uint8_t next = (dev->config[off + i] & keep) | (v & dev->wmask[off + i]);

        next &= ~(v & dev->w1c[off + i]);
        __atomic_store_n(&dev->config[off + i], next, __ATOMIC_RELEASE);
    }
    if (hits(off, size, PCI_COMMAND, 2) ||
        hits(off, size, PCI_BASE_ADDRESS_0, PCI_BARS * 4)) {
        pci_bars_update(dev);
        pci_bus_remap(dev->bus);
    }
    if (hits(off, size, PCI_COMMAND, 2)) {
        pci_irq_update(dev);
    }
    if (hits(off, size, PCI_COMMAND, 2) || pci_msix_control_hit(dev, off, size)) {
        pci_msix_update(dev);
        if (dev->ops->mode_changed != NULL) {
            dev->ops->mode_changed(dev);
        }
    }
    if (dev->ops->config_written != NULL) {
        dev->ops->config_written(dev, off, size);
    }
}

static void set_wmask16(PciDevice *dev, unsigned off, uint16_t mask)
{
    dev->wmask[off] = mask;
    dev->wmask[off + 1] = mask >> 8;
}

static void config_init(PciDevice *dev)
{
    const PciDeviceOps *ops = dev->ops;

    pci_config_set16(dev, PCI_VENDOR_ID, ops->vendor_id);
    pci_config_set16(dev, PCI_DEVICE_ID, ops->device_id);
    pci_config_set32(dev, PCI_CLASS_REVISION, ops->class_code << 8 | ops->revision);
    pci_config_set16(dev, PCI_SUBSYSTEM_VENDOR_ID, ops->subsystem_vendor_id);
    pci_config_set16(dev, PCI_SUBSYSTEM_ID, ops->subsystem_id);
    dev->config[PCI_HEADER_TYPE] = dev->multifunction ? 0x80 : 0;

    set_wmask16(dev, PCI_COMMAND, PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
                                  PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
                                  PCI_COMMAND_INTX_DISABLE);
    set_wmask16(dev, PCI_CACHE_LINE_SIZE, 0xff);
    dev->wmask[PCI_INTERRUPT_LINE] = 0xff;
    dev->cap_next = PCI_STD_HEADER_SIZEOF;
}

/* What the guest wrote goes; what the device is stays. */
void pci_device_reset(PciDevice *dev)
{
    for (unsigned i = 0; i < PCI_CONFIG_SIZE; i++) {
        __atomic_store_n(&dev->config[i], dev->config_at_reset[i], __ATOMIC_RELEASE);
    }
    dev->irq_level = false;
    pci_irq_update(dev);
    pci_bars_update(dev);
    pci_msix_reset(dev);
    if (dev->ops->reset != NULL) {
        dev->ops->reset(dev);
    }
}

/* ---- property addr= ---- */

bool pci_addr_parse(const char *text, int *devfn, GError **errp)
{
    unsigned part[2] = { 0, 0 };
    const char *p = text;

    for (unsigned i = 0; i < 2; i++) {
        char *end;

        if (!g_ascii_isxdigit(*p)) {
            goto bad;
        }
        part[i] = MIN(g_ascii_strtoull(p, &end, 16), 255);
        p = end;
        if (i == 0 && *p == '.') {
            p++;
        } else {
            break;
        }
    }
    if (*p == '\0' && part[0] < PCI_SLOTS && part[1] < PCI_FUNCTIONS) {
        *devfn = PCI_DEVFN_OF(part[0], part[1]);
        return true;
    }
bad:
    err_set(errp, "'%s' is not a PCI address; expected SLOT or SLOT.FUNCTION in hexadecimal, "
            "0 to 1f and 0 to 7", text);
    return false;
}

char *pci_addr_format(uint8_t devfn)
{
    return g_strdup_printf("%02x.%x", devfn >> 3, devfn & 7);
}

static bool addr_from_text(Object *obj, const ObjProp *prop, const char *text,
                           PropValue *value, GError **errp)
{
    int devfn;

    if (!pci_addr_parse(text, &devfn, errp)) {
        return false;
    }
    value->i = devfn;
    return true;
}

/* A number is the devfn itself, -1 none in particular, as management tools say it. */
static bool addr_from_json(Object *obj, const ObjProp *prop, JsonValue *json, bool texts,
                           PropValue *value, GError **errp)
{
    if (json_object_is_type(json, json_type_string)) {
        return addr_from_text(obj, prop, json_object_get_string(json), value, errp);
    }
    if (json_object_is_type(json, json_type_int)) {
        value->i = json_object_get_int64(json);
        if (value->i >= PCI_DEVFN_AUTO && value->i < PCI_SLOTS * PCI_FUNCTIONS) {
            return true;
        }
    }
    err_set(errp, "parameter 'addr' expects a PCI address, SLOT or SLOT.FUNCTION");
    return false;
}

static JsonValue *addr_to_json(const ObjProp *prop, const PropValue *value)
{
    g_autofree char *text = NULL;

    if (value->i == PCI_DEVFN_AUTO) {
        return json_object_new_int(PCI_DEVFN_AUTO);
    }
    text = pci_addr_format(value->i);
    return json_object_new_string(text);
}

static void addr_load(const void *field, PropValue *value)
{
    value->i = *(const int *)field;
}

static void addr_store(Object *obj, void *field, PropValue *value)
{
    *(int *)field = value->i;
}

const PropType prop_pci_addr = {
    .name = "str",
    .field_size = sizeof(int),
    .from_text = addr_from_text,
    .from_json = addr_from_json,
    .to_json = addr_to_json,
    .load = addr_load,
    .store = addr_store,
};

static const ObjProp pci_device_props[] = {
    { .name = "addr", .type = &prop_pci_addr, PROP_FIELD(PciDevice, devfn_wanted),
      .help = "place on the bus, SLOT or SLOT.FUNCTION; the first free slot by default" },
    { .name = "multifunction", .type = &prop_bool, PROP_FIELD(PciDevice, multifunction),
      .def = "off", .help = "on function 0 of a slot with several functions" },
    { 0 },
};

/* ---- life ---- */

static void pci_device_init(Object *obj)
{
    PciDevice *dev = (PciDevice *)obj;

    dev->devfn_wanted = PCI_DEVFN_AUTO;
    dev->ops = object_class_data(obj->type);
}

static bool pci_device_check(Object *obj, GError **errp)
{
    PciDevice *dev = (PciDevice *)obj;

    if (dev->dev.machine->pci == NULL) {
        err_set(errp, "'%s' needs a PCI bus, and this machine has none", device_name(&dev->dev));
        return false;
    }
    return true;
}

static bool pci_device_realize(Object *obj, GError **errp)
{
    config_init((PciDevice *)obj);
    return true;
}

static bool pci_device_complete(Object *obj, GError **errp)
{
    PciDevice *dev = (PciDevice *)obj;

    memcpy(dev->config_at_reset, dev->config, sizeof(dev->config));
    return pci_device_plug(dev, dev->dev.machine->pci, errp);
}

static void pci_device_unrealize(Object *obj)
{
    PciDevice *dev = (PciDevice *)obj;

    pci_device_unplug(dev);
    pci_msix_free(dev);
    pci_bars_free(dev);
    memset(dev->config, 0, sizeof(dev->config));
    memset(dev->wmask, 0, sizeof(dev->wmask));
}

const ObjType type_pci_device = {
    .name = "pci-device",
    .parent = &type_device,
    .bus = "PCI",
    .size = sizeof(PciDevice),
    .flags = OBJ_ABSTRACT,
    .props = pci_device_props,
    .init = pci_device_init,
    .check = pci_device_check,
    .realize = pci_device_realize,
    .complete = pci_device_complete,
    .unrealize = pci_device_unrealize,
};
