# SPDX-License-Identifier: GPL-2.0-or-later
"""How quiet the machine is, and what it is."""

import json
import os
import platform
import subprocess
import time

import guestlib

from . import Missing, program


def load_share(seconds):
    """The share of all CPUs that was in use during the next @seconds."""
    start, busy = time.monotonic_ns(), sum(guestlib.machine_busy_ns())
    time.sleep(seconds)
    wall = time.monotonic_ns() - start
    return (sum(guestlib.machine_busy_ns()) - busy) / (wall * os.cpu_count())


class Quiet:
    """Waits for other programs to rest, all waits together no longer than @patience_s."""

    def __init__(self, patience_s, limit_share=0.05):
        self.left_s = patience_s
        self.limit_share = limit_share

    def wait(self):
        """True if the machine was quiet in the end."""
        while True:
            started = time.monotonic()
            if load_share(0.05) <= self.limit_share:
                return True
            if self.left_s <= 0:
                return False
            time.sleep(0.2)
            self.left_s -= time.monotonic() - started


class Probe:
    """What a cache line costs from CPU to CPU just now; None where that can't be measured."""

    def __init__(self, milliseconds=15):
        self.milliseconds = milliseconds
        self.why_not = ''
        try:
            self.path = program('cacheline-probe')
            self()
        except (Missing, subprocess.SubprocessError, OSError) as e:
            self.path = None
            self.why_not = str(e)

    def __call__(self):
        if not self.path:
            return None
        run = subprocess.run([self.path, str(self.milliseconds)], capture_output=True, text=True,
                             check=False, timeout=60)
        if run.returncode != 0:
            raise Missing(run.stderr.strip())
        return json.loads(run.stdout)['round_trip_ns']


def cpu_model():
    try:
        with open('/proc/cpuinfo', encoding='utf-8', errors='replace') as f:
            for line in f:
                if line.startswith('model name'):
                    return line.split(':', 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def facts():
    return {'cpu': cpu_model(), 'cpus': len(os.sched_getaffinity(0)),
            'kernel': platform.release(),
            'memory_bytes': os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')}


def version(vmm):
    """The first line that a VMM says of itself."""
    run = subprocess.run([vmm, '-version'], capture_output=True, text=True, check=False, timeout=30)
    lines = (run.stdout or run.stderr).strip().splitlines()
    return lines[0] if lines else 'unknown'
