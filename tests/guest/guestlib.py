# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot the bare-metal guest under a VMM, collect its JSON lines, and watch the VMM meanwhile.

    import guestlib
    lines = guestlib.boot('build/qemu-system-x86_64', guestlib.null_disk(poll_max_ns=32768),
                          'op=read qd=1 seconds=2', sample=('cpu',))
    print(lines.result('read')['iops'], lines.result('read')['host']['iothread_ns_per_io'])

What is watched is counted from the guest's line {"op":"begin"} to the result that follows it:
- 'cpu': CPU time per thread, and the share of the machine that other processes used, and that its
  own host took away ("steal"), since anything else that runs spoils a measurement on two CPUs
- 'sleeps': how often each thread gave its CPU up of its own will: to wait
- 'syscalls': system calls per thread, counted by the kernel (perf events on the tracepoint
  raw_syscalls:sys_enter; needs root). This slows every system call down a little: take times and
  system calls from different runs.
"""

import ctypes
import errno
import json
import os
import platform
import selectors
import signal
import struct
import subprocess
import time

STOCK = os.environ.get('STOCK_QEMU', '/usr/bin/qemu-system-x86_64')
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('BUILD_DIR', os.path.join(SOURCE, 'build'))
OURS = os.path.join(BUILD, 'qemu-system-x86_64')
DEBUG_EXIT_OK = 1           # isa-debug-exit turns the guest's 0 into this
MAX_OUTPUT = 16 << 20


class GuestError(Exception):
    """The guest or the VMM did not do what was asked; .lines has what came until then."""

    def __init__(self, message, lines=(), stderr=''):
        super().__init__(message + (f'\nVMM says: {stderr.strip()}' if stderr.strip() else ''))
        self.lines = lines
        self.stderr = stderr


class Lines(list):
    """The guest's JSON objects in order, and how the VMM ended."""

    status = None           # exit status of the VMM, negative: killed by that signal
    stderr = ''
    text = ''               # output that was no JSON: firmware, for one
    seconds = 0.0           # from start to end of the process

    def results(self, op=None):
        """Results (lines that count errors), of one operation or of all, without the summary."""
        return [x for x in self if 'errors' in x and x['op'] != 'done' and op in (None, x['op'])]

    def result(self, op=None):
        found = self.results(op)
        if len(found) != 1:
            raise GuestError(f'{len(found)} results of {op or "any operation"}, not one: {self!r}',
                             self, self.stderr)
        return found[0]

    @property
    def done(self):
        return bool(self) and self[-1]['op'] == 'done'

    @property
    def errors(self):
        return sum(x['errors'] for x in self.results()) + (0 if self.done else 1)


# -- what to boot --

def default_elf():
    return os.environ.get('BENCH_GUEST', os.path.join(BUILD, 'tests', 'guest', 'bench-guest.elf'))


def is_stock(vmm):
    return os.path.realpath(vmm) == os.path.realpath(STOCK)


def iothread(name='io0', **properties):
    words = ''.join(f',{k.replace("_", "-")}={v}' for k, v in properties.items() if v is not None)
    return ['-object', f'iothread,id={name}{words}']


def disk(blockdev, name='n0', device='', thread='io0'):
    """-blockdev and -device for one virtio-blk disk; the options of both as on the command line."""
    device = f',{device}' if device else ''
    thread = f',iothread={thread}' if thread else ''
    return ['-blockdev', f'{blockdev},node-name={name}',
            '-device', f'virtio-blk-pci,drive={name}{thread},disable-legacy=on{device}']


def null_disk(poll_max_ns=None, latency_ns=0, size=1 << 30, device=''):
    latency = f',latency-ns={latency_ns}' if latency_ns else ''
    return iothread(poll_max_ns=poll_max_ns) + disk(
        f'driver=null-co,size={size},read-zeroes=on{latency}', device=device)


def file_disk(path, aio='native', direct=True, poll_max_ns=None, device=''):
    return iothread(poll_max_ns=poll_max_ns) + disk(
        f'driver=file,filename={path},aio={aio},cache.direct={"on" if direct else "off"}',
        device=device)


def command(vmm, args=(), cmdline='', *, cpu=None, memory='256M', smp=1, accel='kvm', machine='pc',
            elf=None):
    if cpu is None:
        # stock does not start where KVM refuses an MSR that goes with this feature; ours copes
        cpu = 'max' if accel == 'tcg' else 'host,-arch-capabilities' if is_stock(vmm) else 'host'
    return [vmm, '-M', machine, '-accel', accel, '-cpu', cpu, '-m', str(memory), '-smp', str(smp),
            '-name', 'guest,debug-threads=on', '-nodefaults', '-display', 'none', '-no-reboot',
            '-serial', 'stdio', '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4',
            '-kernel', elf or default_elf(), '-append', cmdline, *args]


# -- running it --

class Vm:
    """A running VMM. Iterate over it for the guest's lines; close() or `with` ends it."""

    def __init__(self, vmm, args=(), cmdline='', *, timeout=60, sample=(), env=None,
                 stdin=subprocess.DEVNULL, **machine):
        self.lines = Lines()
        self.started = time.monotonic()
        self.deadline = self.started + timeout
        self.timeout = timeout
        self.process = subprocess.Popen(command(vmm, args, cmdline, **machine), env=env,
                                        stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.watch = Watch(self.process.pid, sample) if sample else None
        self.pending = b''
        self.stderr = b''

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    @property
    def pid(self):
        return self.process.pid

    def say(self, words):
        """A line of input for a guest that was started with ask=1 and stdin=subprocess.PIPE."""
        self.process.stdin.write(words.encode() + b'\n')
        self.process.stdin.flush()

    def extend(self, seconds):
        """Time is over @seconds from now."""
        self.timeout = seconds
        self.deadline = time.monotonic() + seconds

    def sample(self, what):
        """Watch for other things from the next "begin" on; () for nothing."""
        if self.watch:
            self.watch.close()
        self.watch = Watch(self.process.pid, what) if what else None

    def kill(self, sig=signal.SIGKILL):
        """End the VMM now; lines that it had written can still be read."""
        self.process.send_signal(sig)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        if self.watch:
            self.watch.close()

    def __iter__(self):
        """Each JSON object as it arrives, until the VMM ends. GuestError when time is over."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            selector.register(self.process.stderr, selectors.EVENT_READ)
            while selector.get_map():
                left = self.deadline - time.monotonic()
                if left <= 0:
                    self.process.kill()
                    raise GuestError(f'no end after {self.timeout} s; last lines: '
                                     f'{self.lines[-2:]!r} {self.lines.text[-200:]!r}',
                                     self.lines, self.stderr.decode(errors='replace'))
                for key, _ in selector.select(left):
                    data = os.read(key.fd, 65536)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self.process.stderr:
                        self.stderr = (self.stderr + data)[-MAX_OUTPUT:]
                    else:
                        yield from self._split(data)
        self.lines.status = self.process.wait(timeout=max(1, self.deadline - time.monotonic()))
        self.lines.stderr = self.stderr.decode(errors='replace')
        self.lines.seconds = time.monotonic() - self.started

    def _split(self, data):
        *complete, self.pending = (self.pending + data).split(b'\n')
        if len(self.pending) > MAX_OUTPUT:
            raise GuestError('the guest writes a line without end', self.lines)
        for raw in complete:
            line = self._parse(raw)
            if line is None:
                self.lines.text += raw.decode(errors='replace') + '\n'
                continue
            if self.watch:
                self.watch.line(line)
            self.lines.append(line)
            yield line

    @staticmethod
    def _parse(raw):
        # the firmware's last words may stand before the guest's first
        at = raw.find(b'{"op":')
        if at < 0:
            return None
        try:
            return json.loads(raw[at:])
        except ValueError:
            return None


def boot(vmm, args=(), cmdline='', *, timeout=60, sample=(), check=True, **machine):
    """Boot, wait for the end, return Lines. With @check an error that any line reports, or an end
    without the guest's last line, raises GuestError."""
    with Vm(vmm, args, cmdline, timeout=timeout, sample=sample, **machine) as vm:
        for _ in vm:
            pass
        lines = vm.lines
    if check and lines.errors:
        bad = [x for x in lines if x.get('errors')] or lines[-1:]
        raise GuestError(f'the guest reports {lines.errors} errors, exit status {lines.status}: '
                         f'{bad!r} {lines.text[-200:]!r}', lines, lines.stderr)
    if check and (lines.status < 0 or 'Sanitizer' in lines.stderr or
                  'runtime error' in lines.stderr):
        raise GuestError(f'the VMM did not end well, status {lines.status}', lines, lines.stderr)
    return lines


# -- watching the VMM --

def thread_kind(comm, is_main):
    """Threads are named by -name X,debug-threads=on."""
    if comm.startswith('IO '):
        return 'iothread'
    if comm.startswith('CPU '):
        return 'vcpu'
    return 'main' if is_main else 'other'


def threads(pid):
    """{tid: kind}"""
    found = {}
    for tid in os.listdir(f'/proc/{pid}/task'):
        try:
            with open(f'/proc/{pid}/task/{tid}/comm', encoding='ascii', errors='replace') as f:
                found[int(tid)] = thread_kind(f.read().strip(), int(tid) == pid)
        except OSError:
            pass                # it ended meanwhile
    return found


def thread_cpu_ns(pid, tid):
    """CPU time of a thread, up to one timer tick old."""
    with open(f'/proc/{pid}/task/{tid}/schedstat', encoding='ascii') as f:
        return int(f.read().split()[0])


def thread_sleeps(pid, tid):
    with open(f'/proc/{pid}/task/{tid}/status', encoding='ascii', errors='replace') as f:
        for line in f:
            if line.startswith('voluntary_ctxt_switches:'):
                return int(line.split()[1])
    return 0


def machine_busy_ns():
    """Since boot and on all CPUs together: CPU time that all processes and the kernel have used,
    and time that the machine's own host took away."""
    with open('/proc/stat', encoding='ascii') as f:
        ticks = [int(word) for word in f.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    tick_ns = 1_000_000_000 // os.sysconf('SC_CLK_TCK')
    return (user + nice + system + irq + softirq) * tick_ns, steal * tick_ns


def readings(read, pid, tids):
    """{tid: read(pid, tid)} without those that ended meanwhile."""
    found = {}
    for tid in tids:
        try:
            found[tid] = read(pid, tid)
        except OSError:
            pass
    return found


class Watch:
    """Takes a reading at each "begin" and adds the difference to the result that follows."""

    def __init__(self, pid, what):
        unknown = set(what) - {'cpu', 'sleeps', 'syscalls'}
        if unknown:
            raise ValueError(f'sample: {", ".join(sorted(unknown))}')
        self.pid = pid
        self.what = what
        self.start = None
        self.counters = SyscallCounters() if 'syscalls' in what else None

    def close(self):
        if self.counters:
            self.counters.close()

    def line(self, line):
        if line['op'] == 'begin':
            if self.counters:
                self.counters.attach(threads(self.pid))
            self.start = self.reading()
        elif self.start and 'errors' in line:
            line['host'] = self.difference(self.start, self.reading(), line.get('ios'))
            self.start = None

    def reading(self):
        r = {'time': time.monotonic_ns(), 'kinds': threads(self.pid)}
        if 'cpu' in self.what:
            r['cpu'] = readings(thread_cpu_ns, self.pid, r['kinds'])
            r['busy'], r['steal'] = machine_busy_ns()
        if 'sleeps' in self.what:
            r['sleeps'] = readings(thread_sleeps, self.pid, r['kinds'])
        if self.counters:
            r['syscalls'] = self.counters.read()
        return r

    @staticmethod
    def by_kind(a, b, what):
        """What threads of each kind add up to between two readings."""
        sums = {}
        for tid, value in b[what].items():
            kind = b['kinds'][tid]
            sums[kind] = sums.get(kind, 0) + value - a[what].get(tid, 0)
        return sums

    @staticmethod
    def put(out, sums, unit, ios):
        for kind, value in sums.items():
            out[f'{kind}_{unit}'] = value
            if ios:
                out[f'{kind}_{unit}_per_io'] = value / ios

    def difference(self, a, b, ios):
        wall = b['time'] - a['time']
        out = {'wall_ns': wall}
        if 'cpu' in self.what:
            cpu = self.by_kind(a, b, 'cpu')
            self.put(out, cpu, 'ns', ios)
            others = max(0, b['busy'] - a['busy'] - sum(cpu.values()))
            out['others_cpu_share'] = others / (wall * os.cpu_count())
            out['steal_share'] = (b['steal'] - a['steal']) / (wall * os.cpu_count())
        if 'sleeps' in self.what:
            self.put(out, self.by_kind(a, b, 'sleeps'), 'sleeps', ios)
        if self.counters:
            counts = {}
            for (tid, name), n in b['syscalls'].items():
                kind = b['kinds'].get(tid, 'other')
                counts.setdefault(kind, {}).setdefault(name, 0)
                counts[kind][name] += n - a['syscalls'].get((tid, name), 0)
            for kind, by_name in counts.items():
                out[f'{kind}_syscalls'] = {k: v for k, v in by_name.items() if v}
                if ios:
                    out[f'{kind}_syscalls_per_io'] = by_name['total'] / ios
        return out


# -- system calls, counted by the kernel --

TRACEFS = '/sys/kernel/tracing'
# told apart in the counts; "total" has them all
SYSCALLS = {'read': 0, 'write': 1, 'poll': 7, 'ioctl': 16, 'pread64': 17, 'pwrite64': 18,
            'fdatasync': 75, 'futex': 202, 'io_getevents': 208, 'io_submit': 209, 'epoll_wait': 232,
            'epoll_ctl': 233, 'ppoll': 271, 'epoll_pwait': 281, 'preadv': 295, 'pwritev': 296,
            'io_pgetevents': 333, 'io_uring_enter': 426, 'epoll_pwait2': 441}
SYS_PERF_EVENT_OPEN = 298
PERF_TYPE_TRACEPOINT = 2
PERF_ATTR_SIZE_VER5 = 112
PERF_EVENT_IOC_SET_FILTER = 0x40082406


def syscalls_countable():
    """None where system calls can be counted, else why not."""
    if platform.machine() != 'x86_64':
        return 'system call numbers are known for x86-64 only'
    try:
        SyscallCounters().attach({os.getpid(): 'self'})
    except OSError as e:
        return f'perf events on raw_syscalls: {e.strerror}'
    return None


class SyscallCounters:
    def __init__(self):
        self.fds = {}           # (tid, name): fd
        self.libc = ctypes.CDLL(None, use_errno=True)
        path = f'{TRACEFS}/events/raw_syscalls/sys_enter/id'
        if not os.path.exists(path):
            # tracefs is mounted on demand only below debugfs
            if self.libc.mount(b'nodev', TRACEFS.encode(), b'tracefs', 0, None) != 0:
                raise OSError(ctypes.get_errno(), f'{TRACEFS} is not there')
        with open(path, encoding='ascii') as f:
            self.event = int(f.read())

    def __del__(self):
        self.close()

    def close(self):
        for fd in self.fds.values():
            os.close(fd)
        self.fds = {}

    def _open(self, tid, number):
        attr = bytearray(PERF_ATTR_SIZE_VER5)
        struct.pack_into('=IIQ', attr, 0, PERF_TYPE_TRACEPOINT, len(attr), self.event)
        buf = (ctypes.c_char * len(attr)).from_buffer(attr)
        fd = self.libc.syscall(SYS_PERF_EVENT_OPEN, buf, tid, -1, -1, 8)   # 8: close on exec
        if fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        if number is not None:
            wanted = f'id == {number}'.encode()
            if self.libc.ioctl(fd, ctypes.c_ulong(PERF_EVENT_IOC_SET_FILTER), wanted) != 0:
                code = ctypes.get_errno()
                os.close(fd)
                raise OSError(code, os.strerror(code))
        return fd

    def attach(self, kinds):
        """Count for these threads from now on. vCPU threads: only their total, they make few."""
        for tid, kind in kinds.items():
            names = {'total': None} if kind == 'vcpu' else {'total': None, **SYSCALLS}
            for name, number in names.items():
                if (tid, name) in self.fds:
                    continue
                try:
                    self.fds[tid, name] = self._open(tid, number)
                except OSError as e:
                    if e.errno != errno.ESRCH:
                        raise

    def read(self):
        return {key: struct.unpack('=Q', os.read(fd, 8))[0] for key, fd in self.fds.items()}
