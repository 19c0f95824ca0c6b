# SPDX-License-Identifier: GPL-2.0-or-later
"""Heap allocations and memory maps of each thread of a VMM, counted inside it by alloc-count.c."""

import mmap
import os
import struct
import tempfile

import guestlib

from . import program

SLOT = struct.Struct('=QQQ40x')     # tid, calls that may allocate, mmap calls
SLOTS = 512


def parse(data):
    """{tid: (heap, maps)}; the last slot may hold several threads' and goes by the first's tid."""
    found = {}
    for at in range(0, len(data) - SLOT.size + 1, SLOT.size):
        tid, heap, maps = SLOT.unpack_from(data, at)
        if tid:
            found[tid] = (heap, maps)
    return found


class Counter:
    """Counts in the VMM that is started with .env."""

    def __init__(self):
        library = program('alloc-count.so')
        fd, self.path = tempfile.mkstemp(prefix='alloc-count-')
        os.ftruncate(fd, SLOT.size * SLOTS)
        self.map = mmap.mmap(fd, SLOT.size * SLOTS, prot=mmap.PROT_READ)
        os.close(fd)
        self.env = {**os.environ, 'LD_PRELOAD': library, 'ALLOC_COUNT_FILE': self.path}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.map.close()
        os.unlink(self.path)

    def read(self, pid):
        """(calls that may allocate, mmap calls) of the threads that serve requests: all but the
        vCPUs and the main thread. OSError if the library did not come up."""
        counts = parse(self.map[:])
        if pid not in counts:
            raise OSError('alloc-count.so was not loaded')
        kinds = guestlib.threads(pid)
        chosen = [c for tid, c in counts.items() if kinds.get(tid) in ('iothread', 'other')]
        return sum(c[0] for c in chosen), sum(c[1] for c in chosen)


def count(contender, counter, words, seconds):
    """{'heap', 'maps', 'ios'} of one run of a contender that was started with counter.env."""
    before = []

    def begin():
        before.append(counter.read(contender.pid))

    line = contender.run(words, seconds, on_begin=begin)
    after = counter.read(contender.pid)
    return {'heap': after[0] - before[0][0], 'maps': after[1] - before[0][1], 'ios': line['ios']}
