# SPDX-License-Identifier: GPL-2.0-or-later
#
# The last test of a boot: nothing in the kernel's log is wrong, and the log for the reader.
# t.allow=PATTERN: lines that are expected in this boot. t.mem=N: at least so many MiB of memory.

says_not "no bug, warning, stuck CPU or lost interrupt in the log" \
    'BUG:|WARNING:|Oops|soft lockup|nobody cared|blocked for more than|rcu.*stall'
line=$(dmesg | grep -E 'I/O error|timed out|timeout' | grep -Ev "${t_allow:-^$}" | head -n 1)
is "no I/O error in the log" "$line" ""
[ -z "$t_mem" ] ||
    at_least "MiB of memory" $(($(awk '/MemTotal/ { print $2 }' /proc/meminfo) / 1024)) "$t_mem"
dmesg | send dmesg
cat /proc/interrupts | send interrupts
