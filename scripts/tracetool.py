#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Turn trace-events files into C.

Each folder declares the events of its code in a file named trace-events, one event a line:

    [disable] name(type arg, ...) "printf format"

From it come a header with one inline function trace_NAME() an event and a source with what runs
when the event is on. See docs/devel/tracing.md.

    tracetool.py header --group util --group-id 1 --backends log,simple FILE   > trace-util.h
    tracetool.py source --group util --group-id 1 --backends log,simple FILE   > trace-util.c
    tracetool.py groups --backends log,simple GROUP=FILE ...                   > trace-groups.c
    tracetool.py all    GROUP=FILE ...                                         > trace-events-all
"""
import argparse
import os
import re
import sys

MAX_ARGS = 10

# Words that an integer type may be made of. A pointer may also point to void or to a struct.
INT_WORDS = {'int', 'long', 'short', 'char', 'bool', 'unsigned', 'signed',
             'int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'int64_t',
             'uint64_t', 'size_t', 'ssize_t', 'intptr_t', 'uintptr_t', 'ptrdiff_t', 'off_t',
             'pid_t', 'mode_t'}
KEYWORDS = set('''auto break case char const continue default do double else enum extern float for
    goto if inline int long register restrict return short signed sizeof static struct switch
    typedef union unsigned void volatile while bool _Bool asm typeof'''.split())
IDENTIFIER = re.compile(r'[A-Za-z_][A-Za-z0-9_]*\Z')
LINE = re.compile(r'(?P<props>(?:[A-Za-z_]\w*\s+)*)(?P<name>[^\s("]+)\s*'
                  r'\((?P<args>[^()]*)\)\s*(?P<fmt>.*)\Z')
FMT_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"|PRI([diouxX])(8|16|32|64|MAX|PTR)\b|(\s+)')
CONVERSION = re.compile(r"%(?:%|[-+ #0']*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t|<\w+>)?([A-Za-z*]|\Z|.))")
LENGTHS = {'8': 'hh', '16': 'h', '32': '', '64': 'l', 'MAX': 'l', 'PTR': 'l'}


class TraceError(Exception):
    """What is wrong, and where: FILE:LINE: text."""

    def __init__(self, where, text):
        super().__init__(f'{where}: {text}')


class Arg:
    """One argument: a C type and a name."""

    def __init__(self, ctype, name):
        self.ctype = ctype
        self.name = name
        words = ctype.replace('*', ' ').split()
        stars = ctype.count('*')
        self.is_string = stars == 1 and [w for w in words if w != 'const'] == ['char']
        self.is_pointer = stars > 0 and not self.is_string

    def declare(self):
        return self.ctype + ('' if self.ctype.endswith('*') else ' ') + self.name


class Event:
    """One line of a trace-events file."""

    def __init__(self, name, args, fmt, conversions, disabled, where):
        self.name = name
        self.args = args
        self.fmt = fmt                  # C text: "..." PRIx64 "..."
        self.conversions = conversions  # one letter a conversion
        self.disabled = disabled
        self.where = where              # (path, line)

    def signature(self):
        return ', '.join(a.declare() for a in self.args) or 'void'

    def names(self):
        return ', '.join(a.name for a in self.args)

    def macro(self):
        return 'TRACE_' + self.name.upper()


def parse_type(text, where, known_types_only):
    """Check a type and give it in its usual spelling: 'const char *'."""
    base, stars, rest = re.match(r'([^*]*)(\**(?:\s*\*)*)(.*)\Z', text).groups()
    words = base.split()
    stars = '*' * stars.count('*')
    if rest.strip() or not words:
        raise TraceError(where, f"'{text.strip()}' is not a type")
    if known_types_only:
        plain = [w for w in words if w != 'const']
        is_struct = len(plain) == 2 and plain[0] == 'struct' and IDENTIFIER.match(plain[1])
        if stars and (plain == ['void'] or is_struct):
            pass
        elif not plain or any(w not in INT_WORDS for w in plain):
            raise TraceError(where, f"type '{text.strip()}' is not allowed: use an integer type, "
                             "'const char *', or 'void *' for any other pointer")
    return ' '.join(words) + (' ' + stars if stars else '')


def parse_args(text, where, known_types_only):
    text = text.strip()
    if text == 'void':
        return []
    if not text:
        raise TraceError(where, "empty argument list: write 'void'")
    args = []
    for part in text.split(','):
        match = re.match(r'\s*(.*?[\s*])([A-Za-z_]\w*)\s*\Z', part)
        if not match or match.group(2) in KEYWORDS:
            raise TraceError(where, f"argument '{part.strip()}' is not 'TYPE NAME'")
        name = match.group(2)
        if name in [a.name for a in args]:
            raise TraceError(where, f"two arguments are named '{name}'")
        args.append(Arg(parse_type(match.group(1), where, known_types_only), name))
    if len(args) > MAX_ARGS:
        raise TraceError(where, f'{len(args)} arguments, at most {MAX_ARGS} are possible')
    return args


def parse_format(text, where):
    """Split "..." PRIx64 "..." and return (C text, conversion letters)."""
    pos, plain, pieces = 0, '', []
    while pos < len(text):
        match = FMT_PIECE.match(text, pos)
        if not match:
            raise TraceError(where, f"the format is not a string: '{text[pos:]}'")
        string, letter, bits, _ = match.groups()
        if string is not None:
            plain += string
            pieces.append(match.group(0))
        elif letter:
            plain += LENGTHS[bits] + letter
            pieces.append(match.group(0))
        pos = match.end()
    if not pieces or not pieces[0].startswith('"'):
        raise TraceError(where, 'the format string is missing')
    if re.search(r'\\n', plain):
        raise TraceError(where, "a format must not hold '\\n': lines are ended by the backend")
    conversions = []
    for match in CONVERSION.finditer(plain):
        if match.group(0) == '%%':
            continue
        letter = match.group(1)
        if letter == 'm':
            raise TraceError(where, "'%m' is not allowed: pass errno as an argument")
        if letter not in tuple('diouxXcsp'):
            raise TraceError(where, f"'{match.group(0)}' is not a conversion that a trace "
                             'format may use')
        conversions.append(letter)
    return ' '.join(pieces), conversions


def check_conversions(event, where):
    """The compiler checks lengths; here, what it would report far from the cause."""
    have, want = len(event.conversions), len(event.args)
    if have != want:
        raise TraceError(where, f'the format takes {have} values, the event has {want} arguments')
    for letter, arg in zip(event.conversions, event.args):
        fits = (letter == 's' if arg.is_string else
                letter == 'p' if arg.is_pointer else letter in 'diouxXc')
        if not fits:
            raise TraceError(where, f"'%{letter}' does not print argument '{arg.declare()}'")


def parse_line(line, path, number, strict=True):
    """
    One event from one line. With strict=False, types and formats are taken as they come: for
    readers of traces, which may be given another project's trace-events.
    """
    where = f'{path}:{number}'
    match = LINE.match(line.strip())
    if not match:
        raise TraceError(where, 'expected [disable] NAME(TYPE ARG, ...) "FORMAT"')
    name = match.group('name')
    props = match.group('props').split()
    if not re.match(r'[A-Za-z_][A-Za-z0-9_]*\Z', name):
        raise TraceError(where, f"'{name}' is not a name for an event")
    args = parse_args(match.group('args'), where, strict)
    if not strict:
        if 'vcpu' in props:
            args.insert(0, Arg('void *', 'cpu'))
        return Event(name, args, match.group('fmt'), [], 'disable' in props, (path, number))
    for prop in props:
        if prop != 'disable':
            raise TraceError(where, f"unknown property '{prop}', the only one is 'disable'")
    if len(props) > 1:
        raise TraceError(where, "'disable' is said twice")
    fmt, conversions = parse_format(match.group('fmt'), where)
    event = Event(name, args, fmt, conversions, 'disable' in props, (path, number))
    check_conversions(event, where)
    return event


def parse_file(path, strict=True, shown_as=None):
    """All events of a file, in order. A name may be declared once."""
    shown = shown_as or path
    events, seen = [], {}
    try:
        with open(path, encoding='utf-8') as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip() or line.lstrip().startswith('#'):
                    continue
                event = parse_line(line, shown, number, strict)
                if strict and event.name in seen:
                    raise TraceError(f'{shown}:{number}', f"event '{event.name}' is already "
                                     f'declared in line {seen[event.name]}')
                seen[event.name] = number
                events.append(event)
    except OSError as err:
        raise TraceError(shown, err.strerror) from err
    except UnicodeDecodeError as err:
        raise TraceError(shown, 'not a text in UTF-8') from err
    return events


# Backends. One class each: the headers that its code needs, and the statements that run when an
# event is on. 'group' gives the numbers of the event.

class LogBackend:
    """A line of text an event, to stderr or to the file of -D."""
    name = 'log'
    flag = 'TRACE_BACKEND_LOG'
    includes = ['trace/log-sink.h']

    @staticmethod
    def emit(group, event):
        values = ''.join(', ' + a.name for a in event.args)
        yield 'if (trace_log_on()) {'
        yield f'    log_sink_printf("{event.name} " {event.fmt} "\\n"{values});'
        yield '}'


class SimpleBackend:
    """A binary record an event (simpletrace v4), through a buffer of the thread."""
    name = 'simple'
    flag = 'TRACE_BACKEND_SIMPLE'
    includes = ['trace/simple.h']

    @staticmethod
    def emit(group, event):
        strings = [a for a in event.args if a.is_string]
        size = ' + '.join([str(8 * (len(event.args) - len(strings)))] +
                          [f'4 + len_{a.name}' for a in strings])
        yield 'if (trace_simple_on()) {'
        for arg in strings:
            yield f'    uint32_t len_{arg.name} = trace_simple_strlen({arg.name});'
        yield f'    uint8_t *rec_ = trace_simple_begin({group.event_id(event)}, {size});'
        yield ''
        yield '    if (rec_) {'
        if event.args:
            yield '        uint8_t *at_ = rec_ + TRACE_SIMPLE_HEAD;'
            yield ''
        for arg in event.args:
            if arg.is_string:
                yield f'        at_ = trace_simple_str(at_, {arg.name}, len_{arg.name});'
            else:
                cast = '(uintptr_t)' if arg.is_pointer else ''
                yield f'        at_ = trace_simple_u64(at_, (uint64_t){cast}{arg.name});'
        yield f'        trace_simple_end(rec_, {size});'
        yield '    }'
        yield '}'


BACKENDS = {b.name: b for b in (LogBackend, SimpleBackend)}


class Group:
    """The events of one folder."""

    def __init__(self, name, number, path, shown_as=None):
        self.name = name
        self.symbol = re.sub(r'\W', '_', name)
        self.number = number
        self.path = shown_as or path
        self.events = parse_file(path, shown_as=shown_as)

    def event_id(self, event):
        return f'{(self.number << 16) | self.events.index(event):#x}'

    def header_name(self):
        return 'trace-' + self.name.replace('/', '-') + '.h'


def banner(path):
    return [f'/* Made by tracetool.py from {path}. */',
            '/* SPDX-License-Identifier: GPL-2.0-or-later */']


def header_lines(group):
    guard = f'TRACE_GROUP_{group.symbol.upper()}_H'
    states = f'trace_states_{group.symbol}'
    yield from banner(group.path)
    yield from [f'#ifndef {guard}', f'#define {guard}', '', '#include "trace/event.h"', '']
    yield f'extern uint16_t {states}[];'
    for struct in sorted({s for e in group.events for a in e.args
                          for s in re.findall(r'\bstruct \w+', a.ctype)}):
        yield f'{struct};'
    for index, event in enumerate(group.events):
        on = 'false' if event.disabled else f'trace_state_on(&{states}[{index}])'
        yield ''
        if not event.disabled:
            yield f'void trace_emit__{event.name}({event.signature()});'
        yield f'static inline bool trace_on__{event.name}(void)'
        yield from ['{', f'    return {on};', '}']
        yield f'static inline void trace_{event.name}({event.signature()})'
        yield '{'
        if not event.disabled:
            yield f'    if (trace_on__{event.name}()) {{'
            yield f'        trace_emit__{event.name}({event.names()});'
            yield '    }'
        yield '}'
    yield from ['', '#endif']


def source_lines(group, backends, output):
    """The line with the format is said to stand in trace-events: the compiler checks it."""
    lines = banner(group.path)
    for include in sorted({f'trace/{group.header_name()}'}.union(*(b.includes for b in backends))):
        lines.append(f'#include "{include}"')
    count = max(len(group.events), 1)
    lines += ['', f'uint16_t trace_states_{group.symbol}[{count}] = {{0}};']
    for event in group.events:
        if event.disabled:
            continue
        lines += ['', f'void trace_emit__{event.name}({event.signature()})', '{']
        for text in (t for b in backends for t in b.emit(group, event)):
            if event.fmt in text:
                lines.append(f'#line {event.where[1]} "{event.where[0]}"')
            lines.append(('    ' + text).rstrip())
            if event.fmt in text:
                lines.append(f'#line {len(lines) + 2} "{output}"')
        lines.append('}')
    lines += ['', f'static const TraceEvent events[{count}] = {{']
    for index, event in enumerate(group.events):
        state = 'NULL' if event.disabled else f'&trace_states_{group.symbol}[{index}]'
        lines.append(f'    {{"{event.name}", {state}, {group.event_id(event)}}},')
    lines += ['};', '', f'extern const TraceGroup trace_group_{group.symbol};',
              f'const TraceGroup trace_group_{group.symbol} = '
              f'{{"{group.name}", events, {len(group.events)}}};']
    return lines


def check_unique(groups):
    seen = {}
    for group in groups:
        for event in group.events:
            where = f'{event.where[0]}:{event.where[1]}'
            if event.name in seen:
                raise TraceError(where, f"event '{event.name}' is already declared in "
                                 f'{seen[event.name]}')
            seen[event.name] = where


def groups_lines(groups, backends):
    check_unique(groups)
    flags = ' | '.join(b.flag for b in backends)
    yield from banner('all trace-events files')
    yield from ['#include "trace/event.h"', '', f'const unsigned trace_backends = {flags};', '']
    for group in groups:
        yield f'extern const TraceGroup trace_group_{group.symbol};'
    yield from ['', 'const TraceGroup *const trace_groups[] = {']
    for group in groups:
        yield f'    &trace_group_{group.symbol},'
    yield from ['    NULL', '};']


def all_lines(groups):
    check_unique(groups)
    yield '# All trace events, merged by tracetool.py for readers of traces.'
    yield '# SPDX-License-Identifier: GPL-2.0-or-later'
    for group in groups:
        yield ''
        yield f'# {group.path}'
        for event in group.events:
            disable = 'disable ' if event.disabled else ''
            yield f'{disable}{event.name}({event.signature()}) {event.fmt}'


def chosen_backends(text):
    names = [n for n in text.split(',') if n]
    for name in names:
        if name not in BACKENDS:
            raise TraceError('--backends', f"'{name}' is not a backend; there are: "
                             + ', '.join(BACKENDS))
    if not names:
        raise TraceError('--backends', 'no backend is named')
    return [BACKENDS[n] for n in BACKENDS if n in names]


def generate(opts):
    """The lines that the command line asks for."""
    def shown(path):
        return os.path.relpath(path, opts.root) if opts.root else path

    if opts.what in ('groups', 'all'):
        pairs = [text.partition('=') for text in opts.file]
        groups = [Group(name, number, path, shown(path))
                  for number, (name, _, path) in enumerate(pairs)]
        if opts.what == 'all':
            return all_lines(groups)
        return groups_lines(groups, chosen_backends(opts.backends))
    if not opts.group or opts.group_id is None or len(opts.file) != 1:
        raise TraceError(opts.what, '--group, --group-id and one FILE are needed')
    group = Group(opts.group, opts.group_id, opts.file[0], shown(opts.file[0]))
    if opts.what == 'header':
        return header_lines(group)
    return source_lines(group, chosen_backends(opts.backends), opts.output or '<stdout>')


def main():
    parser = argparse.ArgumentParser(description='Make C from trace-events files.')
    parser.add_argument('what', choices=['header', 'source', 'groups', 'all'])
    parser.add_argument('--group', help='name of the folder, e.g. hw/virtio')
    parser.add_argument('--group-id', type=int, help='its place in the list of folders')
    parser.add_argument('--backends', default='log', help=f"of {','.join(BACKENDS)}")
    parser.add_argument('--root', help='show paths relative to this folder')
    parser.add_argument('-o', '--output', help='file to write (default: standard output)')
    parser.add_argument('file', nargs='+', help='FILE, or GROUP=FILE for groups and all')
    opts = parser.parse_args()
    try:
        text = '\n'.join(generate(opts)) + '\n'
    except TraceError as err:
        sys.exit(f'tracetool: {err}')
    if opts.output:
        with open(opts.output, 'w', encoding='utf-8') as out:
            out.write(text)
    else:
        sys.stdout.write(text)


if __name__ == '__main__':
    main()
