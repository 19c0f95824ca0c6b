# SPDX-License-Identifier: GPL-2.0-or-later
"""A virtio-blk-pci disk in slot 2, driven over qtest."""

DEVFN = 2 << 3
SIZE = 16                       # entries of a queue
RINGS = 0x100000                # of queue n: RINGS + n * 0x4000


class Disk:
    """virtio-blk-pci in slot 2, driven register by register."""

    def __init__(self, m):
        self.m = m
        m.set_config(DEVFN, 4, 6, 2)
        low, high = m.config(DEVFN, 0x20), m.config(DEVFN, 0x24)
        self.bar = (high << 32 | low) & ~15

    def reg(self, off, value=None, size=1):
        if value is None:
            return self.m.load(self.bar + off, size)
        return self.m.store(self.bar + off, value, size)

    def negotiate(self):
        for status in (0, 1, 3):
            self.reg(0x14, status)
        self.reg(0x08, 0, 4)
        self.reg(0x0c, 0, 4)
        self.reg(0x08, 1, 4)
        self.reg(0x0c, 1, 4)                    # VIRTIO_F_VERSION_1
        self.reg(0x14, 11)

    def queue(self, n):
        self.reg(0x16, n, 2)
        self.reg(0x18, SIZE, 2)
        for off, part in ((0x20, 0), (0x28, 0x1000), (0x30, 0x2000)):
            self.reg(off, RINGS + n * 0x4000 + part, 4)
            self.reg(off + 4, 0, 4)
        self.reg(0x1c, 1, 2)

    def kick(self, n):
        self.reg(0x3000 + 4 * n, n, 2)

    def msix_on(self):
        """Switch MSI-X on; returns where its table is."""
        cap = self.m.config(DEVFN, 0x34, 1)
        while self.m.config(DEVFN, cap, 1) != 0x11:
            cap = self.m.config(DEVFN, cap + 1, 1)
        self.m.set_config(DEVFN, cap + 2, 0x8000, 2)
        table = self.m.config(DEVFN, cap + 4)
        return (self.m.config(DEVFN, 0x10 + 4 * (table & 7)) & ~15) + (table & ~7)

    def vector(self, table, n, addr, data, masked):
        """Entry @n of the table: a message; where @addr is RAM, a write there."""
        for off, value in ((0, addr), (4, 0), (8, data), (12, int(masked))):
            self.m.store(table + 16 * n + off, value)
