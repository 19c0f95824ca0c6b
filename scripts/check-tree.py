#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Check what every file of the tree must have: a licence line, and lines that fit.

    check-tree.py [--licence-only] [--depfile FILE --stamp FILE] SOURCE_DIR

- SPDX-License-Identifier: GPL-2.0-or-later within the first five lines of every text file, but for
  formats without comments and the licence itself
- C files: at most 100 columns, 1000 lines, no tabs, no white space at line ends
- Python files and shell scripts: at most 100 columns, no white space at line ends
Exit status 1 and one line per violation, or 0.
"""

import argparse
import os
import subprocess
import sys

LICENCE = 'SPDX-License-Identifier: GPL-2.0-or-later'
EXEMPT_NAMES = {'COPYING'}
# no comments in these formats
EXEMPT_ENDINGS = ('.json', '.png', '.bin', '.raw', '.qed', '.qcow2', '.trace')
# untracked files that are about to be part of the tree, not scratch
SOURCE_ENDINGS = ('.c', '.h', '.S', '.py', '.sh', '.md', 'meson.build', 'trace-events')
SKIPPED_FOLDERS = {'.git', '__pycache__'}
MAX_COLUMNS = 100
MAX_LINES = 1000


def git_files(root, *options):
    run = subprocess.run(['git', '-C', root, 'ls-files', '-z', *options],
                         capture_output=True, check=True)
    return [name for name in run.stdout.decode().split('\0') if name]


def find_files(root):
    """What git tracks and the sources it would add; without git all files outside builds."""
    if os.path.exists(os.path.join(root, '.git')):
        names = git_files(root) + [n for n in git_files(root, '--others', '--exclude-standard')
                                   if n.endswith(SOURCE_ENDINGS)]
        return [n for n in sorted(set(names)) if os.path.isfile(os.path.join(root, n))]
    files = []
    for current, folders, names in os.walk(root):
        folders[:] = sorted(d for d in folders if d not in SKIPPED_FOLDERS and
                            not os.path.exists(os.path.join(current, d, 'meson-private')))
        files += [os.path.relpath(os.path.join(current, n), root) for n in sorted(names)]
    return files


def check_lines(path, lines):
    is_c = path.endswith(('.c', '.h'))
    if not is_c and not path.endswith(('.py', '.sh')):
        return []
    problems = []
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            problems.append(f'{path}:{number}: {len(line)} columns, {MAX_COLUMNS} fit')
        if line != line.rstrip():
            problems.append(f'{path}:{number}: white space at the end of the line')
        if is_c and '\t' in line:
            problems.append(f'{path}:{number}: tab')
    if is_c and len(lines) > MAX_LINES:
        problems.append(f'{path}: {len(lines)} lines, {MAX_LINES} fit')
    return problems


def check_file(root, path, licence_only):
    if os.path.basename(path) in EXEMPT_NAMES or path.endswith(EXEMPT_ENDINGS):
        return []
    try:
        with open(os.path.join(root, path), encoding='utf-8') as f:
            lines = f.read().splitlines()
    except UnicodeDecodeError:
        return [f'{path}: neither UTF-8 text nor of a known binary kind']
    problems = [] if licence_only else check_lines(path, lines)
    if not any(LICENCE in line for line in lines[:5]):
        problems.insert(0, f'{path}: no "{LICENCE}" in its first lines')
    return problems


def main():
    parser = argparse.ArgumentParser(description='Check licence lines and layout of every file.')
    parser.add_argument('--licence-only', action='store_true')
    parser.add_argument('--depfile')
    parser.add_argument('--stamp')
    parser.add_argument('source_dir')
    args = parser.parse_args()
    root = args.source_dir

    files = find_files(root)
    problems = [p for path in files for p in check_file(root, path, args.licence_only)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    if not files:
        print(f'{root}: no files found', file=sys.stderr)
        return 1
    if args.stamp:
        folders = {os.path.dirname(p) for p in files} - {''}
        with open(args.depfile, 'w', encoding='utf-8') as f:
            names = [n.replace(' ', '\\ ') for n in sorted(folders) + files]
            f.write(f'{args.stamp}: ' + ' '.join(f'{root}/{n}' for n in names) + '\n')
        with open(args.stamp, 'w', encoding='utf-8'):
            pass
    return 0


if __name__ == '__main__':
    sys.exit(main())
