# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/check counts what ran: nothing that failed, died, hung or was skipped is passed."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import tap

CHECK = os.path.join(tap.source_dir(), 'scripts', 'check')


def record(name, result, stdout='', returncode=0):
    return {'name': f'qemu:unit / {name}', 'result': result, 'stdout': stdout,
            'returncode': returncode}


class Count(unittest.TestCase):
    def count(self, *records):
        with tempfile.NamedTemporaryFile('w', suffix='.json') as log:
            log.write('\n'.join(json.dumps(r) for r in records) + '\n')
            log.flush()
            run = subprocess.run([sys.executable, CHECK, '--count', log.name],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, '')
        return run.returncode, run.stdout

    def assert_counts(self, last_line, *records):
        status, out = self.count(*records)
        self.assertEqual(out.splitlines()[-1], last_line)
        self.assertEqual(status, 0 if ' 0 failed' in last_line else 1)
        return out

    def test_each_tap_case_counts(self):
        self.assert_counts('2 passed, 0 failed, 0 skipped',
                           record('a', 'OK', '1..2\nok 1 /x\n# a comment\nok 2 /y\n'))

    def test_skips_are_named_with_their_reason(self):
        out = self.assert_counts('1 passed, 0 failed, 1 skipped',
                                 record('a', 'OK', 'ok 1 /x\nok 2 /y # SKIP no /dev/kvm\n1..2\n'))
        self.assertIn('a /y: no /dev/kvm', out)

    def test_failed_case_is_named(self):
        out = self.assert_counts('1 passed, 1 failed, 0 skipped',
                                 record('a', 'FAIL', '1..2\nok 1 /x\nnot ok 2 - /y\n', 1))
        self.assertIn('a /y', out)

    def test_case_that_aborts_its_program_counts_once(self):
        self.assert_counts('1 passed, 1 failed, 0 skipped',
                           record('a', 'ERROR', '1..3\nok 1 /x\nnot ok 2 /y\n', -6))

    def test_program_that_dies_after_passing_cases_fails(self):
        out = self.assert_counts('1 passed, 1 failed, 0 skipped',
                                 record('a', 'ERROR', '1..3\nok 1 /x\n', -6))
        self.assertIn('ERROR, exit status -6', out)

    def test_program_that_fails_after_all_cases_passed_fails(self):
        self.assert_counts('1 passed, 1 failed, 0 skipped',
                           record('a', 'FAIL', '1..1\nok 1 /x\n', 66))

    def test_program_that_hangs_fails(self):
        self.assert_counts('0 passed, 1 failed, 0 skipped', record('a', 'TIMEOUT', '', -15))

    def test_program_without_any_case_fails(self):
        self.assert_counts('0 passed, 0 failed, 1 skipped',
                           record('a', 'SKIP', '1..0 # SKIP no KVM\n'))
        self.assert_counts('1 passed, 0 failed, 0 skipped', record('a', 'OK', 'plain words\n'))
        self.assert_counts('0 passed, 1 failed, 0 skipped',
                           record('a', 'INTERRUPT', ''))

    def test_plain_programs_count_as_one_case(self):
        out = self.assert_counts('1 passed, 1 failed, 1 skipped',
                                 record('a', 'OK'), record('b', 'FAIL', returncode=1),
                                 record('c', 'SKIP', 'needs fio\n', 77))
        self.assertIn('c: needs fio', out)

    def test_several_programs_are_summed(self):
        self.assert_counts('3 passed, 0 failed, 1 skipped',
                           record('a', 'OK', '1..2\nok 1 /x\nok 2 /y\n'),
                           record('b', 'OK', '1..2\nok 1 /x # skip\nok 2 /y\n'))


if __name__ == '__main__':
    tap.main()
