# SPDX-License-Identifier: GPL-2.0-or-later
"""The boots of the suite: what the VMM is given, what the guest is to find."""

import json
import os
import random
import signal
import time

from .boot import Boot
from .images import pattern

KIB = 1 << 10
MIB = 1 << 20

RESETS = ["acpi", "kbd", "pci", "triple"]


def options(first, **pairs):
    """An option argument: iothread(id='a', poll_max_ns=1) -> 'iothread,id=a,poll-max-ns=1'."""
    # These are spelt with an underscore; all others with a dash.
    keep = ("logical_block_size", "physical_block_size")
    words = [first] if first else []
    words += [f"{k if k in keep else k.replace('_', '-')}={v}" for k, v in pairs.items()]
    return ",".join(words)


class Disks:
    """Collects the disks of one boot: images to make and arguments for the VMM."""

    def __init__(self):
        self.args = []
        self.images = []
        self.count = 0

    def iothread(self, name, **properties):
        self.args += ["-object", options("iothread", id=name, **properties)]

    def file(self, serial, size=64 * MIB, filled=0, node=None, **device):
        """
        A raw file of which `filled` bytes are pattern. `node` adds to the -blockdev
        options, `device` to the -device ones.
        """
        self.images.append((serial + ".img", size, filled))
        self.node(serial, {"driver": "file", "filename": "{dir}/" + serial + ".img",
                           **(node or {})}, **device)

    def node(self, serial, node, **device):
        self.count += 1
        name = f"node{self.count}"
        self.args += ["-blockdev", options(None, node_name=name, **node)]
        self.device(name, serial, **device)

    def device(self, drive, serial, **device):
        self.args += ["-device", options("virtio-blk-pci", drive=drive, serial=serial,
                                         disable_legacy="on", **device)]

    def drive(self, serial, size=64 * MIB, device=(), **drive):
        """A raw file by -drive."""
        self.images.append((serial + ".img", size, 0))
        self.args += ["-drive", options(None, file="{dir}/" + serial + ".img", format="raw",
                                        id="d-" + serial, **{"if": "none"}, **drive)]
        self.device("d-" + serial, serial, **dict(device))

    def json(self, serial, node, device, size=64 * MIB):
        """A raw file, with the options of node and device as JSON."""
        self.images.append((serial + ".img", size, 0))
        self.args += ["-blockdev", json.dumps({"driver": "raw", "node-name": "j-" + serial,
                                               "file": {"driver": "file",
                                                        "filename": "{dir}/" + serial + ".img",
                                                        **node}}),
                      "-device", json.dumps({"driver": "virtio-blk-pci", "serial": serial,
                                             "drive": "j-" + serial, **device})]

    def prepare(self, directory):
        for name, size, filled in self.images:
            with open(os.path.join(directory, name), "wb") as f:
                f.write(pattern(filled))
                f.truncate(size)


# What the guest may ask for.

def tell_time(_running, _words):
    return str(int(time.time()))


def type_text(_running, words):
    length = int(words[0])
    return " ".join(str(n) for n in range(1, length))[:length] + "x"


def send_signal(number):
    def answer(running, _words):
        running.process.send_signal(number)
        return "sent"
    return answer


def jobs_from(jobs):
    left = list(jobs)
    return lambda _running, _words: left.pop(0) if left else "done"


ANSWERS = {"time": tell_time, "type": type_text}


def fio_jobs(serials, rng, count):
    """`count` jobs for each disk, drawn from all, or all of them when count is None."""
    every = [(rw, bs, depth, engine)
             for rw in ("write", "randwrite", "randrw")
             for bs in ("512", "4k", "16k", "64k", "1M")
             for engine, depths in (("psync", (1,)), ("libaio", (1, 2, 4, 8, 16, 32, 64)))
             for depth in depths]
    sizes = {"512": "512k", "4k": "2M", "16k": "4M", "64k": "8M", "1M": "16M"}
    chosen = []
    for serial in serials:
        some = every if count is None else rng.sample(every, count)
        chosen += [f"{serial} {rw} {bs} {depth} {engine} {sizes[bs]}"
                   for rw, bs, depth, engine in some]
    return chosen, len(every) * len(serials)


def engines(rng, long):
    """All three engines behind a polling IOThread each, with two CPUs and two queues."""
    disks = Disks()
    names = ("threads", "native", "io_uring")
    for engine in names:
        disks.iothread("io-" + engine, poll_max_ns=32768)
        disks.file(engine, node={"aio": engine, "cache.direct": "on"}, iothread="io-" + engine)
    jobs, every = fio_jobs(names, rng, None if long else 4)
    # The depths that are always there.
    if not long:
        jobs += [f"{n} randwrite 4k 1 psync 1M" for n in names]
        jobs += [f"{n} randwrite 4k 64 libaio 4M" for n in names]
    return Boot(name="engines", cpus=2, args=disks.args, prepare=disks.prepare,
                timeout_s=2400 if long else 240,
                note=f"{len(jobs)} fio jobs of {every}",
                append="t.test=facts,queues,fio,health t.cpus=2 t.queues=2",
                answers={**ANSWERS, "job": jobs_from(jobs)})


def features():
    """One disk for each property, on one CPU and the main loop or a polling IOThread."""
    disks = Disks()
    disks.iothread("io0", poll_max_ns=32768)
    direct = {"cache.direct": "on", "aio": "native"}
    disks.file("plain", filled=MIB, node=direct, iothread="io0")
    disks.file("ro", filled=MIB, node={"read-only": "on"})
    disks.file("lb4096", node=direct, logical_block_size=4096, physical_block_size=4096)
    disks.file("pb4096", node=direct, physical_block_size=4096, iothread="io0")
    disks.file("small", queue_size=64, num_queues=1, iothread="io0")
    disks.file("exits", node=direct, ioeventfd="off")
    disks.node("null", {"driver": "null-co", "size": 1 << 30, "read-zeroes": "on"},
               iothread="io0")
    disks.file("wt", write_cache="off")
    disks.file("nowce", config_wce="off")
    disks.file("nocache", write_cache="off", config_wce="off")
    disks.file("grows", iothread="io0")

    def inspect(directory):
        with open(os.path.join(directory, "plain.img"), "rb") as f:
            f.seek(32 * MIB)
            same = f.read(MIB) == pattern(MIB)
        return [(same, "the host finds what the guest wrote")]

    def resize(running, _words):
        running.resize("grows.img", 96 * MIB)
        return "done"

    return Boot(name="features", args=disks.args, prepare=disks.prepare, inspect=inspect,
                append="t.test=features,cache,resize,health t.allow=dev.vd.*(READ|WRITE) "
                       "t.end=reboot",
                answers={**ANSWERS, "resize": resize})


def discard():
    """Discard and write-zeroes; then the driver goes and comes; ends by SIGTERM."""
    disks = Disks()
    disks.iothread("io0", poll_max_ns=32768)
    for name, how in (("unmap", "unmap"), ("zeroes", "unmap"), ("punch", "unmap"),
                      ("ignore", "ignore"), ("nodiscard", "unmap")):
        extra = {"discard": "off"} if name == "nodiscard" else {}
        disks.file(name, size=4 * MIB, filled=4 * MIB, node={"discard": how}, **extra)
    disks.file("plain", iothread="io0", node={"cache.direct": "on", "aio": "io_uring"})

    def inspect(directory):
        used = {n: os.stat(os.path.join(directory, n + ".img")).st_blocks * 512
                for n in ("zeroes", "punch", "ignore")}
        return [(used["punch"] < 4 * MIB, "unmapping write-zeroes gives the space back"),
                (used["zeroes"] >= 4 * MIB - 64 * KIB, "write-zeroes keeps the space"),
                (used["ignore"] >= 4 * MIB, "an ignored discard gives no space back")]

    return Boot(name="discard", args=disks.args, prepare=disks.prepare, inspect=inspect,
                append="t.test=discard,rebind,health,end t.allow=dev.vd t.end=stay",
                answers={**ANSWERS, "end": send_signal(signal.SIGTERM)})


def intx():
    """Interrupt pins beside MSI-X; ends by SIGKILL: what was acknowledged is in the file."""
    disks = Disks()
    disks.iothread("io0", poll_max_ns=32768)
    disks.file("pin", vectors=0, iothread="io0")
    disks.file("pin2", vectors=0, ioeventfd="off")
    disks.file("plain", filled=MIB, iothread="io0", node={"cache.direct": "on"})
    # Half of this memory, and what the guest allocates first, lies above 4 GiB.
    return Boot(name="intx", cpus=2, mem="5G", args=disks.args, prepare=disks.prepare,
                append="t.test=intx,health,killed t.intx=pin,pin2 t.mem=4900",
                answers={**ANSWERS, "end": send_signal(signal.SIGKILL)},
                status=-signal.SIGKILL, inspect=_found("plain.img"))


def _found(name):
    def inspect(directory):
        with open(os.path.join(directory, name), "rb") as f:
            f.seek(32 * MIB)
            same = f.read(MIB) == pattern(MIB)
        return [(same, "the host finds what the guest wrote")]
    return inspect


def noacpi():
    """Linux with acpi=off: one CPU, no MSI."""
    disks = Disks()
    disks.iothread("io0", poll_max_ns=32768)
    disks.json("plain", {"cache": {"direct": True}, "aio": "native"},
               {"iothread": "io0", "num-queues": 1})
    disks.drive("other", cache="none", aio="io_uring", device={"iothread": "io0"})
    return Boot(name="noacpi", cpus=2, args=disks.args, prepare=disks.prepare,
                append="acpi=off t.test=facts,intx t.intx=plain,other t.acpi=off t.end=reboot",
                answers=dict(ANSWERS))


def reboots(rng, long):
    """The guest resets the machine, in every way or in one of them."""
    disks = Disks()
    disks.iothread("io0", poll_max_ns=32768)
    disks.file("plain", iothread="io0", node={"cache.direct": "on", "aio": "native"})
    kinds = RESETS if long else [rng.choice(RESETS)]
    return Boot(name="reboots", cpus=2, args=disks.args, prepare=disks.prepare, reboots=True,
                machine=["-enable-kvm", "-cpu", "max"], screen=["-nographic"],
                note=f"{len(kinds)} kinds of reset of {len(RESETS)}",
                append="t.test=reboots,health t.kinds=" + ",".join(kinds))


def boots(seed, long):
    """The same for the same seed."""
    rng = random.Random(seed)
    return [engines(rng, long), features(), discard(), intx(), noacpi(), reboots(rng, long)]
