# SPDX-License-Identifier: GPL-2.0-or-later
"""Collect files for a guest: library closures, kernel modules, newc archives."""

import os
import re
import shutil
import stat
import subprocess

from . import Missing

PACKAGES = {
    "blkdiscard": "util-linux",
    "busybox": "busybox-static",
    "fallocate": "util-linux",
    "fio": "fio",
    "mke2fs": "e2fsprogs",
    "qemu-system-x86_64": "qemu-system-x86",
}


def tool(name):
    """Absolute path of a program, or Missing with the package that brings it."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        raise Missing(f"{name} is missing (Debian package {PACKAGES.get(name, name)})")
    return path


def libraries(program):
    """Paths, as the loader names them, of all that a program is linked with."""
    run = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if "not a dynamic executable" in run.stderr or "statically linked" in run.stdout:
        return []
    if run.returncode != 0 or "not found" in run.stdout:
        raise Missing(f"ldd {program}: {(run.stderr or run.stdout).strip()}")
    found = re.findall(r"(?:=> )?(/\S+) \(0x", run.stdout)
    return sorted(set(found))


def static_busybox():
    """busybox that runs where nothing else is; a dynamic one would not."""
    path = tool("busybox")
    if libraries(path):
        raise Missing(f"{path} is not static (Debian package busybox-static)")
    return path


class Modules:
    """The modules of one unpacked kernel (see fetch-kernel)."""

    def __init__(self, kernel_dir):
        self.dir = os.path.join(kernel_dir, "modules")
        with open(os.path.join(kernel_dir, "modules.builtin"), encoding="ascii") as f:
            self.builtin = {self.key(os.path.basename(line.strip())[:-3]) for line in f}
        self.files = {self.key(n[:-3]): n for n in os.listdir(self.dir) if n.endswith(".ko")}

    @staticmethod
    def key(name):
        return name.replace("-", "_")

    def _depends(self, name):
        with open(os.path.join(self.dir, name), "rb") as f:
            match = re.search(rb"\0depends=([^\0]*)\0", f.read())
        return [d for d in match.group(1).decode().split(",") if d] if match else []

    def ordered(self, names):
        """Files to insmod, in order, so that each finds what it depends on."""
        order = []

        def add(name):
            key = self.key(name)
            if key in self.builtin:
                return
            if key not in self.files:
                raise Missing(f"the kernel in {self.dir} has no module {name}")
            path = self.files[key]
            if path in order:
                return
            for dep in self._depends(path):
                add(dep)
            order.append(path)

        for name in names:
            add(name)
        return order

    def path(self, filename):
        return os.path.join(self.dir, filename)


class Newc:
    """
    A cpio archive in the kernel's newc format, written by hand because cpio(1) needs
    root for device nodes and records inode numbers and times, which differ each run.
    """

    def __init__(self, out):
        self.out = out
        self.ino = 0
        self.seen = set()

    def _entry(self, name, mode, data=b"", rdev=(0, 0)):
        self.ino += 1
        encoded = name.encode() + b"\0"
        fields = (self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, rdev[0], rdev[1],
                  len(encoded), 0)
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + encoded
        self.out.write(head + b"\0" * (-len(head) % 4))
        self.out.write(data)
        self.out.write(b"\0" * (-len(data) % 4))

    def directory(self, name):
        name = name.strip("/")
        if name and name not in self.seen:
            self.directory(os.path.dirname(name))
            self.seen.add(name)
            self._entry(name, stat.S_IFDIR | 0o755)

    def file(self, name, data, mode=0o644):
        name = name.strip("/")
        if name not in self.seen:
            self.directory(os.path.dirname(name))
            self.seen.add(name)
            self._entry(name, stat.S_IFREG | mode, data)

    def copy(self, source, name=None):
        with open(source, "rb") as f:
            data = f.read()
        mode = 0o755 if os.access(source, os.X_OK) else 0o644
        self.file(name or source, data, mode)

    def program(self, source, name=None):
        self.copy(source, name)
        for lib in libraries(source):
            self.copy(lib)

    def node(self, name, major, minor):
        self.directory(os.path.dirname(name))
        self._entry(name.strip("/"), stat.S_IFCHR | 0o600, rdev=(major, minor))

    def symlink(self, name, target):
        self.directory(os.path.dirname(name))
        self._entry(name.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def finish(self):
        self._entry("TRAILER!!!", 0)
        self.out.write(b"\0" * (-self.out.tell() % 512))
