# SPDX-License-Identifier: GPL-2.0-or-later
"""The schema generator takes good schemas and refuses bad ones, naming file and line."""

import os
import subprocess
import sys
import tempfile
import unittest

import tap

GEN = os.path.join(tap.source_dir(), 'scripts', 'qapi-gen.py')
POINT = "{ 'struct': 'Point', 'data': { 'x': 'int' } }\n"
COLOUR = "{ 'enum': 'Colour', 'data': [ 'red', 'green' ] }\n"


class Generator(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name

    def write(self, name, text):
        with open(os.path.join(self.root, name), 'wb') as f:
            f.write(text if isinstance(text, bytes) else text.encode())

    def run_gen(self, *args):
        return subprocess.run([sys.executable, GEN, *args], capture_output=True, text=True,
                              check=False, cwd=self.root)

    def check(self, text, *options):
        self.write('s.json', text)
        return self.run_gen('check', *options, 's.json')

    def assert_good(self, text, *options):
        run = self.check(text, *(options or ['--doc-optional']))
        self.assertEqual((run.returncode, run.stderr), (0, ''))

    def assert_bad(self, text, message, *options):
        run = self.check(text, *(options or ['--doc-optional']))
        self.assertEqual((run.returncode, run.stderr.strip()), (1, message))


class Syntax(Generator):
    def test_this_tree_s_schema_is_good(self):
        run = self.run_gen('check', os.path.join(tap.source_dir(), 'qapi', 'schema.json'))
        self.assertEqual((run.returncode, run.stderr), (0, ''))

    def test_comments_and_nothing(self):
        self.assert_good('')
        self.assert_good('# only a comment')
        self.assert_good('# one\n' + POINT + '# two\n')

    def test_stray_text(self):
        self.assert_bad('\n  x', "s.json:2: stray 'x'")
        self.assert_bad('"double"', "s.json:1: stray '\"'")
        self.assert_bad("{ 'struct': 'a\n' }", 's.json:1: stray "\'"')
        self.assert_bad("{ 'struct': 7 }", "s.json:1: stray '7'")
        self.assert_bad("'word'", "s.json:1: expected '{' of an expression")

    def test_broken_structure(self):
        self.assert_bad("{ 'a' }", "s.json:1: expected ':' behind 'a'")
        self.assert_bad("{ 'a': 'b'", "s.json:1: expected ',' or } between members")
        self.assert_bad("{ 'a': 'b' 'c': 'd' }", "s.json:1: expected ',' or } between members")
        self.assert_bad("{ 'a': [ 'b' }", "s.json:1: expected ',' or ] between elements")
        self.assert_bad("{ 'a': 'b', }", "s.json:1: expected a member's name")
        self.assert_bad("{ 'a': }", 's.json:1: expected a string, true, false, [ or {')
        self.assert_bad("{ 'a': 'b',\n  'a': 'c' }", "s.json:2: duplicate key 'a'")
        self.assert_bad("{ 'a': " + '[' * 1000, 's.json:1: nested deeper than 10')

    def test_not_utf_8(self):
        run = self.check(b'# \xff\n')
        self.assertEqual(run.returncode, 1)
        self.assertNotIn('Traceback', run.stderr)

    def test_includes(self):
        self.write('point.json', POINT)
        self.assert_good("{ 'include': 'point.json' }\n{ 'include': 'point.json' }\n"
                         "{ 'struct': 'Line', 'data': { 'a': 'Point' } }")
        self.assert_bad("{ 'include': 'none.json' }",
                        "s.json:1: can't read 'none.json': No such file or directory")
        self.assert_bad("{ 'include': 's.json' }", "s.json:1: inclusion loop for 's.json'")
        self.write('a.json', "\n{ 'include': 's.json' }")
        self.assert_bad("{ 'include': 'a.json' }", "a.json:2: inclusion loop for 's.json'")
        self.assert_bad("{ 'include': 'a.json', 'if': 'X' }",
                        "s.json:1: 'include' takes one file name and nothing else")
        self.write('a.json', '{')
        self.assert_bad("{ 'include': 'a.json' }", "a.json:1: expected a member's name")


class Definitions(Generator):
    def test_keys(self):
        self.assert_bad("{ 'struct': 'A' }", "s.json:1: struct lacks key 'data'")
        self.assert_bad("{ 'struct': 'A', 'data': { }, 'bsae': 'B' }",
                        "s.json:1: struct has unknown key 'bsae'")
        self.assert_bad("{ 'strcut': 'A' }", 's.json:1: expected one of include, enum, struct, '
                        'union, alternate, command, event')
        self.assert_bad("{ 'struct': 'A', 'enum': 'B', 'data': [] }",
                        's.json:1: expected one of include, enum, struct, union, alternate, '
                        'command, event')

    def test_names(self):
        for bad in ("'a'", "'_A'", "'A-b'", "''", "true", "[ 'A' ]"):
            run = self.check(f"{{ 'struct': {bad}, 'data': {{ }} }}")
            self.assertIn('s.json:1: bad name', run.stderr)
        self.assert_bad("{ 'command': 'Run' }", "s.json:1: bad name 'Run' for command")
        self.assert_bad("{ 'event': 'done' }", "s.json:1: bad name 'done' for event")
        self.assert_bad(POINT + POINT,
                        "s.json:2: type 'Point' is defined twice, also at s.json:1")
        self.assert_bad("{ 'command': 'a' }{ 'command': 'a' }",
                        "s.json:1: command 'a' is defined twice, also at s.json:1")

    def test_enums(self):
        self.assert_good(COLOUR)
        self.assert_bad("{ 'enum': 'E', 'data': [ ] }", "s.json:1: enum 'E' needs a list of values")
        self.assert_bad("{ 'enum': 'E', 'data': { } }", "s.json:1: enum 'E' needs a list of values")
        self.assert_bad("{ 'enum': 'E', 'data': [ 'a', 'a' ] }",
                        "s.json:1: value 'a' collides with another")
        self.assert_bad("{ 'enum': 'E', 'data': [ 'a-b', 'a_b' ] }",
                        "s.json:1: value 'a_b' collides with another")
        self.assert_bad("{ 'enum': 'E', 'data': [ 'a b' ] }", "s.json:1: bad value 'a b'")
        self.assert_bad("{ 'enum': 'E', 'data': [ { 'if': 'CONFIG_A' } ] }",
                        "s.json:1: a value has 'name' and perhaps 'if'")
        self.assert_bad("{ 'enum': 'E', 'data': [ 'a' ], 'prefix': 'e' }",
                        "s.json:1: bad prefix 'e'")

    def test_conditions(self):
        self.assert_good("{ 'struct': 'A', 'data': { '*x': { 'type': 'int', 'if': 'CONFIG_X' } },"
                         " 'if': 'CONFIG_Y' }")
        self.assert_bad("{ 'struct': 'A', 'data': { }, 'if': 'defined(X)' }",
                        "s.json:1: 'if' must be CONFIG_NAME, not 'defined(X)'")
        self.assert_bad("{ 'struct': 'A', 'data': { 'x': { 'tpye': 'int' } } }",
                        "s.json:1: member 'x' has 'type' and perhaps 'if'")

    def test_members(self):
        self.assert_bad("{ 'struct': 'A', 'data': [ ] }",
                        "s.json:1: 'A' needs a dictionary of members")
        self.assert_bad("{ 'struct': 'A', 'data': { 'x': 'itn' } }", "s.json:1: unknown type 'itn'")
        self.assert_bad("{ 'struct': 'A', 'data': { 'x': [ 'int', 'int' ] } }",
                        's.json:1: a list type names one element type')
        self.assert_bad("{ 'struct': 'A', 'data': { 'x': true } }",
                        's.json:1: expected the name of a type, not True')
        for bad in ('X', '**x', '*', '', 'a b', '-a', '_a', 'has-x'):
            run = self.check(f"{{ 'struct': 'A', 'data': {{ '{bad}': 'int' }} }}")
            self.assertIn('s.json:1: bad member name', run.stderr)
        self.assert_bad("{ 'struct': 'A', 'data': { 'a-b': 'int', 'a_b': 'int' } }",
                        "s.json:1: member 'a_b' of 'A' collides with 'a-b'")
        self.assert_bad("{ 'struct': 'A', 'data': { 'x': 'int', '*x': 'int' } }",
                        "s.json:1: member 'x' of 'A' collides with 'x'")

    def test_bases(self):
        self.assert_good(POINT + "{ 'struct': 'B', 'base': 'Point', 'data': { 'y': 'int' } }")
        self.assert_bad(POINT + "{ 'struct': 'B', 'base': 'Point', 'data': { 'x': 'str' } }",
                        "s.json:2: member 'x' of 'B' collides with 'x'")
        self.assert_bad("{ 'struct': 'A', 'base': 'None', 'data': { } }",
                        "s.json:1: unknown type 'None'")
        self.assert_bad("{ 'struct': 'A', 'base': 'int', 'data': { } }",
                        "s.json:1: base 'int' is no struct")
        self.assert_bad("{ 'struct': 'A', 'base': { }, 'data': { } }",
                        "s.json:1: a struct's base is the name of a struct")
        self.assert_bad("{ 'struct': 'A', 'base': 'B', 'data': { } }\n"
                        "{ 'struct': 'B', 'base': 'A', 'data': { } }",
                        "s.json:1: 'A' is its own base")

    def test_unions(self):
        def union(tag, branches):
            return (COLOUR + POINT + "{ 'union': 'U', 'base': { 'c': 'Colour', '*o': 'Colour', "
                    f"'i': 'int' }}, 'discriminator': '{tag}', 'data': {{ {branches} }} }}")

        self.assert_good(union('c', "'red': 'Point'"))
        self.assert_good(union('c', ''))
        self.assert_bad(union('d', ''), "s.json:3: discriminator 'd' is no base member")
        for tag in 'oi':
            self.assert_bad(union(tag, ''), f"s.json:3: discriminator '{tag}' must be an "
                            'enum, neither optional nor conditional')
        self.assert_bad(union('c', "'blue': 'Point'"),
                        "s.json:3: branch 'blue' is no value of 'Colour'")
        self.assert_bad(union('c', "'red': 'int'"), "s.json:3: branch 'red' is no struct")
        self.assert_bad(union('c', "'red': [ 'Point' ]"),
                        "s.json:3: branch 'red' must name a struct")
        self.assert_bad("{ 'struct': 'S', 'data': { 'i': 'str' } }" +
                        union('c', "'red': 'S'"),
                        "s.json:3: member 'i' of branch 'red' collides with the base")

    def test_alternates(self):
        def alternate(branches):
            return POINT + COLOUR + f"{{ 'alternate': 'A', 'data': {{ {branches} }} }}"

        self.assert_good(alternate("'p': 'Point', 's': 'str', 'n': 'int'"))
        self.assert_bad(alternate("'s': 'str'"),
                        "s.json:3: alternate 'A' needs two branches or more")
        self.assert_bad(alternate("'s': 'str', 'c': 'Colour'"),
                        "s.json:3: branch 'c' can't be told from 's'")
        self.assert_bad(alternate("'i': 'int', 'n': 'number'"),
                        "s.json:3: branch 'n' can't be told from 'i'")
        self.assert_bad(alternate("'i': 'int', 'x': 'any'"),
                        "s.json:3: branch 'x' can't be of type 'any'")
        self.assert_bad(alternate("'i': 'int', '*s': 'str'"),
                        "s.json:3: branch 's' must be a plain type")

    def test_commands_and_events(self):
        self.assert_good(POINT + "{ 'command': 'a', 'data': 'Point', 'returns': [ 'Point' ] }"
                         "{ 'event': 'A', 'data': { 'x': 'int' } }{ 'event': 'B' }")
        self.assert_bad("{ 'command': 'a', 'data': 'int' }",
                        "s.json:1: 'data' of 'a' must be a struct or union")
        self.assert_bad("{ 'command': 'a', 'returns': 'Nothing' }",
                        "s.json:1: unknown type 'Nothing'")
        self.assert_bad("{ 'command': 'a', 'allow-oob': 'yes' }",
                        "s.json:1: 'allow-oob' must be true or false")


class Docs(Generator):
    GOOD = "##\n# @Point:\n#\n# A place.\n#\n# @x: to the\n#     right\n#\n# Since: 1\n##\n" + POINT

    def assert_bad_doc(self, text, message):
        self.write('s.json', text)
        run = self.run_gen('check', 's.json')
        self.assertEqual((run.returncode, run.stderr.strip()), (1, message))

    def test_good(self):
        self.write('s.json', self.GOOD)
        self.assertEqual(self.run_gen('check', 's.json').returncode, 0)

    def test_missing(self):
        self.assert_bad_doc(POINT, "s.json:1: 'Point' has no doc comment")
        self.assert_bad_doc(self.GOOD.replace('# @x: to the\n#     right\n', ''),
                            "s.json:1: member 'x' of 'Point' is not documented")
        self.assert_bad_doc(self.GOOD.replace('@Point', '@Piont'),
                            "s.json:1: doc comment is for 'Piont', but 'Point' follows")
        self.assert_bad_doc(self.GOOD.replace('@x:', '@x: a\n# @y:'),
                            "s.json:1: 'Point' has no member 'y' to document")
        self.assert_bad_doc(self.GOOD.replace('@x:', '@x: a\n# @x:'),
                            "s.json:7: 'x' is documented twice")

    def test_place(self):
        self.write('point.json', POINT)
        self.assert_bad_doc("##\n# @A:\n##\n{ 'include': 'point.json' }",
                            "s.json:1: doc comment before an 'include'")

    def test_layout(self):
        self.assert_bad_doc('##\n# @Point:\n', "s.json:1: doc comment without its closing '##'")
        self.assert_bad_doc('##\n# Point:\n##\n' + POINT,
                            "s.json:2: a doc comment must begin with '@NAME:'")
        self.assert_bad_doc('##\n# @Point:\nx\n##\n' + POINT,
                            "s.json:3: a line of a doc comment must begin with '#'")
        self.assert_bad_doc('##\n#@Point:\n##\n' + POINT,
                            "s.json:2: a doc comment's '#' must be followed by a blank")
        self.assert_bad_doc('##\n##\n' + POINT, 's.json:1: empty doc comment')
        self.assert_bad_doc('##\n# @Point:\n##\n',
                            "s.json:1: doc comment without its expression")


class Output(Generator):
    def test_modules_must_be_those_that_meson_expects(self):
        self.write('point.json', POINT)
        self.write('s.json', "{ 'include': 'point.json' }")
        run = self.run_gen('headers', '--doc-optional', '--modules', 'pint', 's.json')
        self.assertEqual(run.returncode, 1)
        self.assertIn('s.json: modules are point, not pint', run.stderr)

    def test_same_schema_gives_same_files(self):
        self.write('s.json', POINT + COLOUR)
        texts = []
        for name in 'ab':
            os.mkdir(os.path.join(self.root, name))
            for what in ('headers', 'sources'):
                run = self.run_gen(what, '--doc-optional', '--modules', 's', '-o', name, 's.json')
                self.assertEqual((run.returncode, run.stderr), (0, ''))
            texts.append({})
            for entry in os.scandir(os.path.join(self.root, name)):
                with open(entry.path, encoding='utf-8') as f:
                    texts[-1][entry.name] = f.read()
        self.assertEqual(sorted(texts[0]), ['qapi-schema.c', 'qapi-schema.h', 's-types.c',
                                            's-types.h'])
        self.assertEqual(texts[0], texts[1])


if __name__ == '__main__':
    tap.main()
