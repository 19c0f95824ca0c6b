#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The tree's events: each one is called by the code beside it, and docs/devel/tracing.md has it."""

import os
import re
import sys
import unittest

import tap

sys.path.insert(0, os.path.join(tap.source_dir(), 'scripts'))
import tracetool                            # noqa: E402


def read(*parts):
    with open(os.path.join(tap.source_dir(), *parts), encoding='utf-8') as file:
        return file.read()


def folders():
    """As trace/meson.build lists them."""
    block = re.search(r'trace_folders = \[(.*?)\]', read('trace', 'meson.build'), re.S).group(1)
    return re.findall(r"'([^']+)'", block)


def sources_of(folder):
    for base in (folder, os.path.join('include', folder)):
        path = os.path.join(tap.source_dir(), base)
        for name in sorted(os.listdir(path)) if os.path.isdir(path) else []:
            if name.endswith(('.c', '.h')):
                yield read(base, name)


def events_of(folder):
    path = os.path.join(tap.source_dir(), folder, 'trace-events')
    return tracetool.parse_file(path, shown_as=f'{folder}/trace-events')


class Events(unittest.TestCase):
    maxDiff = None

    def test_each_file_of_events_is_built(self):
        found = []
        for base, subs, names in os.walk(tap.source_dir()):
            subs[:] = [s for s in subs if not s.startswith(('build', '.', 'tests'))]
            if 'trace-events' in names:
                found.append(os.path.relpath(base, tap.source_dir()))
        self.assertEqual(sorted(found), sorted(folders()))

    def test_each_event_is_called_in_its_folder(self):
        for folder in folders():
            code = '\n'.join(sources_of(folder))
            called = set(re.findall(r'\btrace_(\w+)\s*\(', code))
            missing = [e.name for e in events_of(folder) if e.name not in called]
            self.assertEqual(missing, [], f'declared in {folder}/trace-events and never called')

    def test_documentation_has_each_event_with_its_arguments(self):
        rows = {}
        for line in read('docs', 'devel', 'tracing.md').splitlines():
            match = re.match(r'\|(?: [\d, ]+ \|)? `(\w+)` \| `([\w, ]+)` \|', line)
            if match:
                self.assertNotIn(match.group(1), rows, 'documented twice')
                rows[match.group(1)] = match.group(2).split(', ')
        declared = {e.name: [a.name for a in e.args]
                    for folder in folders() for e in events_of(folder)}
        self.assertEqual(rows, declared)


if __name__ == '__main__':
    tap.main()
