# SPDX-License-Identifier: GPL-2.0-or-later
#
# What guest tests are written with. A line that starts with @@ is a report to the
# harness (see vmlab/console.py); `count` lets it notice lost ones.

count=0

say() { echo "@@$*"; }
note() { say note "$@"; }
ok() { count=$((count + 1)); say ok "$@"; }
bad() { count=$((count + 1)); say bad "$@"; }
skip() { count=$((count + 1)); say skip "$1 # $2"; }

# check DESCRIPTION COMMAND...: it succeeds
check() {
    what=$1; shift
    if out=$("$@" 2>&1); then
        ok "$what"
    else
        note "$what: '$*' gave $?: $(echo "$out" | tail -n 3 | tr '\n' ' ')"
        bad "$what"
    fi
}

# fio_verify DISK RW BS DEPTH ENGINE SIZE [OPTION...]: write, read back, compare checksums
fio_verify() {
    job="fio $2 bs=$3 depth=$4 $5"; file=/dev/$1 rw=$2 bs=$3 depth=$4 engine=$5 size=$6
    shift 6
    check "$job on ${d_is:-$file}, read back" \
        fio --name=verify --filename="$file" --direct=1 --rw="$rw" --bs="$bs" \
            --iodepth="$depth" --ioengine="$engine" --size="$size" --verify=crc32c \
            --do_verify=1 --verify_fatal=1 --eta=never --output=/dev/null "$@"
}

# pattern BYTES: the start of what the harness knows too, 4 MiB at most (vmlab/images.py)
pattern() { head -c "$1" /t/pattern; }

# sum_of <DATA: short, for comparisons
sum_of() { md5sum | cut -c1-16; }

# refused DESCRIPTION COMMAND...: it fails
refused() {
    what=$1; shift
    if "$@" >/dev/null 2>&1; then
        note "$what: '$*' succeeded"
        bad "refused: $what"
    else
        ok "refused: $what"
    fi
}

# is DESCRIPTION SEEN WANTED
is() {
    if [ "$2" = "$3" ]; then
        ok "$1: $3"
    else
        note "$1: seen '$2', wanted '$3'"
        bad "$1: $3"
    fi
}

# at_least DESCRIPTION SEEN WANTED
at_least() {
    if [ "${2:-0}" -ge "$3" ]; then
        ok "$1 >= $3"
    else
        note "$1: seen '$2', wanted at least $3"
        bad "$1 >= $3"
    fi
}

# says DESCRIPTION PATTERN: the kernel's log has a line that matches
says() {
    if dmesg | grep -Eq "$2"; then
        ok "$1"
    else
        note "$1: no kernel message matches '$2'"
        bad "$1"
    fi
}

# says_not DESCRIPTION PATTERN
says_not() {
    line=$(dmesg | grep -Em1 "$2")
    if [ -z "$line" ]; then
        ok "$1"
    else
        note "$1: $line"
        bad "$1"
    fi
}

# ask WORD...: have the harness do something and wait; its answer is in $answer
ask() {
    say ask "$@"
    read -r answer
}

# send NAME <CONTENTS: hand a file to the harness
send() {
    gzip -9c >/tmp/send.gz
    say file "$1"
    base64 </tmp/send.gz
    say eof "$(wc -c </tmp/send.gz)"
}

# by_serial SERIAL: the name of that disk, as in /dev
by_serial() {
    for d in /sys/block/vd*; do
        if [ "$(cat "$d/serial" 2>/dev/null)" = "$1" ]; then
            echo "${d##*/}"
            return 0
        fi
    done
    return 1
}

# disk SERIAL: wait for it to be there and set $d to its name
disk() {
    for try in 1 2 3 4 5 6 7 8 9 10; do
        d=$(by_serial "$1") && return 0
        sleep 0.2
    done
    bad "a disk with serial $1 is there"
    return 1
}

# attribute DISK NAME: a file below /sys/block/DISK
attribute() { cat "/sys/block/$1/$2"; }

# features DISK: the bits that were negotiated, bit 0 first
features() { cat "/sys/block/$1/device/features"; }

# feature DISK BIT: 0 or 1
feature() { features "$1" | cut -c $(($2 + 1)); }

# interrupts DISK [QUEUE]: how many its queues, or that one, have taken so far, by MSI-X or INTx
interrupts() {
    dev=$(virtio_of "$1")
    awk -v queue=" $dev-req[.]${2-[0-9]+}\$" -v pin=" $dev(,|\$)" '$0 ~ queue || $0 ~ pin {
        for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

# virtio_of DISK: its device on the virtio bus
virtio_of() { basename "$(readlink -f "/sys/block/$1/device")"; }

# pci_of DISK: the directory of its PCI function
pci_of() { readlink -f "/sys/block/$1/device/.."; }
