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


def _symbols(path, kind):
    """{name: version or ''} of a program's or library's dynamic symbols."""
    run = subprocess.run(["nm", "-D", kind, path], capture_output=True, text=True, check=True)
    names = [line.split()[-1].replace("@@", "@") for line in run.stdout.splitlines()]
    return {name: version for name, _, version in (n.partition("@") for n in names)}


def _stub_library(symbols, directory):
    """A library that defines each of {name: version} as a function that traps."""
    source, script, stub = (os.path.join(directory, "stub" + e) for e in (".c", ".map", ".so"))
    with open(source, "w", encoding="ascii") as f:
        f.writelines(f"void {s}(void) {{ __builtin_trap(); }}\n" for s in sorted(symbols))
    with open(script, "w", encoding="ascii") as f:
        for version in sorted(set(symbols.values()) - {""}):
            names = sorted(s for s, v in symbols.items() if v == version)
            f.write(f"{version} {{ global: {'; '.join(names)}; }};\n")
    subprocess.run(["cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-nostdlib",
                    "-Wl,--build-id=none", "-Wl,--version-script=" + script, "-o", stub, source],
                   check=True)
    return stub


def lean_libraries(program, kept, directory):
    """
    What `program` needs to start, as (source, name in the guest): its libraries whose names
    begin with one of `kept`, and for all others one small file in `directory` that defines
    what the program takes from them; a call of it traps. Debian's fio is linked with Ceph,
    Gluster and RDMA, 80 MiB that each guest would unpack and each start would relocate.
    Without a compiler: all the libraries.
    """
    paths = libraries(program)
    if not all(shutil.which(t) for t in ("cc", "nm", "readelf")):
        return [(lib, lib) for lib in paths]
    stay = [lib for lib in paths if os.path.basename(lib).startswith(tuple(kept))]
    run = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run.stdout)
    missing = _symbols(program, "--undefined-only")
    for lib in stay:
        for name in _symbols(lib, "--defined-only"):
            missing.pop(name, None)
    # _ITM_... and the like are weak, and may stay undefined
    stub = _stub_library({s: v for s, v in missing.items() if not s.startswith("_")}, directory)
    names = {os.path.basename(lib): lib for lib in paths}
    stubs = [(stub, names[n]) for n in needed if n in names and names[n] not in stay]
    return [(lib, lib) for lib in stay] + stubs


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
