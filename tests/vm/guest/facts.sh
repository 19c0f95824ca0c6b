# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the machine looks like to Linux: CPUs, clocks, ACPI, the serial line.
# t.cpus=N: how many CPUs there must be (default 1). t.acpi=off: it was switched off.

# near DESCRIPTION SEEN WANTED: seconds that may be a few apart
near() {
    apart=$(($2 - $3))
    if [ ${apart#-} -le 5 ]; then ok "$1"; else note "seen $2, wanted $3"; bad "$1"; fi
}

is "CPUs online" "$(nproc)" "${t_cpus:-1}"
is "clock" "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" kvm-clock
says "KVM is seen as the hypervisor" 'Hypervisor detected: KVM'

ask time
near "the wall clock is the host's" "$(date +%s)" "$answer"
near "the real-time clock is the host's" "$(cat /sys/class/rtc/rtc0/since_epoch)" "$answer"
up=$(cut -d. -f1 /proc/uptime)
sleep 2
ask time
near "time passes as on the host" "$(date +%s)" "$answer"
at_least "seconds of uptime over a sleep of 2" $(($(cut -d. -f1 /proc/uptime) - up)) 2

# More than a FIFO full, typed in one go.
ask type 300
is "a long line of serial input arrives whole" "$(echo "$answer" | sum_of)" \
    "$(seq -s ' ' 1 300 | head -c 300 | (cat; echo x) | sum_of)"

if [ "${t_acpi:-on}" = on ]; then
    says "ACPI: soft-off is there" 'ACPI: PM: \(supports.* S5|ACPI: .*\(supports S0.*S5'
    says "ACPI: interpreter is on" 'ACPI: Interpreter enabled'
    says "ACPI: PCI root bridge" 'ACPI: PCI Root Bridge \[PCI0\]'
    says_not "ACPI: no complaint about the tables" \
        'ACPI (BIOS )?(Error|Warning|Exception)|ACPI.*([Ii]ncorrect checksum|AE_[A-Z_]+)'
fi
