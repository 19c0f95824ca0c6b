# SPDX-License-Identifier: GPL-2.0-or-later
"""The boots of the suite: what the VMM is given, what the guest is to find."""

import os

from .boot import Boot

MIB = 1 << 20


class Disks:
    """Collects the disks of one boot: images to make and arguments for the VMM."""

    def __init__(self):
        self.args = []
        self.images = []
        self.count = 0

    def iothread(self, name, **properties):
        self.args += ["-object", _options("iothread", id=name, **properties)]

    def file(self, serial, size=64 * MIB, node=None, **device):
        """A raw file; `node` adds to the -blockdev options, `device` to the -device ones."""
        self.count += 1
        name = f"f{self.count}"
        self.images.append((serial + ".img", size))
        self.args += ["-blockdev", _options(None, driver="file", node_name=name,
                                            filename="{dir}/" + serial + ".img",
                                            **(node or {}))]
        self._device(name, serial, device)

    def _device(self, node, serial, device):
        self.args += ["-device", _options("virtio-blk-pci", drive=node, serial=serial,
                                          disable_legacy="on", **device)]

    def prepare(self, directory):
        for name, size in self.images:
            with open(os.path.join(directory, name), "wb") as f:
                f.truncate(size)


def _options(first, **pairs):
    words = [first] if first else []
    words += [f"{k.replace('__', '.').replace('_', '-') if k not in KEEP else k}={v}"
              for k, v in pairs.items()]
    return ",".join(words)


# Properties that are spelt with an underscore.
KEEP = {"logical_block_size", "physical_block_size"}


def facts():
    return Boot(name="facts", cpus=2, args=[], append="t.test=facts t.cpus=2")


def engines():
    """All three engines behind one polling IOThread each."""
    disks = Disks()
    jobs = []
    for engine in ("threads", "native", "io_uring"):
        disks.iothread("io-" + engine, poll_max_ns=32768)
        disks.file(engine, node={"aio": engine, "cache.direct": "on"}, iothread="io-" + engine)
        jobs += [f"{engine}:randwrite:4k:1:psync:2M", f"{engine}:randwrite:4k:32:libaio",
                 f"{engine}:randwrite:64k:8:libaio"]
    return Boot(name="engines", cpus=2, args=disks.args, prepare=disks.prepare,
                append="t.test=fio t.fio=" + ";".join(jobs))


def boots():
    return [facts(), engines()]
