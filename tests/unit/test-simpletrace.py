#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""simpletrace.py: files laid out by hand, damaged ones, and one that our writer made."""

import io
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

import tap

SCRIPTS = os.path.join(tap.source_dir(), 'scripts')
EVENTS = os.path.join(tap.source_dir(), 'tests', 'unit', 'trace-events')
SIMPLETRACE = os.path.join(SCRIPTS, 'simpletrace.py')
sys.path.insert(0, SCRIPTS)
import simpletrace                          # noqa: E402
import tracetool                            # noqa: E402

HEADER = struct.pack('<QQQ', 0xffffffffffffffff, 0xf2b177cb0aa429b4, 4)


def mapping(ident, name, order='<'):
    return struct.pack(order + 'QQI', 0, ident, len(name)) + name.encode()


def event(ident, ns, args=b'', pid=7, order='<'):
    return struct.pack(order + 'QQQII', 1, ident, ns, 24 + len(args), pid) + args


def string(data, order='<'):
    return struct.pack(order + 'I', len(data)) + data


def dropped(ns, count):
    return event(0xfffffffffffffffe, ns, struct.pack('<Q', count))


SAMPLE = (HEADER + mapping(5, 'test_void') + mapping(9, 'test_int') + event(5, 1000000) +
          event(9, 1002500, struct.pack('<q', -2)) +
          mapping(10, 'test_mixed') +
          event(10, 1002500, struct.pack('<Q', 1) + string(b'hello') + struct.pack('<Q', 255) +
                string(b'')) +
          dropped(2002500, 3))
SAMPLE_TEXT = ('test_void 0.000 pid=7\n'
               'test_int 2.500 pid=7 value=0xfffffffffffffffe\n'
               'test_mixed 0.000 pid=7 a=0x1 text=hello b=0xff more=\n'
               'Dropped_Event 1000.000 pid=7 num_events_dropped=0x3\n')


def run(data, *options, events=EVENTS):
    return subprocess.run([sys.executable, SIMPLETRACE, *options, events, '-'], input=data,
                          capture_output=True, check=False)


class Print(unittest.TestCase):
    def test_each_kind_of_record_is_printed(self):
        result = run(SAMPLE)
        self.assertEqual(result.stdout.decode(), SAMPLE_TEXT)
        self.assertEqual(result.stderr.decode(),
                         'simpletrace: 3 of 6 events (50.00 %) were lost by the writer\n')
        self.assertEqual(result.returncode, 0)

    def test_stream_without_header(self):
        self.assertEqual(run(SAMPLE[24:], '--no-header').stdout.decode(), SAMPLE_TEXT)

    def test_file_of_the_other_byte_order(self):
        data = (struct.pack('>QQQ', 0xffffffffffffffff, 0xf2b177cb0aa429b4, 4) +
                mapping(5, 'test_string', '>') + event(5, 1, string(b'x', '>'), order='>'))
        self.assertEqual(run(data).stdout, b'test_string 0.000 pid=7 text=x\n')

    def test_file_cut_anywhere_is_read_up_to_there(self):
        whole = SAMPLE_TEXT.splitlines(True)
        for size in range(24, len(SAMPLE)):
            reader = simpletrace.Reader(tracetool.parse_file(EVENTS), io.BytesIO(SAMPLE[:size]))
            records = list(reader)
            self.assertLess(len(records), len(whole))
            self.assertEqual([r.name for r in records],
                             [line.split()[0] for line in whole[:len(records)]])
            # a cut between two records can't be seen
            at_record = reader.offset() == size
            self.assertEqual(reader.truncated, not at_record)
        result = run(SAMPLE[:-1])
        self.assertEqual(result.returncode, 0)
        self.assertIn('the file ends within a record, after byte', result.stderr.decode())
        self.assertEqual(result.stdout.decode(), ''.join(whole[:3]))

    def test_event_that_is_not_declared_is_shown_raw(self):
        data = HEADER + mapping(1, 'strange') + event(1, 5, b'\x01\xab')
        self.assertEqual(run(data).stdout, b'strange 0.000 pid=7 undeclared=01ab\n')

    def test_damage_is_refused_with_its_place(self):
        cases = {
            b'': 'at byte 0: the file is too short for a header',
            b'x' * 100: 'at byte 0: this is not a simpletrace file',
            struct.pack('<QQQ', 0xffffffffffffffff, 0xf2b177cb0aa429b4, 3):
                'at byte 0: this is version 3 of simpletrace, only 4 is known',
            HEADER + struct.pack('<QQ', 2, 2):
                'at byte 24: a record of type 0x2, only mappings (0) and events (1) are known',
            HEADER + event(77, 1): 'at byte 24: an event with id 0x4d, which has no name',
            HEADER + mapping(5, 'test_void') + event(5, 1, b'12345678'):
                "at byte 53: the arguments of 'test_void' are not those of its declaration in ",
            HEADER + mapping(5, 'test_string') + event(5, 1, struct.pack('<I', 400) + b'abc'):
                "at byte 55: the arguments of 'test_string' are not those of its declaration in ",
            HEADER + struct.pack('<QQQII', 1, 5, 1, 23, 1): 'at byte 24: a record of 23 bytes',
            HEADER + struct.pack('<QQQII', 1, 5, 1, 1 << 31, 1):
                'at byte 24: a record of 2147483648 bytes',
            HEADER + struct.pack('<QQI', 0, 5, 1 << 31): 'at byte 24: a name of 2147483648 bytes',
        }
        for data, message in cases.items():
            with self.subTest(message=message):
                result = run(data)
                self.assertEqual(result.returncode, 1)
                self.assertTrue(result.stderr.decode().startswith(f'simpletrace: -: {message}'),
                                result.stderr)

    def test_missing_files_are_named(self):
        result = run(SAMPLE, events='/nonexistent')
        self.assertEqual((result.returncode, result.stderr),
                         (1, b'simpletrace: /nonexistent: No such file or directory\n'))
        result = subprocess.run([sys.executable, SIMPLETRACE, EVENTS, '/nonexistent'],
                                capture_output=True, check=False)
        self.assertEqual((result.returncode, result.stderr),
                         (1, b'simpletrace: /nonexistent: No such file or directory\n'))

    def test_long_stream_needs_little_memory(self):
        # 160 MB (1 GB under check-long) through a reader that may have 100 MiB more than at rest
        block = event(10, 1, struct.pack('<Q', 1) + string(b'x' * 400) + struct.pack('<Q', 1) +
                      string(b'y' * 400)) * 1000
        blocks = (1 << 30 if tap.long_run() else 160 << 20) // len(block)

        class Endless:
            left = blocks

            def read(self, size):
                self.left -= 1
                return block if self.left >= 0 else b''

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        reader = simpletrace.Reader(tracetool.parse_file(EVENTS), Endless(), has_header=False)
        reader.names[10] = 'test_mixed'
        reader.decoders[10] = simpletrace.Decoder(reader.events['test_mixed'], '<')
        self.assertEqual(sum(1 for _ in reader), blocks * 1000)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.assertLess(after - before, 100 << 10)


class Analyze(unittest.TestCase):
    def test_methods_named_after_events_get_their_arguments(self):
        calls = []

        class Mine(simpletrace.Analyzer):
            def begin(self):
                calls.append('begin')

            def test_int(self, rec, value):
                calls.append((rec.timestamp_ns, value))

            def test_mixed(self, rec, a, text, b, more):
                calls.append((rec.pid, a, text, b, more))

            def catchall(self, rec):
                calls.append(rec.name)

            def end(self):
                calls.append('end')

        Mine().process(simpletrace.Reader(tracetool.parse_file(EVENTS), io.BytesIO(SAMPLE)))
        self.assertEqual(calls, ['begin', 'test_void', (1002500, -2),
                                 (7, 1, b'hello', 255, b''), 'Dropped_Event', 'end'])


class Writer(unittest.TestCase):
    def test_what_our_writer_wrote_is_read_back(self):
        program = tap.binary('tests/unit/test-trace-simple')
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'trace')
            subprocess.run([program, '--write-sample', path], check=True)
            result = subprocess.run([sys.executable, SIMPLETRACE, EVENTS, path],
                                    capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        text = re.sub(r' \d+\.\d{3} pid=\d+', '', result.stdout)
        self.assertEqual(text, 'test_void\n'
                         'test_types flag=0x1 small=0xffffffffffffffff half=0xffff word=0x7 '
                         'big=0xfffffffffffffffb ptr=0x0\n'
                         'test_mixed a=0x1 text=two words b=0x3 more=\n'
                         'test_ten a=0x1 b=0x2 c=0x3 d=0x4 e=0x5 f=0x6 g=0x7 h=0x8 i=0x9 j=0xa\n')


if __name__ == '__main__':
    tap.main()
