# SPDX-License-Identifier: GPL-2.0-or-later
#
# One disk for each property of virtio-blk-pci, found by its serial.

# plain: what a disk looks like when nothing was asked for
disk plain
pci=$(pci_of "$d")
is "PCI identity" "$(cd "$pci" && cat vendor device subsystem_vendor subsystem_device \
    class revision | tr '\n' ' ')" "0x1af4 0x1042 0x1af4 0x1100 0x010000 0x01 "
is "capacity in sectors" "$(attribute "$d" size)" 131072
is "logical block size" "$(attribute "$d" queue/logical_block_size)" 512
is "physical block size" "$(attribute "$d" queue/physical_block_size)" 512
is "segments of a request" "$(attribute "$d" queue/max_segments)" 254
is "queue size" "$(attribute "$d" mq/0/nr_tags)" 256
is "cache" "$(attribute "$d" queue/write_cache)" "write back"
is "read-only" "$(attribute "$d" ro)" 0
is "discard and write-zeroes are there" \
    "$([ "$(attribute "$d" queue/discard_max_bytes)" -gt 0 ] &&
       [ "$(attribute "$d" queue/write_zeroes_max_bytes)" -gt 0 ] && echo yes)" yes
for bit in 2:SEG_MAX 6:BLK_SIZE 9:FLUSH 10:TOPOLOGY 11:CONFIG_WCE 13:DISCARD 14:WRITE_ZEROES \
        28:INDIRECT_DESC 29:EVENT_IDX 32:VERSION_1; do
    is "negotiated ${bit#*:}" "$(feature "$d" "${bit%:*}")" 1
done

# what the host wrote is read; what the guest writes, the host will find (see plan.py)
is "the host's data" "$(head -c 1000000 "/dev/$d" | sum_of)" "$(pattern 1000000 | sum_of)"
check "write for the host" eval \
    "pattern 1048576 | dd of=/dev/$d bs=64k seek=512 iflag=fullblock oflag=direct conv=fsync"

# ro
disk ro
is "a read-only disk says so" "$(attribute "$d" ro)" 1
is "its data" "$(head -c 1000000 "/dev/$d" | sum_of)" "$(pattern 1000000 | sum_of)"
refused "writing it" dd if=/dev/zero of="/dev/$d" bs=4k count=1 oflag=direct

# lb4096
disk lb4096
is "logical blocks of 4096" "$(attribute "$d" queue/logical_block_size)" 4096
is "physical blocks of 4096" "$(attribute "$d" queue/physical_block_size)" 4096
is "capacity is still in sectors" "$(attribute "$d" size)" 131072
refused "half a block" fio --name=half --filename="/dev/$d" --direct=1 --rw=read --bs=512 \
    --io_size=512 --output=/dev/null
fio_verify "$d" randwrite 4k 16 libaio 4M

# pb4096
disk pb4096
is "logical 512, physical 4096" \
    "$(attribute "$d" queue/logical_block_size) $(attribute "$d" queue/physical_block_size)" \
    "512 4096"
fio_verify "$d" randwrite 512 16 libaio 1M

# small: one short queue
disk small
is "a queue of 64" "$(attribute "$d" mq/0/nr_tags)" 64
is "its segments" "$(attribute "$d" queue/max_segments)" 62
fio_verify "$d" randwrite 64k 64 libaio 4M

# exits: no ioeventfd, kicks go through the VMM
disk exits
fio_verify "$d" randwrite 4k 8 libaio 1M

# null: nothing behind it
disk null
is "a null disk's size" "$(attribute "$d" size)" 2097152
is "it reads zeroes" "$(head -c 1048576 "/dev/$d" | sum_of)" \
    "$(head -c 1048576 /dev/zero | sum_of)"
check "big requests" fio --name=big --filename="/dev/$d" --direct=1 --rw=randrw --bs=4M \
    --iodepth=16 --ioengine=libaio --io_size=256M --output=/dev/null
