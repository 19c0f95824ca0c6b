# SPDX-License-Identifier: GPL-2.0-or-later
"""Start a VMM with a Linux guest, follow its serial line, and say how it ended."""

import dataclasses
import os
import selectors
import signal
import subprocess
import time
from typing import Callable, Dict, List, Optional, Union

from .console import Report

SLOW_S = 4
BASE_APPEND = "console=ttyS0 quiet panic=-1"


@dataclasses.dataclass
class Boot:
    """One run of the VMM. `args` may name files of the scratch directory as {dir}/NAME."""

    name: str
    args: List[str]
    append: str = ""
    cpus: int = 1
    mem: str = "256M"
    # How the machine and its serial line are asked for; boots differ to cover what users type.
    machine: List[str] = dataclasses.field(
        default_factory=lambda: ["-M", "pc", "-accel", "kvm", "-cpu", "host"])
    screen: List[str] = dataclasses.field(
        default_factory=lambda: ["-nodefaults", "-display", "none", "-serial", "stdio"])
    # Let the guest start again after a reset instead of ending the VMM.
    reboots: bool = False
    timeout_s: float = 240
    status: Optional[int] = 0
    note: str = ""
    # Makes the disk images; called with the scratch directory.
    prepare: Optional[Callable[[str], None]] = None
    # What the guest may ask for: called with the Running boot and the words, returns a line.
    answers: Dict[str, Callable[["Running", List[str]], str]] = dataclasses.field(
        default_factory=dict)
    # Looks at the files afterwards: returns a list of (passed, text).
    inspect: Optional[Callable[[str], List[tuple]]] = None


@dataclasses.dataclass
class Result:
    """How a boot went. `status` is None when it had to be killed."""

    name: str
    report: Report
    status: Optional[int]
    seconds: float
    log: str
    errors: str
    slow: List[str]
    inspected: List[tuple] = dataclasses.field(default_factory=list)

    def checks(self, wanted_status):
        """All that is to be reported: (verdict, text, notes)."""
        out = list(self.report.checks)
        for why in self.report.trouble:
            out.append(("bad", "the guest's report arrived whole", [why]))
        if not self.report.ended:
            out.append(("bad", "the guest ran its tests to the end", self.tail()))
        if wanted_status is not None:
            seen = "killed after the time allowed" if self.status is None else self.status
            good = self.status == wanted_status
            out.append(("ok" if good else "bad", f"the VMM exits with status {wanted_status}",
                        [] if good else [f"seen: {seen}"] + self.tail()))
        for good, text in self.inspected:
            out.append(("ok" if good else "bad", text, []))
        return out

    def tail(self, lines=12):
        """The last of what was seen, for a failure's diagnosis."""
        text = (self.errors.strip().splitlines()[-lines:] +
                [l for l in self.log.splitlines() if l.strip()][-lines:])
        return text or ["nothing arrived on the serial line"]


class Running:
    """A boot under way, as its answers see it."""

    def __init__(self, process, scratch):
        self.process = process
        self.dir = scratch
        self.slow = []
        self._last = time.monotonic()

    def lap(self, report, seen):
        """Remember the checks that took long, for those who mind the suite's time."""
        if len(report.checks) > seen:
            now = time.monotonic()
            if now - self._last > SLOW_S:
                self.slow.append(f"{now - self._last:.1f} s: {report.checks[-1][1]}")
            self._last = now

    def resize(self, name, size):
        """Let an image grow under the guest."""
        with open(os.path.join(self.dir, name), "r+b") as f:
            f.truncate(size)


def command(vmm, boot, kernel, initrd, scratch):
    """The whole command line."""
    line = [vmm, *boot.machine, *boot.screen, "-no-user-config", "-m", boot.mem,
            # on standard error, for the diagnosis of an end that nobody expected
            "-trace", "machine_request_*", "-trace", "kvm_guest_shutdown",
            "-smp", str(boot.cpus), "-kernel", kernel, "-initrd", initrd,
            "-append", (BASE_APPEND + " " + boot.append).strip()]
    if not boot.reboots:
        line.append("-no-reboot")
    return line + [a.replace("{dir}", scratch) for a in boot.args]


def _follow(process, report, boot, running, save, deadline):
    """Read the serial line until it closes; False when time ran out."""
    pending = b""
    with selectors.DefaultSelector() as sel:
        sel.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if not sel.select(left):
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return True
            save.append(data)
            *lines, pending = (pending + data).split(b"\n")
            for raw in lines:
                seen = len(report.checks)
                words = report.feed(raw.decode("utf-8", "replace").rstrip("\r"))
                running.lap(report, seen)
                if words:
                    answer = boot.answers.get(words[0])
                    reply = answer(running, words[1:]) if answer else "unknown"
                    process.stdin.write(reply.encode() + b"\n")
                    process.stdin.flush()


def run(boot, vmm, kernel, initrd, scratch):
    """Run it to its end or to its time limit, and return the Result."""
    os.makedirs(scratch, exist_ok=True)
    if boot.prepare:
        boot.prepare(scratch)
    started = time.monotonic()
    deadline = started + boot.timeout_s
    saved: List[bytes] = []
    report = Report()
    errors_path = os.path.join(scratch, "stderr")
    with open(errors_path, "wb") as errors:
        process = subprocess.Popen(command(vmm, boot, kernel, initrd, scratch),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    running = Running(process, scratch)
    status: Union[int, None] = None
    try:
        closed = _follow(process, report, boot, running, saved, deadline)
        if closed:
            status = process.wait(max(1.0, deadline - time.monotonic()))
    except (subprocess.TimeoutExpired, BrokenPipeError):
        pass
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
    with open(errors_path, encoding="utf-8", errors="replace") as f:
        errors_text = f.read()
    result = Result(boot.name, report, status, time.monotonic() - started,
                    b"".join(saved).decode("utf-8", "replace"), errors_text, running.slow)
    if boot.inspect:
        result.inspected = boot.inspect(scratch)
    return result
