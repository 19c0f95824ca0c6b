# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the machine looks like to Linux: CPUs, clock, ACPI, PCI.
# t.cpus=N: how many CPUs there must be (default 1).

is "CPUs online" "$(nproc)" "${t_cpus:-1}"
is "clock" "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" \
    "${t_clock:-kvm-clock}"
says "KVM is seen as the hypervisor" 'Hypervisor detected: KVM'
says_not "no bug, warning or stuck CPU in the log" 'BUG:|WARNING:|Oops|soft lockup|nobody cared'

before=$(date +%s)
up=$(cut -d. -f1 /proc/uptime)
sleep 2
at_least "seconds of wall clock over a sleep of 2" $(($(date +%s) - before)) 2
at_least "seconds of uptime over a sleep of 2" $(($(cut -d. -f1 /proc/uptime) - up)) 2
at_least "year of the real-time clock" "$(cut -d- -f1 /sys/class/rtc/rtc0/date)" 2024

if [ "${t_acpi:-on}" = on ]; then
    says "ACPI: soft-off is there" 'ACPI: PM: \(supports.* S5|ACPI: .*\(supports S0.*S5'
    says "ACPI: interpreter is on" 'ACPI: Interpreter enabled'
    says "ACPI: PCI root bridge" 'ACPI: PCI Root Bridge \[PCI0\]'
    says_not "ACPI: no error in our tables" 'ACPI (BIOS )?(Error|Warning|Exception)|AE_[A-Z_]+'
fi
ls /sys/bus/pci/devices | tr '\n' ' ' | while read -r devices; do note "PCI: $devices"; done
dmesg | send dmesg
cat /proc/interrupts | send interrupts
