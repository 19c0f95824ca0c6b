#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Refuse an #include that goes against the order of the floors.

Every quoted include of a C file under a floor is either "FOLDER/name.h", with FOLDER on the
includer's own floor or on one that the table allows it, or a bare "name.h" that stands beside the
includer or is generated. Files under include/FOLDER belong to FOLDER.

    check-layers.py [--floors F1,F2,...] [--depfile FILE --stamp FILE] SOURCE_DIR

--floors is the link order of meson.build; it must agree with the table.
Exit status 1 and one line per violation, or 0.
"""

import argparse
import os
import re
import sys

STORAGE = ['trace', 'util', 'qapi', 'crypto', 'chardev', 'block', 'virtio', 'monitor', 'export']
DEVICES = ['hw/core', 'hw/pci', 'hw/virtio', 'hw/block', 'hw/char', 'hw/i386']


def up_to(folder, floors):
    return floors[:floors.index(folder) + 1]


# folder -> folders whose headers it may include (its own among them)
ALLOWED = {folder: up_to(folder, STORAGE) for folder in STORAGE}
ALLOWED['crypto'] = ['trace', 'util', 'qapi', 'crypto']
ALLOWED['hw/core'] = STORAGE + ['hw/core']
ALLOWED['hw/pci'] = ALLOWED['hw/core'] + ['hw/pci']
ALLOWED['hw/virtio'] = ALLOWED['hw/pci'] + ['hw/virtio']
# one kind of device knows nothing of another; a disk may sit on the virtio transport
ALLOWED['hw/block'] = ALLOWED['hw/virtio'] + ['hw/block']
ALLOWED['hw/char'] = ALLOWED['hw/pci'] + ['hw/char']
ALLOWED['hw/i386'] = STORAGE + DEVICES
# an accelerator fills the table of hw/core and knows no device
for accel in ['accel', 'accel/kvm', 'accel/qtest']:
    ALLOWED[accel] = ALLOWED['hw/core'] + ['accel', accel]
ALLOWED['system'] = STORAGE + DEVICES + ['accel', 'accel/kvm', 'accel/qtest', 'system']
# the storage tools are built without machines and accelerators
ALLOWED['tools'] = STORAGE + ['tools']

LINK_ORDER = STORAGE + DEVICES + ['accel/kvm', 'accel/qtest', 'system', 'tools']

# generated into the root of the build folder, below every floor
GENERATED = {'config-host.h'}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
TOP_FOLDERS = sorted({folder.split('/')[0] for folder in ALLOWED})


def folder_of(path):
    """The floor that a source file or an included header belongs to, or None."""
    parts = path.split('/')[:-1]
    while parts:
        if '/'.join(parts) in ALLOWED:
            return '/'.join(parts)
        parts.pop()
    return None


def check_include(root, path, owner, kind, target):
    """None, or what is wrong with including @target from @path, which belongs to @owner."""
    if kind == '<':
        # system headers, but not ours in disguise
        if os.path.exists(os.path.join(root, 'include', target)):
            return f'<{target}> is our own header: include it with quotes'
        return None
    if '..' in target.split('/'):
        return f'"{target}": no ".." in includes'
    if '/' not in target:
        here = os.path.join(root, os.path.dirname(path), target)
        if target in GENERATED or os.path.exists(here):
            return None
        return f'"{target}" is neither beside the includer nor generated'
    folder = folder_of(target)
    if folder is None:
        return f'"{target}" is in no folder of the table'
    if folder not in ALLOWED[owner]:
        return f'"{target}": {owner}/ may not include from {folder}/'
    return None


def check_file(root, path):
    inner = path[len('include/'):] if path.startswith('include/') else path
    owner = folder_of(inner)
    if owner is None:
        return [f'{path}: this folder is not in the table of check-layers.py']
    problems = []
    with open(os.path.join(root, path), encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            match = INCLUDE.match(line)
            if match:
                problem = check_include(root, path, owner, *match.groups())
                if problem:
                    problems.append(f'{path}:{number}: {problem}')
    return problems


def walk(root):
    """C files of all floors, and the folders they were found in, relative to @root."""
    files, folders = [], []
    for top in TOP_FOLDERS + ['include']:
        for current, subfolders, names in os.walk(os.path.join(root, top)):
            subfolders.sort()
            relative = os.path.relpath(current, root)
            folders.append(relative)
            files += [f'{relative}/{n}' for n in sorted(names) if n.endswith(('.c', '.h'))]
    return files, folders


def check_link_order(floors):
    problems = [f'meson.build: floor {f} is not in the table of check-layers.py'
                for f in floors if f not in LINK_ORDER]
    known = [f for f in floors if f in LINK_ORDER]
    for below, above in zip(known, known[1:]):
        if LINK_ORDER.index(below) >= LINK_ORDER.index(above):
            problems.append(f'meson.build: floor {above} must come before {below}')
    return problems


def main():
    parser = argparse.ArgumentParser(description='Check includes against the order of the floors.')
    parser.add_argument('--floors', default='')
    parser.add_argument('--depfile')
    parser.add_argument('--stamp')
    parser.add_argument('source_dir')
    args = parser.parse_args()
    root = args.source_dir

    files, folders = walk(root)
    problems = check_link_order([f for f in args.floors.split(',') if f])
    for path in files:
        problems += check_file(root, path)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    if not files:
        print(f'{root}: no C files found', file=sys.stderr)
        return 1
    if args.stamp:
        with open(args.depfile, 'w', encoding='utf-8') as f:
            f.write(f'{args.stamp}: ' + ' '.join(f'{root}/{p}' for p in files + folders) + '\n')
        with open(args.stamp, 'w', encoding='utf-8'):
            pass
    return 0


if __name__ == '__main__':
    sys.exit(main())
