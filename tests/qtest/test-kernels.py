# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that lie about themselves, files that are none, a host that gives too little."""

import os
import resource
import struct
import subprocess
import tempfile
import unittest

import qtest
import tap

MIB = 1 << 20
NOTE = struct.pack('<III4sI', 4, 4, 18, b'Xen\0', MIB)


def elf(entry=MIB, segments=((MIB, 0x1000, 0x1000),), note=NOTE, **header):
    """An ELF file with a PVH note; a segment is (address, bytes in the file, in memory)."""
    h = dict(machine=62, phoff=64, phentsize=56, phnum=len(segments) + 1, elfclass=2)
    h.update(header)
    note = note[:-4] + struct.pack('<I', entry) if note is NOTE else note
    data = 0x1000
    phdrs = struct.pack('<IIQQQQQQ', 4, 0, data, 0, 0, len(note), len(note), 4)
    for addr, filesz, memsz in segments:
        phdrs += struct.pack('<IIQQQQQQ', 1, 7, data, addr, addr, filesz, memsz, 0x1000)
    ehdr = struct.pack('<4sBBB9xHHIQQQIHHHHHH', b'\x7fELF', h['elfclass'], 1, 1, 2, h['machine'], 1,
                       0, h['phoff'], 0, 0, 64, h['phentsize'], h['phnum'], 0, 0, 0)
    return (ehdr + phdrs).ljust(data, b'\0') + note.ljust(0x1000, b'\x90')


def bzimage(size=0x10000, **fields):
    """A bzImage by the 64-bit protocol, its header as good as that of a real one."""
    f = dict(setup_sects=1, boot_flag=0xaa55, jump=0x66eb, magic=0x53726448, version=0x20f,
             loadflags=1, initrd_addr_max=0x7fffffff, kernel_alignment=0x200000, xloadflags=3,
             cmdline_size=2047, pref_address=0x1000000, init_size=0x200000)
    f.update(fields)
    head = bytearray(0x1000)
    for fmt, off, name in (('B', 0x1f1, 'setup_sects'), ('H', 0x1fe, 'boot_flag'),
                           ('H', 0x200, 'jump'), ('I', 0x202, 'magic'), ('H', 0x206, 'version'),
                           ('B', 0x211, 'loadflags'), ('I', 0x22c, 'initrd_addr_max'),
                           ('I', 0x230, 'kernel_alignment'), ('H', 0x236, 'xloadflags'),
                           ('I', 0x238, 'cmdline_size'), ('Q', 0x258, 'pref_address'),
                           ('I', 0x260, 'init_size')):
        struct.pack_into('<' + fmt, head, off, f[name])
    return bytes(head).ljust(size, b'\x90')[:size]


class Kernels(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='kernels.')
        self.addCleanup(self.folder.cleanup)

    def file(self, data, name='kernel'):
        path = os.path.join(self.folder.name, name)
        with open(path, 'wb') as f:
            f.write(data)
        return path

    def end(self, *args, timeout=20):
        """SIGTERM would not end one that hangs, so the time-out kills."""
        return qtest.run('-accel', 'qtest', '-serial', 'null', *args, timeout=timeout)

    def refused(self, data, *args, says):
        ended = self.end('-kernel', self.file(data), *args)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
        self.assertIn(says, ended.stderr)

    def loaded(self, data, *args):
        with qtest.Machine('-kernel', self.file(data), *args) as m:
            m.load(0)

    def test_good_ones_are_loaded(self):
        self.loaded(elf())
        self.loaded(bzimage())
        self.loaded(bzimage(size=0x600), '-append', 'x' * 2047)

    def test_elf_headers(self):
        self.refused(elf()[:60], says='neither')
        self.refused(elf(machine=3), says='64-bit')
        self.refused(elf(elfclass=1), says='64-bit')
        self.refused(elf(phnum=0), says='program headers')
        self.refused(elf(phnum=65535), says='program headers')
        self.refused(elf(phentsize=32), says='program headers')
        for phoff in (1 << 63, (1 << 64) - 1, 0x1fff):
            self.refused(elf(phoff=phoff), says='behind the end')

    def test_elf_segments(self):
        self.refused(elf(segments=()), says='nothing to load')
        for segment in ((MIB, 0x1001, 0x2000), (MIB, (1 << 64) - 1, (1 << 64) - 1)):
            self.refused(elf(segments=(segment,)), says='behind the end')
        for segment in ((MIB, 0x1000, 0xfff), (0x9f000, 0x1000, 0x1000),
                        (MIB, 0x1000, (1 << 64) - 1), ((1 << 64) - 0x1000, 0x1000, 0x1000),
                        (3 << 30, 0x1000, 0x1000)):
            self.refused(elf(segments=(segment,)), says='a segment is at')
        self.refused(elf(segments=((MIB, 0x1000, 1 << 30),)), says='-m')

    def test_elf_notes(self):
        self.refused(elf(note=b''), says='PVH')
        for note in (struct.pack('<III', 0xffffffff, 4, 18), struct.pack('<III', 4, 0xffffffff, 18),
                     struct.pack('<III4s', 4, 4, 18, b'Xen\0'), b'\0' * 11):
            self.refused(elf(note=note), says='PVH')

    def test_elf_entry_is_in_what_was_loaded(self):
        for entry in (0, MIB - 1, MIB + 0x1000, 0xfee00000):
            self.refused(elf(entry=entry), says='lies in no segment')

    def test_bzimage_headers(self):
        self.refused(bzimage(version=0x20b), says='2.12')
        self.refused(bzimage(xloadflags=0), says='64-bit entry')
        self.refused(bzimage(loadflags=0), says='64-bit entry')
        self.refused(bzimage(setup_sects=255), says='cut short')
        self.refused(bzimage(size=0x5ff), says='cut short')
        for align in (0, 3, 1 << 31):
            self.refused(bzimage(kernel_alignment=align), says='kernel_alignment')
        for addr in (0, 0x9f000, 0x1000001, (1 << 64) - 0x200000, 3 << 30):
            self.refused(bzimage(pref_address=addr), says='pref_address')
        self.refused(bzimage(init_size=0xffffffff), says='-m')

    def test_command_line_that_is_too_long(self):
        self.refused(bzimage(), '-append', 'x' * 2048, says='2047')
        self.refused(bzimage(cmdline_size=0), '-append', 'x', says='takes 0')
        self.refused(elf(), '-append', 'x' * 65536, says='65535')

    def test_initial_ram_disks(self):
        large = os.path.join(self.folder.name, 'large')
        with open(large, 'wb') as f:
            f.truncate(1 << 40)
        self.refused(bzimage(), '-initrd', large, says='-m')
        self.refused(bzimage(xloadflags=1, initrd_addr_max=0), '-initrd', self.file(b'x', 'i'),
                     says='-m')
        self.refused(bzimage(), '-initrd', '/nonexistent', says='/nonexistent')
        self.loaded(bzimage(), '-initrd', self.file(b'', 'empty'))

    def test_a_pipe_holds_nobody_up(self):
        pipe = os.path.join(self.folder.name, 'pipe')
        os.mkfifo(pipe)
        for args in (('-kernel', pipe), ('-kernel', self.file(elf()), '-initrd', pipe),
                     ('-blockdev', f'driver=file,node-name=a,read-only=on,filename={pipe}')):
            ended = self.end(*args)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn('regular file', ended.stderr)

    def test_too_few_descriptors(self):
        """Wherever set-up fails, the process ends by itself with one line."""
        accel = 'kvm' if os.access('/dev/kvm', os.R_OK | os.W_OK) else 'qtest'
        said = set()
        for limit in range(3, 60):
            ended = subprocess.run(
                [tap.binary(qtest.PROGRAM), '-accel', accel, '-smp', '4', '-display', 'none',
                 '-kernel', self.file(elf()), '-object', 'iothread,id=t', '-blockdev',
                 'driver=null-co,node-name=n', '-device', 'virtio-blk-pci,drive=n,iothread=t',
                 '-pidfile', '/nonexistent/pid'],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False,
                preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            if ended.returncode == 127 or 'GWakeup' in ended.stderr:
                continue                # not even its libraries, or GLib's main loop
            self.assertEqual(ended.returncode, 1, f'{limit}: {ended.stderr}')
            self.assertGreaterEqual(len(ended.stderr.splitlines()), 1)
            said.add(ended.stderr.splitlines()[-1])
        self.assertGreater(len(said), 3, said)


if __name__ == '__main__':
    tap.main()
