# SPDX-License-Identifier: GPL-2.0-or-later
"""All that one run of scripts/bench has found: as a table, and as JSON."""

import time

from . import cases, duel, stats, table, verdict

FORMAT = 1                          # of the JSON; goes up when a reader must know

HEADER = ['', 'kIOPS', 'mean', 'p50', 'p99', 'p99.9', 'IOThr', 'other', 'vCPU', 'sysc', 'kicks',
          'irqs', 'sleeps', 'x stock']
LEGEND = '''Times in us. Per request: CPU of the IOThread, of the VMM's other threads (kernel
workers, main loop) and of the vCPU, which spins; system calls of the IOThread; kicks; interrupts;
sleeps of the IOThread. "x stock": IOPS over stock's, median of the pairs. "~": no undisturbed
pair, the figure is of disturbed ones. "fio": on the host, without a VMM.'''


class Report:
    def __init__(self):
        self.machine = {}
        self.versions = {}
        self.settings = {}
        self.results = duel.Samples()
        self.counts = {}            # (case name, side): {'per_io', 'by_name'}
        self.floors = []            # {'disk', 'depth', 'spin', 'round', figures of fio}
        self.allocations = {}       # what was counted: {'heap', 'maps', 'ios'}
        self.instructions = {}      # what was counted: {'per_io', 'depth'}
        self.startup = {}           # side: medians
        self.skipped = []           # lines: what was not measured, and why
        self.verdicts = []
        self.started = time.time()
        self.seconds = 0.0

    def skip(self, what, why):
        line = f'{what}: {why}'
        if line not in self.skipped:
            self.skipped.append(line)

    def floor_ns(self, disk):
        """A function of the round: fio's mean when spinning on that disk at depth 1."""
        found = [f for f in self.floors
                 if f['disk'] == disk.key and f['depth'] == 1 and f['spin']]
        by_round = {f['round']: f['mean_ns'] for f in found}
        usual = stats.median(by_round.values())
        return lambda number: by_round.get(number, usual)

    # -- JSON --

    def as_json(self):
        return {
            'format': FORMAT,
            'started': time.strftime('%Y-%m-%dT%H:%M:%S%z', time.localtime(self.started)),
            'seconds': round(self.seconds, 1),
            'machine': self.machine, 'versions': self.versions, 'settings': self.settings,
            'cases': [{'name': c.name, 'disk': c.disk.key, 'depth': c.depth,
                       'poll_max_ns': c.poll_max_ns,
                       'syscalls': {side: self.counts[c.name, side]
                                    for side in (verdict.OURS, verdict.STOCK)
                                    if (c.name, side) in self.counts}}
                      for c in cases.ALL if any(s['case'] == c.name for s in self.results.all)],
            'samples': self.results.all,
            'floors': self.floors,
            'allocations': self.allocations,
            'instructions': self.instructions,
            'startup': self.startup,
            'skipped': self.skipped,
            'verdicts': [{'what': v.what, 'goal': v.goal, 'measured': v.measured, 'met': v.met}
                         for v in self.verdicts],
        }

    # -- text --

    def _row(self, case, side):
        samples, clean = self.results.of(case, side)
        if not samples:
            return None

        def middle(key):
            return stats.median(s[key] for s in samples)

        count = self.counts.get((case.name, side))
        against = '-'
        if side == verdict.OURS:
            other = self.results.of(case, verdict.STOCK)[0]
            spread = stats.pairwise(samples, other, lambda s: s['iops'])
            against = f'{spread.median:.2f}' if spread else '-'
        label = f'  {side} {"polled" if case.polled else "unpolled"}' + ('' if clean else ' ~')
        return [label, table.kilo(middle('iops')), table.micros(middle('mean_ns')),
                table.micros(middle('p50_ns')), table.micros(middle('p99_ns')),
                table.micros(middle('p999_ns')), table.micros(middle('iothread_ns_per_io')),
                table.micros(middle('workers_ns_per_io')), table.micros(middle('vcpu_ns_per_io')),
                table.number(count['per_io'] if count else None),
                table.number(middle('kicks_per_io')), table.number(middle('interrupts_per_io')),
                table.number(middle('sleeps_per_io')), against]

    def _floor_rows(self, disk, depth):
        for spin in (True, False):
            found = [f for f in self.floors
                     if (f['disk'], f['depth'], f['spin']) == (disk.key, depth, spin)]
            if found:
                figures = [table.kilo(stats.median(f['iops'] for f in found))]
                figures += [table.micros(stats.median(f[key] for f in found))
                            for key in ('mean_ns', 'p50_ns', 'p99_ns', 'p999_ns')]
                yield [f'  fio {"spinning" if spin else "sleeping"}', *figures] + \
                    ['-'] * (len(HEADER) - 6)

    def figures(self):
        """Lines of the big table."""
        rows, groups = [], []
        for case in cases.ALL:
            if case.group not in groups:
                groups.append(case.group)
        for group in groups:
            members = [c for c in cases.ALL if c.group == group]
            found = [self._row(c, side) for c in members
                     for side in (verdict.OURS, verdict.STOCK)]
            found = [row for row in found if row]
            if not found:
                continue
            windows = {c.poll_max_ns for c in members if c.polled}
            rows.append(f'{members[0].title} (poll-max-ns={windows.pop()})')
            rows += found
            if not members[0].note:
                rows += self._floor_rows(members[0].disk, members[0].depth)
        return table.render(HEADER, rows) + [''] + table.wrap(LEGEND, 98)

    def others(self):
        """Lines: start-up, allocations, instructions."""
        lines = []
        if self.startup:
            rows = [[side, table.milli(s['first_output_ns']), table.milli(s['exit_ns']),
                     table.number(s['resident_bytes'] / (1 << 20))]
                    for side, s in sorted(self.startup.items())]
            lines += table.render(['', 'start to first output, ms', 'power-off to exit, ms',
                                   'resident beside RAM, MiB'], rows)
        for name, count in sorted(self.allocations.items()):
            lines.append(f'allocations, {name}: {count["heap"]} heap, {count["maps"]} mmap in '
                         f'{count["ios"]} requests')
        for name, count in sorted(self.instructions.items()):
            lines.append(f'instructions per request, {name}: {count["per_io"]:.0f}')
        return lines

    def verdict_lines(self):
        return table.render(['what', 'goal', 'measured', ''],
                            [[v.what, v.goal, v.measured, v.word] for v in self.verdicts], left=4)

    def text(self):
        lines = self.figures() + [''] + self.others()
        if self.verdicts:
            lines += ['', 'Figures to reach:'] + self.verdict_lines()
        disturbed = [s for s in self.results.all if s['disturbed']]
        pairs = {s['pair'] for s in self.results.all}
        if pairs:
            lines += ['', f'{len(pairs)} pairs, {len({s["pair"] for s in disturbed})} disturbed.']
        if self.skipped:
            lines += ['Not measured:'] + [f'  {line}' for line in self.skipped]
        return '\n'.join(lines)
