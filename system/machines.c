/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machines and accelerators that there are.
 */
#include "options.h"

#include <stdio.h>
#include <string.h>

#include "config-host.h"
#ifdef CONFIG_KVM
#include "accel/kvm.h"
#endif
#ifdef CONFIG_QTEST
#include "accel/qtest.h"
#endif
#include "hw/i386/pc.h"
#include "util/err.h"
#include "util/suggest.h"

static const MachineType *const machines[] = {
    &machine_type_pc,
};

static const VmOps *const accels[] = {
#ifdef CONFIG_KVM
    &kvm_vm_ops,
#endif
#ifdef CONFIG_QTEST
    &qtest_vm_ops,
#endif
    NULL,
};

const MachineType *machine_type_default(void)
{
    return machines[0];
}

const MachineType *machine_type_find(const char *name, GError **errp)
{
    Suggest near;

    suggest_start(&near, name);
    for (unsigned i = 0; i < G_N_ELEMENTS(machines); i++) {
        if (strcmp(machines[i]->name, name) == 0 ||
            (machines[i]->alias != NULL && strcmp(machines[i]->alias, name) == 0)) {
            return machines[i];
        }
        suggest_offer(&near, machines[i]->name);
    }
    err_set(errp, "there is no machine '%s' (-machine help lists them)", name);
    suggest_append(&near, errp);
    return NULL;
}

void machine_type_help(void)
{
    printf("Supported machines are:\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(machines); i++) {
        printf("%-20s %s%s\n", machines[i]->name, machines[i]->desc,
               machines[i] == machine_type_default() ? " (default)" : "");
    }
}

const VmOps *accel_find(const char *name, GError **errp)
{
    Suggest near;

    suggest_start(&near, name);
    for (unsigned i = 0; accels[i] != NULL; i++) {
        if (strcmp(accels[i]->name, name) == 0) {
            return accels[i];
        }
        suggest_offer(&near, accels[i]->name);
    }
    err_set(errp, "there is no accelerator '%s' (-accel help lists them)", name);
    suggest_append(&near, errp);
    return NULL;
}

void accel_help(void)
{
    printf("Accelerators supported in QEMU binary:\n");
    for (unsigned i = 0; accels[i] != NULL; i++) {
        printf("%s\n", accels[i]->name);
    }
}
