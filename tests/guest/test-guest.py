#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The bare-metal guest on our VMM: the machine, virtio-blk, integrity, durability, bad drivers.

GUEST_VMM=PATH runs the cases on another VMM, `stock` for stock QEMU; cases about what that one is
known to do otherwise are skipped then. Under `make check-long` the counts are the full ones.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import tap

sys.path.insert(0, os.path.join(tap.source_dir(), 'tests', 'guest'))
import guestlib  # noqa: E402

LONG = tap.long_run()
SEED = int(os.environ.get('GUEST_SEED', random.randrange(1 << 31)))
ENGINES = {'threads': False, 'native': True, 'io_uring': True}    # aio=: cache.direct=
DEPTHS = (1, 2, 3, 8, 32, 64, 128)


def scaled(count, factor=20):
    """@count, or the full number under check-long."""
    return count * factor if LONG else count


def runs(words):
    return 'run="' + ';'.join(words) + '"'


class GuestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.vmm = os.environ.get('GUEST_VMM') or tap.binary('qemu-system-x86_64')
        cls.stock = cls.vmm == 'stock'
        if cls.stock:
            cls.vmm = guestlib.STOCK
        if not os.path.exists(guestlib.default_elf()):
            raise unittest.SkipTest('bench-guest.elf was not built')
        if not os.access('/dev/kvm', os.R_OK | os.W_OK):
            raise unittest.SkipTest('/dev/kvm is not there or not for us')
        print(f'GUEST_SEED={SEED}', file=sys.stderr)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='guest-', dir=tap.build_dir())
        self.addCleanup(shutil.rmtree, self.folder)

    def image(self, size, name='disk.raw'):
        path = os.path.join(self.folder, name)
        with open(path, 'wb') as f:
            f.truncate(size)
        return path

    def file_disk(self, size=64 << 20, aio='threads', direct=None, poll_max_ns=None, device='',
                  path=None, more='', thread='io0'):
        path = path or self.image(size)
        direct = ENGINES[aio] if direct is None else direct
        return guestlib.iothread(poll_max_ns=poll_max_ns) + guestlib.disk(
            f'driver=file,filename={path},aio={aio},cache.direct={"on" if direct else "off"}{more}',
            device=device, thread=thread)

    def boot(self, args, cmdline, **options):
        options.setdefault('timeout', 120 if not LONG else 3600)
        return guestlib.boot(self.vmm, args, f'seed={SEED} {cmdline}', **options)


class Machine(GuestCase):
    def test_leaves_by_debug_exit_with_the_status_asked_for(self):
        lines = self.boot(guestlib.null_disk(), 'op=info exit=debug')
        self.assertEqual(lines.status, 1)
        lines = self.boot(guestlib.null_disk(), 'op=info exit=debug code=21')
        self.assertEqual(lines.status, 43)

    def test_each_way_to_reset_ends_a_vmm_that_may_not_reboot(self):
        for way in ('kbd', 'cf9', 'triple'):
            with self.subTest(way=way):
                lines = self.boot(guestlib.null_disk(), f'op=info exit={way}')
                self.assertEqual(lines.status, 0)

    def test_guest_and_host_agree_on_the_time(self):
        with guestlib.Vm(self.vmm, guestlib.null_disk(), 'op=clock seconds=2') as vm:
            stamps = {line['op']: (time.monotonic(), line) for line in vm}
        passed = stamps['clock'][0] - stamps['begin'][0]
        self.assertAlmostEqual(stamps['clock'][1]['elapsed_ns'] / 1e9, 2, delta=0.01)
        self.assertAlmostEqual(passed, 2, delta=0.1)

    def test_kvmclock_and_pit_agree(self):
        khz = {}
        for clock in ('kvmclock', 'pit'):
            done = self.boot(guestlib.null_disk(), f'op=info clock={clock}')[-1]
            self.assertEqual(done['tsc_source'], clock)
            khz[clock] = done['tsc_khz']
        self.assertAlmostEqual(khz['pit'] / khz['kvmclock'], 1, delta=0.005)

    def test_ram_sizes_and_more_than_one_vcpu(self):
        for memory, smp in (('64M', 1), ('1G', 2), ('5G', 2)):
            with self.subTest(memory=memory):
                lines = self.boot(self.file_disk(),
                                  runs(['op=info', 'op=integrity qd=16 count=500']),
                                  memory=memory, smp=smp)
                low = min(int(memory[:-1]) << (20 if memory[-1] == 'M' else 30), 4 << 30)
                self.assertLessEqual(lines.result('info')['ram_end'], low)
                self.assertGreater(lines.result('info')['ram_end'], min(low, 2 << 30) - (1 << 20))

    def test_a_fault_in_the_guest_is_reported(self):
        lines = self.boot(guestlib.null_disk(), 'op=fault', check=False)
        self.assertEqual((lines[-1]['op'], lines[-1]['vector'], lines[-1]['address']),
                         ('fault', 14, hex(1 << 46)))

    def test_parameters_that_do_not_exist_are_named(self):
        for words, message, detail in (('op=read depht=3', 'unknown parameter', 'depht'),
                                       ('op=read qd=0', 'bad value', 'qd=0'),
                                       ('op=raed', 'unknown op', 'raed')):
            with self.subTest(words=words):
                lines = self.boot(guestlib.null_disk(), words, check=False)
                self.assertEqual((lines[-1]['message'], lines[-1]['detail']), (message, detail))
                self.assertEqual(lines.status, 3)


class Device(GuestCase):
    def info(self, args):
        return self.boot(args, 'op=info dev=all').results('info')

    def test_identity_and_defaults(self):
        info, = self.info(self.file_disk())
        self.assertEqual(info['pci_device'], 0x1042)
        self.assertEqual(info['capacity'], 64 << 20)
        self.assertEqual(info['queue_sizes'], [256])
        self.assertEqual(info['vectors'], 2)
        self.assertEqual((info['seg_max'], info['blk_size'], info['wce']), (254, 512, 1))
        features = int(info['features'], 16)
        for bit in (2, 6, 9, 10, 11, 13, 14, 28, 29, 32):
            self.assertTrue(features >> bit & 1, f'feature bit {bit} is not offered')
        self.assertFalse(features >> 5 & 1, 'a disk that can be written to offers RO')

    def test_queues_vectors_and_sizes_as_configured(self):
        info, = self.info(self.file_disk(device='num-queues=3,queue-size=64,vectors=2,'
                                         'logical_block_size=4096,physical_block_size=4096'))
        self.assertEqual(info['queue_sizes'], [64, 64, 64])
        self.assertEqual((info['num_queues'], info['vectors'], info['blk_size']), (3, 2, 4096))
        self.assertEqual(info['seg_max'], 62)

    def test_serial_number(self):
        for serial in ('', 'a', 'exactly-twenty-bytes'):
            with self.subTest(serial=serial):
                device = f'serial={serial}' if serial else ''
                lines = self.boot(self.file_disk(device=device), 'op=getid')
                self.assertEqual(lines.result()['id'], serial)

    def test_several_disks_and_functions_of_one_slot(self):
        args = guestlib.iothread()
        for i, device in enumerate(('addr=5.0,multifunction=on', 'addr=5.3', '')):
            args += guestlib.disk(f'driver=null-co,size={(i + 1) << 20},read-zeroes=on', f'n{i}',
                                  device)
        info = self.info(args)
        by_size = {x['capacity'] >> 20: (x['slot'], x['function']) for x in info}
        self.assertEqual((by_size[1], by_size[2]), ((5, 0), (5, 3)))
        self.assertEqual(len(info), 3)
        lines = self.boot(args, 'op=read dev=all count=1000 qd=8')
        self.assertEqual([x['ios'] for x in lines.results('read')], [1000] * 3)

    def test_read_only_disk_refuses_writes(self):
        path = self.image(1 << 20)
        args = self.file_disk(path=path, more=',read-only=on')
        lines = self.boot(args, runs(['op=info', 'op=write expect=ioerr count=100',
                                      'op=read count=100']))
        self.assertTrue(lines.result('info')['read_only'])

    def test_write_cache_flips_under_load(self):
        self.boot(self.file_disk(), f'op=wce qd=16 count={scaled(20)}')

    def test_discard_and_write_zeroes(self):
        for aio in ENGINES:
            with self.subTest(aio=aio):
                self.boot(self.file_disk(aio=aio, more=',discard=unmap'),
                          f'count={scaled(20)} ' + runs(['op=discard', 'op=write_zeroes']))

    def test_image_that_grows_raises_a_configuration_interrupt(self):
        path = self.image(8 << 20)
        with guestlib.Vm(self.vmm, self.file_disk(path=path), 'op=watch seconds=20 count=1') as vm:
            if self.stock:
                self.skipTest('stock learns of a new size only from its monitor')
            for line in vm:
                if line['op'] == 'begin':
                    os.truncate(path, 24 << 20)
        self.assertEqual((vm.lines.errors, vm.lines.result('watch')['capacity']), (0, 24 << 20))


class Interrupts(GuestCase):
    LOAD = 'op=read complete=intr qd=4 count=3000'

    def check(self, lines):
        for result in lines.results('read'):
            self.assertGreater(result['interrupts'], 0)
            self.assertEqual(result['missed_interrupts'], 0)

    def test_msix(self):
        words = [f'{self.LOAD} {more}' for more in
                 ('', 'wait=spin', 'event_idx=0', 'vectors=1', 'queues=3', 'queues=3 vectors=2')]
        self.check(self.boot(guestlib.null_disk(latency_ns=20000, device='num-queues=3'),
                             runs(words)))

    def test_intx_by_pic_and_ioapic(self):
        words = [f'{self.LOAD} vectors=0 {more}' for more in
                 ('', 'irqchip=ioapic', 'event_idx=0', 'wait=spin irqchip=ioapic')]
        self.check(self.boot(guestlib.null_disk(latency_ns=20000), runs(words)))

    def test_intx_of_a_device_without_msix(self):
        self.check(self.boot(guestlib.null_disk(latency_ns=20000, device='vectors=0'), self.LOAD))

    def test_polled_completion_takes_no_interrupts(self):
        lines = self.boot(guestlib.null_disk(),
                          'op=read qd=32 count=200000 ' + runs(['', 'event_idx=0']))
        self.assertEqual([x['interrupts'] for x in lines.results('read')], [0, 0])

    def test_without_ioeventfd(self):
        # without an IOThread, since that one is only ever kicked by an ioeventfd
        self.boot(self.file_disk(device='ioeventfd=off', thread=''),
                  f'op=integrity qd=16 count={scaled(2000)} complete=intr')


class Integrity(GuestCase):
    def test_depths_1_to_128_with_each_engine(self):
        for aio in ENGINES:
            with self.subTest(aio=aio):
                words = [f'qd={depth} indirect={depth & 1} {more}' for depth in DEPTHS
                         for more in ('', 'complete=intr event_idx=0 indirect=0')]
                self.boot(self.file_disk(aio=aio),
                          f'op=integrity count={scaled(1500)} ' + runs(words))

    def test_any_framing_of_requests(self):
        for aio in ENGINES:
            with self.subTest(aio=aio):
                self.boot(self.file_disk(aio=aio), f'op=integrity odd=1 count={scaled(2000)} ' +
                          runs(['qd=16', 'qd=32 indirect=0',
                                'qd=8 bs=512 maxblocks=64 maxsegs=32']))

    def test_several_queues(self):
        self.boot(self.file_disk(aio='native', device='num-queues=4'),
                  f'op=integrity queues=4 count={scaled(4000)} ' +
                  runs(['qd=16', 'qd=32 complete=intr']))

    def test_polling_on_and_off(self):
        for poll_max_ns in (0, 32768, 1000000):
            with self.subTest(poll_max_ns=poll_max_ns):
                self.boot(self.file_disk(aio='native', poll_max_ns=poll_max_ns),
                          f'op=integrity count={scaled(4000)} ' +
                          runs(['qd=1', 'qd=1 event_idx=0', 'qd=16', 'qd=16 complete=intr']))

    def test_4096_byte_logical_blocks(self):
        self.boot(self.file_disk(aio='native', device='logical_block_size=4096,'
                                 'physical_block_size=4096'),
                  f'op=integrity qd=16 odd=1 count={scaled(2000)}')

    def test_small_ring(self):
        self.boot(self.file_disk(aio='io_uring', device='queue-size=16'),
                  f'op=integrity count={scaled(2000)} '
                  + runs(['qd=16', 'qd=4 indirect=0 maxsegs=4']))

    def test_resets_with_requests_in_flight(self):
        for aio in ENGINES:
            with self.subTest(aio=aio):
                self.boot(self.file_disk(aio=aio), f'op=reset qd=32 count={scaled(100, 10)}')

    def test_a_device_that_was_reset_already_may_be_reset_again(self):
        # each run ends with a reset and begins with another, which has nothing to wait for
        self.boot(guestlib.null_disk(), 'op=read warmup=0 count=1 ' + runs(['qd=1'] * 50))

    def test_a_device_that_loses_writes_is_found_out(self):
        lines = self.boot(guestlib.null_disk(), 'op=integrity qd=8 count=500', check=False)
        self.assertGreater(lines.result('integrity')['lost'], 0)


class Durability(GuestCase):
    def stamp_and_kill(self, args, words, lines_wanted):
        """What was acknowledged when the VMM was killed."""
        acked = 0
        with guestlib.Vm(self.vmm, args, f'op=stamp seconds=30 progress=0.02 {words}') as vm:
            for line in vm:
                if line['op'] == 'progress':
                    acked = line['acked']
                    lines_wanted -= 1
                    if lines_wanted <= 0 and acked > 0:
                        vm.kill()
        self.assertEqual(vm.lines.status, -9)
        self.assertGreater(acked, 0)
        return acked

    def test_acknowledged_writes_survive_kill_9(self):
        chance = random.Random(SEED)
        for aio in ENGINES:
            for n in range(scaled(2, 10)):
                with self.subTest(aio=aio, n=n):
                    args = self.file_disk(16 << 20, aio=aio)
                    words = f'seed={chance.randrange(1 << 30)} qd={chance.choice((1, 8, 32))}'
                    flush = chance.choice(('', ' flush_every=100'))
                    acked = self.stamp_and_kill(args, words + flush, chance.randrange(1, 20))
                    self.boot(self.file_disk(aio=aio, path=os.path.join(self.folder, 'disk.raw')),
                              f'{words} op=verify acked={acked}')

    def test_verify_notices_what_is_missing(self):
        args = self.file_disk(8 << 20)
        written = self.boot(args, 'op=stamp count=3000').result('stamp')
        self.assertEqual(written['acked'], 3000)
        path = os.path.join(self.folder, 'disk.raw')
        with open(path, 'r+b') as f:
            f.seek(4096 * 100)
            f.write(bytes(4096))
        lines = self.boot(self.file_disk(path=path),
                          runs(['op=verify acked=3000', 'op=verify acked=3001']), check=False)
        first, second = lines.results('verify')
        self.assertEqual((first['lost'], first['stale'], first['errors']), (1, 0, 1))
        self.assertEqual((second['lost'], second['stale'], second['errors']), (1, 1, 2))


class BadDrivers(GuestCase):
    def setUp(self):
        super().setUp()
        if self.stock:
            self.skipTest('stock aborts or hangs on DMA to its own registers')

    def test_hostile_cases(self):
        for words in ('', 'complete=intr', 'event_idx=0'):
            for poll_max_ns in (0, 32768):
                with self.subTest(words=words, poll_max_ns=poll_max_ns):
                    args = self.file_disk(poll_max_ns=poll_max_ns, more=',discard=unmap')
                    lines = self.boot(args, f'op=hostile {words}', check=False)
                    bad = [x for x in lines if x.get('errors') and x['op'] != 'done']
                    self.assertEqual(bad, [], f'{lines.stderr[-2000:]}')
                    self.assertNotIn('Sanitizer', lines.stderr)
                    self.assertTrue(lines.done, f'{lines.status} {lines.stderr[-2000:]}')

    def test_a_queue_that_breaks_while_another_drains(self):
        self.boot(guestlib.null_disk(latency_ns=200000000, device='num-queues=2'),
                  'op=hostile case=broken-while-resetting')

    def test_random_chains(self):
        for aio in ENGINES:
            with self.subTest(aio=aio):
                self.boot(self.file_disk(aio=aio, more=',discard=unmap'),
                          f'op=fuzz count={scaled(300, 50)}')

    def test_a_broken_device_leaves_its_neighbour_alone(self):
        args = self.file_disk(device='addr=4') + guestlib.disk(
            'driver=null-co,size=1048576,read-zeroes=on', 'n1', 'addr=5')
        self.boot(args, runs(['op=hostile case=desc-loop', 'op=read dev=1 count=1000',
                              'op=hostile case=avail-jump dev=0', 'op=integrity dev=0 count=500']))


class Runner(unittest.TestCase):
    def run_guest(self, *args):
        script = os.path.join(tap.source_dir(), 'tests', 'guest', 'run-guest')
        return subprocess.run([script, *args], capture_output=True, text=True, timeout=60,
                              check=False)

    def test_a_vmm_that_does_not_start_is_one_line(self):
        run = self.run_guest('--vmm', '/nonexistent', 'op=info')
        self.assertEqual(run.returncode, 1)
        self.assertIn('/nonexistent', run.stderr)
        self.assertEqual(run.stderr.count('\n'), 1)

    def test_a_guest_that_never_ends_is_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'vmm')
            with open(path, 'w', encoding='ascii') as f:
                f.write('#!/bin/sh\necho \'{"op":"begin"}\'\nexec sleep 100\n')
            os.chmod(path, 0o755)
            run = self.run_guest('--vmm', path, '--timeout', '1', 'op=info')
        self.assertEqual(run.returncode, 1)
        self.assertIn('no end after 1.0 s', run.stderr)


if __name__ == '__main__':
    tap.main()
