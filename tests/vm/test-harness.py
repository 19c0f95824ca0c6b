#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The harness notices what goes wrong: tests with a shell script in the VMM's place."""

import base64
import gzip
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tap  # noqa: E402
from vmlab import archive, boot, console, plan  # noqa: E402


def reported(*lines):
    report = console.Report()
    for line in lines:
        report.feed(line)
    return report


def file_lines(name, data):
    packed = gzip.compress(data)
    return [f"@@file {name}", base64.b64encode(packed).decode(), f"@@eof {len(packed)}"]


class Console(unittest.TestCase):
    def test_whole_report(self):
        r = reported("@@begin 6.1", "@@ok a", "@@note why", "@@bad b", "@@skip c # no c", "@@end 3")
        self.assertEqual([c[:2] for c in r.checks],
                         [("ok", "a"), ("bad", "b"), ("skip", "c # no c")])
        self.assertEqual(r.checks[1][2], ["why"])
        self.assertTrue(r.ended)
        self.assertEqual(r.trouble, [])

    def test_lost_line_is_noticed(self):
        self.assertEqual(len(reported("@@ok a", "@@end 2").trouble), 1)

    def test_lost_line_before_a_reset_is_noticed(self):
        self.assertEqual(len(reported("@@ok a", "@@again 2", "@@ok b", "@@end 1").trouble), 1)

    def test_each_life_counts_its_own(self):
        r = reported("@@ok a", "@@again 1", "@@ok b", "@@ok c", "@@end 2")
        self.assertEqual(r.trouble, [])
        self.assertTrue(r.ended)

    def test_reset_is_no_end(self):
        self.assertFalse(reported("@@ok a", "@@again 1").ended)

    def test_report_after_an_unfinished_line(self):
        self.assertEqual(reported("progress 5%@@ok a").checks, [("ok", "a", [])])

    def test_file_arrives(self):
        r = reported(*file_lines("f", b"contents"))
        self.assertEqual(r.files, {"f": b"contents"})

    def test_damaged_file_is_noticed(self):
        lines = file_lines("f", b"contents" * 100)
        for damaged in ([lines[0], lines[1][:-4], lines[2]], [lines[0], "*" + lines[1], lines[2]],
                        [lines[0], lines[1][:20] + "AAAA" + lines[1][24:], lines[2]]):
            r = reported(*damaged)
            self.assertEqual(len(r.trouble), 1)
            self.assertEqual(r.files, {})

    def test_question(self):
        self.assertEqual(console.Report().feed("@@ask resize 5"), ["resize", "5"])


class Boots(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def run_script(self, script, **kwargs):
        """Run a boot whose VMM is a shell script; returns what would be reported."""
        vmm = os.path.join(self.dir.name, "vmm")
        with open(vmm, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(vmm, 0o755)
        one = boot.Boot(name="x", args=[], **{"timeout_s": 10, **kwargs})
        result = boot.run(one, vmm, "kernel", "initrd", os.path.join(self.dir.name, "scratch"))
        return result.checks(one.status)

    def bad(self, *args, **kwargs):
        return [text for verdict, text, _ in self.run_script(*args, **kwargs) if verdict == "bad"]

    def test_good_run(self):
        self.assertEqual(self.run_script("echo @@ok a; echo @@end 1"),
                         [("ok", "a", []), ("ok", "the VMM exits with status 0", [])])

    def test_failed_check(self):
        self.assertEqual(self.bad("echo @@bad a; echo @@end 1"), ["a"])

    def test_silent_vmm(self):
        self.assertEqual(self.bad("exit 0"), ["the guest ran its tests to the end"])

    def test_wrong_status(self):
        self.assertEqual(self.bad("echo @@end 0; exit 3"), ["the VMM exits with status 0"])

    def test_killed_by_a_signal(self):
        self.assertEqual(self.bad("echo @@end 0; kill -SEGV $$"), ["the VMM exits with status 0"])

    def test_hang(self):
        self.assertEqual(self.bad("echo @@end 0; exec sleep 60", timeout_s=1),
                         ["the VMM exits with status 0"])

    def test_hang_with_closed_output(self):
        self.assertEqual(self.bad("echo @@end 0; exec >&- 2>&-; exec sleep 60", timeout_s=1),
                         ["the VMM exits with status 0"])

    def test_question_is_answered(self):
        seen = self.run_script('echo @@ask word x; read -r a; echo "@@ok $a"; echo @@end 1',
                               answers={"word": lambda _r, words: "answer-" + words[0]})
        self.assertEqual(seen[0][1], "answer-x")

    def test_inspection_counts(self):
        self.assertEqual(self.bad("echo @@end 0", inspect=lambda _d: [(False, "looked")]),
                         ["looked"])


class Plan(unittest.TestCase):
    def test_same_seed_same_boots(self):
        for long in (False, True):
            one, two = plan.boots(7, long), plan.boots(7, long)
            self.assertEqual([b.append for b in one], [b.append for b in two])
            asked = [b.answers["job"](None, []) for b in (one[0], two[0])]
            self.assertEqual(*asked)

    def test_command_lines_fit_the_kernel(self):
        for b in plan.boots(1, True):
            self.assertLess(len(boot.BASE_APPEND) + len(b.append), 2000)

    def test_guest_has_the_tests(self):
        guest = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest")
        for b in plan.boots(1, False):
            tests = dict(w.split("=", 1) for w in b.append.split() if "=" in w)["t.test"]
            for name in tests.split(","):
                self.assertTrue(os.path.exists(os.path.join(guest, name + ".sh")), name)


class Archive(unittest.TestCase):
    def test_newc_layout(self):
        out = io.BytesIO()
        newc = archive.Newc(out)
        newc.file("a/b", b"xyz", 0o755)
        newc.finish()
        data = out.getvalue()
        self.assertEqual(len(data) % 512, 0)
        self.assertEqual(data.count(b"070701"), 3)
        at = data.index(b"070701", 1)
        self.assertEqual(data[at + 14:at + 22], b"000081ed")
        self.assertEqual(data[at + 54:at + 62], b"00000003")
        self.assertEqual(data[at + 110:at + 114], b"a/b\0")


if __name__ == "__main__":
    tap.main()
