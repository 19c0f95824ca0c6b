# SPDX-License-Identifier: GPL-2.0-or-later
#
# Have the harness kill the VMM right after writes that were acknowledged but not flushed.

disk plain
check "write for the host" eval \
    "pattern 1048576 | dd of=/dev/$d bs=64k seek=512 iflag=fullblock oflag=direct"
say end "$count"
ask end
sleep 60
