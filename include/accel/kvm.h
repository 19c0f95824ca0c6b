/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The accelerator that runs guest code through /dev/kvm.
 */
#ifndef ACCEL_KVM_H
#define ACCEL_KVM_H

#include "hw/core/vm-ops.h"

extern const VmOps kvm_vm_ops;

#endif
