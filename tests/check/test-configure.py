# SPDX-License-Identifier: GPL-2.0-or-later
"""configure and install-deps.sh on machines that lack things."""

import os
import shutil
import subprocess
import tempfile
import unittest

import tap

CONFIGURE = os.path.join(tap.source_dir(), 'configure')
INSTALL_DEPS = os.path.join(tap.source_dir(), 'scripts', 'install-deps.sh')
# what a bare system has: enough for the script itself
BARE_TOOLS = ['sh', 'cat', 'dirname', 'mkdir', 'mktemp', 'pwd', 'rm', 'tr']


class Scripts(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = os.path.join(scratch.name, 'build')
        self.tools = os.path.join(scratch.name, 'tools')
        os.mkdir(self.build)
        os.mkdir(self.tools)

    def run_script(self, *command, **env):
        clean = {k: v for k, v in os.environ.items() if k not in ('CC', 'MAKEFLAGS')}
        return subprocess.run(command, cwd=self.build, env={**clean, **env},
                              capture_output=True, text=True, check=False)

    def read_build(self, name):
        with open(os.path.join(self.build, name), encoding='utf-8') as f:
            return f.read()

    def assert_refused(self, run, *words):
        self.assertEqual(run.returncode, 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertEqual(os.listdir(self.build), [])

    def hide_all_but(self, tools):
        for tool in tools:
            os.symlink(shutil.which(tool), os.path.join(self.tools, tool))
        return {'PATH': self.tools}

    def fake_tool(self, name, text):
        path = os.path.join(self.tools, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\n' + text)
        os.chmod(path, 0o755)
        return path


class Configure(Scripts):
    def configure(self, *options, **env):
        return self.run_script(CONFIGURE, *options, **env)

    def test_sets_up_the_folder_it_is_called_from(self):
        run = self.configure('--prefix=/opt/somewhere', '--disable-kvm', '--disable-linux-aio',
                             '--enable-trace-backends=log')
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        config = self.read_build('config-host.h')
        self.assertNotIn('CONFIG_KVM', config)
        self.assertNotIn('CONFIG_LINUX_AIO', config)
        self.assertNotIn('CONFIG_TRACE_SIMPLE', config)
        self.assertIn('CONFIG_TRACE_LOG 1', config)
        self.assertIn('CONFIG_QTEST 1', config)
        self.assertIn('"/opt/somewhere/share/qemu"', config)

    def test_a_second_run_means_its_own_options_only(self):
        self.assertEqual(self.configure('--disable-qtest', '--enable-debug').returncode, 0)
        self.assertEqual(self.configure().returncode, 0)
        self.assertIn('CONFIG_QTEST 1', self.read_build('config-host.h'))
        self.assertNotIn('-O0', self.read_build('build.ninja'))

    def test_honours_cc(self):
        wrapper = self.fake_tool('my-cc', 'exec cc "$@"\n')
        run = self.configure(CC=wrapper)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(wrapper, self.read_build('build.ninja'))

    def test_help_names_every_option(self):
        run = self.configure('--help')
        self.assertEqual(run.returncode, 0)
        for word in ['--prefix', '--enable-sanitizers', '--enable-tsan', '--enable-debug',
                     '--enable-werror', '--enable-trace-backends', 'linux-aio', 'linux-io-uring',
                     'kvm', 'qtest']:
            self.assertIn(word, run.stdout)

    def test_unknown_option_is_refused_by_name(self):
        for option in ['--enable-nonsense', '--disable-nonsense', '--frobnicate', 'stray',
                       '--prefix=relative', '--enable-trace-backends=smoke',
                       '--enable-trace-backends=']:
            with self.subTest(option):
                self.assert_refused(self.configure(option), option.split('=')[0])

    def test_contradictions_are_refused(self):
        self.assert_refused(self.configure('--enable-tsan', '--enable-sanitizers'), '--enable-tsan')
        self.assert_refused(self.configure('--enable-kvm', '--disable-kvm'), '--disable-kvm')

    def test_bare_machine_gets_all_packages_named_at_once(self):
        run = self.configure(**self.hide_all_but(BARE_TOOLS))
        self.assert_refused(run, 'apt-get install', 'build-essential', 'meson', 'ninja-build',
                            'python3', 'pkg-config', 'acpica-tools', 'libglib2.0-dev',
                            'libjson-c-dev', 'liburing-dev')

    def test_missing_libraries_are_named_with_their_packages(self):
        run = self.configure(PKG_CONFIG_LIBDIR='/nonexistent')
        self.assert_refused(run, 'glib-2.0 >= 2.70 (Debian package libglib2.0-dev)',
                            'json-c >= 0.15 (Debian package libjson-c-dev)')

    def test_missing_compiler_is_named(self):
        self.assert_refused(self.configure(CC='no-such-compiler'), "'no-such-compiler'",
                            'build-essential')

    def test_optional_part_that_was_asked_for_must_be_there(self):
        run = self.configure('--enable-linux-io-uring', PKG_CONFIG_LIBDIR='/nonexistent')
        self.assert_refused(run, '--enable-linux-io-uring', 'liburing-dev')


class InstallDeps(Scripts):
    def run_on_bare_debian(self, uid):
        env = self.hide_all_but(['sh', 'sed', 'tr'])
        self.fake_tool('dpkg-query', 'echo "ii  libaio-dev"\n')
        self.fake_tool('id', f'echo {uid}\n')
        self.fake_tool('apt-get', f'echo "$@" >> {self.build}/apt.log\n')
        return self.run_script(INSTALL_DEPS, **env)

    def test_without_root_it_prints_one_command_and_fails(self):
        run = self.run_on_bare_debian(1000)
        self.assert_refused(run, 'apt-get install', ' meson', ' libglib2.0-dev')
        self.assertNotIn('libaio-dev', run.stderr)

    def test_with_root_it_installs_only_what_is_missing(self):
        run = self.run_on_bare_debian(0)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(' meson', self.read_build('apt.log'))
        self.assertNotIn('libaio-dev', self.read_build('apt.log'))

    def test_unknown_option_is_refused_by_name(self):
        self.assert_refused(self.run_script(INSTALL_DEPS, '--nonsense'), '--nonsense')

    def test_every_package_is_listed_with_its_purpose(self):
        run = self.run_script(INSTALL_DEPS, '--list')
        self.assertEqual(run.returncode, 0)
        for line in run.stdout.splitlines():
            self.assertGreaterEqual(len(line.split()), 2, line)
        self.assertIn('libglib2.0-dev', run.stdout)


if __name__ == '__main__':
    tap.main()
