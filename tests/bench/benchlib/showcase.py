# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/demo shows: the same reads with polling off and on."""

import contextlib
import os
import subprocess
import sys
import time

import guestlib

from . import BUILD, SOURCE, Missing, cases, duel, machine, stats, table

sys.path.insert(0, os.path.join(SOURCE, 'tests', 'vm'))
from vmlab import linux  # noqa: E402

ROUNDS = 3
SECONDS = 0.5
SHOWN = [cases.NULL_10US, cases.TMPFS_NATIVE, cases.DISK_NATIVE]
WHAT = {'null10': 'a device that takes 10 us, as a fast NVMe drive does',
        'tmpfs-native': 'a file in memory (tmpfs), aio=native, cache=none',
        'disk-native': 'a file on disk, aio=native, cache=none'}
IMAGE_BYTES = {'tmpfs': 64 << 20, 'disk': 256 << 20}
HEADER = ['', 'IOPS', 'p50 us', 'p99 us', 'CPU us', 'syscalls', 'polled']
LEGEND = '''CPU us: CPU time of the IOThread per request. syscalls: its system calls per request.
polled: the share of the requests that it served without going to sleep.'''


class Row:
    """One line of the table. Times in ns, per request where the name says so."""

    def __init__(self, group, poll_max_ns, figures):
        self.group = group
        self.poll_max_ns = poll_max_ns
        self.figures = figures          # iops, p50_ns, p99_ns, iothread_ns_per_io, ...

    def cells(self):
        f = self.figures
        polled = stats.polled_share(f['sleeps_per_io']) if self.poll_max_ns else None
        return [f'  poll-max-ns={self.poll_max_ns}', f'{f["iops"]:.0f}',
                table.micros(f['p50_ns']), table.micros(f['p99_ns']),
                table.micros(f['iothread_ns_per_io']), table.number(f.get('syscalls_per_io')),
                table.percent(polled)]


def rows_as_table(rows):
    """Lines. Rows of a group stand together, the one without polling first."""
    out = []
    for group in dict.fromkeys(r.group for r in rows):
        members = sorted((r for r in rows if r.group == group), key=lambda r: r.poll_max_ns)
        off = members[0] if members[0].poll_max_ns == 0 else None
        out.append(group)
        for row in members:
            out.append(row.cells())
        if off and len(members) == 2:
            out.append(gain_line(off.figures, members[1].figures))
    return table.render(HEADER, out)


def gain_line(off, on):
    return (f'  polling: {100 * (on["iops"] / off["iops"] - 1):+.0f} % IOPS, '
            f'{100 * (on["iothread_ns_per_io"] / off["iothread_ns_per_io"] - 1):+.0f} % CPU of '
            'the IOThread per request')


# -- the bare-metal guest --

def bare_metal(vmm, progress):
    """(rows, notes): figures of the bare-metal guest on KVM."""
    notes = []
    countable = guestlib.syscalls_countable()
    if countable:
        notes.append(f'System calls were not counted: {countable}.')
    with cases.Images(['tmpfs', 'disk'], IMAGE_BYTES) as images:
        notes += [f'{why}: left out' for why in images.missing.values()]
        chosen = [cases.find(disk, 1, polled) for disk in SHOWN for polled in (False, True)
                  if disk.file not in images.missing]
        setup = cases.Setup(chosen, images.paths)
        results, counts = duel.Samples(), {}
        with contextlib.closing(duel.Contender('ours', vmm, setup)) as contender:
            contest = duel.Duel([contender], setup, machine.Probe(), machine.Quiet(10))
            for number in range(ROUNDS):
                for case in chosen:
                    progress(f'{case.title}, poll-max-ns={case.poll_max_ns}')
                    results.add(contest.pair(case, SECONDS, number))
            for case in chosen if not countable else ():
                progress(f'counting system calls: {case.title}')
                usual = results.median(case, 'ours', 'sleeps_per_io')
                counts[case.name] = contender.count_syscalls(setup.words(case, 0.2), 0.2,
                                                             usual)['per_io']
            contender.end()
    rows = []
    for case in chosen:
        figures = {key: results.median(case, 'ours', key)
                   for key in ('iops', 'p50_ns', 'p99_ns', 'iothread_ns_per_io', 'sleeps_per_io')}
        figures['syscalls_per_io'] = counts.get(case.name)
        rows.append(Row(WHAT[case.disk.key], case.poll_max_ns, figures))
    if not all(results.of(case, 'ours')[1] for case in chosen):
        notes.append('Other programs were busy on this machine meanwhile: these figures are rough.')
    return rows, notes


# -- Linux --

def linux_row(group, poll_max_ns, job, counted):
    """A Row of one fio job of vmlab.linux; @counted: the same job with system calls counted."""
    read, host = job['fio']['jobs'][0]['read'], job['host']
    points = read['clat_ns']['percentile']
    return Row(group, poll_max_ns, {
        'iops': read['iops'], 'p50_ns': points['50.000000'], 'p99_ns': points['99.000000'],
        'iothread_ns_per_io': host['iothread_ns_per_io'],
        'sleeps_per_io': host['iothread_sleeps_per_io'],
        'syscalls_per_io': counted and counted['host'].get('iothread_syscalls_per_io')})


def linux_disks(path):
    """Arguments: the same file twice, on an IOThread that polls and on one that does not."""
    args = []
    for name, poll_max_ns in (('off', 0), ('on', 32768)):
        args += guestlib.iothread(f'io-{name}', poll_max_ns=poll_max_ns)
        args += guestlib.disk(f'driver=file,filename={path},aio=native,cache.direct=on,'
                              'read-only=on', name, f'serial={name}', f'io-{name}')
    return args


def linux_fio(vmm, relay):
    """(rows, notes): figures of fio in a Linux guest, where KVM here runs one."""
    countable = guestlib.syscalls_countable()
    notes = [f'System calls were not counted: {countable}.'] if countable else []
    options = '--rw=randread --bs=4k --iodepth=1 --ioengine=psync --direct=1 --time_based'
    with cases.Images(['tmpfs'], IMAGE_BYTES) as memory, contextlib.ExitStack() as stack:
        images = memory
        if not memory.paths:
            images = stack.enter_context(cases.Images(['disk'], IMAGE_BYTES))
        if not images.paths:
            raise Missing('; '.join([*memory.missing.values(), *images.missing.values()]))
        (kind, path), = images.paths.items()
        args = linux_disks(path)
        jobs = [f'{name} {name} {options} --runtime=4' for name in ('off', 'on')]
        guests = [linux.Guest(args, jobs, sample=['cpu', 'sleeps'])]
        if not countable:
            jobs = [f'{name} {name} {options} --runtime=1' for name in ('off', 'on')]
            guests.append(linux.Guest(args, jobs, sample=['syscalls'], name='counted'))
        answer = linux.boot_linux(vmm, guests, 'direct', relay=relay)
    group = f'Linux {answer.guests[0]["release"]}, fio, a file ' + \
        ('in memory (tmpfs)' if kind == 'tmpfs' else 'on disk')
    timed = answer.guests[0]['jobs']
    counted = answer.guests[1]['jobs'] if len(answer.guests) > 1 else {}
    return [linux_row(group, poll, timed[name], counted.get(name))
            for name, poll in (('off', 0), ('on', 32768))], notes


def linux_checked(vmm, kind, relay):
    """Boot Linux, have fio write with checksums and read back; lines that say what it did."""
    path = '/var/tmp/demo.img' if kind == 'nested' else os.path.join(
        BUILD, f'demo-{os.getpid()}.img')
    args = guestlib.iothread('io0', poll_max_ns=32768) + guestlib.disk(
        f'driver=file,filename={path},aio=native,cache.direct=on', 'd', 'serial=d')
    jobs = ['verify d --rw=randwrite --bs=4k --size=4M --iodepth=8 --ioengine=libaio --direct=1 '
            '--verify=crc32c --do_verify=1 --verify_fatal=1',
            'read d --rw=randread --bs=4k --size=4M --iodepth=1 --ioengine=psync --direct=1']
    started = time.monotonic()
    try:
        answer = linux.boot_linux(vmm, [linux.Guest(args, jobs, sample=['cpu', 'sleeps'])], kind,
                                  images=[(path, 16 << 20)], relay=relay)
    finally:
        if kind != 'nested' and os.path.exists(path):
            os.unlink(path)
    guest = answer.guests[0]
    total = {way: sum(j['fio']['jobs'][0][way]['total_ios'] for j in guest['jobs'].values())
             for way in ('read', 'write')}
    return [f'Linux {guest["release"]} booted, wrote {total["write"]} blocks of 4 KiB to its disk,',
            f'read {total["read"]}, found every checksum right, powered off with status 0.',
            f'{time.monotonic() - started:.0f} s in all, {guest["seconds"]:.0f} s of them in our '
            'VMM.']


# -- neither --

def request_path():
    """Lines: our request path with no KVM at all, a small driver in its process as the guest."""
    driver = os.path.join(BUILD, 'tests', 'bench', 'dataplane-steps')
    if not os.path.exists(driver):
        raise Missing('dataplane-steps was not built')
    requests = 1000000
    started = time.monotonic()
    run = subprocess.run([driver, str(requests), '32', 'null'], capture_output=True, text=True,
                         check=False, timeout=120)
    seconds = time.monotonic() - started
    if run.returncode != 0:
        raise Missing(run.stderr.strip() or f'dataplane-steps: status {run.returncode}')
    return [f'{requests} reads of 4 KiB through virtqueue, virtio-blk and block layer, device and '
            'driver', f'in one thread: {1e9 * seconds / requests:.0f} ns each, the driver\'s part '
            'included.']


# -- what there is to learn --

def kvm_says():
    """(usable, lines)"""
    path = '/dev/kvm'
    if not os.path.exists(path):
        return False, [f'{path}: not there. Virtualization is off, or the module is not loaded.']
    if not os.access(path, os.R_OK | os.W_OK):
        return False, [f'{path}: may not be opened by this user (group kvm, or root).']
    return True, [f'{path}: opens.']


def own_image():
    """Lines: how to run an image of the reader's own."""
    vmm = os.path.relpath(guestlib.OURS)
    return [f'{vmm} -accel kvm -m 1G -nographic \\',
            '    -kernel VMLINUZ -initrd INITRD \\',
            '    -append "console=ttyS0 root=/dev/vda1" \\',
            '    -object iothread,id=io0,poll-max-ns=32768 \\',
            '    -drive if=none,id=d0,file=DISK.raw,format=raw,cache=none,aio=native \\',
            '    -device virtio-blk-pci,drive=d0,iothread=io0']
