# SPDX-License-Identifier: GPL-2.0-or-later
"""Drive the machine over -accel qtest (protocol: include/accel/qtest.h)."""

import os
import socket
import subprocess
import tempfile

import tap

PROGRAM = 'qemu-system-x86_64'


def run(*args, stdin=subprocess.DEVNULL, timeout=30, **kwargs):
    """Run the program to its end; returns it with status and output as text."""
    return subprocess.run([tap.binary(PROGRAM), *args], stdin=stdin, capture_output=True,
                          text=True, timeout=timeout, check=False, **kwargs)


class Machine:
    """A machine without vCPUs. Use as a context manager."""

    def __init__(self, *args, serial='null'):
        self.folder = tempfile.TemporaryDirectory(prefix='qtest.')
        path = os.path.join(self.folder.name, 's')
        self.events = []
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(30)
            self.process = subprocess.Popen(
                [tap.binary(PROGRAM), '-accel', 'qtest', '-qtest', f'unix:{path}', '-display',
                 'none', '-serial', serial, *args],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                self.socket, _ = listener.accept()
            except socket.timeout:
                self.process.kill()
                raise AssertionError(self.process.communicate()[1].decode()) from None
        self.socket.settimeout(30)
        self.lines = self.socket.makefile('r')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Hang up and wait. Returns status, stdout and stderr."""
        if self.process.poll() is None or self.process.stdout is not None:
            self.lines.close()
            self.socket.close()
            try:
                self.out, self.err = self.process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
            self.process.stdout = None
            self.folder.cleanup()
        return self.process.returncode, self.out, self.err

    def _line(self):
        line = self.lines.readline()
        if line == '':
            raise AssertionError('the machine hung up: ' + self.process.stderr.read().decode())
        return line.rstrip('\n')

    def ask(self, command):
        """Send one command; events that come before its answer are kept."""
        self.socket.sendall(command.encode() + b'\n')
        while True:
            line = self._line()
            if line.startswith(('IRQ ', 'MSI ')):
                self.events.append(line)
            else:
                return line

    def order(self, command):
        answer = self.ask(command)
        if not answer.startswith('OK'):
            raise AssertionError(f'{command}: {answer}')
        return answer[3:]

    def event(self):
        """The next event, waited for if need be."""
        return self.events.pop(0) if self.events else self._line()

    def out_port(self, port, value, size=1):
        self.order(f'out{" bw l"[size]} {port:#x} {value:#x}')

    def in_port(self, port, size=1):
        return int(self.order(f'in{" bw l"[size]} {port:#x}'), 16)

    def store(self, addr, value, size=4):
        self.order(f'write{"?bw?l???q"[size]} {addr:#x} {value:#x}')

    def load(self, addr, size=4):
        return int(self.order(f'read{"?bw?l???q"[size]} {addr:#x}'), 16)

    def memory(self, addr, size):
        return bytes.fromhex(self.order(f'read {addr:#x} {size}')[2:])

    # PCI configuration

    def config(self, devfn, reg, size=4):
        self.out_port(0xcf8, 0x80000000 | devfn << 8 | reg & ~3, 4)
        return self.in_port(0xcfc + (reg & 3), size)

    def set_config(self, devfn, reg, value, size=4):
        self.out_port(0xcf8, 0x80000000 | devfn << 8 | reg & ~3, 4)
        self.out_port(0xcfc + (reg & 3), value, size)
