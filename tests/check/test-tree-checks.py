# SPDX-License-Identifier: GPL-2.0-or-later
"""Each check of the tree passes a good tree and refuses one with a violation, naming the place."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import tap

LICENCE = 'SPDX-License-Identifier: GPL-2.0-or-later'


def script(name):
    return os.path.join(tap.source_dir(), 'scripts', name)


def run_on(root, name, *options):
    return subprocess.run([sys.executable, script(name), *options, root],
                          capture_output=True, text=True, check=False)


class FixtureTree(unittest.TestCase):
    """A small good tree, to which a test adds one violation."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.root = os.path.join(scratch.name, 'tree')
        self.write('include/util/aio.h', 'int aio(void);\n')
        self.write('include/block/node.h', '#include "util/aio.h"\nint node(void);\n')
        self.write('include/hw/core/vm-ops.h', 'int ops(void);\n')
        self.write('include/hw/pci/pci.h', 'int pci(void);\n')
        self.write('util/aio.c', '#include <stdio.h>\n#include "util/aio.h"\n#include "own.h"\n')
        self.write('util/own.h', 'int own(void);\n')
        self.write('block/node.c', '#include "config-host.h"\n#include "block/node.h"\n')

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write(f'/* {LICENCE} */\n{text}')

    def assert_passes(self, run):
        self.assertEqual((run.returncode, run.stderr), (0, ''))

    def assert_refused(self, run, *words):
        self.assertEqual(run.returncode, 1)
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertNotIn('Traceback', run.stderr)


class Layers(FixtureTree):
    def check(self, *options):
        return run_on(self.root, 'check-layers.py', *options)

    def test_good_tree_passes(self):
        self.assert_passes(self.check('--floors', 'trace,util,block,hw/core,hw/pci,accel/kvm'))

    def test_this_tree_passes(self):
        self.assert_passes(run_on(tap.source_dir(), 'check-layers.py'))

    def test_upward_include_is_refused(self):
        self.write('util/bad.c', '\n#include "block/node.h"\n')
        self.assert_refused(self.check(), 'util/bad.c:3:', 'util/ may not include from block/')

    def test_upward_include_in_a_header_is_refused(self):
        self.write('include/util/bad.h', '#  include   "block/node.h"\n')
        self.assert_refused(self.check(), 'include/util/bad.h:2:')

    def test_accelerator_knows_no_device(self):
        self.write('accel/kvm/kvm.c', '#include "hw/core/vm-ops.h"\n')
        self.assert_passes(self.check())
        self.write('accel/kvm/kvm.c', '#include "hw/pci/pci.h"\n')
        self.assert_refused(self.check(), 'accel/kvm/kvm.c:2:')

    def test_device_folders_have_an_order(self):
        self.write('hw/pci/pci.c', '#include "hw/core/vm-ops.h"\n')
        self.assert_passes(self.check())
        self.write('hw/core/core.c', '#include "hw/pci/pci.h"\n')
        self.assert_refused(self.check(), 'hw/core/core.c:2:')

    def test_tools_know_no_machine(self):
        self.write('tools/qemu-img.c', '#include "block/node.h"\n')
        self.assert_passes(self.check())
        self.write('tools/qemu-img.c', '#include "hw/core/vm-ops.h"\n')
        self.assert_refused(self.check(), 'tools/qemu-img.c:2:')

    def test_private_header_of_another_folder_is_refused(self):
        self.write('block/bad.c', '#include "own.h"\n')
        self.assert_refused(self.check(), 'block/bad.c:2:', 'own.h')

    def test_dot_dot_is_refused(self):
        self.write('block/bad.c', '#include "../util/own.h"\n')
        self.assert_refused(self.check(), 'block/bad.c:2:')

    def test_own_header_in_angle_brackets_is_refused(self):
        self.write('util/bad.c', '#include <block/node.h>\n')
        self.assert_refused(self.check(), 'util/bad.c:2:')

    def test_unknown_folder_is_refused(self):
        self.write('util/bad.c', '#include "elsewhere/x.h"\n')
        self.assert_refused(self.check(), 'util/bad.c:2:', 'elsewhere/x.h')
        os.unlink(self.path('util/bad.c'))
        self.write('hw/scsi/disk.c', '')
        self.assert_refused(self.check(), 'hw/scsi/disk.c')

    def test_link_order_must_follow_the_table(self):
        self.assert_refused(self.check('--floors', 'trace,block,util'), 'util must come before')
        self.assert_refused(self.check('--floors', 'trace,cellar'), 'cellar')

    def test_empty_tree_is_no_success(self):
        self.root = self.path('nothing')
        self.assert_refused(self.check())


class Headers(FixtureTree):
    def check(self):
        return run_on(self.root, 'check-headers.py', '--cc', os.environ.get('CC', 'cc'),
                      '--cache', os.path.join(self.scratch, 'cache'))

    def test_good_tree_passes(self):
        self.assert_passes(self.check())

    def test_header_that_needs_another_first_is_refused(self):
        self.write('include/block/bad.h', 'size_t bad(void);\n')
        self.assert_refused(self.check(), 'include/block/bad.h', 'size_t')

    def test_a_pass_is_forgotten_once_an_included_header_changes(self):
        self.write('include/util/type.h', 'typedef int my_type;\n')
        self.write('include/block/user.h', '#include "util/type.h"\nmy_type user(void);\n')
        self.assert_passes(self.check())
        self.assert_passes(self.check())
        time.sleep(0.02)
        self.write('include/util/type.h', 'typedef int other_type;\n')
        self.assert_refused(self.check(), 'include/block/user.h', 'my_type')

    def test_a_failure_is_not_remembered(self):
        self.write('include/block/bad.h', 'size_t bad(void);\n')
        self.assert_refused(self.check())
        self.assert_refused(self.check())
        self.write('include/block/bad.h', '#include <stddef.h>\nsize_t bad(void);\n')
        self.assert_passes(self.check())


class Licence(FixtureTree):
    def check(self, *options):
        return run_on(self.root, 'check-tree.py', *options)

    def write_bare(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write(text)

    def test_good_tree_passes(self):
        self.assert_passes(self.check())

    def test_this_tree_passes(self):
        self.assert_passes(run_on(tap.source_dir(), 'check-tree.py'))

    def test_missing_licence_is_refused(self):
        self.write_bare('util/bad.c', 'int x;\n')
        self.assert_refused(self.check('--lenient'), 'util/bad.c')

    def test_licence_deep_in_the_file_is_refused(self):
        self.write_bare('util/bad.c', '\n' * 20 + f'/* {LICENCE} */\n')
        self.assert_refused(self.check(), 'util/bad.c')

    @unittest.skipUnless(shutil.which('git'), 'needs git')
    def test_tracked_file_of_any_kind_needs_the_licence(self):
        subprocess.run(['git', 'init', '-q', self.root], check=True)
        self.write_bare('notes', 'nothing about a licence\n')
        self.assert_passes(self.check())
        subprocess.run(['git', '-C', self.root, 'add', '-A'], check=True)
        self.assert_refused(self.check(), 'notes')

    def test_layout_is_checked_and_lenience_only_warns(self):
        for text, word in [('x' * 101 + '\n', '101 columns'), ('int x; \n', 'white space'),
                           ('\tint x;\n', 'tab'), ('\n' * 1000, '1001 lines'),
                           ('{\n' + 'x();\n' * 61 + '}\n', 'function of 61 lines')]:
            with self.subTest(word):
                self.write('util/bad.c', text)
                run = self.check('--lenient')
                self.assertEqual(run.returncode, 0)
                self.assertIn(word, run.stderr)
                self.assert_refused(self.check(), 'util/bad.c', word)

    def test_unknown_binary_is_refused(self):
        with open(self.path('util/blob'), 'wb') as f:
            f.write(b'\xff\xfe\x00')
        self.assert_refused(self.check(), 'util/blob')


if __name__ == '__main__':
    tap.main()
