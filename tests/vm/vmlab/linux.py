# SPDX-License-Identifier: GPL-2.0-or-later
"""
Boot Linux with disks of the caller's choice and have it run fio.

    from vmlab import linux
    answer = linux.boot_linux('build/qemu-system-x86_64', [
        linux.Guest(args=['-object', 'iothread,id=io0', '-blockdev', ..., '-device', ...],
                    jobs=['read DISK-SERIAL --direct=1 --rw=randread --bs=4k --runtime=5 ...'])])
    answer.kind, answer.why       'direct' or 'nested', and the reason for it
    answer.guests[0]['jobs']['read']['fio']     fio's JSON
    answer.guests[0]['jobs']['read']['host']    what the VMM used meanwhile (guestlib.Watch)

All guests share one emulated test host where KVM here can't run them; times measured
there compare only with each other.
"""

import dataclasses
import json
import os
import sys
import tempfile
from typing import List

from . import Missing, boot, host

INSIDE_FILE = "/t/guests.json"
RESULTS = "results.json"
TIMEOUT_S = 300


@dataclasses.dataclass
class Guest:
    """What to boot; jobs are `NAME SERIAL FIO-OPTION...`, run in this order."""

    args: List[str]
    jobs: List[str]
    append: str = ""
    name: str = "linux"
    cpus: int = 1
    mem: str = "256M"
    # Of guestlib.Watch: 'cpu', 'syscalls', both or none.
    sample: List[str] = dataclasses.field(default_factory=lambda: ["cpu"])
    timeout_s: float = 120


@dataclasses.dataclass
class Answer:
    """kind and why as host.choose() gives them; one dictionary a guest."""

    kind: str
    why: str
    guests: List[dict]


class LinuxError(Exception):
    """A guest did not do what was asked; the text says what was seen last."""


class _Sampler:
    """Takes the VMM's readings around each job."""

    def __init__(self, what):
        self.what = what
        self.watch = None
        self.begun = None
        self.pairs = {}

    def answer(self, running, words):
        if not self.what:
            return "none"
        if self.watch is None:
            sys.path.append(os.path.join(os.path.dirname(host.images.HERE), "guest"))
            import guestlib    # pylint: disable=import-outside-toplevel,import-error
            self.watch = guestlib.Watch(running.process.pid, self.what)
        if words[0] == "begin":
            if self.watch.counters:
                self.watch.counters.attach(self._threads(running))
            self.begun = self.watch.reading()
        else:
            self.pairs[words[1]] = (self.begun, self.watch.reading())
        return "taken"

    @staticmethod
    def _threads(running):
        import guestlib    # pylint: disable=import-outside-toplevel,import-error
        return guestlib.threads(running.process.pid)

    def of(self, name, ios):
        if name not in self.pairs:
            return None
        return self.watch.difference(*self.pairs[name], ios)


def _total_ios(fio):
    return sum(job[way]["total_ios"] for job in fio["jobs"] for way in ("read", "write", "trim"))


def run_one(guest, vmm, kernel, initrd, scratch):
    """On the KVM of this machine; returns a dictionary that JSON can carry."""
    sampler = _Sampler(guest.sample)
    left = list(guest.jobs)
    one = boot.Boot(name=guest.name, args=list(guest.args), cpus=guest.cpus, mem=guest.mem,
                    append=f"t.test=jobs {guest.append}", timeout_s=guest.timeout_s,
                    answers={"job": lambda _r, _w: left.pop(0) if left else "done",
                             "sample": sampler.answer})
    result = boot.run(one, vmm, kernel, initrd, scratch)
    bad = [f"{text}: {' '.join(notes)}" for verdict, text, notes in result.checks(0)
           if verdict == "bad"]
    jobs = {}
    for job in guest.jobs:
        name = job.split()[0]
        data = result.report.files.get(name + ".json")
        if data is None:
            bad.append(f"no result of {name}")
            continue
        fio = json.loads(data)
        jobs[name] = {"fio": fio, "host": sampler.of(name, _total_ios(fio))}
    return {"name": guest.name, "release": result.report.release, "seconds": result.seconds,
            "jobs": jobs, "errors": bad}


def run_inside(vmm, logs, scratch):
    """In the test host: run what INSIDE_FILE says."""
    with open(INSIDE_FILE, encoding="utf-8") as f:
        guests = [Guest(**g) for g in json.load(f)]
    done = []
    for guest in guests:
        done.append(run_one(guest, vmm, "/t/vmlinuz", "/t/guest.cpio",
                            os.path.join(scratch, guest.name)))
        print(f"{guest.name}: {done[-1]['seconds']:.1f} s", flush=True)
    with open(os.path.join(logs, RESULTS), "w", encoding="utf-8") as f:
        json.dump(done, f)
    return 0


def _run_nested(files, vmm, guests, images, relay):
    extra = {INSIDE_FILE: json.dumps([dataclasses.asdict(g) for g in guests]).encode()}
    for path, size in images:
        extra[path] = size
    status, why = host.nested_run(files, vmm, f"/t/run --inside-guests --vmm "
                                  f"{os.path.realpath(vmm)}", TIMEOUT_S, relay, extra)
    path = os.path.join(files.dir, "logs", RESULTS)
    if status is None or not os.path.exists(path):
        raise LinuxError(why or f"the test host's runner ended with status {status}")
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def boot_linux(vmm, guests, wanted="auto", images=(), relay=lambda line: None):
    """
    Boot each guest in turn and return an Answer. `images` are (path, bytes) of empty files
    that the arguments name: they are made where the VMM runs. relay(line) gets progress.
    Raises Missing when this machine can't, LinuxError when a guest did not do its jobs.
    """
    with tempfile.TemporaryDirectory(prefix="vm-linux.") as work:
        files = host.Files(work)
        kind, why = host.choose(wanted, vmm, files)
        relay(f"host: {kind} ({why})")
        if kind == "nested":
            done = _run_nested(files, vmm, guests, images, relay)
        else:
            for path, size in images:
                with open(path, "wb") as f:
                    f.truncate(size)
            done = [run_one(g, vmm, files.kernel, files.initrd, os.path.join(work, g.name))
                    for g in guests]
    bad = [f"{g['name']}: {text}" for g in done for text in g["errors"]]
    if bad:
        raise LinuxError("\n".join(bad))
    return Answer(kind, why, done)


__all__ = ["Answer", "Guest", "LinuxError", "Missing", "boot_linux"]
