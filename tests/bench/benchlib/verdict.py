# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures to reach, each with what was measured. A benchmark is not a test: nothing fails."""

import dataclasses
import typing

from . import cases, stats
from .cases import DISK_NATIVE, DISK_URING, NULL, NULL_10US, TMPFS_NATIVE

OURS, STOCK = 'ours', 'stock'


@dataclasses.dataclass(frozen=True)
class Verdict:
    what: str
    goal: str
    measured: str
    met: typing.Optional[bool]          # None: not measured, `measured` says why

    @property
    def word(self):
        return {True: 'met', False: 'NOT MET', None: 'not measured'}[self.met]


def judged(what, goal, value, good, text):
    """A Verdict on a figure; a value of None was not measured."""
    if value is None:
        return Verdict(what, goal, 'no figures', None)
    return Verdict(what, goal, text, good(value))


def marked(results, chosen, text):
    """@text with a "~" when it rests on disturbed pairs of any of the cases."""
    return text if all(results.of(case, OURS)[1] for case in chosen) else f'{text} ~'


def times_stock(results, what, case, at_least):
    spread = stats.pairwise(results.of(case, OURS)[0], results.of(case, STOCK)[0],
                            lambda s: s['iops'])
    return judged(what, f'>= {at_least} x', spread.median, lambda v: v >= at_least,
                  marked(results, [case], spread.text(' x')))


def beyond(results, what, case, base_ns, at_most):
    """Ratio of the mean times beyond @base_ns(round), ours over stock's."""
    values = []
    for ours, stock in stats.pairs(results.of(case, OURS)[0], results.of(case, STOCK)[0]):
        base = base_ns(ours['round'])
        if base is not None:
            values.append(stats.ratio(max(ours['mean_ns'] - base, 0), stock['mean_ns'] - base))
    spread = stats.Spread(values)
    return judged(what, f'<= {at_most} x', spread.median, lambda v: v <= at_most,
                  marked(results, [case], spread.text(' x')))


def polling_gain(results, disk, at_least):
    """Polling on, ours, against the faster of our own and stock's polling off."""
    on = stats.by_round(results.of(cases.find(disk, 1, True), OURS)[0])
    off = [stats.by_round(results.of(cases.find(disk, 1, False), side)[0])
           for side in (OURS, STOCK)]
    values = []
    for number, sample in on.items():
        others = [o[number]['iops'] for o in off if number in o]
        if others:
            values.append(stats.ratio(sample['iops'], max(others)) - 1)
    spread = stats.Spread(values)
    text = f'{100 * spread.median:+.0f} %' if spread else ''
    if len(spread.values) > 1:
        text += f' ({100 * spread.low:+.0f} to {100 * spread.high:+.0f})'
    return judged(f'polling gains, {disk.title}, depth 1', f'>= +{100 * at_least:.0f} %',
                  spread.median, lambda v: v >= at_least,
                  marked(results, [cases.find(disk, 1, p) for p in (False, True)], text))


def kicks(results):
    chosen = [c for c in cases.ALL if c.polled and c.depth == 1 and results.of(c, OURS)[0]]
    worst = max((results.median(c, OURS, 'kicks_per_io') for c in chosen), default=None)
    return judged('kicks per request, polled, depth 1', '< 0.05', worst, lambda v: v < 0.05,
                  marked(results, chosen, f'at most {worst or 0:.4f} in {len(chosen)} cases'))


def syscalls(counts, what, case, goal, good):
    found = counts.get((case.name, OURS))
    value = found['per_io'] if found else None
    return judged(what, goal, value, good, f'{value or 0:.3f}')


def allocations(found):
    for name, count in sorted(found.items()):
        total = count['heap'] + count['maps']
        yield judged(f'allocations, {name}', '0', total, lambda v: v == 0,
                     f'{total} in {count["ios"]} requests')


def startup(found):
    """Medians; @found: {'first_output_ns', 'exit_ns', 'resident_bytes'} or None."""
    for key, what, goal, unit, size in (
            ('first_output_ns', 'process start to the guest\'s first output', 25, 'ms', 1e6),
            ('exit_ns', 'guest power-off to process exit', 50, 'ms', 1e6),
            ('resident_bytes', 'resident beside guest RAM', 20, 'MiB', 1 << 20)):
        value = found[key] / size if found else None
        yield judged(what, f'< {goal} {unit}', value, lambda v, limit=goal: v < limit,
                     f'{value or 0:.1f} {unit}')


def all_verdicts(report):
    """@report: see scripts/bench; .results, .floors, .counts, .allocations, .startup"""
    results, counts = report.results, report.counts
    null, null32 = cases.find(NULL, 1, True), cases.find(NULL, 32, True)
    tmpfs, tmpfs32 = cases.find(TMPFS_NATIVE, 1, True), cases.find(TMPFS_NATIVE, 32, True)
    return [
        times_stock(results, 'IOPS, null-co, depth 1', null, 1.3),
        beyond(results, 'mean beyond the device\'s 10 us, null-co', cases.find(NULL_10US, 1, True),
               lambda _: NULL_10US.latency_ns, 0.6),
        beyond(results, 'mean beyond fio\'s spinning reap, tmpfs native', tmpfs,
               report.floor_ns(TMPFS_NATIVE), 0.7),
        kicks(results),
        polling_gain(results, NULL_10US, 0.37),
        polling_gain(results, DISK_NATIVE, 0.37),
        polling_gain(results, DISK_URING, 0.37),
        times_stock(results, 'IOPS, null-co, depth 32', null32, 1.25),
        times_stock(results, 'IOPS, tmpfs native, depth 32', tmpfs32, 1.25),
        syscalls(counts, 'system calls per request, tmpfs native, depth 1', tmpfs, '<= 1.05',
                 lambda v: v <= 1.05),
        syscalls(counts, 'system calls per request, null-co, depth 32', null32, '< 0.3',
                 lambda v: v < 0.3),
        syscalls(counts, 'system calls per request, tmpfs native, depth 32', tmpfs32, '< 0.3',
                 lambda v: v < 0.3),
        *allocations(report.allocations),
        *startup(report.startup.get(OURS)),
    ]
