# SPDX-License-Identifier: GPL-2.0-or-later
#
# Discard and write-zeroes; each disk was filled by the host with pattern.

MIB=1048576

# zeroed DISK FROM BYTES: that part reads as zeroes, and the bytes around it as before
zeroed() {
    is "$4" "$(head -c $((4 * MIB)) "/dev/$1" | sum_of)" \
        "$( (pattern "$2"; head -c "$3" /dev/zero; tail -c +$(($2 + $3 + 1)) /t/pattern) | sum_of)"
}

disk unmap
at_least "the largest discard" "$(attribute "$d" queue/discard_max_bytes)" 4096
at_least "discard granularity" "$(attribute "$d" queue/discard_granularity)" 512
check "discard 1 MiB" blkdiscard-tool -o $MIB -l $MIB "/dev/$d"
zeroed "$d" $MIB $MIB "what was discarded reads as zeroes, the rest as before"
check "discard the whole disk" blkdiscard-tool "/dev/$d"
zeroed "$d" 0 $((4 * MIB)) "the whole disk reads as zeroes"

disk zeroes
check "write zeroes, keep the space" blkdiscard-tool -z -o $((MIB + 512)) -l 65536 "/dev/$d"
zeroed "$d" $((MIB + 512)) 65536 "what was zeroed reads so, the rest as before"

disk punch
check "write zeroes, may unmap" fallocate-tool -p -o $MIB -l $MIB "/dev/$d"
zeroed "$d" $MIB $MIB "what was punched reads as zeroes, the rest as before"

# ignore: the node's discard=ignore; the request succeeds and may change nothing else
disk ignore
check "discard where the node ignores it" blkdiscard-tool -o $MIB -l $MIB "/dev/$d"
is "the data before it" "$(head -c $MIB "/dev/$d" | sum_of)" "$(pattern $MIB | sum_of)"

# nodiscard: the device does not offer it
disk nodiscard
is "discard=off" "$(feature "$d" 13) $(attribute "$d" queue/discard_max_bytes)" "0 0"
refused "discard there" blkdiscard-tool "/dev/$d"

check "trims among writes" fio --name=trim --filename="/dev/$(by_serial unmap)" --direct=1 \
    --rw=randtrimwrite --bs=64k --iodepth=8 --ioengine=libaio --size=4M --output=/dev/null
