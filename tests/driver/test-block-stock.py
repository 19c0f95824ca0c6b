#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The block layer beside stock tools and under a tracer: locks that exclude both
ways, content that qemu-img finds the same, flushes counted, kill -9 survived.
"""

import os
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import tap

TOOL = tap.binary('tests/driver/blktool')
BLOCK = 4096
SEED = int(os.environ.get('TEST_SEED', str(random.randrange(1 << 31))))


def need(program):
    path = shutil.which(program)
    if not path:
        raise unittest.SkipTest(f'{program} is not installed')
    return path


def run(*words, check=True, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if check and done.returncode != 0:
        raise AssertionError(f'{words}: {done.stdout}{done.stderr}')
    return done


class WithImage(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='blk-stock-', dir='/var/tmp')
        self.addCleanup(shutil.rmtree, self.dir)
        self.image = os.path.join(self.dir, 'img')
        with open(self.image, 'wb') as file:
            file.truncate(1 << 20)

    def blockdev(self, options=''):
        return f'driver=file,node-name=n,filename={self.image}{options}'

    def tool(self, *words, options='', check=True):
        return run(TOOL, '-b', self.blockdev(options), 'n', *words, check=check)

    def hold(self, *words):
        """A process that has the image open until the test ends."""
        holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def end():
            holder.kill()
            holder.wait()
            holder.stdin.close()
            holder.stdout.close()
        self.addCleanup(end)
        return holder

    def hold_ours(self, options='', *flags):
        holder = self.hold(TOOL, *flags, '-b', self.blockdev(options), 'n', 'hold')
        self.assertEqual(holder.stdout.readline(), 'holding\n')
        return holder

    def hold_stock(self, *options):
        need('qemu-io')
        holder = self.hold('qemu-io', *options, '-f', 'raw', self.image)
        holder.stdin.write('length\n')
        holder.stdin.flush()
        while 'MiB' not in holder.stdout.readline():
            pass
        return holder


class Locks(WithImage):
    def refused(self, done, lock='write'):
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f'"{lock}" lock', done.stderr)
        self.assertIn('Is another process using the image', done.stderr)

    def test_ours_keeps_ours_out(self):
        holder = self.hold_ours()
        done = self.tool('flush', check=False)
        self.refused(done)
        self.assertIn(f'held by process {holder.pid} (blktool)', done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_ours_keeps_stock_out(self):
        need('qemu-io')
        self.hold_ours()
        self.refused(run('qemu-io', '-f', 'raw', '-c', 'read 0 512', self.image, check=False))
        run('qemu-io', '-r', '-f', 'raw', '-c', 'read 0 512', self.image)

    def test_stock_keeps_ours_out(self):
        holder = self.hold_stock()
        done = self.tool('flush', check=False)
        self.refused(done)
        self.assertIn(f'process {holder.pid} (qemu-io)', done.stderr)

    def test_stock_reader_is_no_obstacle(self):
        self.hold_stock('-r')
        self.tool('write', '0', '512', '1')

    def test_our_reader_is_no_obstacle(self):
        need('qemu-io')
        self.hold_ours(',read-only=on')
        # it doesn't share writes, though
        self.refused(run('qemu-io', '-f', 'raw', '-c', 'write 0 512', self.image, check=False))
        run('qemu-io', '-r', '-f', 'raw', '-c', 'read 0 512', self.image)

    def test_sharing_ours_and_stock(self):
        need('qemu-io')
        self.hold_ours('', '-s')
        run('qemu-io', '-f', 'raw', '-c', 'write 0 512', self.image)
        run(TOOL, '-s', '-b', self.blockdev(), 'n', 'write', '0', '512', '1')
        self.refused(self.tool('flush', check=False))

    def test_stock_device_keeps_ours_out(self):
        """A disk of a stock guest, and the reverse."""
        qemu = need('qemu-system-x86_64')
        disk = ['-blockdev', self.blockdev(), '-device', 'virtio-blk-pci,drive=n']
        vm = [qemu, '-M', 'pc', '-accel', 'tcg', '-S', '-display', 'none', '-nodefaults',
              '-qmp', 'stdio', *disk]
        guest = self.hold(*vm)
        self.assertIn('QMP', guest.stdout.readline())
        guest.stdin.write('{"execute":"qmp_capabilities"}\n')
        guest.stdin.flush()
        self.assertIn('return', guest.stdout.readline())        # the devices are there
        self.refused(self.tool('flush', check=False))
        guest.terminate()
        guest.wait()
        self.tool('flush')
        self.hold_ours()
        self.refused(run(*vm, check=False, stdin=subprocess.DEVNULL, timeout=20))

    def test_locking_off(self):
        self.hold_ours()
        self.tool('flush', options=',locking=off')
        self.refused(self.tool('flush', options=',locking=on', check=False))

    def test_force_share_reads(self):
        self.hold_ours()
        self.tool('read', '0', '512', '0', options=',read-only=on,force-share=on')

    def test_locks_end_with_the_process(self):
        holder = self.hold_ours()
        holder.kill()
        holder.wait()
        self.tool('flush')


class Content(WithImage):
    ENGINES = {
        'threads': '', 'threads-direct': ',cache.direct=on',
        'native': ',aio=native,cache.direct=on',
        'io_uring': ',aio=io_uring', 'io_uring-direct': ',aio=io_uring,cache.direct=on',
    }

    def test_engines_agree_as_stock_sees_it(self):
        """The same random writes through each engine make the same image."""
        need('qemu-img')
        first = None
        for name, options in self.ENGINES.items():
            with self.subTest(engine=name, seed=SEED):
                self.image = os.path.join(self.dir, name)
                with open(self.image, 'wb') as file:
                    file.truncate((1 << 20) + 512)
                done = self.tool('random', str(SEED + 1), '500', options=options, check=False)
                if 'refuses' in done.stderr or 'not built' in done.stderr:
                    self.skipTest(done.stderr.strip())
                self.assertEqual(done.returncode, 0, done.stderr)
                first = first or self.image
                run('qemu-img', 'compare', '-f', 'raw', '-F', 'raw', first, self.image)

    def test_stock_reads_what_ours_wrote_and_back(self):
        need('qemu-io')
        self.tool('write', '65536', '8192', '0x5a', 'zero', '69632', '512', 'flush')
        run('qemu-io', '-f', 'raw', '-c', 'read -P 0x5a 65536 4096', '-c', 'read -P 0 69632 512',
            '-c', 'read -P 0x5a 70144 3584', self.image)
        run('qemu-io', '-f', 'raw', '-c', 'write -P 0x33 12288 4096', self.image)
        self.tool('read', '12288', '4096', '0x33', options=',cache.direct=on')

    def test_length_as_stock_rounds_it(self):
        need('qemu-img')
        for size in (512, 513, 1000, 1024, 1 << 20, (1 << 20) + 1):
            os.truncate(self.image, size)
            info = run('qemu-img', 'info', '-f', 'raw', '--output=json', self.image).stdout
            stock = int(re.search(r'"virtual-size": (\d+)', info).group(1))
            self.assertEqual(int(self.tool('length').stdout), stock, size)

    def test_discard_gives_space_back(self):
        self.tool('write', '0', '1048576', '1')
        full = os.stat(self.image).st_blocks
        self.tool('discard', '0', '524288')
        self.assertEqual(os.stat(self.image).st_blocks, full)
        self.tool('discard', '0', '524288', options=',discard=unmap')
        self.assertLess(os.stat(self.image).st_blocks, full)
        self.tool('read', '0', '524288', '0', 'read', '524288', '524288', '1')


class Flushes(WithImage):
    """What reaches the kernel, counted by strace."""

    def count(self, cache, *commands):
        need('strace')
        log = os.path.join(self.dir, 'strace')
        run('strace', '-f', '-o', log, '-e', 'trace=fdatasync,fsync,pwritev,pwrite64,io_submit',
            TOOL, '-d', f'file={self.image},format=raw,id=n,cache={cache}', 'n', *commands)
        with open(log, encoding='utf-8') as file:
            text = file.read()
        return len(re.findall(r'\bf(?:data)?sync\(', text))

    WRITES = ['write', '0', '4096', '1', 'write', '4096', '4096', '2', 'write', '8192', '4096', '3']

    def test_flush_per_write_or_on_request(self):
        # one more when the disk is closed, except for unsafe
        for cache, writes, request in (('writeback', 1, 2), ('none', 1, 2), ('unsafe', 0, 0)):
            with self.subTest(cache=cache):
                self.assertEqual(self.count(cache, *self.WRITES), writes)
                self.assertEqual(self.count(cache, *self.WRITES, 'flush'), request)
        for cache in ('writethrough', 'directsync'):
            with self.subTest(cache=cache):
                # and one when the write cache was switched off, before the first
                self.assertEqual(self.count(cache, *self.WRITES), 3 + 2)
                self.assertEqual(self.count(cache, 'zero', '0', '4096'), 1 + 2)

    def test_write_cache_switched_off_flushes(self):
        self.assertEqual(self.count('writeback', 'wce', 'off'), 2)
        self.assertEqual(self.count('writeback', 'wce', 'off', *self.WRITES), 5)
        self.assertEqual(self.count('writeback', 'wce', 'off', 'wce', 'on', *self.WRITES), 2)

    def test_direct_bypasses_the_page_cache(self):
        need('strace')
        log = os.path.join(self.dir, 'strace')
        for cache, direct in (('none', True), ('directsync', True), ('writeback', False),
                              ('writethrough', False), ('unsafe', False)):
            run('strace', '-o', log, '-e', 'trace=openat',
                TOOL, '-d', f'file={self.image},format=raw,id=n,cache={cache}', 'n', 'flush')
            with open(log, encoding='utf-8') as file:
                opened = [line for line in file if self.image in line]
            self.assertTrue(any('O_RDWR' in line for line in opened))
            self.assertEqual(any('O_DIRECT' in line for line in opened), direct, cache)


class Killed(WithImage):
    def stamps_survive(self, options, depth):
        """Every write that was acknowledged before kill -9 is in the file."""
        writer = subprocess.Popen([TOOL, '-b', self.blockdev(options), 'n', 'stamp', str(depth),
                                   '0'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out = writer.stdout.readline()          # it is at work
        time.sleep(random.random() * 0.1)
        writer.send_signal(signal.SIGKILL)
        more, err = writer.communicate()
        out += more
        if 'refuses' in err or 'not built' in err:
            self.skipTest(err.strip())
        numbers = [int(line) for line in out.split('\n')[:-1]]
        self.assertTrue(numbers, err)
        blocks = os.stat(self.image).st_size // BLOCK
        last = {}
        for number in numbers:
            last[number % blocks] = max(number, last.get(number % blocks, 0))
        with open(self.image, 'rb') as file:
            data = file.read()
        for block, number in last.items():
            words = set(struct.unpack('<512Q', data[block * BLOCK:(block + 1) * BLOCK]))
            # a later write may have been on its way, but no older one is there
            self.assertTrue(all(w >= number for w in words), (block, number, words))

    def test_acknowledged_writes_survive(self):
        rounds = 20 if tap.long_run() else 3
        random.seed(SEED)
        print(f'# TEST_SEED={SEED}')
        for engine, options in Content.ENGINES.items():
            for _ in range(rounds):
                with self.subTest(engine=engine, seed=SEED):
                    self.stamps_survive(options, random.choice((1, 8, 32)))


if __name__ == '__main__':
    tap.main()
