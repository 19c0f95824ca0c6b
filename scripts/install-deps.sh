#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Install with apt what the build, the tests and the demo need and what is not there yet.
# Does nothing, quickly, when all of it is there. Without root it prints the one command to run
# and exits 1.
#
#   scripts/install-deps.sh           install
#   scripts/install-deps.sh --list    show every package and what it is for

set -u

# PACKAGE  COMMAND (found in PATH: as good as the package; '-': ask dpkg)  what for
packages='
build-essential       -                   C compiler, C library headers, make
meson                 meson               build: configuration
ninja-build           ninja               build: runs the compilers
pkg-config            pkg-config          build: finds libraries
python3               python3             build: code generators; tests
libglib2.0-dev        -                   GLib and GIO
libjson-c-dev         -                   JSON
libaio-dev            -                   aio=native
liburing-dev          -                   aio=io_uring
acpica-tools          iasl                build: ACPI tables
busybox-static        -                   Linux guests: their user space
fio                   fio                 Linux guests: reads and writes with checksums; bench
e2fsprogs             -                   Linux guests: root disk of the emulated test host
qemu-utils            qemu-img            tests: what another program finds in our images
strace                strace              tests: system calls counted
valgrind              valgrind            bench: instructions per request
qemu-system-x86       qemu-system-x86_64  emulated test host; bench: what we compare with
'

list() {
    printf '%s' "$packages" | while read -r package command what; do
        [ -n "$package" ] && printf '%-22s %s\n' "$package" "$what"
    done
}

case ${1-} in
'') ;;
--list) list; exit 0 ;;
--help|-h) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
*) echo "install-deps.sh: unknown option '$1' (try --help)" >&2; exit 1 ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "install-deps.sh: no dpkg here, so nothing was checked; these are needed:" >&2
    list >&2
    exit 0
fi

installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null |
            sed -n 's/^ii  *//p' | tr '\n' ' ')
missing=$(printf '%s' "$packages" | while read -r package command what; do
    [ -n "$package" ] || continue
    case " $installed " in *" $package "*) continue ;; esac
    if [ "$command" = - ] || ! command -v "$command" >/dev/null 2>&1; then
        printf ' %s' "$package"
    fi
done)

[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "install-deps.sh: missing:$missing" >&2
    echo "Run this as root, then try again:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi

echo "install-deps.sh: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
if apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1; then
    exit 0
fi
# package lists may be missing or old: once more, aloud, with fresh ones
# shellcheck disable=SC2086
apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing
