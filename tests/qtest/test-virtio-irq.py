# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts of a virtio device that come while they are masked."""

import time
import unittest

import qtest
import tap
from virtio import Disk, RINGS

DEVICE = ('-blockdev', 'driver=null-co,node-name=n', '-device',
          'virtio-blk-pci,drive=n,num-queues=1,addr=2')
MESSAGES = 0x300000             # vector n writes 0x40 + n to MESSAGES + 4 * n


class MaskedVectors(unittest.TestCase):
    def vector(self, disk, table, n, masked):
        disk.vector(table, n, MESSAGES + 4 * n, 0x40 + n, masked)

    def start(self, m, config_vector, queue_vector):
        disk = Disk(m)
        table = disk.msix_on()
        for n in range(2):
            self.vector(disk, table, n, True)
        disk.negotiate()
        disk.reg(0x10, config_vector, 2)
        disk.queue(0)
        disk.reg(0x1a, queue_vector, 2)
        disk.reg(0x14, 15)
        return disk, table

    def broken(self, m, disk):
        """A head out of range: the device needs a reset, and says so by an interrupt."""
        m.store(RINGS + 0x1004, 0xffff, 2)
        m.store(RINGS + 0x1002, 1, 2)
        disk.kick(0)
        deadline = time.monotonic() + 10
        while disk.reg(0x14) != 0x4f:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def arrives(self, m, value):
        deadline = time.monotonic() + 10
        while m.load(MESSAGES) != value:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def test_a_change_of_configuration_waits_for_the_mask_to_go(self):
        with qtest.Machine(*DEVICE) as m:
            disk, table = self.start(m, 0, 1)
            self.broken(m, disk)
            self.assertEqual(m.load(MESSAGES), 0)
            self.vector(disk, table, 0, False)
            self.arrives(m, 0x40)

    def test_it_is_forgotten_with_a_reset(self):
        with qtest.Machine(*DEVICE) as m:
            disk, table = self.start(m, 0, 1)
            self.broken(m, disk)
            disk.reg(0x14, 0)
            while disk.reg(0x14) != 0:
                time.sleep(0.005)
            self.vector(disk, table, 0, False)
            time.sleep(0.1)
            self.assertEqual(m.load(MESSAGES), 0)


if __name__ == '__main__':
    tap.main()
