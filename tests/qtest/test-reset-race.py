# SPDX-License-Identifier: GPL-2.0-or-later
"""A queue breaks while its neighbour drains for a reset."""

import mmap
import os
import struct
import time
import unittest

import qtest
import tap
from virtio import Disk, RINGS

BUFFERS = 0x200000
LATENCY_NS = 100_000_000        # so that a reset has something to wait for
WARM_UP = 3                     # requests after which the thread polls for longer than that


class ResetRace(unittest.TestCase):
    def guest_ram(self, m):
        """The machine's RAM in our hands: it can't answer while it waits for a drain."""
        folder = f'/proc/{m.process.pid}/fd'
        for fd in os.listdir(folder):
            if 'pc.ram' in os.readlink(f'{folder}/{fd}'):
                with open(f'{folder}/{fd}', 'r+b') as f:
                    return mmap.mmap(f.fileno(), 0)
        raise AssertionError('no memfd of RAM')

    def completed(self, m, count):
        deadline = time.monotonic() + 10
        while m.load(RINGS + 0x2002, 2) != count:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def request(self, m, disk, count):
        """The request number @count on queue 0: always the same read."""
        m.order(f'write {BUFFERS:#x} 16 0x')
        for i, (addr, length, flags) in enumerate(((BUFFERS, 16, 1), (BUFFERS + 512, 512, 3),
                                                   (BUFFERS + 16, 1, 2))):
            data = struct.pack('<QIHH', addr, length, flags, i + 1).hex()
            m.order(f'write {RINGS + 16 * i:#x} 16 0x{data}')
        m.store(RINGS + 0x1002, count, 2)
        disk.kick(0)

    def breaks_while(self, change):
        with qtest.Machine('-object', f'iothread,id=t,poll-max-ns={9 * LATENCY_NS},'
                           'poll-grow=100000', '-blockdev',
                           f'driver=null-co,node-name=n,latency-ns={LATENCY_NS}', '-device',
                           'virtio-blk-pci,drive=n,iothread=t,num-queues=2,addr=2') as m:
            ram = self.guest_ram(m)
            disk = Disk(m)
            disk.negotiate()
            disk.queue(0)
            disk.queue(1)
            disk.reg(0x14, 15)
            for i in range(WARM_UP):
                self.request(m, disk, i + 1)
                self.completed(m, i + 1)
            self.request(m, disk, WARM_UP + 1)
            time.sleep(LATENCY_NS / 5e9)
            m.out_port(0xcf8, 0x80001004, 4)    # the command register
            # The device waits for the request; until it is done the thread polls queue 1.
            m.socket.sendall(change(disk))
            time.sleep(LATENCY_NS / 5e9)
            ram[RINGS + 0x4000 + 0x1002:RINGS + 0x4000 + 0x1004] = b'\xff\xff'
            self.assertEqual(m.lines.readline(), 'OK\n')
            deadline = time.monotonic() + 10
            while disk.reg(0x14) not in (0, 0x4f) and time.monotonic() < deadline:
                time.sleep(0.01)
            status = disk.reg(0x14)
            ram.close()
            # And it is as good as new.
            m.set_config(2 << 3, 4, 6, 2)
            disk.reg(0x14, 0)
            m.order(f'memset {RINGS:#x} 0x8000 0')
            disk.negotiate()
            disk.queue(0)
            disk.reg(0x14, 15)
            self.request(m, disk, 1)
            self.completed(m, 1)
            code, _, err = m.end()
            self.assertEqual(code, 0, err)
            return status

    def test_a_queue_breaks_while_another_drains_for_a_reset(self):
        self.assertEqual(self.breaks_while(
            lambda disk: f'writeb {disk.bar + 0x14:#x} 0\n'.encode()), 0)

    def test_a_queue_breaks_while_another_drains_for_a_system_reset(self):
        self.assertEqual(self.breaks_while(lambda disk: b'outb 0xcf9 6\n'), 0)

    def test_a_queue_breaks_while_bus_mastering_goes_off(self):
        self.assertEqual(self.breaks_while(
            lambda disk: b'outw 0xcfc 2\n'), 0x4f)


if __name__ == '__main__':
    tap.main()
