# SPDX-License-Identifier: GPL-2.0-or-later
#
# Disks that interrupt by the pin: found by the serials in t.intx, comma-separated.

for serial in $(echo "$t_intx" | tr , ' '); do
    disk "$serial" || continue
    dev=$(virtio_of "$d")
    is "$serial: no MSI-X" "$(grep -c "MSI.* $dev-" /proc/interrupts)" 0
    is "$serial: an interrupt pin" "$(grep -Ec "(IO-APIC|XT-PIC).* $dev(,|\$)" /proc/interrupts)" 1
    before=$(interrupts "$d")
    d_is="$serial, by its pin"
    fio_verify "$d" randwrite 4k 1 psync 256k
    fio_verify "$d" randwrite 4k 16 libaio 2M
    at_least "$serial: interrupts" $(($(interrupts "$d") - before)) 64
done
d_is=
