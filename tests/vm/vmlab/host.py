# SPDX-License-Identifier: GPL-2.0-or-later
"""
Where the guests run: on KVM here, if it runs a stock kernel, else in an emulated test
host, which is stock QEMU's TCG with SVM, Linux with KVM in it, and our VMM in there.
KVM is asked by trying; nothing is inferred from the machine's name.
"""

import os
import selectors
import shutil
import subprocess
import tarfile
import tempfile
import time

from . import Missing, images
from .archive import static_busybox, tool

PROBE_FIRST_OUTPUT_S = 5
PROBE_INIT_S = 15
NESTED_DISK_BYTES = 4 << 30
LOGS_DISK_BYTES = 64 << 20


def scratch_parent():
    """A folder whose file system takes O_DIRECT: tmpfs does from Linux 6.6 on only."""
    tried = []
    for folder in (tempfile.gettempdir(), os.getcwd(), os.path.dirname(images.HERE)):
        try:
            with tempfile.NamedTemporaryFile(dir=folder) as f:
                os.close(os.open(f.name, os.O_RDWR | os.O_DIRECT))
            return folder
        except OSError as why:
            tried.append(f"{folder}: {why.strerror}")
    raise Missing("no folder for images that takes O_DIRECT: " + "; ".join(tried))


class Files:
    """What both kinds of host need, made once per run in its directory."""

    def __init__(self, directory):
        self.dir = directory
        kernel_dir = images.fetch_kernel()
        self.kernel_dir = kernel_dir
        self.kernel = os.path.join(kernel_dir, "vmlinuz")
        self.initrd = os.path.join(directory, "guest.cpio")
        images.write_guest(self.initrd, kernel_dir)


def kvm_runs_linux(vmm, files):
    """(True or False, why), by booting the guest up to its init."""
    if not os.path.exists("/dev/kvm"):
        return False, "there is no /dev/kvm"
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False, "/dev/kvm may not be opened"
    line = [vmm, "-M", "pc", "-accel", "kvm", "-cpu", "host", "-m", "256M", "-nodefaults",
            "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", files.kernel,
            "-initrd", files.initrd, "-append",
            "console=ttyS0 earlyprintk=ttyS0,115200 panic=-1 t.test=nothing"]
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    seen = b""
    started = time.monotonic()
    try:
        with selectors.DefaultSelector() as sel:
            sel.register(process.stdout, selectors.EVENT_READ)
            while True:
                limit = PROBE_INIT_S if seen else PROBE_FIRST_OUTPUT_S
                left = started + limit - time.monotonic()
                if left <= 0:
                    what = "did not reach its init" if seen else "gave no output"
                    return False, f"a stock kernel on KVM {what} within {limit} s"
                if sel.select(left):
                    data = os.read(process.stdout.fileno(), 65536)
                    if not data:
                        return False, "a stock kernel on KVM did not reach its init"
                    seen += data
                    if b"@@begin" in seen:
                        return True, "KVM here runs a stock kernel"
    finally:
        process.kill()
        process.wait()


def nested_tools():
    """Raise Missing unless the emulated test host can be built here."""
    static_busybox()
    tool("mke2fs")
    return tool("qemu-system-x86_64")


START = """#!/bin/sh
# First process on the test host's root disk. Reports go to the second serial port.
mkdir -p /logs /scratch
# A guest may be given more memory than we have; it will not use it.
echo 1 >/proc/sys/vm/overcommit_memory
exec 3>/dev/ttyS1
stty -F /dev/ttyS1 raw 2>/dev/null
cd /t
echo "@@host $(uname -r) $(nproc)" >&3
{command} >&3 2>/logs/stderr
status=$?
head -c 20000 /logs/stderr
tar -cf /dev/vdb -C /logs .
sync
echo "@@done $status" >&3
sleep 0.2
poweroff -f
"""


def nested_stage(files, vmm, command, extra):
    """
    The root disk of the test host; `command` runs in /t. `extra` maps paths to their
    contents, or to a size in bytes for a file that is empty.
    """
    root = os.path.join(files.dir, "root")
    stage = images.Stage(root)
    stage.copy(static_busybox(), "/bin/busybox")
    names = subprocess.run([static_busybox(), "--list"], capture_output=True, text=True,
                           check=True).stdout.split()
    for name in names:
        if name != "busybox":
            os.symlink("/bin/busybox", stage.path("/bin/" + name))
    python = stage.python()
    stage.vmm(os.path.realpath(vmm))
    stage.tree(images.HERE, "/t", shutil.ignore_patterns("__pycache__"))
    stage.copy(files.kernel, "/t/vmlinuz")
    stage.copy(files.initrd, "/t/guest.cpio")
    stage.copy(os.path.join(os.path.dirname(images.HERE), "guest", "guestlib.py"),
               "/guest/guestlib.py")
    for path, contents in extra.items():
        target = stage.path(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as f:
            if isinstance(contents, bytes):
                f.write(contents)
            else:
                f.truncate(contents)
    start = stage.path("/t/start")
    with open(start, "w", encoding="ascii") as f:
        f.write(START.replace("{command}", f"{python} {command}"))
    os.chmod(start, 0o755)
    disk = os.path.join(files.dir, "root.img")
    stage.disk(disk, NESTED_DISK_BYTES)
    shutil.rmtree(root)
    return disk


def nested_run(files, vmm, command, timeout_s, relay, extra=None):
    """
    Boot the test host, run `command` there, call relay(line) for each line it prints.
    Returns its exit status, or None with what went wrong as the second value.
    """
    qemu = nested_tools()
    disk = nested_stage(files, vmm, command, extra or {})
    logs = os.path.join(files.dir, "logs.img")
    with open(logs, "wb") as f:
        f.truncate(LOGS_DISK_BYTES)
    initrd = os.path.join(files.dir, "host.cpio")
    images.write_host(initrd, files.kernel_dir)
    console = os.path.join(files.dir, "host-console.log")
    drives = []
    for path in (disk, logs):
        drives += ["-drive", f"file={path},format=raw,if=virtio,cache=unsafe"]
    line = ["timeout", "--kill-after=5", str(timeout_s), qemu, "-accel", "tcg", "-cpu",
            "max,+svm,-xsave", "-smp", "2", "-m", "3072", "-nodefaults", "-display", "none",
            "-no-reboot", "-serial", f"file:{console}", "-serial", "stdio", *drives,
            "-kernel", files.kernel, "-initrd", initrd, "-append",
            "console=ttyS0 panic=-1 quiet"]
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    status = None
    try:
        for text in process.stdout:
            text = text.rstrip("\r\n")
            if text.startswith("@@done "):
                status = int(text.split()[1])
            else:
                relay(text)
    finally:
        if process.poll() is None and status is None:
            process.terminate()
        code = process.wait()
    _unpack_logs(logs, os.path.join(files.dir, "logs"))
    os.unlink(disk)
    if status is None:
        with open(console, encoding="utf-8", errors="replace") as f:
            last = f.read().strip().splitlines()[-5:]
        why = "its time was up" if code == 124 else f"it ended with status {code}"
        return None, f"the test host said no result: {why}; its console ends: {last}"
    return status, ""


def _unpack_logs(image, directory):
    os.makedirs(directory, exist_ok=True)
    try:
        with tarfile.open(image) as tar:
            tar.extractall(directory, filter="data")
    except tarfile.TarError:
        pass    # the host did not come that far; its console log says why
    os.unlink(image)


def choose(wanted, vmm, files):
    """('direct' or 'nested', why). Raises Missing when neither is possible."""
    if wanted == "direct":
        return "direct", "asked for"
    if wanted == "auto":
        runs, why = kvm_runs_linux(vmm, files)
        if runs:
            return "direct", why
    else:
        why = "asked for"
    try:
        nested_tools()
    except Missing as lack:
        raise Missing(f"{why}, and the emulated test host can't be had: {lack}") from lack
    return "nested", why
