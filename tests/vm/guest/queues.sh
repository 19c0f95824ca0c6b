# SPDX-License-Identifier: GPL-2.0-or-later
#
# Several queues: one per CPU, each with its own MSI-X vector, and each used.
# t.queues=N, on the disk with the serial "native".

disk native
is "queues of the disk" "$(ls "/sys/block/$d/mq" | wc -l)" "$t_queues"
is "bit 12, several queues, was negotiated" "$(feature "$d" 12)" 1
dev=$(virtio_of "$d")
is "one vector for the configuration, MSI-X" \
    "$(grep -Ec "PCI-MSI.* $dev-config$" /proc/interrupts)" 1
is "one vector a queue, MSI-X" \
    "$(grep -Ec "PCI-MSI.* $dev-req[.][0-9]+$" /proc/interrupts)" "$t_queues"
q=0
while [ $q -lt "$t_queues" ]; do
    before=$(interrupts "$d" $q)
    taskset -c $q dd if="/dev/$d" of=/dev/null bs=4k count=20 iflag=direct 2>/dev/null
    at_least "interrupts of queue $q after 20 reads by CPU $q" \
        $(($(interrupts "$d" $q) - before)) 10
    q=$((q + 1))
done
