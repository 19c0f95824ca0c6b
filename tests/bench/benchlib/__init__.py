# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/bench and scripts/demo are made of.

    cases     what is measured: disks, depths, windows
    duel      one guest under each of two VMMs, run alternately
    machine   how quiet the machine is
    floor     what fio reaches on the host, without a VMM
    startup   start, end and memory of a VMM
    allocs    heap allocations and memory maps per request
    stats     medians, ratios between neighbours
    verdict   the figures to reach
    table     text
"""

import os
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
BUILD = os.environ.get('BUILD_DIR', os.path.join(SOURCE, 'build'))

sys.path.insert(0, os.path.join(SOURCE, 'tests', 'guest'))


class Missing(Exception):
    """What this machine lacks, in one line: whoever wants it skips by that name."""


def program(name):
    """A program of tests/bench that the build made."""
    path = os.path.join(BUILD, 'tests', 'bench', name)
    if not os.path.exists(path):
        raise Missing(f'{name} was not built')
    return path
