# SPDX-License-Identifier: GPL-2.0-or-later
"""What the pc board answers at its addresses."""

import datetime
import time
import unittest

import qtest
import tap

COM1 = 0x3f8
DISKS = ('-blockdev', 'driver=null-co,node-name=n0,size=1M',
         '-blockdev', 'driver=null-co,node-name=n1,size=1M')
NONE = 0xffffffff


class Uart(unittest.TestCase):
    """The 16550A's registers."""

    RBR = THR = DLL = COM1
    IER = DLM = COM1 + 1
    IIR = FCR = COM1 + 2
    LCR, MCR, LSR, MSR, SCR = (COM1 + i for i in range(3, 8))

    def setUp(self):
        self.m = qtest.Machine()
        self.addCleanup(self.m.end)

    def loop(self, data, fcr=7):
        """Send `data` to the receiver through loop-back."""
        self.m.out_port(self.FCR, fcr)
        self.m.out_port(self.MCR, 0x10)
        for byte in data:
            self.m.out_port(self.THR, byte)

    def test_power_on(self):
        self.assertEqual(self.m.in_port(self.LSR), 0x60)
        self.assertEqual(self.m.in_port(self.IIR), 0x01)
        self.assertEqual(self.m.in_port(self.MSR), 0xb0)

    def test_scratch_and_divisor(self):
        self.m.out_port(self.SCR, 0x5a)
        self.assertEqual(self.m.in_port(self.SCR), 0x5a)
        self.m.out_port(self.LCR, 0x80)
        self.m.out_port(self.DLL, 0x34)
        self.m.out_port(self.DLM, 0x12)
        self.assertEqual(self.m.in_port(COM1, 1), 0x34)
        self.assertEqual(self.m.in_port(COM1, 2), 0x1234)
        self.m.out_port(self.LCR, 3)
        self.assertEqual(self.m.in_port(self.IER), 0)

    def test_it_is_a_16550a(self):
        self.m.out_port(self.FCR, 1)
        self.assertEqual(self.m.in_port(self.IIR) & 0xc0, 0xc0)
        self.m.out_port(self.FCR, 0)
        self.assertEqual(self.m.in_port(self.IIR) & 0xc0, 0)

    def test_modem_lines_in_loop_back(self):
        """What Linux looks for before it believes in a port."""
        self.m.out_port(self.MCR, 0x1a)
        self.assertEqual(self.m.in_port(self.MSR) & 0xf0, 0x90)
        self.m.out_port(self.MCR, 0x15)
        self.assertEqual(self.m.in_port(self.MSR) & 0xf0, 0x60)
        self.assertEqual(self.m.in_port(self.MSR) & 0x0f, 0)

    def test_fifo_order_and_overrun(self):
        self.loop(range(17))
        self.assertEqual(self.m.in_port(self.LSR) & 0x03, 0x03)
        self.assertEqual([self.m.in_port(self.RBR) for _ in range(16)], list(range(16)))
        self.assertEqual(self.m.in_port(self.LSR) & 0x03, 0)

    def test_without_fifo_one_byte_fits(self):
        self.loop([1, 2], fcr=0)
        self.assertEqual(self.m.in_port(self.LSR) & 0x03, 0x03)
        self.assertEqual(self.m.in_port(self.RBR), 1)

    def test_fifo_reset(self):
        self.loop([1, 2, 3])
        self.m.out_port(self.FCR, 3)
        self.assertEqual(self.m.in_port(self.LSR) & 1, 0)

    def test_trigger_level(self):
        self.m.out_port(self.IER, 1)
        self.loop([1, 2, 3], fcr=0x47)          # four bytes
        self.assertEqual(self.m.in_port(self.IIR) & 0x0f, 0x0c)
        self.m.out_port(self.THR, 4)
        self.assertEqual(self.m.in_port(self.IIR) & 0x0f, 0x04)

    def test_transmitter_interrupt(self):
        self.m.order('irq_intercept_in ioapic')
        self.m.out_port(self.MCR, 0x08)
        self.m.out_port(self.IER, 2)
        self.assertEqual(self.m.event(), 'IRQ raise 4')
        self.assertEqual(self.m.in_port(self.IIR) & 0x0f, 2)
        self.assertEqual(self.m.event(), 'IRQ lower 4')
        self.assertEqual(self.m.in_port(self.IIR) & 0x0f, 1)
        self.m.out_port(self.THR, ord('x'))
        self.assertEqual(self.m.event(), 'IRQ raise 4')
        self.m.out_port(self.MCR, 0)            # OUT2 gates the line
        self.assertEqual(self.m.event(), 'IRQ lower 4')


class Clock(unittest.TestCase):
    def setUp(self):
        self.m = qtest.Machine('-m', '5G', '-smp', '3')
        self.addCleanup(self.m.end)

    def cmos(self, reg, value=None):
        self.m.out_port(0x70, reg)
        if value is None:
            return self.m.in_port(0x71)
        return self.m.out_port(0x71, value)

    def bcd(self, reg):
        v = self.cmos(reg)
        return (v >> 4) * 10 + (v & 15)

    def now(self):
        while True:
            before = self.bcd(0)
            got = datetime.datetime(self.bcd(0x32) * 100 + self.bcd(9), self.bcd(8), self.bcd(7),
                                    self.bcd(4), self.bcd(2), before,
                                    tzinfo=datetime.timezone.utc)
            if self.bcd(0) == before:
                return got

    def test_time_of_day(self):
        off = self.now() - datetime.datetime.now(datetime.timezone.utc)
        self.assertLess(abs(off.total_seconds()), 3)

    def test_setting(self):
        self.cmos(0x0b, 0x82)
        for reg, value in ((0x32, 0x19), (9, 0x99), (8, 0x12), (7, 0x31), (4, 0x23), (2, 0x59),
                           (0, 0x58)):
            self.cmos(reg, value)
        self.assertEqual(self.cmos(0), 0x58)
        self.cmos(0x0b, 0x02)
        self.assertEqual(self.now().year, 1999)
        time.sleep(3)
        self.assertEqual((self.now().year, self.now().month, self.now().day), (2000, 1, 1))

    def test_binary_and_twelve_hours(self):
        hour = self.now().hour
        self.cmos(0x0b, 0x06)
        self.assertIn(self.cmos(4), (hour, (hour + 1) % 24))
        self.cmos(0x0b, 0x80)
        self.cmos(4, 0x92)                      # 12 pm
        self.cmos(0x0b, 0x02)
        self.assertEqual(self.bcd(4), 12)

    def test_update_interrupt(self):
        self.m.order('irq_intercept_in ioapic')
        self.cmos(0x0c)
        self.cmos(0x0b, 0x12)
        self.assertEqual(self.m.event(), 'IRQ raise 8')
        self.assertEqual(self.cmos(0x0c) & 0x90, 0x90)
        self.assertEqual(self.m.event(), 'IRQ lower 8')
        self.assertEqual(self.cmos(0x0c) & 0x80, 0)

    def test_alarm(self):
        self.m.order('irq_intercept_in ioapic')
        for reg in (1, 3, 5):
            self.cmos(reg, 0xff)                # each second
        self.cmos(0x0c)
        self.m.out_port(0x602, 0x400, 2)        # ACPI's event, too
        self.cmos(0x0b, 0x22)
        events = {self.m.event(), self.m.event()}
        self.assertEqual(events, {'IRQ raise 8', 'IRQ raise 9'})
        self.assertEqual(self.m.in_port(0x600, 2), 0x400)
        self.m.out_port(0x600, 0x400, 2)
        self.assertIn('IRQ lower 9', self.m.events)

    def test_periodic_interrupt(self):
        self.m.order('irq_intercept_in ioapic')
        self.cmos(0x0a, 0x2f)                   # 2 Hz
        self.cmos(0x0c)
        self.cmos(0x0b, 0x42)
        for _ in range(3):
            self.assertEqual(self.m.event(), 'IRQ raise 8')
            self.assertEqual(self.cmos(0x0c) & 0xc0, 0xc0)
            self.assertEqual(self.m.event(), 'IRQ lower 8')

    def test_memory_sizes(self):
        word = lambda reg: self.cmos(reg) | self.cmos(reg + 1) << 8
        self.assertEqual(word(0x15), 640)
        self.assertEqual(word(0x34), (3 * 1024 - 16) * 16)
        self.assertEqual(word(0x5b) | self.cmos(0x5d) << 16, 2 * 1024 * 16)
        self.assertEqual(self.cmos(0x5f), 2)


class Power(unittest.TestCase):
    def test_soft_off(self):
        with qtest.Machine() as m:
            self.assertEqual(m.in_port(0x604, 2) & 1, 1)
            m.out_port(0x604, 0x2000, 2)
            self.assertEqual(m.process.wait(timeout=30), 0)

    def test_other_sleep_states_do_nothing(self):
        with qtest.Machine() as m:
            m.out_port(0x604, 0x2400, 2)
            self.assertEqual(m.in_port(0x604, 2), 0x0401)

    def test_timer_runs_at_its_rate(self):
        with qtest.Machine() as m:
            before, at = m.in_port(0x608, 4), time.monotonic()
            time.sleep(0.5)
            ticks = (m.in_port(0x608, 4) - before) & NONE
            self.assertAlmostEqual(ticks / 3579545, time.monotonic() - at, delta=0.2)

    def test_debug_exit(self):
        for value, status in ((0, 1), (1, 3), (0x7f, 255), (0x21, 67)):
            with qtest.Machine('-device', 'isa-debug-exit,iobase=0xf4,iosize=4') as m:
                m.out_port(0xf4, value, 4)
                self.assertEqual(m.process.wait(timeout=30), status)

    def resets(self, *args):
        for how in (lambda m: m.out_port(0x64, 0xfe), lambda m: m.out_port(0xcf9, 6)):
            with qtest.Machine(*args) as m:
                m.out_port(COM1 + 7, 0x5a)
                m.set_config(0, 0x3c, 0x11, 1)
                m.store(0x200000, 0x12345678)
                how(m)
                yield m

    def test_reset(self):
        for m in self.resets():
            for _ in range(200):
                if m.in_port(COM1 + 7) == 0:
                    break
                time.sleep(0.01)
            self.assertEqual(m.in_port(COM1 + 7), 0)
            self.assertEqual(m.config(0, 0x3c, 1), 0)
            self.assertEqual(m.load(0x200000), 0x12345678)

    def test_reset_under_no_reboot(self):
        for m in self.resets('-no-reboot'):
            self.assertEqual(m.process.wait(timeout=30), 0)

    def test_ports_that_mean_nothing(self):
        with qtest.Machine() as m:
            for port in (0x60, 0x80, 0x92, 0x100, 0xcf9, 0xffff):
                m.out_port(port, 0)
                m.in_port(port)
            m.out_port(0x64, 0xd1)
            self.assertEqual(m.in_port(0x64), 0)
            self.assertEqual(m.in_port(0x80, 4), NONE)
            self.assertEqual(m.load(0xc0000000), NONE)
            self.assertEqual(m.load(0xa0000), NONE)


class Tables(unittest.TestCase):
    """ACPI's tables, found as an operating system finds them."""

    def setUp(self):
        self.m = qtest.Machine('-smp', '4,sockets=2,cores=2')
        self.addCleanup(self.m.end)
        area = self.m.memory(0xe0000, 0x20000)
        at = next(i for i in range(0, len(area), 16) if area[i:i + 8] == b'RSD PTR ')
        self.area = area
        self.rsdp = area[at:at + 36]

    @staticmethod
    def number(data, at, size):
        return int.from_bytes(data[at:at + size], 'little')

    def table(self, addr):
        at = addr - 0xe0000
        data = self.area[at:at + self.number(self.area, at + 4, 4)]
        return data

    def tables(self):
        xsdt = self.table(self.number(self.rsdp, 24, 8))
        self.assertEqual(xsdt[:4], b'XSDT')
        return {t[:4]: t for t in (self.table(self.number(xsdt, i, 8))
                                   for i in range(36, len(xsdt), 8))} | {b'XSDT': xsdt}

    def test_checksums(self):
        self.assertEqual(sum(self.rsdp[:20]) % 256, 0)
        self.assertEqual(sum(self.rsdp) % 256, 0)
        tables = self.tables()
        tables[b'DSDT'] = self.table(self.number(tables[b'FACP'], 140, 8))
        for name, data in tables.items():
            self.assertEqual(sum(data) % 256, 0, name)
            self.assertEqual(data[:4], name)

    def test_processors_and_ioapic(self):
        madt = self.tables()[b'APIC']
        at, apics, ioapics, overrides = 44, [], [], {}
        while at < len(madt):
            kind, length = madt[at], madt[at + 1]
            if kind == 0 and self.number(madt, at + 4, 4) & 1:
                apics.append(madt[at + 3])
            elif kind == 1:
                ioapics.append(self.number(madt, at + 4, 4))
            elif kind == 2:
                overrides[madt[at + 3]] = (self.number(madt, at + 4, 4),
                                           self.number(madt, at + 8, 2))
            at += length
        self.assertEqual(at, len(madt))
        self.assertEqual(apics, [0, 1, 2, 3])
        self.assertEqual(ioapics, [0xfec00000])
        self.assertEqual(overrides, {0: (2, 0), 9: (9, 13), 10: (10, 13), 11: (11, 13)})

    def test_fixed_hardware(self):
        fadt = self.tables()[b'FACP']
        self.assertEqual(self.number(fadt, 56, 4), 0x600)
        self.assertEqual(self.number(fadt, 64, 4), 0x604)
        self.assertEqual(self.number(fadt, 76, 4), 0x608)
        self.assertEqual(self.number(fadt, 120, 8), 0xcf9)
        facs = self.number(fadt, 36, 4)
        self.assertEqual(facs % 64, 0)
        self.assertEqual(self.table(facs)[:4], b'FACS')


class Pci(unittest.TestCase):
    """Configuration space, places, BARs."""

    def machine(self, *devices):
        args = []
        for n, d in enumerate(devices):
            args += ['-device', f'virtio-blk-pci,drive=n{n},{d}']
        m = qtest.Machine(*DISKS, *args)
        self.addCleanup(m.end)
        return m

    def found(self, m):
        return [f'{devfn >> 3:x}.{devfn & 7}' for devfn in range(256)
                if m.config(devfn, 0) != NONE]

    def test_host_bridge(self):
        m = self.machine()
        self.assertEqual(m.config(0, 0), 0x12378086)
        self.assertEqual(m.config(0, 8) >> 8, 0x060000)
        self.assertEqual(self.found(m), ['0.0'])

    def test_places(self):
        for devices, places in (
                (('', ''), ['2.0', '3.0']),
                (('addr=5', 'addr=0x1f'), ['5.0', '1f.0']),
                (('addr=5.0,multifunction=on', 'addr=05.7'), ['5.0', '5.7']),
                (('addr=5.1', 'addr=5,multifunction=on'), ['5.0', '5.1']),
                (('addr=2', ''), ['2.0', '3.0'])):
            with self.subTest(devices=devices):
                self.assertEqual(self.found(self.machine(*devices)), ['0.0'] + places)

    def test_multifunction_bit(self):
        m = self.machine('addr=5,multifunction=on', 'addr=6')
        self.assertEqual(m.config(5 << 3, 0x0e, 1), 0x80)
        self.assertEqual(m.config(6 << 3, 0x0e, 1), 0)

    def test_address_port(self):
        m = self.machine()
        m.out_port(0xcf8, NONE, 4)
        self.assertEqual(m.in_port(0xcf8, 4), 0x80fffffc)
        self.assertEqual(m.in_port(0xcfc, 4), NONE)         # bus 0xff
        m.out_port(0xcf8, 0, 4)
        self.assertEqual(m.in_port(0xcfc, 4), NONE)         # not enabled
        m.out_port(0xcf8, 0x80000000, 4)
        m.out_port(0xcfa, 0xff, 1)                          # not a dword: ignored
        self.assertEqual(m.in_port(0xcfe, 2), 0x1237)

    def test_what_cannot_be_written(self):
        m = self.machine('addr=2')
        for reg in (0, 8, 0x2c, 0x34):
            before = m.config(0x10, reg)
            m.set_config(0x10, reg, NONE)
            self.assertEqual(m.config(0x10, reg), before)
        m.set_config(0x10, 4, NONE)
        self.assertEqual(m.config(0x10, 4, 2), 0x0547)
        m.set_config(0x10, 4, 0, 2)
        m.set_config(0x10, 0x3c, NONE)
        self.assertEqual(m.config(0x10, 0x3c), 0x000001ff)

    def bars(self, m, devfn):
        """{number: (address, size, low bits)}, by sizing them."""
        m.set_config(devfn, 4, 0, 2)
        bars, n = {}, 0
        while n < 6:
            reg = 0x10 + n * 4
            low = m.config(devfn, reg)
            is64 = low & 7 == 4
            high = m.config(devfn, reg + 4) if is64 else 0
            m.set_config(devfn, reg, NONE)
            if is64:
                m.set_config(devfn, reg + 4, NONE)
            size = m.config(devfn, reg) & ~0xf | (m.config(devfn, reg + 4) << 32 if is64 else
                                                  0xffffffff00000000)
            if low or size & NONE:
                bars[n] = (low & ~0xf | high << 32, (~size & ((1 << 64) - 1)) + 1, low & 0xf)
            m.set_config(devfn, reg, low)
            if is64:
                m.set_config(devfn, reg + 4, high)
            n += 2 if is64 else 1
        m.set_config(devfn, 4, 7, 2)
        return bars

    def test_assigned_bars(self):
        m = self.machine('addr=2', 'addr=3')
        spans = []
        for devfn in (0x10, 0x18):
            for addr, size, _ in self.bars(m, devfn).values():
                self.assertEqual(addr % size, 0)
                self.assertTrue(0xc0000000 <= addr and addr + size <= 0xfec00000, hex(addr))
                spans.append((addr, addr + size))
        spans.sort()
        self.assertEqual(len(spans), 4)
        for one, two in zip(spans, spans[1:]):
            self.assertLessEqual(one[1], two[0])
        for devfn in (0x10, 0x18):
            self.assertEqual(m.config(devfn, 4, 2) & 3, 3)
            self.assertIn(m.config(devfn, 0x3c, 1), (10, 11))

    def msix(self, m, devfn):
        """Where its capability is."""
        at = m.config(devfn, 0x34, 1)
        while at and m.config(devfn, at, 1) != 0x11:
            at = m.config(devfn, at + 1, 1)
        return at

    def test_a_bar_moves(self):
        m = self.machine('addr=2')
        bar = m.config(0x10, self.msix(m, 0x10) + 4) & 7
        old = self.bars(m, 0x10)[bar][0]
        m.store(old, 0x11223340)
        self.assertEqual(m.load(old), 0x11223340)
        m.set_config(0x10, 0x10 + bar * 4, 0xd0000000)
        self.assertEqual(m.load(old), NONE)
        self.assertEqual(m.load(0xd0000000), 0x11223340)
        m.set_config(0x10, 4, 0, 2)
        self.assertEqual(m.load(0xd0000000), NONE)
        m.set_config(0x10, 4, 2, 2)
        self.assertEqual(m.load(0xd0000000), 0x11223340)

    def test_a_bar_over_ram_or_another_is_not_there(self):
        m = self.machine('addr=2', 'addr=3')
        bar = m.config(0x10, self.msix(m, 0x10) + 4) & 7
        reg = 0x10 + bar * 4
        theirs = m.config(0x18, reg)
        m.store(theirs, 0x55667780)
        m.store(0x200000, 0x12345678)
        m.set_config(0x10, reg, 0x200000)
        self.assertEqual(m.load(0x200000), 0x12345678)
        m.set_config(0x10, reg, theirs)
        self.assertEqual(m.load(theirs), 0x55667780)
        m.set_config(0x18, reg, 0xd0000000)     # makes room: the first appears
        self.assertEqual(m.load(theirs), 0)
        self.assertEqual(m.load(0xd0000000), 0x55667780)

    def test_a_64_bit_bar_above_4g(self):
        m = self.machine('addr=2')
        number, (old, _, bits) = next((n, b) for n, b in self.bars(m, 0x10).items()
                                      if b[2] & 4)
        before = m.load(old)
        m.set_config(0x10, 0x10 + number * 4, 0 | bits)
        m.set_config(0x10, 0x14 + number * 4, 0x41)
        self.assertEqual(m.load(0x4100000000), before)
        self.assertEqual(m.load(old), NONE)

    def test_msix_table(self):
        m = self.machine('addr=2')
        cap = self.msix(m, 0x10)
        bar = m.config(0x10, cap + 4) & 7
        base = self.bars(m, 0x10)[bar][0]
        vectors = (m.config(0x10, cap + 2, 2) & 0x7ff) + 1
        self.assertEqual(vectors, 2)
        for v in range(vectors):
            self.assertEqual([m.load(base + v * 16 + i) for i in (0, 4, 8, 12)], [0, 0, 0, 1])
        m.store(base + 12, NONE)
        self.assertEqual(m.load(base + 12), 1)
        m.store(base, NONE)
        self.assertEqual(m.load(base), 0xfffffffc)
        m.store(base + 8, 0xa5a5a5a55a5a5a5a, 8)
        self.assertEqual(m.load(base + 8, 8), 0x15a5a5a5a)
        m.store(base + vectors * 16, NONE)
        self.assertEqual(m.load(base + vectors * 16), 0)
        self.assertEqual(m.load(base + 0x800), 0)
        m.store(base + 1, 0xff, 1)
        self.assertEqual(m.load(base), 0xfffffffc)
        self.assertEqual(m.load(base + 8, 2), 0x5a5a)


if __name__ == '__main__':
    tap.main()
