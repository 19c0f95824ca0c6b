/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PCI devices over an accelerator that only remembers: what follows masks,
 * messages, moved BARs and resets.
 */
#include <linux/pci_regs.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake-vm.h"
#include "hw/pci/pci.h"

#define MSIX_BAR 1
#define REGS_BAR 4
#define PORTS_BAR 0
#define VECTORS 3
#define DEVFN PCI_DEVFN_OF(3, 0)

/* ---- a device ---- */

typedef struct TestDevice {
    PciDevice pci;
    unsigned resets, mode_changes, writes;
    uint64_t last_off, last_value;
} TestDevice;

static uint64_t regs_read(void *opaque, uint64_t off, unsigned size)
{
    return 0xab00 + off;
}

static void regs_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    TestDevice *d = opaque;

    d->writes++;
    d->last_off = off;
    d->last_value = value;
}

static const IoOps regs_ops = { .name = "test-regs", .read = regs_read, .write = regs_write };

static bool test_realize(Object *obj, GError **errp)
{
    TestDevice *d = (TestDevice *)obj;

    pci_bar_add(&d->pci, PORTS_BAR, PCI_BAR_PIO, 0x20, &regs_ops, d);
    pci_bar_add(&d->pci, REGS_BAR, PCI_BAR_MEM64_PREFETCH, 0x4000, &regs_ops, d);
    pci_irq_pin(&d->pci, 1);
    return pci_msix_init(&d->pci, VECTORS, MSIX_BAR, errp);
}

static void test_reset(PciDevice *dev)
{
    ((TestDevice *)dev)->resets++;
}

static void test_mode_changed(PciDevice *dev)
{
    ((TestDevice *)dev)->mode_changes++;
}

static const PciDeviceOps test_ops = {
    .vendor_id = 0x1234, .device_id = 0x5678, .class_code = 0xff0000,
    .reset = test_reset, .mode_changed = test_mode_changed,
};

static const ObjType type_test = {
    .name = "test-pci", .parent = &type_pci_device, .bus = "PCI", .size = sizeof(TestDevice),
    .flags = OBJ_DEVICE, .class_data = &test_ops, .realize = test_realize,
};

/* ---- a machine ---- */

typedef struct Fixture {
    Machine m;
    ObjectTree *tree;
    TestDevice *d;
} Fixture;

static TestDevice *add(Fixture *f, const char *json, GError **errp)
{
    g_autoptr(JsonValue) options = json_parse(json, strlen(json), NULL);

    return (TestDevice *)device_add(&f->m, f->tree, options, false, errp);
}

static void set_up(Fixture *f, gconstpointer data)
{
    static const ObjType *const types[] = { &type_device, &type_pci_device, &type_test };
    static const PciBusConfig config = {
        .pio = { 0xc000, 0x10000 }, .mem32 = { 0xc0000000, 0xfec00000 },
        .mem64 = { 0x4000000000, 0x8000000000 }, .first_auto_slot = 2,
        .irq_gsi = { 10, 11, 10, 11 },
    };

    fake_machine_init(&f->m, 2 << 20);
    f->tree = object_tree_new(types, G_N_ELEMENTS(types));
    g_assert_nonnull(pci_bus_new(&f->m, &config, NULL));
    f->d = add(f, "{\"driver\":\"test-pci\",\"id\":\"d\",\"addr\":\"3\"}", NULL);
    g_assert_nonnull(f->d);
    g_assert_true(pci_bus_assign(f->m.pci, NULL));
}

static void tear_down(Fixture *f, gconstpointer data)
{
    while (f->m.devices->len > 0) {
        device_del(g_ptr_array_index(f->m.devices, 0));
    }
    object_tree_free(f->tree);
    pci_bus_free(f->m.pci);
    fake_machine_cleanup(&f->m);
}

/* ---- the guest ---- */

static uint32_t config_read(Fixture *f, unsigned reg, unsigned size)
{
    io_bus_write(f->m.pio, 0xcf8, 0x80000000u | DEVFN << 8 | (reg & ~3u), 4);
    return io_bus_read(f->m.pio, 0xcfc + (reg & 3), size);
}

static void config_write(Fixture *f, unsigned reg, uint32_t value, unsigned size)
{
    io_bus_write(f->m.pio, 0xcf8, 0x80000000u | DEVFN << 8 | (reg & ~3u), 4);
    io_bus_write(f->m.pio, 0xcfc + (reg & 3), value, size);
}

static unsigned msix_cap(Fixture *f)
{
    return config_read(f, PCI_CAPABILITY_LIST, 1);
}

static void msix_control(Fixture *f, uint16_t flags)
{
    config_write(f, msix_cap(f) + PCI_MSIX_FLAGS, flags, 2);
}

static void entry_write(Fixture *f, unsigned vector, unsigned reg, uint32_t value)
{
    io_bus_write(f->m.mmio, pci_bar_addr(&f->d->pci, MSIX_BAR) + vector * 16 + reg, value, 4);
}

/* Message @data for @vector, let through. */
static void entry_open(Fixture *f, unsigned vector, uint32_t data)
{
    entry_write(f, vector, PCI_MSIX_ENTRY_LOWER_ADDR, 0xfee00000);
    entry_write(f, vector, PCI_MSIX_ENTRY_UPPER_ADDR, 0);
    entry_write(f, vector, PCI_MSIX_ENTRY_DATA, data);
    entry_write(f, vector, PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
}

static bool pending(Fixture *f, unsigned vector)
{
    uint64_t addr = pci_bar_addr(&f->d->pci, MSIX_BAR) + 0x800;

    return io_bus_read(f->m.mmio, addr, 4) >> vector & 1;
}

static bool signalled(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

/* ---- MSI-X ---- */

static void test_vector_needs_all_of_it(Fixture *f, gconstpointer data)
{
    int fd = pci_msix_use(&f->d->pci, 1);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    entry_open(f, 1, 0x41);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    msix_control(f, PCI_MSIX_FLAGS_ENABLE);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    config_write(f, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, 24);
    g_assert_cmphex(fake_vm(&f->m)->route[24].data, ==, 0x41);
    g_assert_cmphex(fake_vm(&f->m)->route[24].addr, ==, 0xfee00000);

    /* each of them takes it away again */
    config_write(f, PCI_COMMAND, PCI_COMMAND_MEMORY, 2);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    config_write(f, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, 24);
    msix_control(f, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    msix_control(f, PCI_MSIX_FLAGS_ENABLE);
    entry_write(f, 1, PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    entry_write(f, 1, PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, 24);
    pci_msix_unuse(&f->d->pci, 1);
    g_assert_cmpint(fake_vm(&f->m)->irqfd[24], ==, -1);
}

static void open_all(Fixture *f)
{
    config_write(f, PCI_COMMAND, PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    msix_control(f, PCI_MSIX_FLAGS_ENABLE);
    for (unsigned v = 0; v < VECTORS; v++) {
        entry_open(f, v, 0x40 + v);
    }
}

static void test_masked_vector_is_pending(Fixture *f, gconstpointer data)
{
    int fd = pci_msix_use(&f->d->pci, 2);

    open_all(f);
    entry_write(f, 2, PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    g_assert_false(pending(f, 2));
    pci_msix_raise(fd);
    g_assert_true(pending(f, 2));
    g_assert_false(pending(f, 1));
    entry_write(f, 2, PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), >=, 24);
    g_assert_true(signalled(fd));       /* for the accelerator to deliver */
    g_assert_false(pending(f, 2));
    pci_msix_unuse(&f->d->pci, 2);
}

static void test_message_changes(Fixture *f, gconstpointer data)
{
    int fd = pci_msix_use(&f->d->pci, 0);
    unsigned changes;

    open_all(f);
    changes = fake_vm(&f->m)->changes;
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    entry_write(f, 0, PCI_MSIX_ENTRY_LOWER_ADDR, 0xfee01000);
    entry_write(f, 0, PCI_MSIX_ENTRY_DATA, 0x77);
    g_assert_cmpuint(fake_vm(&f->m)->changes, ==, changes);
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    g_assert_cmpuint(fake_vm(&f->m)->changes, ==, changes + 1);
    g_assert_cmphex(fake_vm(&f->m)->route[fake_gsi_of(&f->m, fd)].data, ==, 0x77);
    g_assert_cmphex(fake_vm(&f->m)->route[fake_gsi_of(&f->m, fd)].addr, ==, 0xfee01000);
    /* masking and unmasking alone costs no change of routes */
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    g_assert_cmpuint(fake_vm(&f->m)->changes, ==, changes + 1);
    pci_msix_unuse(&f->d->pci, 0);
}

static void test_uses_are_counted(Fixture *f, gconstpointer data)
{
    int fd = pci_msix_use(&f->d->pci, 0);

    open_all(f);
    g_assert_cmpint(pci_msix_use(&f->d->pci, 0), ==, fd);
    pci_msix_unuse(&f->d->pci, 0);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, 24);
    pci_msix_unuse(&f->d->pci, 0);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    g_assert_cmpint(pci_msix_use(&f->d->pci, VECTORS), <, 0);
}

static void test_reset_forgets(Fixture *f, gconstpointer data)
{
    int fd = pci_msix_use(&f->d->pci, 0);

    open_all(f);
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    pci_msix_raise(fd);
    pci_bus_reset(f->m.pci);
    g_assert_cmpuint(f->d->resets, ==, 1);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    g_assert_false(signalled(fd));
    g_assert_false(fake_vm(&f->m)->route_used[24]);
    g_assert_cmphex(config_read(f, PCI_COMMAND, 2), ==, 0);
    g_assert_false(pci_msix_enabled(&f->d->pci));
    g_assert_cmphex(pci_bar_addr(&f->d->pci, MSIX_BAR), ==, PCI_BAR_UNMAPPED);

    /* and the next guest starts anew */
    g_assert_true(pci_bus_assign(f->m.pci, NULL));
    open_all(f);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, 24);
    pci_msix_unuse(&f->d->pci, 0);
}

static void test_refused_route(Fixture *f, gconstpointer data)
{
    int fd = pci_msix_use(&f->d->pci, 0);

    open_all(f);
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    fake_vm(&f->m)->fail = -ENOSPC;
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 0);   /* a warning on stderr */
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, -1);
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 1);
    entry_write(f, 0, PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    g_assert_cmpint(fake_gsi_of(&f->m, fd), ==, 24);
    pci_msix_unuse(&f->d->pci, 0);
}

static void test_mode_hook(Fixture *f, gconstpointer data)
{
    unsigned before = f->d->mode_changes;

    msix_control(f, PCI_MSIX_FLAGS_ENABLE);
    g_assert_cmpuint(f->d->mode_changes, ==, before + 1);
    g_assert_true(pci_msix_enabled(&f->d->pci));
    config_write(f, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
    g_assert_cmpuint(f->d->mode_changes, ==, before + 2);
    g_assert_true(pci_bus_master(&f->d->pci));
}

/* ---- doorbells ---- */

static void test_doorbells_move_along(Fixture *f, gconstpointer data)
{
    FakeVm *vm = fake_vm(&f->m);
    PciDevice *pci = &f->d->pci;
    uint64_t old = pci_bar_addr(pci, REGS_BAR);
    int fd = eventfd(0, EFD_CLOEXEC);

    g_assert_cmpint(pci_ioeventfd_add(pci, REGS_BAR, 0x3000, 2, false, 0, fd), ==, 0);
    g_assert_cmpuint(vm->n_doorbells, ==, 1);
    g_assert_cmphex(vm->doorbells[0].addr, ==, old + 0x3000);
    g_assert_cmpint(vm->doorbells[0].space, ==, VM_MMIO);

    config_write(f, PCI_BASE_ADDRESS_0 + 4 * REGS_BAR, 0xd0000000, 4);
    g_assert_cmpuint(vm->n_doorbells, ==, 1);
    g_assert_cmphex(vm->doorbells[0].addr, ==, 0xd0003000);
    config_write(f, PCI_BASE_ADDRESS_0 + 4 * (REGS_BAR + 1), 0x41, 4);
    g_assert_cmphex(vm->doorbells[0].addr, ==, 0x41d0003000);

    config_write(f, PCI_COMMAND, 0, 2);
    g_assert_cmpuint(vm->n_doorbells, ==, 0);
    config_write(f, PCI_COMMAND, PCI_COMMAND_MEMORY, 2);
    g_assert_cmpuint(vm->n_doorbells, ==, 1);
    pci_ioeventfd_del(pci, REGS_BAR, 0x3000, fd);
    g_assert_cmpuint(vm->n_doorbells, ==, 0);
    close(fd);
}

static void test_refused_doorbell(Fixture *f, gconstpointer data)
{
    FakeVm *vm = fake_vm(&f->m);
    PciDevice *pci = &f->d->pci;
    int fd = eventfd(0, EFD_CLOEXEC);

    vm->fail = -ENOSPC;
    g_assert_cmpint(pci_ioeventfd_add(pci, PORTS_BAR, 0, 2, true, 7, fd), ==, -ENOSPC);
    g_assert_cmpint(pci_ioeventfd_add(pci, PORTS_BAR, 0, 2, true, 7, fd), ==, 0);
    g_assert_cmpint(vm->doorbells[0].space, ==, VM_PIO);
    vm->fail = -ENOSPC;                 /* while it moves: the handler gets the writes */
    config_write(f, PCI_BASE_ADDRESS_0, 0xd000, 4);
    g_assert_cmpuint(vm->n_doorbells, ==, 0);
    io_bus_write(f->m.pio, 0xd000, 7, 2);
    g_assert_cmpuint(f->d->writes, ==, 1);
    pci_ioeventfd_del(pci, PORTS_BAR, 0, fd);
    close(fd);
}

/* ---- INTx ---- */

static void test_intx_is_shared(Fixture *f, gconstpointer data)
{
    /* slots 3 and 5 are two apart: lines 3 and 1, both GSI 11 */
    TestDevice *other = add(f, "{\"driver\":\"test-pci\",\"id\":\"e\",\"addr\":\"5\"}", NULL);
    const bool *level = fake_vm(&f->m)->level;

    g_assert_nonnull(other);
    pci_irq_set(&f->d->pci, true);
    g_assert_true(level[11]);
    g_assert_true(config_read(f, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT);
    pci_irq_set(&other->pci, true);
    pci_irq_set(&f->d->pci, false);
    g_assert_true(level[11]);
    pci_irq_set(&other->pci, false);
    g_assert_false(level[11]);
    g_assert_false(config_read(f, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT);

    pci_irq_set(&f->d->pci, true);
    config_write(f, PCI_COMMAND, PCI_COMMAND_INTX_DISABLE, 2);
    g_assert_false(level[11]);
    g_assert_true(config_read(f, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT);
    config_write(f, PCI_COMMAND, 0, 2);
    g_assert_true(level[11]);
    pci_bus_reset(f->m.pci);
    g_assert_false(level[11]);
}

static void test_unplugged_device_lets_go(Fixture *f, gconstpointer data)
{
    uint64_t addr = pci_bar_addr(&f->d->pci, REGS_BAR);

    g_assert_cmphex(io_bus_read(f->m.mmio, addr, 4), ==, 0xab00);
    pci_irq_set(&f->d->pci, true);
    device_del(&f->d->pci.dev);
    g_assert_false(fake_vm(&f->m)->level[11]);
    g_assert_cmphex(io_bus_read(f->m.mmio, addr, 4), ==, 0xffffffff);
    g_assert_cmphex(config_read(f, PCI_VENDOR_ID, 4), ==, 0xffffffff);
}

static void test_places_run_out(Fixture *f, gconstpointer data)
{
    GError *err = NULL;
    unsigned n = 0;

    while (add(f, "{\"driver\":\"test-pci\"}", &err) != NULL) {
        n++;
    }
    g_assert_cmpuint(n, ==, 29);        /* slots 2 to 31 without 3 */
    g_assert_nonnull(strstr(err->message, "no free slot"));
    g_error_free(err);
    g_assert_true(pci_bus_assign(f->m.pci, NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, fn) g_test_add("/pci/" path, Fixture, NULL, set_up, fn, tear_down)
    ADD("vector-needs-all-of-it", test_vector_needs_all_of_it);
    ADD("masked-vector-is-pending", test_masked_vector_is_pending);
    ADD("message-changes", test_message_changes);
    ADD("uses-are-counted", test_uses_are_counted);
    ADD("reset-forgets", test_reset_forgets);
    ADD("refused-route", test_refused_route);
    ADD("mode-hook", test_mode_hook);
    ADD("doorbells-move-along", test_doorbells_move_along);
    ADD("refused-doorbell", test_refused_doorbell);
    ADD("intx-is-shared", test_intx_is_shared);
    ADD("unplugged-device-lets-go", test_unplugged_device_lets_go);
    ADD("places-run-out", test_places_run_out);
    return g_test_run();
}
