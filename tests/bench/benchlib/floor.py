# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host itself reaches on the same file: fio, without any VMM.

Spinning, fio looks at the completion ring without entering the kernel; sleeping, it waits in the
kernel. A VMM can't be faster at depth 1 than the former by much, so times are judged by what they
are beyond it.
"""

import json
import shutil
import subprocess

from . import Missing

ENGINES = {'native': 'libaio', 'io_uring': 'io_uring'}
LIMIT_S = 60


def fio_command(path, engine, depth, spin, seconds):
    line = ['fio', '--name=floor', f'--filename={path}', '--readonly', '--rw=randread', '--bs=4k',
            '--direct=1', f'--iodepth={depth}', f'--ioengine={ENGINES[engine]}', '--time_based',
            f'--runtime={int(seconds * 1000)}ms', '--ramp_time=50ms', '--output-format=json']
    if spin:
        # without a minimum fio reaps from the ring that the kernel shares with it
        line.append('--iodepth_batch_complete_min=0')
        if engine == 'native':
            line.append('--userspace_reap')
    return line


def parse(text):
    """The figures of fio's JSON output, in the units of duel.sample()."""
    # fio may put warnings before it
    job = json.loads(text[text.index('{'):])['jobs'][0]
    if job['error']:
        raise Missing(f'fio: error {job["error"]}')
    read = job['read']
    if not read['total_ios']:
        raise Missing('fio: no request was completed')
    points = read['clat_ns'].get('percentile', {})
    return {'ios': read['total_ios'], 'iops': read['iops'], 'mean_ns': read['lat_ns']['mean'],
            'p50_ns': points.get('50.000000'), 'p99_ns': points.get('99.000000'),
            'p999_ns': points.get('99.900000'),
            'cpu_share': (job['usr_cpu'] + job['sys_cpu']) / 100}


def measure(path, engine, depth, spin, seconds):
    if not shutil.which('fio'):
        raise Missing('fio is missing (Debian package fio)')
    run = subprocess.run(fio_command(path, engine, depth, spin, seconds), capture_output=True,
                         text=True, check=False, timeout=LIMIT_S + seconds)
    if run.returncode != 0:
        lines = (run.stderr or run.stdout).strip().splitlines()
        raise Missing(f'fio: {lines[-1] if lines else run.returncode}')
    return parse(run.stdout)
