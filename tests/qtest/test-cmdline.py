# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: what is refused and how, help, what a refusal leaves alone."""

import os
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import qtest
import tap

DISK = ('-blockdev', 'driver=null-co,node-name=n0,size=1M')


class Refused(unittest.TestCase):
    """Status 1 and one clear line that names what was wrong."""

    def refused(self, *args, says):
        ended = qtest.run(*args)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertEqual(ended.stdout, '')
        lines = ended.stderr.splitlines()
        self.assertEqual(len(lines), 1, ended.stderr)
        self.assertTrue(lines[0].startswith('qemu-system-x86_64: '), lines[0])
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, lines[0])

    def refused_qtest(self, *args, says):
        """On a machine that needs no KVM."""
        self.refused('-accel', 'qtest', *args, says=says)

    def test_unknown_options(self):
        self.refused('-kernle', 'x', says=['-kernle', "did you mean '-kernel'"])
        self.refused('--nographics', says=['--nographics', "did you mean '-nographic'"])
        self.refused('-m', says=['-m', 'argument'])
        self.refused('disk.img', says=['disk.img', '-drive'])

    def test_machine(self):
        self.refused('-M', 'pcc', says=['pcc', "did you mean 'pc'"])
        self.refused('-machine', 'pc,acel=kvm', says=['acel', "did you mean 'accel'"])
        self.refused('-accel', 'tcg', says='tcg')
        self.refused('-accel', 'kvm,kernel-irqchip=off', says='kernel-irqchip')
        self.refused('-M', 'pc,accel=kvmm', says=['kvmm', "did you mean 'kvm'"])

    def test_memory(self):
        for size in ('abc', '-1', '', '1x', '0', '1', '1T', '99999999999999999999'):
            self.refused('-m', f'size={size}', says='-m')
        self.refused('-m', '1G,slots=2', says='slots')
        self.refused('-m', '1G,help', says='help')

    def test_smp(self):
        for text in ('0', 'x', '-1', '256', '2,sockets=3', '4,cores=3', '2,maxcpus=4', '2,dies=2',
                     'threads=65535,cores=65535'):
            self.refused('-smp', text, says='-smp')
        self.refused('-smp', '2,core=2', says=['core', "did you mean 'cores'"])

    def test_cpu(self):
        self.refused('-cpu', 'hots', says=['hots', "did you mean 'host'"])
        self.refused('-cpu', 'host,+avx22', says=['avx22', "did you mean 'avx2'"])
        self.refused('-cpu', 'host,avx2=perhaps', says=['avx2', 'perhaps'])
        self.refused('-cpu', 'host,avx2', says='avx2')

    def test_display_and_monitor(self):
        self.refused('-display', 'gtk', says=['gtk', 'none'])
        self.refused('-monitor', 'stdio', says=['stdio', 'none'])

    def test_serial(self):
        self.refused_qtest('-serial', 'fil:x', says=['fil', "did you mean 'file'"])
        self.refused_qtest('-serial', 'file:', says='path')
        self.refused_qtest('-serial', 'file:/nonexistent/x', says='/nonexistent/x')
        self.refused_qtest('-serial', 'null', '-serial', 'null', says='-serial')

    def test_kernel(self):
        self.refused_qtest('-kernel', '/nonexistent', says=['/nonexistent', 'No such file'])
        self.refused_qtest('-kernel', '/', says='not a regular file')
        self.refused_qtest('-kernel', __file__, says='neither a bzImage nor an ELF file')
        self.refused_qtest('-initrd', 'x', says='-kernel')
        self.refused_qtest('-append', 'x', says='-kernel')

    def test_kernel_needs_to_be_given(self):
        if not os.access('/dev/kvm', os.R_OK | os.W_OK):
            self.skipTest('KVM is not there')
        self.refused(says='-kernel')

    @unittest.skipIf(os.geteuid() == 0, 'root may read everything')
    def test_unreadable_kernel(self):
        with tempfile.NamedTemporaryFile() as f:
            os.chmod(f.name, 0)
            self.refused_qtest('-kernel', f.name, says=[f.name, 'Permission denied'])

    def test_objects(self):
        self.refused_qtest('-object', 'iothred,id=a', says='iothred')
        self.refused_qtest('-object', 'iothread', says='id')
        self.refused_qtest('-object', 'iothread,id=a,poll-max-ns=-1', says=['poll-max-ns', '-1'])
        self.refused_qtest('-object', 'iothread,id=a,poll-max=1',
                           says=['poll-max', "did you mean 'poll-max-ns'"])
        self.refused_qtest('-object', 'iothread,id=a', '-object', 'iothread,id=a', says="'a'")
        self.refused_qtest('-object', '{"qom-type":"iothread","id":"a"', says='-object')

    def test_devices(self):
        self.refused_qtest('-device', 'virtio-blk-pcii',
                           says=['virtio-blk-pcii', "did you mean 'virtio-blk-pci'"])
        self.refused_qtest('-device', 'virtio-blk-pci,drive=nosuch', says='nosuch')
        self.refused_qtest(*DISK, '-device', 'virtio-blk-pci,drive=n0,iothread=nosuch',
                           says='nosuch')
        self.refused_qtest('-device', 'isa-debug-exit,iobas=1',
                           says=['iobas', "did you mean 'iobase'"])
        self.refused_qtest('-device', 'isa-debug-exit,iosize=9', says=['iosize', '9'])
        self.refused_qtest('-device', 'isa-debug-exit,iobase=0x3fe', says=['0x3fe', 'serial'])
        self.refused_qtest('-device', 'pci-device', says='pci-device')
        self.refused_qtest('-device', 'i440FX', says='i440FX')
        self.refused_qtest('-device', 'isa-debug-exit,id=a', '-device',
                           'isa-debug-exit,id=a,iobase=0x600', says="'a'")

    def test_pci_addresses(self):
        def two(first, second):
            return (*DISK, '-blockdev', 'driver=null-co,node-name=n1,size=1M',
                    '-device', f'virtio-blk-pci,drive=n0,{first}',
                    '-device', f'virtio-blk-pci,drive=n1,{second}')
        for addr in ('20', '1.8', 'x', '1.', '.1', '1.1.1', ''):
            self.refused_qtest(*DISK, '-device', f'virtio-blk-pci,drive=n0,addr={addr}',
                               says='PCI address')
        self.refused_qtest(*two('addr=5', 'addr=5'), says='taken')
        self.refused_qtest(*DISK, '-device', 'virtio-blk-pci,drive=n0,addr=0', says='taken')
        self.refused_qtest(*two('addr=5', 'addr=5.1'), says='multifunction')
        self.refused_qtest(*two('addr=5.1', 'addr=5.0'), says='multifunction')
        self.refused_qtest(*two('bootindex=1', 'bootindex=1'), says='bootindex')
        self.refused_qtest(*DISK, '-device', 'virtio-blk-pci,drive=n0,bootindex=-2',
                           says='bootindex')

    def test_files_that_cannot_be_written(self):
        self.refused_qtest('-pidfile', '/nonexistent/x', says='/nonexistent/x')
        self.refused_qtest('-D', '/nonexistent/x', says='/nonexistent/x')

    def test_log_and_trace(self):
        self.refused_qtest('-d', 'gest_errors', says=['gest_errors', 'guest_errors'])
        self.refused_qtest('-trace', 'nosuchevent', says='nosuchevent')

    def test_kvm_that_is_not_there(self):
        if os.path.exists('/dev/kvm') and os.geteuid() == 0:
            self.skipTest('KVM is there, and root may open it')
        self.refused('-accel', 'kvm', '-kernel', __file__, says='/dev/kvm')

    def test_kvm_is_hidden(self):
        """In a mount namespace whose /dev has no kvm."""
        hidden = subprocess.run(['unshare', '-m', 'true'], capture_output=True, check=False)
        if hidden.returncode != 0:
            self.skipTest('mount namespaces are not permitted')
        ended = subprocess.run(
            ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /dev && exec "$@"', 'sh',
             tap.binary(qtest.PROGRAM), '-enable-kvm', '-kernel', __file__, '-nographic'],
            capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r'^qemu-system-x86_64: [^\n]*/dev/kvm[^\n]*\n$')

    def test_nothing_is_changed(self):
        with tempfile.TemporaryDirectory() as d:
            serial = os.path.join(d, 'serial')
            pid = os.path.join(d, 'pid')
            with open(serial, 'w', encoding='ascii') as f:
                f.write('old')
            self.refused_qtest('-serial', f'file:{serial}', '-pidfile', pid, '-device', 'nosuch',
                               says='nosuch')
            with open(serial, encoding='ascii') as f:
                self.assertEqual(f.read(), 'old')
            self.assertFalse(os.path.exists(pid))


class Kernels(unittest.TestCase):
    """Kernel files that aren't what they say."""

    def refused(self, data, says):
        with tempfile.NamedTemporaryFile() as f:
            f.write(data)
            f.flush()
            ended = qtest.run('-accel', 'qtest', '-kernel', f.name, '-append', 'x')
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn(says, ended.stderr)
        self.assertEqual(len(ended.stderr.splitlines()), 1)

    @staticmethod
    def bzimage(version=0x20f, xloadflags=1, loadflags=1, size=64 << 10, align=0x200000,
                pref=0x1000000, init=0x100000):
        b = bytearray(max(size, 4096))
        b[0x1f1] = 4
        b[0x1fe:0x200] = b'\x55\xaa'
        b[0x201] = 0x6a
        b[0x202:0x206] = b'HdrS'
        b[0x206:0x208] = version.to_bytes(2, 'little')
        b[0x211] = loadflags
        b[0x230:0x234] = align.to_bytes(4, 'little')
        b[0x236:0x238] = xloadflags.to_bytes(2, 'little')
        b[0x238:0x23c] = (2047).to_bytes(4, 'little')
        b[0x258:0x260] = pref.to_bytes(8, 'little')
        b[0x260:0x264] = init.to_bytes(4, 'little')
        return bytes(b[:size])

    def test_bzimages(self):
        self.refused(self.bzimage(version=0x20b), 'protocol')
        self.refused(self.bzimage(xloadflags=0), '64-bit')
        self.refused(self.bzimage(loadflags=0), '64-bit')
        self.refused(self.bzimage(size=2048), 'cut short')
        self.refused(self.bzimage(align=3), 'kernel_alignment')
        self.refused(self.bzimage(pref=0x1000), 'pref_address')
        self.refused(self.bzimage(pref=1 << 63), 'pref_address')
        self.refused(self.bzimage(init=0xffffffff), 'more memory')
        self.refused(b'', 'neither')
        self.refused(b'HdrS', 'neither')

    def test_long_command_line(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(self.bzimage())
            f.flush()
            ended = qtest.run('-accel', 'qtest', '-kernel', f.name, '-append', 'x' * 2048)
            self.assertEqual(ended.returncode, 1)
            self.assertRegex(ended.stderr, '-append.*2048.*2047')

    def test_initrd_without_room(self):
        with tempfile.NamedTemporaryFile() as k, tempfile.NamedTemporaryFile() as i:
            k.write(self.bzimage())
            k.flush()
            i.truncate(200 << 20)
            for args in (('-initrd', i.name), ('-initrd', '/nonexistent')):
                ended = qtest.run('-accel', 'qtest', '-kernel', k.name, *args)
                self.assertEqual(ended.returncode, 1)
                self.assertIn(f"initrd '{args[1]}'", ended.stderr)

    @staticmethod
    def elf(segments, machine=62, cls=2, phentsize=56, phnum=None, notes=b'', phoff=64):
        b = bytearray(4096)
        b[0:6] = bytes([0x7f, 0x45, 0x4c, 0x46, cls, 1])
        b[16:20] = (2).to_bytes(2, 'little') + machine.to_bytes(2, 'little')
        b[32:40] = phoff.to_bytes(8, 'little')
        b[54:58] = phentsize.to_bytes(2, 'little') + \
            (len(segments) if phnum is None else phnum).to_bytes(2, 'little')
        for n, (kind, offset, addr, filesz, memsz) in enumerate(segments):
            at = 64 + n * 56
            b[at:at + 56] = kind.to_bytes(4, 'little') + bytes(4) + b''.join(
                v.to_bytes(8, 'little') for v in (offset, addr, addr, filesz, memsz, 0))
        b[2048:2048 + len(notes)] = notes
        return bytes(b)

    def test_elfs(self):
        load = (1, 0, 0x100000, 4096, 8192)
        note = (4, 2048, 0, 20, 20)
        self.refused(self.elf([load], cls=1), '64-bit x86')
        self.refused(self.elf([load], machine=3), '64-bit x86')
        self.refused(self.elf([load], phentsize=32), 'program headers')
        self.refused(self.elf([load], phnum=0), 'program headers')
        self.refused(self.elf([load], phnum=65535), 'program headers')
        self.refused(self.elf([load], phoff=1 << 62), 'behind the end')
        self.refused(self.elf([note]), 'nothing to load')
        self.refused(self.elf([load]), 'PVH')
        self.refused(self.elf([(1, 0, 0x1000, 16, 16)]), '1 MiB to 3 GiB')
        self.refused(self.elf([(1, 0, 0x100000, 16, 1 << 63)]), '1 MiB to 3 GiB')
        self.refused(self.elf([(1, 0, 0x100000, 4096, 16)]), '1 MiB to 3 GiB')
        self.refused(self.elf([(1, 4000, 0x100000, 4096, 8192)]), 'behind the end')
        good = b'\4\0\0\0\4\0\0\0\x12\0\0\0Xen\0\0\0\x10\0'
        self.refused(self.elf([(1, 0, 0x100000, 4096, 200 << 20), note], notes=good),
                     'more memory')
        for bad in (b'\xff' * 20, b'\4\0\0\0\xff\xff\xff\xff\x12\0\0\0Xen\0\0\0\0\0',
                    b'\4\0\0\0\2\0\0\0\x12\0\0\0Xen\0\0\0\0\0'):
            self.refused(self.elf([load, note], notes=bad), 'PVH')


class Help(unittest.TestCase):
    def help(self, *args, says):
        ended = qtest.run(*args)
        self.assertEqual((ended.returncode, ended.stderr), (0, ''))
        for text in says:
            self.assertIn(text, ended.stdout)

    def test_help(self):
        self.help('-help', says=['-kernel FILE', '-device', 'usage'])
        self.help('--help', says=['-kernel FILE'])
        self.help('-h', says=['-kernel FILE'])
        self.help('-version', says=['QEMU emulator version '])
        self.help('-machine', 'help', says=['Supported machines are:', 'pc', '(default)'])
        self.help('-M', '?', says=['pc'])
        self.help('-M', 'pc,help', says=['accel=<'])
        self.help('-accel', 'help', says=['qtest'])
        self.help('-cpu', 'help', says=['host', 'max', 'avx2'])
        self.help('-d', 'help', says=['guest_errors'])
        self.help('-trace', 'help', says=['\n'])
        self.help('-device', 'help', says=['name "virtio-blk-pci", bus PCI', 'isa-debug-exit'])
        self.help('-device', 'virtio-blk-pci,help', says=['bootindex=<int32>', 'addr='])
        self.help('-device', 'isa-debug-exit,help', says=['iobase=<uint32>'])
        self.help('-object', 'help', says=['iothread'])
        self.help('-object', 'iothread,help', says=['poll-max-ns=<'])

    def test_help_of_what_is_not_there(self):
        ended = qtest.run('-device', 'nosuch,help')
        self.assertEqual(ended.returncode, 1)
        self.assertIn('nosuch', ended.stderr)


class Accepted(unittest.TestCase):
    def machine(self, *args):
        with qtest.Machine(*args) as m:
            status, _, err = m.end()
        self.assertEqual((status, err), (0, b''))

    def test_options_that_ask_for_what_is_so(self):
        self.machine('-nodefaults', '-no-user-config', '-monitor', 'none', '-no-reboot', '-name',
                     'guest=x,debug-threads=on', '-m', 'size=64', '-smp', '2,maxcpus=2,dies=1',
                     '-M', 'type=pc', '-cpu', 'host,-avx2', '-msg', 'timestamp=on')

    def test_json(self):
        self.machine('-object', '{"qom-type":"iothread","id":"io0","poll-max-ns":0}',
                     '-blockdev', '{"driver":"null-co","node-name":"n0","size":1048576}',
                     '-device', '{"driver":"virtio-blk-pci","id":"d0","drive":"n0",'
                                '"iothread":"io0","bootindex":0}')

    def test_sizes(self):
        self.machine('-smp', '255')
        for size in ('64', '64M', '0.5G', 'size=65536K', '5G'):
            with qtest.Machine('-m', size) as m:
                self.assertEqual(m.memory(0x100000, 4), bytes(4))

    def test_pidfile(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, 'pid')
            with qtest.Machine('-pidfile', path) as m:
                m.order('endianness')
                with open(path, encoding='ascii') as f:
                    self.assertEqual(int(f.read()), m.process.pid)
                second = qtest.run('-accel', 'qtest', '-pidfile', path)
                self.assertEqual(second.returncode, 1)
                self.assertIn('in use', second.stderr)
            self.assertFalse(os.path.exists(path))

    def test_signals_end_the_process_well(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with qtest.Machine() as m:
                m.order('endianness')
                m.process.send_signal(sig)
                self.assertEqual(m.process.wait(timeout=30), 0)
                err = m.end()[2].decode()
                self.assertIn(f'terminating on signal {sig.value} from pid {os.getpid()}', err)


@unittest.skipUnless(os.path.exists('/dev/ptmx'), 'no pseudo terminals')
class Terminal(unittest.TestCase):
    """-nographic on a terminal: Ctrl-A, and the mode comes back."""

    def start(self, *args):
        import pty
        import termios
        self.leader, follower = pty.openpty()
        self.before = termios.tcgetattr(follower)
        self.follower = follower
        self.process = subprocess.Popen(
            [tap.binary(qtest.PROGRAM), '-accel', 'qtest', *args],
            stdin=follower, stdout=follower, stderr=subprocess.PIPE)
        self.addCleanup(self.process.stderr.close)
        self.addCleanup(os.close, follower)
        self.addCleanup(os.close, self.leader)
        self.addCleanup(self.process.kill)

    def mode(self):
        import termios
        return termios.tcgetattr(self.follower)

    def wait_for_raw(self):
        import termios
        for _ in range(1000):
            if not self.mode()[3] & termios.ICANON:
                return
            time.sleep(0.01)
        self.fail('the terminal did not become raw')

    def test_ctrl_a_x(self):
        self.start('-nographic')
        self.wait_for_raw()
        os.write(self.leader, b'\x01x')
        self.assertEqual(self.process.wait(timeout=30), 0)
        self.assertEqual(self.mode(), self.before)

    def test_ctrl_a_h(self):
        self.start('-nographic')
        self.wait_for_raw()
        os.write(self.leader, b'abc\x01h')
        seen = b''
        while b'Ctrl-A x' not in seen:
            seen += os.read(self.leader, 1000)
        os.write(self.leader, b'\x01x')
        self.assertEqual(self.process.wait(timeout=30), 0)

    def test_typing_ahead_does_not_hide_ctrl_a(self):
        self.start('-nographic')
        self.wait_for_raw()
        os.write(self.leader, b'x' * 500)
        os.write(self.leader, b'\x01x')
        self.assertEqual(self.process.wait(timeout=30), 0)

    def test_signals_of_the_terminal(self):
        self.start('-serial', 'mon:stdio')
        self.wait_for_raw()
        os.write(self.leader, b'\x03')          # the guest's
        os.write(self.leader, b'\x01x')
        self.assertEqual(self.process.wait(timeout=30), 0)

    def test_mode_after_signals(self):
        for sig, status in ((signal.SIGTERM, 0), (signal.SIGHUP, 0),
                            (signal.SIGSEGV, -signal.SIGSEGV), (signal.SIGABRT, -signal.SIGABRT),
                            (signal.SIGQUIT, -signal.SIGQUIT)):
            if status and 'ASAN_OPTIONS' in os.environ and sig == signal.SIGSEGV:
                continue                        # the sanitizer's own handler ends the process
            self.start('-nographic')
            self.wait_for_raw()
            self.process.send_signal(sig)
            self.assertEqual(self.process.wait(timeout=30), status)
            self.assertEqual(self.mode(), self.before)

    def test_mode_after_a_stop(self):
        self.start('-nographic')
        self.wait_for_raw()
        import termios
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        termios.tcsetattr(self.follower, termios.TCSANOW, self.before)
        self.process.send_signal(signal.SIGCONT)
        self.wait_for_raw()
        os.write(self.leader, b'\x01x')
        self.assertEqual(self.process.wait(timeout=30), 0)


class Serial(unittest.TestCase):
    def test_file(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, 'serial')
            with qtest.Machine(serial=f'file:{path}') as m:
                for c in b'hello\n':
                    m.out_port(0x3f8, c)
            with open(path, 'rb') as f:
                self.assertEqual(f.read(), b'hello\n')
            self.assertTrue(stat.S_ISREG(os.stat(path).st_mode))

    def test_none(self):
        with qtest.Machine(serial='none') as m:
            self.assertEqual(m.in_port(0x3fd), 0xff)

    def test_stdio(self):
        with qtest.Machine(serial='stdio') as m:
            m.out_port(0x3f8, ord('A'))
            m.out_port(0x3fa, 7)
            m.process.stdin.write(b'xyz')
            m.process.stdin.flush()
            got = b''
            end = time.monotonic() + 30
            while len(got) < 3 and time.monotonic() < end:
                if m.in_port(0x3fd) & 1:
                    got += bytes([m.in_port(0x3f8)])
            self.assertEqual(got, b'xyz')
            self.assertEqual(m.end()[1], b'A')


if __name__ == '__main__':
    tap.main()
