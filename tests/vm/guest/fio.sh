# SPDX-License-Identifier: GPL-2.0-or-later
#
# Write and read back with checksums, as many jobs as the harness has. A job is
# SERIAL RW BS DEPTH ENGINE SIZE; RW and ENGINE are fio's words. Every block that was
# written is read again and its CRC compared.

while ask job && [ -n "$answer" ] && [ "$answer" != done ]; do
    set -- $answer
    disk "$1" || continue
    d_is=$1
    shift
    fio_verify "$d" "$@"
done
d_is=
