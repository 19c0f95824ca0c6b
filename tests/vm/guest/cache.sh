# SPDX-License-Identifier: GPL-2.0-or-later
#
# The write cache: as configured, changed at run time, and flushes.

cached() { is "$1 is $2" "$(attribute "$d" queue/write_cache)" "$2"; }

# flushes DISK: how many flush requests it has completed
flushes() { awk '{ print $16 }' "/sys/block/$1/stat"; }

disk plain
cached "cache of a disk at first" "write back"
before=$(flushes "$d")
check "fsync after each of 20 writes" fio --name=sync --filename="/dev/$d" --rw=randwrite --bs=4k \
    --size=1M --io_size=80k --fsync=1 --output=/dev/null
# fio leaves out the one after the last write
at_least "flushes of a disk with a cache" $(($(flushes "$d") - before)) 19
check "turn the cache off" eval "echo 'write through' >/sys/block/$d/cache_type"
cached "cache, turned off" "write through"
before=$(flushes "$d")
fio_verify "$d" randwrite 4k 8 libaio 1M --fsync=1
is "flushes of a disk without a cache" "$(($(flushes "$d") - before))" 0
check "turn it on again" eval "echo 'write back' >/sys/block/$d/cache_type"
cached "cache, turned on" "write back"
fio_verify "$d" randwrite 4k 8 libaio 1M --fsync=1

disk wt
cached "cache with write-cache=off" "write through"
is "FLUSH is negotiated all the same" "$(feature "$d" 9)" 1
fio_verify "$d" randwrite 4k 8 libaio 1M

disk nowce
is "CONFIG_WCE with config-wce=off" "$(feature "$d" 11)" 0
cached "cache with config-wce=off" "write back"
refused "change the cache of such a disk" eval "echo 'write through' >/sys/block/$d/cache_type"
cached "and after the attempt" "write back"

disk nocache
is "FLUSH with write-cache=off,config-wce=off" "$(feature "$d" 9)$(feature "$d" 11)" 00
cached "cache then" "write through"
