#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tracetool.py: what it takes, what it refuses and how it says so."""

import os
import subprocess
import sys
import tempfile
import unittest

import tap

TRACETOOL = os.path.join(tap.source_dir(), 'scripts', 'tracetool.py')
sys.path.insert(0, os.path.dirname(TRACETOOL))
import tracetool                            # noqa: E402

# A line of a trace-events file, and what is said about it.
REFUSED = {
    'foo': 'expected [disable] NAME(TYPE ARG, ...) "FORMAT"',
    'foo(void': 'expected [disable] NAME(TYPE ARG, ...) "FORMAT"',
    'foo(int (*f)(void)) "%p"': 'expected [disable] NAME(TYPE ARG, ...) "FORMAT"',
    '9foo(void) ""': "'9foo' is not a name for an event",
    'foo-bar(void) ""': "'foo-bar' is not a name for an event",
    'vcpu foo(void) ""': "unknown property 'vcpu', the only one is 'disable'",
    'disable disable foo(void) ""': "'disable' is said twice",
    'foo() ""': "empty argument list: write 'void'",
    'foo(int) "%d"': "argument 'int' is not 'TYPE NAME'",
    'foo(int a,) "%d"': "argument '' is not 'TYPE NAME'",
    'foo(int a, int a) "%d %d"': "two arguments are named 'a'",
    'foo(unsigned int) "%u"': "argument 'unsigned int' is not 'TYPE NAME'",
    'foo(float x) "%f"': "type 'float' is not allowed: use an integer type, 'const char *', or "
                         "'void *' for any other pointer",
    'foo(AioContext *ctx) "%p"': "type 'AioContext *' is not allowed: use an integer type, "
                                 "'const char *', or 'void *' for any other pointer",
    'foo(void x) "%d"': "type 'void' is not allowed: use an integer type, 'const char *', or "
                        "'void *' for any other pointer",
    'foo(struct s x) "%d"': "type 'struct s' is not allowed: use an integer type, 'const char *', "
                            "or 'void *' for any other pointer",
    'foo(char *const p) "%s"': "'char *const' is not a type",
    'foo(%s) "%s"' % (', '.join(f'int a{i}' for i in range(11)), '%d' * 11):
        '11 arguments, at most 10 are possible',
    'foo(void)': 'the format string is missing',
    'foo(void) "open': "the format is not a string: '\"open'",
    'foo(void) hello': "the format is not a string: 'hello'",
    'foo(void) "a" b': "the format is not a string: 'b'",
    'foo(int a) PRId64': 'the format string is missing',
    'foo(void) "line\\n"': "a format must not hold '\\n': lines are ended by the backend",
    'foo(void) "error %m"': "'%m' is not allowed: pass errno as an argument",
    'foo(int a) "%n"': "'%n' is not a conversion that a trace format may use",
    'foo(int a) "%*d"': "'%*' is not a conversion that a trace format may use",
    'foo(int a) "%"': "'%' is not a conversion that a trace format may use",
    'foo(int a) "%f"': "'%f' is not a conversion that a trace format may use",
    'foo(int a) ""': 'the format takes 0 values, the event has 1 arguments',
    'foo(int a) "%d %d"': 'the format takes 2 values, the event has 1 arguments',
    'foo(int a) "%s"': "'%s' does not print argument 'int a'",
    'foo(const char *s) "%p"': "'%p' does not print argument 'const char *s'",
    'foo(void *p) "%d"': "'%d' does not print argument 'void *p'",
}


class Parse(unittest.TestCase):
    def parse(self, text, **kwargs):
        with tempfile.NamedTemporaryFile('w', encoding='latin-1') as file:
            file.write(text)
            file.flush()
            return tracetool.parse_file(file.name, shown_as='dir/trace-events', **kwargs)

    def refused(self, text, message):
        with self.assertRaises(tracetool.TraceError) as caught:
            self.parse(text)
        self.assertEqual(str(caught.exception), message)

    def test_bad_lines_are_refused_with_file_and_line(self):
        for line, message in REFUSED.items():
            with self.subTest(line=line):
                self.refused(f'# comment\n\nok(void) ""\n{line}\n',
                             f'dir/trace-events:4: {message}')

    def test_name_declared_twice_is_refused_with_both_lines(self):
        self.refused('a(void) ""\nb(void) ""\na(int x) "%d"\n',
                     "dir/trace-events:3: event 'a' is already declared in line 1")

    def test_file_that_is_no_text_is_refused(self):
        self.refused('a(void) "\xff"\n', 'dir/trace-events: not a text in UTF-8')

    def test_missing_file_is_named(self):
        with self.assertRaises(tracetool.TraceError) as caught:
            tracetool.parse_file('/nonexistent')
        self.assertEqual(str(caught.exception), '/nonexistent: No such file or directory')

    def test_types_names_and_formats_are_understood(self):
        events = self.parse(
            'a(void) "text, (with) 100%% \\"quotes\\""\n'
            '  disable   b ( unsigned long long x ,const   char*s )   "%llu" " %s"\n'
            'c(struct kvm_run *run, const void *  p) "%p %p"\n'
            'd(int64_t a, uint8_t b, size_t c) "%" PRId64 " 0x%02" PRIx8 " %zu"\n'
            'e(char *s, void **pp) "%-10s %p"')
        a, b, c, d, e = events
        self.assertEqual([x.name for x in events], list('abcde'))
        self.assertEqual(a.args, [])
        self.assertFalse(a.disabled)
        self.assertTrue(b.disabled)
        self.assertEqual(b.signature(), 'unsigned long long x, const char *s')
        self.assertEqual([x.is_string for x in b.args], [False, True])
        self.assertTrue(c.args[0].is_pointer)
        self.assertEqual(d.conversions, ['d', 'x', 'u'])
        self.assertEqual(d.where, ('dir/trace-events', 4))
        self.assertTrue(e.args[0].is_string)
        self.assertTrue(e.args[1].is_pointer and not e.args[1].is_string)

    def test_reader_takes_declarations_of_other_projects(self):
        event, = self.parse('vcpu foo(AioContext *ctx, double x, const char *s) "%p %f %s"\n',
                            strict=False)
        self.assertEqual([a.name for a in event.args], ['cpu', 'ctx', 'x', 's'])


class Program(unittest.TestCase):
    def run_tool(self, *args):
        return subprocess.run([sys.executable, TRACETOOL, *args], capture_output=True, text=True,
                              check=False)

    def make(self, folder, name, text):
        path = os.path.join(folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def test_event_of_two_files_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            one = self.make(folder, 'one', 'a(void) ""\n')
            two = self.make(folder, 'two', '\na(void) ""\n')
            for what in ('groups', 'all'):
                run = self.run_tool(what, '--root', folder, f'x={one}', f'y={two}')
                self.assertEqual(run.returncode, 1)
                self.assertEqual(run.stderr, "tracetool: two:2: event 'a' is already declared in "
                                 'one:1\n')
                self.assertEqual(run.stdout, '')

    def test_unknown_backend_is_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            one = self.make(folder, 'one', 'a(void) ""\n')
            run = self.run_tool('groups', '--backends', 'log,smiple', f'x={one}')
            self.assertEqual(run.returncode, 1)
            self.assertIn("'smiple' is not a backend; there are: log, simple", run.stderr)

    def test_merged_list_is_a_trace_events_file_again(self):
        with tempfile.TemporaryDirectory() as folder:
            one = self.make(folder, 'one', '# c\ndisable a(int  x) "%d"\n')
            two = self.make(folder, 'two', 'b(const char*s) "%s" " end"\n')
            run = self.run_tool('all', '--root', folder, f'x={one}', f'hw/y={two}')
            self.assertEqual(run.returncode, 0)
            merged = self.make(folder, 'merged', run.stdout)
            a, b = tracetool.parse_file(merged)
            self.assertEqual((a.name, a.disabled, a.fmt), ('a', True, '"%d"'))
            self.assertEqual((b.signature(), b.fmt), ('const char *s', '"%s" " end"'))

    def test_compiler_complaint_points_to_the_line_of_the_event(self):
        with tempfile.TemporaryDirectory() as folder:
            one = self.make(folder, 'trace-events', '# c\n\na(int64_t x) "%d"\n')
            os.mkdir(os.path.join(folder, 'trace'))
            for what, out in (('header', 'trace/trace-x.h'), ('source', 'x.c')):
                run = self.run_tool(what, '--group', 'x', '--group-id', '0', '--root', folder,
                                    '--backends', 'log,simple', '-o',
                                    os.path.join(folder, out), one)
                self.assertEqual(run.returncode, 0, run.stderr)
            glib = subprocess.run(['pkg-config', '--cflags', 'glib-2.0'], capture_output=True,
                                  text=True, check=True).stdout.split()
            run = subprocess.run(
                [os.environ.get('CC', 'cc'), '-Wall', '-fsyntax-only', '-D_GNU_SOURCE', *glib,
                 '-I', folder, '-I', os.path.join(tap.source_dir(), 'include'), 'x.c'],
                cwd=folder, capture_output=True, text=True, check=False)
            self.assertIn('trace-events:3:', run.stderr)
            self.assertIn('-Wformat', run.stderr)

    def test_disabled_event_leaves_no_code(self):
        with tempfile.TemporaryDirectory() as folder:
            one = self.make(folder, 'one', 'disable a(int x) "%d"\nb(void) ""\n')
            header = self.run_tool('header', '--group', 'x', '--group-id', '3', one).stdout
            source = self.run_tool('source', '--group', 'x', '--group-id', '3', one).stdout
            self.assertIn('static inline void trace_a(int x)\n{\n}\n', header)
            self.assertNotIn('trace_emit__a', header + source)
            self.assertIn('{"a", NULL, 0x30000}', source)
            self.assertIn('{"b", &trace_states_x[1], 0x30001}', source)


if __name__ == '__main__':
    tap.main()
