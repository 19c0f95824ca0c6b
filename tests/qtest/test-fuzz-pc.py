# SPDX-License-Identifier: GPL-2.0-or-later
"""Random accesses to the board, as a hostile guest makes them: the process lives and still answers.

SEED and ROUNDS in the environment repeat a run or make it longer.
"""

import os
import random
import unittest

import qtest
import tap

BATCH = 200
ENDS = {0x604, 0x605}           # a write there may switch off


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.seed = int(os.environ.get('SEED', random.SystemRandom().randrange(10**6)))
        self.rng = random.Random(self.seed)
        print(f'# SEED={self.seed}')

    def value(self):
        rng = self.rng
        return rng.choice((0, 1, 0xff, 0xffff, 0xffffffff, 1 << rng.randrange(32),
                           rng.getrandbits(8), rng.getrandbits(32)))

    def port(self):
        rng = self.rng
        base = rng.choice((0x70, 0x71, 0x3f8, 0x600, 0xcf8, 0xcfc, 0xcfc, 0x60, 0x64, 0x4d0, 0xc000,
                           0xfffc, rng.getrandbits(16)))
        return (base + rng.randrange(8)) & 0xffff

    def config(self):
        """Address and data of configuration space, mostly where something is."""
        rng = self.rng
        devfn = rng.choice((0, 0x10, 0x18, 0x19, rng.getrandbits(8)))
        reg = rng.choice((4, rng.randrange(0x10, 0x28), 0x3c, rng.randrange(0x40, 0xb0),
                          rng.getrandbits(8)))
        size = rng.choice('bwl')
        return [f'outl 0xcf8 {0x80000000 | devfn << 8 | reg & 0xfc:#x}',
                rng.choice((f'in{size} {0xcfc + reg % 4:#x}',
                            f'out{size} {0xcfc + reg % 4:#x} {self.value():#x}'))]

    def mmio(self):
        rng = self.rng
        addr = rng.choice((0xc0000000, 0xc0004000, 0xc0008000, 0xc0009000, 0xd0000000,
                           0xfec00000, 0xfee00000, 0xffff0000, 0xa0000, 1 << 38,
                           rng.getrandbits(64)))
        addr = (addr + rng.randrange(0x5000)) & 0xffffffffffffffff
        size = rng.choice('bwlq')
        return [rng.choice((f'read{size} {addr:#x}', f'write{size} {addr:#x} {self.value():#x}'))]

    def one(self):
        kind = self.rng.randrange(4)
        if kind == 0:
            size = self.rng.choice('bwl')
            port = self.port()
            if self.rng.randrange(2) or any(p in ENDS for p in range(port - 3, port + 4)):
                return [f'in{size} {port:#x}']
            return [f'out{size} {port:#x} {self.value():#x}']
        return self.config() if kind < 3 else self.mmio()

    def test_random_accesses(self):
        rounds = int(os.environ.get('ROUNDS', 2000 if tap.long_run() else 60))
        with qtest.Machine(
                '-object', 'iothread,id=io0', '-blockdev', 'driver=null-co,node-name=n0,size=1M',
                '-blockdev', 'driver=null-co,node-name=n1,size=1M',
                '-blockdev', 'driver=null-co,node-name=n2,size=1M',
                '-device', 'virtio-blk-pci,drive=n0,iothread=io0,addr=2',
                '-device', 'virtio-blk-pci,drive=n1,addr=3,multifunction=on',
                '-device', 'virtio-blk-pci,drive=n2,addr=3.1,vectors=0') as m:
            for _ in range(rounds):
                commands = [c for _ in range(BATCH) for c in self.one()]
                m.socket.sendall('\n'.join(commands).encode() + b'\n')
                for c in commands:
                    line = m._line()
                    self.assertTrue(line.startswith('OK'), f'seed {self.seed}: {c}: {line}')
                # a reset that was asked for may fall between address and data
                self.assertIn(0x12378086, (m.config(0, 0) for _ in range(10)))
            self.assertEqual(m.end()[0], 0, f'seed {self.seed}')


if __name__ == '__main__':
    tap.main()
