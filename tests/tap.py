# SPDX-License-Identifier: GPL-2.0-or-later
"""Run unittest cases and report them as TAP, so that each is counted and skips keep their names.

A test script is an ordinary unittest module that ends with

    if __name__ == '__main__':
        tap.main()

In meson: test(NAME, python, args: files('NAME.py'), env: test_env, protocol: 'tap', suite: ...).
Alone: PYTHONPATH=tests tests/DIR/NAME.py [CLASS[.test_method]]...
test_env tells scripts where things are: source_dir(), build_dir(), binary(NAME).
"""

import os
import sys
import unittest


def source_dir():
    return os.environ.get('SOURCE_DIR', os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build_dir():
    return os.environ.get('BUILD_DIR', os.path.join(source_dir(), 'build'))


def binary(name):
    """The path of a program that the build made; the test is skipped where it was left out."""
    path = os.path.join(build_dir(), name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f'{name} was not built')
    return path


def long_run():
    """True under `make check-long`: run the full counts, not a fraction."""
    return os.environ.get('CHECK_LONG') == '1'


class TapResult(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.number = 0

    def say(self, text):
        self.out.write(text + '\n')
        self.out.flush()

    def explain(self, test, text):
        # meson shows the stderr of a failed test, and of its stdout only the cases
        sys.stderr.write(f'{name_of(test)}:\n{text.rstrip()}\n')
        sys.stderr.flush()

    def report(self, ok, test, directive=''):
        self.number += 1
        self.say(f'{"ok" if ok else "not ok"} {self.number} {name_of(test)}{directive}')

    def addSuccess(self, test):
        super().addSuccess(test)
        self.report(True, test)

    def addError(self, test, err):
        super().addError(test, err)
        self.explain(test, self.errors[-1][1])
        self.report(False, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.explain(test, self.failures[-1][1])
        self.report(False, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.report(True, test, f' # SKIP {reason}')

    def addExpectedFailure(self, test, err):
        raise AssertionError('a test that may fail is no test')

    def addSubTest(self, test, subtest, err):
        # a subtest that passes is part of its test; one that fails has its own line
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            self.explain(subtest, (self.failures if failed else self.errors)[-1][1])
            self.report(False, subtest)


def name_of(test):
    # '#' would start a directive
    return test.id().replace('__main__.', '').replace('#', '_').replace('\n', ' ')


def main():
    loader = unittest.defaultTestLoader
    module = sys.modules['__main__']
    names = sys.argv[1:]
    suite = loader.loadTestsFromNames(names, module) if names else \
        loader.loadTestsFromModule(module)
    # what tests print must not be taken for TAP
    out = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    result = TapResult(out)
    suite.run(result)
    result.say(f'1..{result.number}')
    sys.exit(0 if result.wasSuccessful() and result.number > 0 else 1)
