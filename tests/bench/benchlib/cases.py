# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured: disks, and how they are driven.

A Setup puts each (disk, window) on an IOThread and a device of its own, so that one boot of the
guest serves all cases, in any order and as often as wanted.
"""

import dataclasses
import errno
import os
import tempfile
import typing

import guestlib

from . import Missing

NULL_BYTES = 1 << 30
FILE_BYTES = {'tmpfs': 128 << 20, 'disk': 512 << 20}
FOLDERS = {'tmpfs': '/dev/shm', 'disk': '/var/tmp'}
FOLDER_VARIABLES = {'tmpfs': 'BENCH_TMPFS', 'disk': 'BENCH_DISK'}


@dataclasses.dataclass(frozen=True)
class Disk:
    key: str
    title: str
    poll_max_ns: int                    # the window where polling is on
    latency_ns: int = 0                 # what the device itself takes, where that is known
    file: typing.Optional[str] = None   # 'tmpfs' or 'disk'
    engine: typing.Optional[str] = None

    def blockdev(self, paths):
        if self.file:
            return (f'driver=file,filename={paths[self.file]},aio={self.engine},'
                    'cache.direct=on,read-only=on')
        latency = f',latency-ns={self.latency_ns}' if self.latency_ns else ''
        return f'driver=null-co,size={NULL_BYTES}{latency}'


@dataclasses.dataclass(frozen=True)
class Case:
    disk: Disk
    depth: int
    polled: bool
    words: str = ''                     # more for the guest
    note: str = ''                      # what these words mean, for people

    @property
    def poll_max_ns(self):
        return self.disk.poll_max_ns if self.polled else 0

    @property
    def group(self):
        return f'{self.disk.key}-d{self.depth}' + (f'-{self.note}' if self.note else '')

    @property
    def name(self):
        return f'{self.group}-{"polled" if self.polled else "unpolled"}'

    @property
    def title(self):
        return f'{self.disk.title}, depth {self.depth}' + (f', {self.note}' if self.note else '')


NULL = Disk('null', 'null-co', 32768)
NULL_10US = Disk('null10', 'null-co, latency-ns=10000', 32768, latency_ns=10000)
TMPFS_NATIVE = Disk('tmpfs-native', 'file on tmpfs, native', 32768, file='tmpfs', engine='native')
TMPFS_URING = Disk('tmpfs-uring', 'file on tmpfs, io_uring', 32768, file='tmpfs',
                   engine='io_uring')
DISK_NATIVE = Disk('disk-native', 'file on disk, native', 200000, file='disk', engine='native')
DISK_URING = Disk('disk-uring', 'file on disk, io_uring', 200000, file='disk', engine='io_uring')

_DEPTHS = [(NULL, 1), (NULL, 32), (NULL_10US, 1), (TMPFS_NATIVE, 1), (TMPFS_NATIVE, 32),
           (TMPFS_URING, 1), (TMPFS_URING, 32), (DISK_NATIVE, 1), (DISK_URING, 1)]

# Interrupts on a device that takes its time: the guest wants them only while it waits, and a null
# device that is kicked by an exit to the VMM is done before that.
ALL = [Case(disk, depth, polled) for disk, depth in _DEPTHS for polled in (False, True)] + \
    [Case(NULL_10US, 1, True, 'complete=intr wait=spin', 'interrupts')]


def find(disk, depth, polled):
    for case in ALL:
        if (case.disk, case.depth, case.polled, case.note) == (disk, depth, polled, ''):
            return case
    raise KeyError((disk.key, depth, polled))


class Images:
    """Files full of data on tmpfs and on disk, where both can be read with O_DIRECT. `paths` has
    those that are there, `missing` says why the others are not."""

    def __init__(self, kinds, sizes=None):
        self.paths = {}
        self.missing = {}
        self.folders = {}
        for kind in kinds:
            folder = os.environ.get(FOLDER_VARIABLES[kind], FOLDERS[kind])
            self.folders[kind] = folder
            try:
                self.paths[kind] = make_image(folder, (sizes or FILE_BYTES)[kind])
            except (Missing, OSError) as e:
                self.missing[kind] = f'{folder}: {getattr(e, "strerror", None) or e}'

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for path in self.paths.values():
            os.unlink(path)


def make_image(folder, size):
    """Written, not only allocated: unwritten extents are answered without the disk."""
    block = os.urandom(4 << 20)
    fd, path = tempfile.mkstemp(prefix='bench-', suffix='.raw', dir=folder)
    try:
        for at in range(0, size, len(block)):
            os.write(fd, block[:size - at])
        os.fsync(fd)
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError as e:
        os.unlink(path)
        if e.errno == errno.EINVAL:
            raise Missing('its file system has no O_DIRECT') from e
        raise
    finally:
        os.close(fd)
    return path


class Setup:
    """VMM arguments for a list of cases, and what to tell the guest for each."""

    def __init__(self, cases, paths):
        self.args = []
        self.devices = {}               # (disk key, poll_max_ns): index
        for case in cases:
            key = (case.disk.key, case.poll_max_ns)
            if key in self.devices:
                continue
            n = self.devices[key] = len(self.devices)
            self.args += guestlib.iothread(f'io{n}', poll_max_ns=case.poll_max_ns)
            self.args += guestlib.disk(case.disk.blockdev(paths), f'n{n}', thread=f'io{n}')

    def words(self, case, seconds, warmup=0.1, count=0):
        how_long = f'count={count}' if count else f'seconds={seconds}'
        device = self.devices[case.disk.key, case.poll_max_ns]
        return (f'op=read bs=4k dev={device} qd={case.depth} {how_long} warmup={warmup} '
                f'{case.words}').strip()
