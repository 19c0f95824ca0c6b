# SPDX-License-Identifier: GPL-2.0-or-later
#
# Write and read back with checksums.
# t.fio=JOB[;JOB...], a JOB is DISK:RW:BS:DEPTH:ENGINE[:SIZE], DISK a serial; RW and
# ENGINE are fio's words. Every block that was written is read again and its CRC compared.

# fio_verify DISK RW BS DEPTH ENGINE SIZE
fio_verify() {
    check "fio $2 bs=$3 depth=$4 $5 on $1, read back" \
        fio --name=verify --filename="/dev/$(by_serial "$1")" --direct=1 --rw="$2" --bs="$3" \
            --iodepth="$4" --ioengine="$5" --size="$6" --verify=crc32c --do_verify=1 \
            --verify_fatal=1 --eta=never --output=/dev/null
}

for job in $(echo "$t_fio" | tr ';' ' '); do
    fio_verify $(echo "$job:8M" | tr : ' ')
done
