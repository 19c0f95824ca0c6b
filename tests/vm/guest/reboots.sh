# SPDX-License-Identifier: GPL-2.0-or-later
#
# Reset the machine from within, once in each way of t.kinds=KIND,KIND (words of
# /sys/kernel/reboot/type). How far we are stands in the first block of the disk "plain";
# the tests that are named before this one run in each life.

disk plain
lives=$(dd if="/dev/$d" bs=512 count=1 2>/dev/null | tr -dc 0-9)
kind=$(echo "$t_kinds," | cut -d, -f$((${lives:-0} + 1)))
if [ -n "$kind" ]; then
    printf '%-512s' $((${lives:-0} + 1)) |
        dd of="/dev/$d" bs=512 count=1 oflag=direct conv=fsync 2>/dev/null
    check "choose reset by $kind" eval "echo $kind >/sys/kernel/reboot/type"
    say again "$count"
    reboot -f
    sleep 60
fi
is "resets survived" "${lives:-0}" "$(echo "$t_kinds" | tr , '\n' | wc -l)"
