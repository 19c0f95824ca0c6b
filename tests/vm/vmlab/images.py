# SPDX-License-Identifier: GPL-2.0-or-later
"""What guests and the emulated test host boot: initramfs archives and a root disk."""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from . import Missing
from .archive import Modules, Newc, lean_libraries, libraries, static_busybox, tool

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

PATTERN_BYTES = 4 << 20

VIRTIO = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev",
          "virtio_pci", "virtio_blk"]
KVM = ["irqbypass", "kvm", "kvm-amd"]

# What fio needs for local disks.
FIO_LIBRARIES = ["ld-linux", "libc.", "libm.", "libaio.", "libnuma.", "libz."]

# Of the standard library, what no test here imports and what takes most of its space.
STDLIB_LEFT_OUT = shutil.ignore_patterns(
    "test", "tests", "site-packages", "dist-packages", "config-*", "idlelib", "lib2to3",
    "ensurepip", "tkinter", "turtledemo", "pydoc_data", "distutils", "*.a", "_test*",
    "*.opt-1.pyc", "*.opt-2.pyc", "libpython*")


@functools.lru_cache(maxsize=1)
def _pattern():
    return b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(PATTERN_BYTES // 32))


def pattern(length):
    """Bytes that both sides know: the start of the guest's /t/pattern."""
    assert length <= PATTERN_BYTES
    return _pattern()[:length]


def fetch_kernel():
    """The directory of the kernel that the guests run."""
    run = subprocess.run([os.path.join(HERE, "fetch-kernel")], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode == 77:
        raise Missing(run.stderr.strip())
    if run.returncode != 0:
        raise RuntimeError(f"fetch-kernel: {run.stderr.strip()}")
    return run.stdout.strip()


def _base(archive, kernel, modules):
    archive.node("dev/console", 5, 1)
    archive.node("dev/null", 1, 3)
    for name in ("proc", "sys", "tmp", "mnt", "etc"):
        archive.directory(name)
    archive.copy(static_busybox(), "bin/busybox")
    archive.symlink("bin/sh", "busybox")
    found = Modules(kernel)
    order = found.ordered(modules)
    for name in order:
        archive.copy(found.path(name), "modules/" + name)
    archive.file("modules/order", "".join(n + "\n" for n in order).encode())


def write_guest(out, kernel):
    """The initramfs that the VMM under test boots."""
    with open(out, "wb") as f:
        archive = Newc(f)
        _base(archive, kernel, VIRTIO)
        fio = tool("fio")
        archive.copy(fio, "bin/fio")
        with tempfile.TemporaryDirectory() as work:
            for source, name in lean_libraries(fio, FIO_LIBRARIES, work):
                archive.copy(source, name)
        # busybox has none that write zeroes
        archive.program(tool("blkdiscard"), "bin/blkdiscard-tool")
        archive.program(tool("fallocate"), "bin/fallocate-tool")
        guest = os.path.join(HERE, "guest")
        for name in sorted(os.listdir(guest)):
            target = "init" if name == "init" else "t/" + name
            archive.copy(os.path.join(guest, name), target)
        archive.file("t/pattern", pattern(PATTERN_BYTES))
        archive.finish()


def write_host(out, kernel):
    """The initramfs that mounts the emulated test host's root disk."""
    with open(out, "wb") as f:
        archive = Newc(f)
        _base(archive, kernel, VIRTIO + KVM)
        archive.copy(os.path.join(HERE, "host", "init"), "init")
        archive.finish()


INITRAMFS = {"guest": write_guest, "host": write_host}


class Stage:
    """A directory tree that becomes the test host's root; paths are those of this machine."""

    def __init__(self, root):
        self.root = root
        os.makedirs(os.path.join(root, "usr"))
        for name in ("bin", "lib", "lib64", "sbin"):
            os.makedirs(os.path.join(root, "usr", name))
            os.symlink("usr/" + name, os.path.join(root, name))
        for name in ("dev", "proc", "sys", "tmp", "etc"):
            os.makedirs(os.path.join(root, name))

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def copy(self, source, name=None):
        target = self.path(name or source)
        if not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target)

    def tree(self, source, name=None, ignore=None):
        if os.path.isdir(source):
            shutil.copytree(source, self.path(name or source), ignore=ignore,
                            dirs_exist_ok=True)

    def program(self, source, name=None):
        self.copy(source, name)
        for lib in libraries(source):
            self.copy(lib)

    def python(self):
        """The interpreter that runs us, at its own path, and its library."""
        exe = os.path.realpath(sys.executable)
        self.program(exe)
        stdlib = sysconfig.get_path("stdlib")
        self.tree(stdlib, ignore=STDLIB_LEFT_OUT)
        dynload = os.path.join(stdlib, "lib-dynload")
        wanted = set()
        for name in os.listdir(dynload) if os.path.isdir(dynload) else ():
            if os.path.exists(self.path(os.path.join(dynload, name))):
                wanted.update(libraries(os.path.join(dynload, name)))
        for lib in sorted(wanted):
            self.copy(lib)
        return exe

    def vmm(self, path):
        """The VMM under test; one that was installed brings its firmware along."""
        self.program(path)
        prefix = os.path.dirname(os.path.dirname(path))
        if os.path.basename(os.path.dirname(path)) == "bin":
            for name in ("qemu", "seabios"):
                self.tree(os.path.join(prefix, "share", name))

    def disk(self, out, size):
        """Make the tree an ext4 file system; no root needed."""
        with open(out, "wb") as f:
            f.truncate(size)
        run = subprocess.run([tool("mke2fs"), "-q", "-F", "-t", "ext4", "-O", "^has_journal",
                              "-E", "lazy_itable_init=1,nodiscard", "-d", self.root, out],
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"mke2fs: {run.stderr.strip()}")
