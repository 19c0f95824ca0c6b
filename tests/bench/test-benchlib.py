#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics, tables and verdicts of scripts/bench and scripts/demo, on made-up figures."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from types import SimpleNamespace
from unittest import mock

import tap

sys.path.insert(0, os.path.join(tap.source_dir(), 'tests', 'bench'))
from benchlib import Missing, allocs, cases, duel, floor, report  # noqa: E402
from benchlib import showcase, startup, stats, table, verdict  # noqa: E402

NULL_POLLED = cases.find(cases.NULL, 1, True)
TMPFS_POLLED = cases.find(cases.TMPFS_NATIVE, 1, True)


def made_up(case, side, pair, **figures):
    usual = {'iops': 100000.0, 'mean_ns': 10000.0, 'p50_ns': 9000, 'p99_ns': 20000,
             'p999_ns': 30000, 'iothread_ns_per_io': 5000.0, 'workers_ns_per_io': 0.0,
             'vcpu_ns_per_io': 10000.0, 'kicks_per_io': 1.0, 'interrupts_per_io': 0.0,
             'sleeps_per_io': 1.0, 'others_share': 0.0, 'disturbed': '',
             'pair_others_share': 0.0}
    return {'case': case.name, 'side': side, 'pair': pair, 'round': pair, **usual, **figures}


class Stats(unittest.TestCase):
    def test_medians(self):
        self.assertEqual(stats.median([3, 1, 2]), 2)
        self.assertEqual(stats.median([4, 1, 2, 3]), 2.5)
        self.assertEqual(stats.median([None, 7]), 7)
        self.assertIsNone(stats.median([]))

    def test_ratios_are_taken_pair_by_pair(self):
        # the machine is twice as fast in the second pair: pair by pair we are 2, 2 and 3 times
        # as fast, and that is neither the ratio of the means nor of the medians
        ours = [made_up(NULL_POLLED, 'ours', n, iops=v) for n, v in enumerate((200, 400, 900))]
        stock = [made_up(NULL_POLLED, 'stock', n, iops=v) for n, v in enumerate((100, 200, 300))]
        spread = stats.pairwise(ours, stock[::-1], lambda s: s['iops'])
        self.assertEqual((spread.median, spread.low, spread.high), (2, 2, 3))
        self.assertEqual(spread.text(' x'), '2.00 x (2.00 to 3.00)')

    def test_half_a_pair_counts_for_nothing(self):
        ours = [made_up(NULL_POLLED, 'ours', n) for n in (1, 2)]
        stock = [made_up(NULL_POLLED, 'stock', 3)]
        self.assertFalse(stats.pairwise(ours, stock, lambda s: s['iops']))
        self.assertEqual(stats.pairwise(ours, stock, lambda s: s['iops']).text(), '-')

    def test_nothing_is_divided_by_nothing(self):
        self.assertIsNone(stats.ratio(1, 0))
        self.assertIsNone(stats.ratio(None, 1))
        self.assertIsNone(stats.ratio(1, -5))

    def test_a_cost_that_moves_is_noticed(self):
        self.assertFalse(stats.moved([100, 149, 120], 1.5))
        self.assertTrue(stats.moved([100, 151, 120], 1.5))
        self.assertFalse(stats.moved([None, None], 1.5))
        self.assertFalse(stats.moved([100], 1.5))

    def test_polled_share_is_of_requests_without_a_sleep(self):
        self.assertEqual([stats.polled_share(v) for v in (0.0, 0.25, 2.0)], [1, 0.75, 0])
        self.assertIsNone(stats.polled_share(None))


class Table(unittest.TestCase):
    def test_numbers_keep_three_digits(self):
        for value, text in ((0, '0'), (None, '-'), (1234.5, '1234'), (123.45, '123'),
                            (12.345, '12.3'), (1.2345, '1.23'), (0.12345, '0.123'),
                            (0.00123, '0.001'), (0.0001, '<0.001'), (-2.5, '-2.50')):
            with self.subTest(value=value):
                self.assertEqual(table.number(value), text)

    def test_columns_line_up(self):
        lines = table.render(['name', 'a', 'bbb'], [['x', '1', '2'], 'alone', ['long', '10', '3']])
        self.assertEqual(lines, ['name   a  bbb', 'x      1    2', 'alone', 'long  10    3'])

    def test_text_is_wrapped(self):
        self.assertEqual(table.wrap('aa bb cc', 6, ' '), [' aa bb', ' cc'])
        self.assertEqual(table.wrap('a' * 10, 4), ['a' * 10])


class Samples(unittest.TestCase):
    def test_disturbed_samples_count_only_where_there_are_no_others(self):
        samples = duel.Samples()
        samples.add([made_up(NULL_POLLED, 'ours', 1, iops=1, disturbed='by a compiler')])
        self.assertEqual(samples.of(NULL_POLLED, 'ours')[1], False)
        self.assertEqual(samples.median(NULL_POLLED, 'ours', 'iops'), 1)
        samples.add([made_up(NULL_POLLED, 'ours', 2, iops=5)])
        self.assertEqual(samples.of(NULL_POLLED, 'ours')[1], True)
        self.assertEqual(samples.median(NULL_POLLED, 'ours', 'iops'), 5)
        self.assertEqual(samples.clean_pairs(NULL_POLLED), 1)

    def test_of_disturbed_pairs_the_better_half_counts(self):
        samples = duel.Samples()
        for pair, share in ((1, 0.1), (2, 0.9), (3, 0.2), (4, 0.8)):
            for side in ('ours', 'stock'):
                samples.add([made_up(NULL_POLLED, side, pair, pair_others_share=share,
                                     disturbed='by a compiler')])
        for side in ('ours', 'stock'):
            self.assertEqual([s['pair'] for s in samples.of(NULL_POLLED, side)[0]], [1, 3])
        self.assertEqual(samples.tries(NULL_POLLED), 4)

    def test_a_pair_is_disturbed_by_others_and_by_a_cache_line_that_moves(self):
        contest = duel.Duel([], None, None, None, others_limit=0.04)
        calm = [made_up(NULL_POLLED, 'ours', 1, others_share=0.03)]
        busy = [made_up(NULL_POLLED, 'ours', 1, others_share=0.05)]
        self.assertEqual(contest.disturbance(calm, [100, 140, 110]), '')
        self.assertIn('5 %', contest.disturbance(busy, [100, 100, 100]))
        self.assertIn('from 100 to 160 ns', contest.disturbance(calm, [100, 160, 110]))

    def test_what_the_guest_counts_is_taken_per_request(self):
        line = {'ios': 200, 'iops': 1000, 'mean_ns': 9.5, 'p50_ns': 9, 'p99_ns': 10,
                'p999_ns': 11, 'kicks': 50, 'interrupts': 100,
                'host': {'iothread_ns_per_io': 5.0, 'vcpu_ns_per_io': 9.0,
                         'iothread_sleeps_per_io': 0.5, 'others_cpu_share': 0.01,
                         'steal_share': 0.02}}
        got = duel.sample(line)
        self.assertEqual(got['kicks_per_io'], 0.25)
        self.assertEqual(got['interrupts_per_io'], 0.5)
        self.assertAlmostEqual(got['others_share'], 0.03)


class Setup(unittest.TestCase):
    def test_each_disk_and_window_has_its_own_device(self):
        chosen = [cases.find(cases.NULL, 1, False), NULL_POLLED,
                  cases.find(cases.NULL, 32, True), TMPFS_POLLED]
        setup = cases.Setup(chosen, {'tmpfs': '/dev/shm/x'})
        self.assertEqual(len(setup.devices), 3)
        self.assertIn('dev=1 qd=1 seconds=2', setup.words(chosen[1], 2))
        self.assertIn('dev=1 qd=32 ', setup.words(chosen[2], 2))
        self.assertIn('dev=2 qd=1 count=9', setup.words(chosen[3], 0, count=9))
        self.assertIn('iothread,id=io1,poll-max-ns=32768', setup.args)

    def test_images_are_full_and_gone_afterwards(self):
        with tempfile.TemporaryDirectory(dir=tap.build_dir()) as folder:
            try:
                path = cases.make_image(folder, 1 << 20)
            except Missing as e:
                self.skipTest(str(e))
            self.assertEqual(os.stat(path).st_size, 1 << 20)
            self.assertGreaterEqual(os.stat(path).st_blocks * 512, 1 << 20)
            os.unlink(path)

    def test_a_folder_that_is_not_there_is_named(self):
        before = os.environ.get('BENCH_DISK')
        os.environ['BENCH_DISK'] = '/nonexistent'
        try:
            images = cases.Images(['disk'])
        finally:
            del os.environ['BENCH_DISK']
            if before:
                os.environ['BENCH_DISK'] = before
        self.assertEqual(images.paths, {})
        self.assertIn('/nonexistent', images.missing['disk'])

    def test_names_of_cases_are_unique(self):
        names = [c.name for c in cases.ALL]
        self.assertEqual(len(names), len(set(names)))


class Fio(unittest.TestCase):
    JSON = {'jobs': [{'error': 0, 'usr_cpu': 20.0, 'sys_cpu': 70.0,
                      'read': {'total_ios': 10, 'iops': 500.0, 'lat_ns': {'mean': 2300.5},
                               'clat_ns': {'percentile': {'50.000000': 100, '99.000000': 200,
                                                          '99.900000': 300}}}}]}

    def test_figures_are_found_behind_a_warning(self):
        got = floor.parse('fio: something\n' + json.dumps(self.JSON))
        self.assertEqual((got['mean_ns'], got['p999_ns'], got['cpu_share']), (2300.5, 300, 0.9))

    def test_a_run_without_requests_is_no_figure(self):
        empty = json.loads(json.dumps(self.JSON))
        empty['jobs'][0]['read']['total_ios'] = 0
        with self.assertRaises(Missing):
            floor.parse(json.dumps(empty))
        empty['jobs'][0]['error'] = 5
        with self.assertRaises(Missing):
            floor.parse(json.dumps(empty))

    def test_spinning_and_sleeping_differ(self):
        spin = floor.fio_command('/x', 'native', 1, True, 0.5)
        self.assertIn('--userspace_reap', spin)
        self.assertIn('--runtime=500ms', spin)
        self.assertNotIn('--userspace_reap', floor.fio_command('/x', 'native', 1, False, 0.5))


class Startup(unittest.TestCase):
    def test_guest_memory_is_not_counted(self):
        smaps = ('7f00-7f10 rw-s 00000000 00:01 1 /memfd:ram\nSize: 262144 kB\nRss: 99999 kB\n'
                 '5500-5501 r-xp 00000000 08:01 2 /usr/bin/x\nSize: 100 kB\nRss: 60 kB\n'
                 'Pss: 60 kB\n7ffe-7fff rw-p 00000000 00:00 0 [stack]\nSize: 132 kB\n'
                 'Rss: 20 kB\n')
        self.assertEqual(startup.resident_beside_ram(smaps), 80 * 1024)


class Allocations(unittest.TestCase):
    def test_slots_are_read_by_thread(self):
        data = allocs.SLOT.pack(11, 5, 2) + allocs.SLOT.pack(0, 0, 0) + allocs.SLOT.pack(12, 7, 0)
        self.assertEqual(allocs.parse(data), {11: (5, 2), 12: (7, 0)})

    def test_each_kind_of_allocation_is_counted(self):
        script = ('import ctypes, sys\n'
                  'c = ctypes.CDLL(None)\n'
                  'calls = {"malloc": lambda: c.malloc(9), "calloc": lambda: c.calloc(3, 3),\n'
                  '         "realloc": lambda: c.realloc(None, 9),\n'
                  '         "aligned_alloc": lambda: c.aligned_alloc(64, 64),\n'
                  '         "mmap": lambda: c.mmap(None, 4096, 3, 34, -1, 0)}\n'
                  'for line in sys.stdin:\n'
                  '    call = calls[line.strip()]\n'
                  '    for i in range(1000): call()\n'
                  '    print("done", flush=True)\n')
        try:
            counter = allocs.Counter()
        except Missing as e:
            self.skipTest(str(e))
        with counter, subprocess.Popen([sys.executable, '-c', script], env=counter.env, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            for name in ('malloc', 'calloc', 'realloc', 'aligned_alloc', 'mmap'):
                before = allocs.parse(counter.map[:]).get(child.pid, (0, 0))
                child.stdin.write(name + '\n')
                child.stdin.flush()
                self.assertEqual(child.stdout.readline(), 'done\n')
                after = allocs.parse(counter.map[:])[child.pid]
                which = 1 if name == 'mmap' else 0
                self.assertGreaterEqual(after[which] - before[which], 1000, name)


class Verdicts(unittest.TestCase):
    def test_times_stock(self):
        results = duel.Samples()
        results.add([made_up(NULL_POLLED, 'ours', 1, iops=250.0),
                     made_up(NULL_POLLED, 'stock', 1, iops=200.0)])
        self.assertIs(verdict.times_stock(results, 'x', NULL_POLLED, 1.25).met, True)
        self.assertIs(verdict.times_stock(results, 'x', NULL_POLLED, 1.3).met, False)

    def test_what_rests_on_disturbed_pairs_is_marked(self):
        results = duel.Samples()
        results.add([made_up(NULL_POLLED, side, 1, disturbed='by a compiler')
                     for side in ('ours', 'stock')])
        got = verdict.times_stock(results, 'x', NULL_POLLED, 1.3)
        self.assertEqual((got.met, got.measured), (False, '1.00 x ~'))

    def test_without_stock_nothing_is_claimed(self):
        results = duel.Samples()
        results.add([made_up(NULL_POLLED, 'ours', 1)])
        got = verdict.times_stock(results, 'x', NULL_POLLED, 1.3)
        self.assertEqual((got.met, got.word), (None, 'not measured'))

    def test_time_beyond_the_floor_of_the_same_round(self):
        results = duel.Samples()
        for number, base in ((0, 2000), (1, 4000)):
            results.add([made_up(TMPFS_POLLED, 'ours', number, mean_ns=base + 1000.0),
                         made_up(TMPFS_POLLED, 'stock', number, mean_ns=base + 2000.0)])
        got = verdict.beyond(results, 'x', TMPFS_POLLED, {0: 2000, 1: 4000}.get, 0.7)
        self.assertEqual((got.met, got.measured), (True, '0.50 x (0.50 to 0.50)'))
        self.assertIsNone(verdict.beyond(results, 'x', TMPFS_POLLED, lambda _: None, 0.7).met)

    def test_gain_is_against_the_faster_one_without_polling(self):
        on, off = cases.find(cases.NULL_10US, 1, True), cases.find(cases.NULL_10US, 1, False)
        results = duel.Samples()
        results.add([made_up(on, 'ours', 1, iops=150.0), made_up(off, 'ours', 1, iops=80.0),
                     made_up(off, 'stock', 1, iops=120.0)])
        got = verdict.polling_gain(results, cases.NULL_10US, 0.37)
        self.assertEqual((got.met, got.measured), (False, '+25 %'))

    def test_kicks_are_judged_by_the_worst_case(self):
        results = duel.Samples()
        results.add([made_up(NULL_POLLED, 'ours', 1, kicks_per_io=0.0),
                     made_up(TMPFS_POLLED, 'ours', 1, kicks_per_io=0.9)])
        self.assertIs(verdict.kicks(results).met, False)

    def test_counts(self):
        counts = {(NULL_POLLED.name, 'ours'): {'per_io': 0.2}}
        good = verdict.syscalls(counts, 'x', NULL_POLLED, '< 0.3', lambda v: v < 0.3)
        none = verdict.syscalls(counts, 'x', TMPFS_POLLED, '< 0.3', lambda v: v < 0.3)
        self.assertEqual((good.met, none.met), (True, None))
        got, = verdict.allocations({'null': {'heap': 0, 'maps': 1, 'ios': 10}})
        self.assertIs(got.met, False)
        words = [v.word for v in verdict.startup(
            {'first_output_ns': 24e6, 'exit_ns': 51e6, 'resident_bytes': 4 << 20})]
        self.assertEqual(words, ['met', 'NOT MET', 'met'])
        self.assertEqual({v.met for v in verdict.startup(None)}, {None})


class Report(unittest.TestCase):
    def full(self):
        r = report.Report()
        r.results.add([made_up(NULL_POLLED, 'ours', 0, iops=340000.0),
                       made_up(NULL_POLLED, 'stock', 0, iops=170000.0),
                       made_up(TMPFS_POLLED, 'ours', 1, disturbed='by a compiler')])
        r.floors = [{'disk': 'tmpfs-native', 'depth': 1, 'spin': True, 'round': n, 'iops': 4e5,
                     'mean_ns': ns, 'p50_ns': 2, 'p99_ns': 3, 'p999_ns': 4}
                    for n, ns in ((0, 2300), (1, 2500))]
        r.skip('stock QEMU', 'not there')
        r.skip('stock QEMU', 'not there')
        r.verdicts = verdict.all_verdicts(r)
        return r

    def test_text_has_every_part(self):
        text = self.full().text()
        self.assertIn('null-co, depth 1 (poll-max-ns=32768)', text)
        self.assertRegex(text, r'ours polled +340 .* 2\.00\n')
        self.assertIn('ours polled ~', text)
        self.assertRegex(text, r'fio spinning +400 +2\.40')
        self.assertIn('2 pairs, 1 disturbed', text)
        self.assertEqual(text.count('stock QEMU: not there'), 1)
        self.assertRegex(text, r'IOPS, null-co, depth 1 +>= 1\.3 x +2\.00 x +met')

    def test_floor_of_a_round_without_one_is_the_usual_one(self):
        base = self.full().floor_ns(cases.TMPFS_NATIVE)
        self.assertEqual((base(1), base(7)), (2500, 2400))
        self.assertIsNone(self.full().floor_ns(cases.DISK_NATIVE)(0))

    def test_json_can_be_read_back(self):
        data = json.loads(json.dumps(self.full().as_json()))
        self.assertEqual(data['format'], report.FORMAT)
        self.assertEqual(len(data['samples']), 3)
        self.assertEqual({c['name'] for c in data['cases']}, {NULL_POLLED.name, TMPFS_POLLED.name})

    def test_lines_fit_a_wide_terminal(self):
        self.assertLessEqual(max(len(line) for line in self.full().text().splitlines()), 120)


class Showcase(unittest.TestCase):
    def rows(self):
        figures = {'iops': 10000.0, 'p50_ns': 99000, 'p99_ns': 120000,
                   'iothread_ns_per_io': 40000.0, 'sleeps_per_io': 2.0, 'syscalls_per_io': 5.0}
        on = {**figures, 'iops': 15000.0, 'iothread_ns_per_io': 30000.0, 'sleeps_per_io': 0.1,
              'syscalls_per_io': None}
        return [showcase.Row('disk', 32768, on), showcase.Row('disk', 0, figures)]

    def test_polling_off_stands_first_and_the_gain_last(self):
        lines = showcase.rows_as_table(self.rows())
        self.assertEqual(lines[1], 'disk')
        self.assertIn('poll-max-ns=0', lines[2])
        self.assertTrue(lines[2].endswith(' -'))
        self.assertTrue(lines[3].endswith(' 90%'))
        self.assertIn('+50 % IOPS, -25 % CPU', lines[4])

    def test_lines_fit_a_terminal(self):
        lines = showcase.rows_as_table(self.rows()) + showcase.own_image()
        self.assertLessEqual(max(len(line) for line in lines), 78)

    def test_fio_in_a_guest_becomes_a_row(self):
        read = {'iops': 5000.0, 'clat_ns': {'percentile': {'50.000000': 1, '99.000000': 2}}}
        job = {'fio': {'jobs': [{'read': read}]},
               'host': {'iothread_ns_per_io': 3.0, 'iothread_sleeps_per_io': 0.5}}
        row = showcase.linux_row('Linux', 32768, job, None)
        self.assertEqual((row.figures['iops'], row.figures['syscalls_per_io']), (5000.0, None))
        counted = {'host': {'iothread_syscalls_per_io': 1.5}}
        row = showcase.linux_row('Linux', 32768, job, counted)
        self.assertEqual(row.figures['syscalls_per_io'], 1.5)


    def test_linux_reads_one_file_with_and_without_polling(self):
        booted = []

        def boot_linux(_vmm, guests, wanted, relay):
            booted.append((guests, wanted))
            read = {'iops': 5000.0, 'clat_ns': {'percentile': {'50.000000': 1, '99.000000': 2}}}
            host = {'iothread_ns_per_io': 3.0, 'iothread_sleeps_per_io': 0.5,
                    'iothread_syscalls_per_io': 1.5}
            job = {'fio': {'jobs': [{'read': read}]}, 'host': host}
            done = {'release': '6.1', 'jobs': {'off': job, 'on': job}}
            return showcase.linux.Answer(wanted, '', [done for _ in guests])

        with tempfile.TemporaryDirectory(dir=tap.build_dir()) as folder, \
                mock.patch.object(showcase.linux, 'boot_linux', boot_linux), \
                mock.patch.dict(os.environ, {'BENCH_TMPFS': folder}):
            rows, _ = showcase.linux_fio('vmm', print)
            self.assertEqual(os.listdir(folder), [])
        (guests, wanted), = booted
        self.assertEqual(wanted, 'direct')
        self.assertEqual([r.poll_max_ns for r in rows], [0, 32768])
        for guest in guests:
            self.assertEqual([j.split()[:2] for j in guest.jobs], [['off', 'off'], ['on', 'on']])
            self.assertEqual(sum(folder in a for a in guest.args), 2)


class Command(unittest.TestCase):
    """scripts/bench as people call it."""

    @staticmethod
    def bench(*args, **env):
        return subprocess.run([os.path.join(tap.source_dir(), 'scripts', 'bench'), *args],
                              capture_output=True, text=True, check=False, timeout=300,
                              env={**os.environ, 'BUILD_DIR': tap.build_dir(), **env})

    def test_an_unknown_size_is_named(self):
        run = self.bench(BENCH='huge')
        self.assertEqual(run.returncode, 1)
        self.assertIn("BENCH='huge' is not known; there is: quick", run.stderr)

    def test_a_vmm_that_is_not_there_is_one_line(self):
        run = self.bench('--vmm', '/nonexistent/qemu')
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr.count('\n'), 1)

    def test_cases_can_be_listed(self):
        run = self.bench('--list')
        self.assertEqual(run.returncode, 0)
        self.assertEqual(len(run.stdout.splitlines()), len(cases.ALL))

    def need_kvm(self):
        tap.binary('qemu-system-x86_64')
        if not os.access('/dev/kvm', os.R_OK | os.W_OK):
            self.skipTest('/dev/kvm is not there or not for us')

    def test_ended_from_outside_it_leaves_nothing_behind(self):
        self.need_kvm()
        with tempfile.TemporaryDirectory(dir=tap.build_dir()) as folder:
            out = os.path.join(folder, 'out.json')
            env = {**os.environ, 'BUILD_DIR': tap.build_dir(), 'BENCH': 'quick',
                   'BENCH_TMPFS': folder, 'BENCH_DISK': folder}
            with subprocess.Popen([os.path.join(tap.source_dir(), 'scripts', 'bench'), '--stock',
                                   'none', '--only', 'null-d1-*', '--seconds', '60', '--out', out],
                                  env=env, stdout=subprocess.DEVNULL) as process:
                children = f'/proc/{process.pid}/task/{process.pid}/children'
                deadline = time.monotonic() + 60
                while not self.stopped_children(children) and time.monotonic() < deadline:
                    time.sleep(0.05)
                found = self.stopped_children(children)
                process.terminate()
                self.assertEqual(process.wait(60), 128 + signal.SIGTERM)
            self.assertTrue(found)
            self.assertEqual(os.listdir(folder), [])
            self.assertFalse([pid for pid in found if os.path.exists(f'/proc/{pid}')])

    @staticmethod
    def stopped_children(path):
        """Processes below that wait for their turn."""
        stopped = []
        try:
            with open(path, encoding='ascii') as f:
                for pid in f.read().split():
                    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as stat:
                        if stat.read().rpartition(')')[2].split()[0] == 'T':
                            stopped.append(pid)
        except OSError:
            pass
        return stopped

    def test_a_small_run_measures_without_stock(self):
        self.need_kvm()
        with tempfile.NamedTemporaryFile() as out:
            run = self.bench('--stock', 'none', '--only', 'null*-d1-*', '--pairs', '1',
                             '--seconds', '0.1', '--out', out.name, BENCH='quick')
            self.assertEqual(run.returncode, 0, run.stderr)
            with open(out.name, encoding='utf-8') as f:
                data = json.load(f)
        self.assertEqual({s['side'] for s in data['samples']}, {'ours'})
        self.assertTrue(all(s['ios'] > 0 for s in data['samples']))
        self.assertIn('stock QEMU: not asked for', run.stdout)
        self.assertIn('null-co, latency-ns=10000, depth 1, interrupts', run.stdout)
        heap = {v['heap'] for v in data['allocations'].values()}
        self.assertEqual(len(data['allocations']), 1, f'{data["skipped"]} {heap}')


class Probe(unittest.TestCase):
    def test_says_what_a_cache_line_costs(self):
        path = tap.binary(os.path.join('tests', 'bench', 'cacheline-probe'))
        run = subprocess.run([path, '5'], capture_output=True, text=True, check=False, timeout=60)
        if run.returncode == 77:
            self.skipTest(run.stderr.strip())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertGreater(json.loads(run.stdout)['round_trip_ns'], 0)

    def test_refuses_nonsense(self):
        path = tap.binary(os.path.join('tests', 'bench', 'cacheline-probe'))
        for args in (['0'], ['x'], ['1', '2']):
            run = subprocess.run([path, *args], capture_output=True, check=False, timeout=60)
            self.assertEqual(run.returncode, 1)


class Fairness(unittest.TestCase):
    def test_the_order_within_a_pair_alternates(self):
        seen = []

        def contender(side):
            def run(_words, _seconds):
                seen.append(side)
                return {'ios': 1, 'iops': 1, 'mean_ns': 1, 'p50_ns': 1, 'p99_ns': 1, 'p999_ns': 1,
                        'kicks': 0, 'interrupts': 0,
                        'host': {'iothread_ns_per_io': 1, 'vcpu_ns_per_io': 1, 'steal_share': 0,
                                 'iothread_sleeps_per_io': 0, 'others_cpu_share': 0}}
            return SimpleNamespace(side=side, run=run)

        setup = cases.Setup([NULL_POLLED], {})
        quiet = SimpleNamespace(wait=lambda: True)
        contest = duel.Duel([contender('ours'), contender('stock')], setup, lambda: 100, quiet)
        samples = contest.pair(NULL_POLLED, 1, 0) + contest.pair(NULL_POLLED, 1, 1)
        self.assertEqual(seen, ['ours', 'stock', 'stock', 'ours'])
        self.assertEqual([s['pair'] for s in samples], [1, 1, 2, 2])


if __name__ == '__main__':
    tap.main()
