# SPDX-License-Identifier: GPL-2.0-or-later
"""
Schema text to expressions.

A schema file is a sequence of { ... } expressions in JSON with single quotes, comments from '#'
to the end of the line, and doc comments between two lines '##'. A doc comment belongs to the
expression behind it. An expression becomes an Expr: its dictionary, where it stood, its doc.
"""
import os
import re

TOKEN = re.compile(r"(?P<blank>[ \t\r]+|\n)|(?P<doc>##[ \t]*$)|(?P<comment>#[^\n]*)"
                   r"|(?P<string>'(?P<text>[^'\n\\]*)')|(?P<word>true|false)\b"
                   r"|(?P<mark>[{}\[\]:,])", re.M)
DEPTH_MAX = 10


class SchemaError(Exception):
    """What is wrong, and where: FILE:LINE: text."""

    def __init__(self, where, text):
        super().__init__(f'{where}: {text}')


class Where:
    """A place in a schema file."""

    def __init__(self, path, line):
        self.path, self.line = path, line

    def __str__(self):
        return f'{self.path}:{self.line}'


class Doc:
    """
    A doc comment: its symbol, general text, and sections by name.

        ##
        # @Symbol:
        #
        # What it is.
        #
        # @member: what that is, on
        #     as many lines as needed
        #
        # Returns: ...
        #
        # Since: 0.1
        ##
    """
    TAGS = ('Returns', 'Since', 'Note', 'Notes', 'Example', 'Errors')

    def __init__(self, where):
        self.where = where
        self.symbol = None
        self.text = ''
        self.members = {}
        self.tags = {}
        self._into = None

    def add(self, where, line):
        if not line.startswith('#'):
            raise SchemaError(where, "a line of a doc comment must begin with '#'")
        line = line[1:]
        if line.startswith(' '):
            line = line[1:]
        elif line:
            raise SchemaError(where, "a doc comment's '#' must be followed by a blank")
        at = re.match(r'@([^:\s]+):(?:\s+(.*))?$', line)
        tag = re.match(r'(' + '|'.join(self.TAGS) + r'):(?:\s+(.*))?$', line)
        if at and self.symbol is None:
            self.symbol = at[1]
            if at[2]:
                self._append(at[2])
        elif self.symbol is None:
            if line.strip():
                raise SchemaError(where, "a doc comment must begin with '@NAME:'")
        elif at:
            self._start(where, self.members, at[1], at[2])
        elif tag:
            self._start(where, self.tags, tag[1], tag[2])
        else:
            self._append(line)

    def _start(self, where, sections, name, text):
        if name in sections:
            raise SchemaError(where, f"'{name}' is documented twice")
        sections[name] = text or ''
        self._into = (sections, name)

    def _append(self, line):
        if self._into is None:
            self.text += line + '\n'
        else:
            sections, name = self._into
            sections[name] += '\n' + line.strip()

    def finish(self):
        self.text = self.text.strip()
        for sections in (self.members, self.tags):
            for name in sections:
                sections[name] = sections[name].strip()
        if self.symbol is None:
            raise SchemaError(self.where, 'empty doc comment')


class Expr:
    """A top-level expression: a dictionary, its module, place and doc."""

    def __init__(self, data, where, doc, module):
        self.data, self.where, self.doc, self.module = data, where, doc, module


class Parser:
    """One file; 'include' pulls in others, each once."""

    def __init__(self, path, seen=None, including=()):
        self.path = path
        self.module = os.path.splitext(os.path.basename(path))[0]
        self.seen = seen if seen is not None else set()
        self.seen.add(os.path.realpath(path))
        self.including = (*including, os.path.realpath(path))
        self.exprs = []
        with open(path, encoding='utf-8') as f:
            self.text = f.read()
        self.pos = 0
        self.line = 1
        self.kind = self.value = None
        self._parse_file()

    def where(self):
        return Where(self.path, self.line)

    def fail(self, text):
        raise SchemaError(self.where(), text)

    # ---- tokens

    def _next(self):
        """The next token into kind and value, blanks and comments skipped."""
        while self.pos < len(self.text):
            m = TOKEN.match(self.text, self.pos)
            if not m:
                self.fail(f'stray {self.text[self.pos]!r}')
            kind = m.lastgroup if m.lastgroup != 'text' else 'string'
            self.pos = m.end()
            if kind == 'blank':
                self.line += m[0].count('\n')
            elif kind != 'comment':
                self.kind = kind
                self.value = m['text'] if kind == 'string' else m[0]
                return
        self.kind = self.value = None

    def _expect(self, mark, context):
        if self.kind != 'mark' or self.value != mark:
            self.fail(f"expected '{mark}' {context}")
        self._next()

    def _is_mark(self, mark):
        return self.kind == 'mark' and self.value == mark

    # ---- expressions

    def _value(self, depth):
        if depth > DEPTH_MAX:
            self.fail(f'nested deeper than {DEPTH_MAX}')
        if self.kind == 'string':
            value = self.value
            self._next()
            return value
        if self.kind == 'word':
            value = self.value == 'true'
            self._next()
            return value
        if self._is_mark('{'):
            return self._dict(depth)
        if self._is_mark('['):
            return self._list(depth)
        return self.fail('expected a string, true, false, [ or {')

    def _dict(self, depth):
        result = {}
        self._next()
        while not self._is_mark('}'):
            if result:
                self._expect(',', 'or } between members')
            if self.kind != 'string':
                self.fail("expected a member's name")
            name = self.value
            if name in result:
                self.fail(f"duplicate key '{name}'")
            self._next()
            self._expect(':', f"behind '{name}'")
            result[name] = self._value(depth + 1)
        self._next()
        return result

    def _list(self, depth):
        result = []
        self._next()
        while not self._is_mark(']'):
            if result:
                self._expect(',', 'or ] between elements')
            result.append(self._value(depth + 1))
        self._next()
        return result

    def _doc(self):
        """A doc comment; the opening ## was just read."""
        doc = Doc(self.where())
        lines = self.text[self.pos:].splitlines()
        self.pos += len(lines[0]) + 1
        self.line += 1
        for line in lines[1:]:
            self.pos += len(line) + 1
            if line.strip() == '##':
                self.line += 1
                doc.finish()
                self._next()
                return doc
            doc.add(self.where(), line)
            self.line += 1
        raise SchemaError(doc.where, "doc comment without its closing '##'")

    def _parse_file(self):
        self._next()
        while self.kind is not None:
            doc = None
            if self.kind == 'doc':
                doc = self._doc()
            where = self.where()
            if not self._is_mark('{') and doc:
                raise SchemaError(doc.where, 'doc comment without its expression')
            if not self._is_mark('{'):
                self.fail("expected '{' of an expression")
            data = self._dict(1)
            if 'include' in data:
                if doc:
                    raise SchemaError(doc.where, "doc comment before an 'include'")
                self._include(data, where)
            else:
                self.exprs.append(Expr(data, where, doc, self.module))

    def _include(self, data, where):
        name = data['include']
        if len(data) != 1 or not isinstance(name, str):
            raise SchemaError(where, "'include' takes one file name and nothing else")
        path = os.path.join(os.path.dirname(self.path), name)
        real = os.path.realpath(path)
        if real in self.including:
            raise SchemaError(where, f"inclusion loop for '{name}'")
        if real in self.seen:
            return
        try:
            self.exprs += Parser(path, self.seen, self.including).exprs
        except OSError as e:
            raise SchemaError(where, f"can't read '{name}': {e.strerror}") from e
