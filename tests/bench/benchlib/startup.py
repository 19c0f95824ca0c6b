# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast a VMM comes and goes, and what it keeps resident beside the guest's memory."""

import os
import subprocess
import time

import guestlib

RAM = 256 << 20
# A mapping that large is the guest's memory: malloc's arenas are 64 MiB at most.
RAM_MAPPING = RAM // 2
LIMIT_S = 60


def resident_beside_ram(smaps):
    """Bytes resident in all mappings of /proc/PID/smaps but those of the guest's memory."""
    total = rss = size = 0
    for line in smaps.splitlines():
        words = line.split()
        if words[0] == 'Size:':
            size = int(words[1]) * 1024
        elif words[0] == 'Rss:':
            rss = int(words[1]) * 1024
            if size < RAM_MAPPING:
                total += rss
    return total


def boot_once(vmm, elf=None):
    """Times in ns from the start of the process: the guest's first output, and its end seen from
    its last output; resident bytes."""
    line = guestlib.command(vmm, guestlib.null_disk(32768), 'op=read count=1000 warmup=0 hello=1',
                            memory=f'{RAM >> 20}M', elf=elf)
    started = time.monotonic_ns()
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, bufsize=0) as process:
        try:
            return _follow(process, started)
        finally:
            if process.poll() is None:
                process.kill()


def _follow(process, started):
    first = last = resident = None
    seen = b''
    while True:
        data = os.read(process.stdout.fileno(), 65536)
        now = time.monotonic_ns()
        if not data:
            break
        seen += data
        if first is None and b'{"op":"hello"' in seen:
            first = now
        if resident is None and b'{"op":"read"' in seen:
            # the guest writes byte by byte: there is time for this before its last line
            with open(f'/proc/{process.pid}/smaps', encoding='ascii', errors='replace') as f:
                resident = resident_beside_ram(f.read())
        if b'{"op":"done"' in seen and seen.endswith(b'}\n'):
            last = time.monotonic_ns()
    process.wait(LIMIT_S)
    ended = time.monotonic_ns()
    if last is None or first is None or resident is None:
        raise guestlib.GuestError('the guest did not come to its end', (),
                                  process.stderr.read().decode(errors='replace'))
    return {'first_output_ns': first - started, 'exit_ns': ended - last,
            'resident_bytes': resident}
