# SPDX-License-Identifier: GPL-2.0-or-later
"""The same guest under two VMMs, run alternately within a second.

Each VMM is booted once with all disks; its guest takes one run after the other from the console.
While one runs the other one is stopped by a signal and takes no CPU at all.
"""

import signal
import subprocess

import guestlib

from . import stats

RUN_LIMIT_S = 60                # over what the run itself may take
OTHERS_LIMIT = 0.04             # share of all CPUs that others used during a run
PROBE_LIMIT = 1.5               # between the probes around a pair
MAIN_WATCH = ('cpu', 'sleeps')
COUNT_TRIES = 4


class Contender:
    """One booted VMM whose guest waits for the next run."""

    def __init__(self, side, vmm, setup, env=None):
        self.side = side
        self.vm = guestlib.Vm(vmm, setup.args, 'ask=1 timeout=600', stdin=subprocess.PIPE,
                              sample=MAIN_WATCH, env=env, timeout=RUN_LIMIT_S)
        self.lines = iter(self.vm)
        try:
            self._until_ready()
            self._pause()
        except BaseException:
            self.close()
            raise

    def close(self):
        self.vm.close()

    @property
    def pid(self):
        return self.vm.pid

    def _pause(self):
        self.vm.process.send_signal(signal.SIGSTOP)

    def _resume(self, limit_s):
        self.vm.extend(limit_s)
        self.vm.process.send_signal(signal.SIGCONT)

    def _until_ready(self, on_begin=None):
        result = None
        for line in self.lines:
            if line['op'] == 'ready':
                return result
            if line['op'] == 'begin' and on_begin:
                on_begin()
            elif line.get('errors'):
                raise guestlib.GuestError(f'{self.side}: {line}', self.vm.lines,
                                          self.vm.stderr.decode(errors='replace'))
            elif 'ios' in line:
                result = line
        raise guestlib.GuestError(f'{self.side}: the VMM ended, status {self.vm.lines.status}',
                                  self.vm.lines, self.vm.stderr.decode(errors='replace'))

    def run(self, words, seconds, on_begin=None):
        """One run; the guest's result line with what the host saw under 'host'."""
        self._resume(seconds + RUN_LIMIT_S)
        self.vm.say(words)
        try:
            return self._until_ready(on_begin)
        finally:
            self._pause()

    def count_syscalls(self, words, seconds, usual_sleeps=None):
        """System calls of the IOThreads per request. Counting slows them down, so it has runs of
        its own; of several the one that slept most like @usual_sleeps per request."""
        self.vm.sample((*MAIN_WATCH, 'syscalls'))
        best = None
        try:
            for _ in range(COUNT_TRIES):
                host = self.run(words, seconds)['host']
                off = abs(host['iothread_sleeps_per_io'] - (usual_sleeps or 0))
                if best is None or off < best['sleeps_off']:
                    best = {'per_io': host.get('iothread_syscalls_per_io', 0.0),
                            'by_name': host.get('iothread_syscalls', {}), 'sleeps_off': off}
                if usual_sleeps is None or off <= max(0.01, 0.1 * usual_sleeps):
                    break
        finally:
            self.vm.sample(MAIN_WATCH)
        return best

    def end(self):
        """Let the guest leave; the VMM's exit status."""
        self._resume(RUN_LIMIT_S)
        self.vm.say('')
        for _ in self.lines:
            pass
        return self.vm.lines.status


def sample(line):
    """The figures of one run that the tables are made of. Times in ns, per request where the name
    says so."""
    host, ios = line['host'], line['ios']
    figures = {key: line[key] for key in ('ios', 'iops', 'mean_ns', 'p50_ns', 'p99_ns', 'p999_ns')}
    figures['kicks_per_io'] = line['kicks'] / ios
    figures['interrupts_per_io'] = line['interrupts'] / ios
    figures['iothread_ns_per_io'] = host['iothread_ns_per_io']
    figures['vcpu_ns_per_io'] = host['vcpu_ns_per_io']
    figures['workers_ns_per_io'] = host.get('other_ns_per_io', 0.0)
    figures['sleeps_per_io'] = host['iothread_sleeps_per_io']
    figures['others_share'] = host['others_cpu_share'] + host['steal_share']
    return figures


class Duel:
    """Pairs of runs. @contenders: one or two, ours first."""

    def __init__(self, contenders, setup, probe, quiet, others_limit=OTHERS_LIMIT):
        self.contenders = contenders
        self.setup = setup
        self.probe = probe
        self.quiet = quiet
        self.others_limit = others_limit
        self.pairs = 0

    def pair(self, case, seconds, number):
        """Run the case once under each; [sample], each marked with what disturbed the pair."""
        self.quiet.wait()
        self.pairs += 1
        words = self.setup.words(case, seconds)
        order = self.contenders if number % 2 == 0 else self.contenders[::-1]
        probes = [self.probe()]
        samples = []
        for contender in order:
            taken = sample(contender.run(words, seconds))
            probes.append(self.probe())
            samples.append({'side': contender.side, 'case': case.name, 'round': number,
                            'pair': self.pairs, **taken})
        why = self.disturbance(samples, probes)
        worst = max(s['others_share'] for s in samples)
        for s in samples:
            s['probe_ns'] = stats.median(probes)
            s['disturbed'] = why
            s['pair_others_share'] = worst
        return samples

    def disturbance(self, samples, probes):
        """What spoils the pair, '' if nothing does."""
        worst = max(s['others_share'] for s in samples)
        if worst > self.others_limit:
            return f'other programs used {100 * worst:.0f} % of the machine'
        if stats.moved(probes, PROBE_LIMIT):
            return f'the cost of a cache line moved from {min(probes)} to {max(probes)} ns'
        return ''


class Samples:
    """All samples by case and side. What was disturbed is kept, and counts only where nothing
    else is there: then the better half of it does."""

    def __init__(self):
        self.all = []

    def add(self, samples):
        self.all += samples

    def of(self, case, side):
        """(samples, True if they are clean)"""
        found = [s for s in self.all if s['case'] == case.name and s['side'] == side]
        clean = [s for s in found if not s['disturbed']]
        if clean:
            return clean, True
        # a whole pair is kept or left out
        limit = stats.median(s['pair_others_share'] for s in found)
        return [s for s in found if s['pair_others_share'] <= limit], False

    def tries(self, case):
        return len({s['pair'] for s in self.all if s['case'] == case.name})

    def clean_pairs(self, case):
        return len({s['pair'] for s in self.all
                    if s['case'] == case.name and not s['disturbed']})

    def median(self, case, side, key):
        return stats.median(s[key] for s in self.of(case, side)[0])

    def sides(self):
        return sorted({s['side'] for s in self.all})
