# SPDX-License-Identifier: GPL-2.0-or-later
#
# The host lets the image of the disk "grows" become 96 MiB while it is in use.

disk grows
is "sectors before" "$(attribute "$d" size)" 131072
ask resize
for try in $(seq 1 100); do
    [ "$(attribute "$d" size)" != 131072 ] && break
    sleep 0.1
done
is "sectors after the image grew" "$(attribute "$d" size)" 196608
fio_verify "$d" randwrite 4k 8 libaio 1M --offset=80M
