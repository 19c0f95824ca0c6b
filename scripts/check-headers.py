#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compile every header under include/ alone, without any other header before it.

    check-headers.py --cc CC [--flags FLAGS] --cache DIR [--depfile FILE --stamp FILE] SOURCE_DIR

Headers that passed are remembered in the cache folder and compiled again only when they, a header
that they include, or the command line changed. Runs in the folder that -I. should mean.
Exit status 1 and the compiler's words for each header that does not compile, or 0.
"""

import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys


def find_headers(include):
    headers, folders = [], []
    for current, subfolders, names in os.walk(include):
        subfolders.sort()
        folders.append(current)
        headers += [os.path.relpath(os.path.join(current, n), include)
                    for n in sorted(names) if n.endswith('.h')]
    return headers, folders


def read_dependencies(path):
    """The prerequisites that a make rule written by the compiler lists."""
    with open(path, encoding='utf-8') as f:
        rule = f.read().replace('\\\n', ' ').split(':', 1)[1]
    return [d.replace('\\ ', ' ') for d in re.split(r'(?<!\\)\s+', rule.strip())]


class Checker:
    def __init__(self, command, include, cache):
        self.command = command
        self.include = include
        self.cache = cache

    def passed_before(self, base):
        try:
            with open(base + '.ok', encoding='utf-8') as f:
                if f.read() != shlex.join(self.command):
                    return False
            checked = os.stat(base + '.ok').st_mtime_ns
            return all(os.stat(d).st_mtime_ns < checked for d in read_dependencies(base + '.d')
                       if d != '-')
        except (OSError, IndexError):
            return False

    def check(self, header):
        """None, or the compiler's words."""
        base = os.path.join(self.cache, header.replace('/', '__'))
        if self.passed_before(base):
            return None
        run = subprocess.run(
            self.command + ['-MMD', '-MF', base + '.d', '-MT', 'x', '-I' + self.include,
                            '-fsyntax-only', '-x', 'c', '-'],
            input=f'#include "{header}"\n', capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return f'include/{header} does not compile alone:\n{run.stderr}'
        with open(base + '.ok', 'w', encoding='utf-8') as f:
            f.write(shlex.join(self.command))
        return None


def main():
    parser = argparse.ArgumentParser(description='Compile every header alone.')
    parser.add_argument('--cc', required=True)
    parser.add_argument('--flags', default='')
    parser.add_argument('--cache', required=True)
    parser.add_argument('--depfile')
    parser.add_argument('--stamp')
    parser.add_argument('source_dir')
    args = parser.parse_args()

    include = os.path.join(args.source_dir, 'include')
    headers, folders = find_headers(include)
    if not headers:
        print(f'{include}: no headers found', file=sys.stderr)
        return 1
    os.makedirs(args.cache, exist_ok=True)
    command = shlex.split(args.cc) + shlex.split(args.flags) + ['-Wall', '-Wextra', '-Werror',
                                                                '-Wno-unused-parameter']
    checker = Checker(command, include, args.cache)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [p for p in pool.map(checker.check, headers) if p]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    if args.stamp:
        with open(args.depfile, 'w', encoding='utf-8') as f:
            f.write(f'{args.stamp}: '
                    + ' '.join([os.path.join(include, h) for h in headers] + folders) + '\n')
        with open(args.stamp, 'w', encoding='utf-8'):
            pass
    return 0


if __name__ == '__main__':
    sys.exit(main())
