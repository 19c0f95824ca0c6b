#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Check what every file of the tree must have: a licence line, and lines that fit.

    check-tree.py [--lenient] [--depfile FILE --stamp FILE] SOURCE_DIR

- SPDX-License-Identifier: GPL-2.0-or-later within the first five lines of every text file, but for
  formats without comments and the licence itself
- C files: at most 100 columns, 1000 lines, functions of at most 60 lines, no tabs, no white space
  at line ends
- Python files and shell scripts: at most 100 columns, no white space at line ends
One line per violation; exit status 1 if there is one. With --lenient only the licence matters for
the status, so that half-written code can be built.
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
MAX_FUNCTION_LINES = 60


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


def check_functions(path, lines):
    """Bodies are what stands between a '{' and a '}' in the first column."""
    problems = []
    start = None
    for number, line in enumerate(lines, 1):
        if line == '{':
            start = number
        elif line.startswith('}') and start is not None:
            if number - start - 1 > MAX_FUNCTION_LINES:
                problems.append(f'{path}:{start}: function of {number - start - 1} lines, '
                                f'{MAX_FUNCTION_LINES} fit')
            start = None
    return problems


def check_layout(path, lines):
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
    if is_c:
        problems += check_functions(path, lines)
        if len(lines) > MAX_LINES:
            problems.append(f'{path}: {len(lines)} lines, {MAX_LINES} fit')
    return problems


def check_file(root, path):
    """(licence problems, layout problems)"""
    if os.path.basename(path) in EXEMPT_NAMES or path.endswith(EXEMPT_ENDINGS):
        return [], []
    try:
        with open(os.path.join(root, path), encoding='utf-8') as f:
            lines = f.read().splitlines()
    except UnicodeDecodeError:
        return [f'{path}: neither UTF-8 text nor of a known binary kind'], []
    licence = []
    if not any(LICENCE in line for line in lines[:5]):
        licence.append(f'{path}: no "{LICENCE}" in its first lines')
    return licence, check_layout(path, lines)


def main():
    parser = argparse.ArgumentParser(description='Check licence lines and layout of every file.')
    parser.add_argument('--lenient', action='store_true')
    parser.add_argument('--depfile')
    parser.add_argument('--stamp')
    parser.add_argument('source_dir')
    args = parser.parse_args()
    root = args.source_dir

    files = find_files(root)
    licence, layout = [], []
    for path in files:
        of_licence, of_layout = check_file(root, path)
        licence += of_licence
        layout += of_layout
    for problem in licence + layout:
        print(problem, file=sys.stderr)
    if licence or (layout and not args.lenient):
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
