# SPDX-License-Identifier: GPL-2.0-or-later
#
# Take the driver away and bring it back: reset, negotiate again, go on.

disk plain
dev=$(virtio_of "$d")
pci=$(basename "$(pci_of "$d")")
driver=/sys/bus/virtio/drivers/virtio_blk

for try in 1 2 3; do
    check "unbind, $try" eval "echo $dev >$driver/unbind"
    refused "to find the disk without its driver" by_serial plain
    check "bind, $try" eval "echo $dev >$driver/bind"
    disk plain
    fio_verify "$d" randwrite 4k 8 libaio 512k
done

check "unbind the PCI driver" eval "echo $pci >/sys/bus/pci/drivers/virtio-pci/unbind"
refused "to find the disk without its driver" by_serial plain
check "bind it again" eval "echo $pci >/sys/bus/pci/drivers/virtio-pci/bind"
disk plain
fio_verify "$d" randwrite 4k 8 libaio 512k

# under load: what was in flight may fail, the next driver works
dev=$(virtio_of "$d")
fio --name=load --filename="/dev/$d" --direct=1 --rw=randread --bs=4k --iodepth=32 \
    --ioengine=libaio --time_based --runtime=4 --output=/dev/null >/dev/null 2>&1 &
load=$!
sleep 1
check "unbind under load" eval "echo $dev >$driver/unbind"
wait $load
check "bind after it" eval "echo $dev >$driver/bind"
disk plain
fio_verify "$d" randwrite 4k 8 libaio 512k

check "remove the PCI device" eval "echo 1 >/sys/bus/pci/devices/$pci/remove"
refused "to find the disk without its driver" by_serial plain
check "find it again" eval "echo 1 >/sys/bus/pci/rescan"
disk plain
fio_verify "$d" randwrite 4k 8 libaio 512k
