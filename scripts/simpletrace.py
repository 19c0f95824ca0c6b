#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Print or analyse a trace that the simple backend wrote (simpletrace v4).

    simpletrace.py [--no-header] TRACE-EVENTS FILE

TRACE-EVENTS is trace-events-all of the build that wrote FILE. One line an event: its name, the
microseconds since the event before it, the process, and the arguments:

    virtqueue_pop 3.204 pid=811 vq=0x55d0c8a4 elem=0x55d0c8b0 head=0x3 in_num=0x2 out_num=0x1

FILE may be '-' for standard input. With --no-header it begins with a record, as what is left of a
stream does. A file that ends within a record (its writer was killed) is read up to there. How
many events the writer lost is said at the end, on stderr.

To analyse, subclass Analyzer with a method for each event of interest:

    import simpletrace

    class Pops(simpletrace.Analyzer):
        def begin(self):
            self.chains = 0
        def virtqueue_pop(self, rec, vq, elem, head, in_num, out_num):
            self.chains += 1
        def end(self):
            print(self.chains)

    simpletrace.main(Pops)
"""
import argparse
import struct
import sys

import tracetool

MAGIC = 0xf2b177cb0aa429b4
HEADER_ID = 0xffffffffffffffff
DROPPED_ID = 0xfffffffffffffffe
VERSION = 4
TYPE_MAPPING, TYPE_EVENT = 0, 1
EVENT_FIXED = 24                    # of an event's length, what isn't arguments
LENGTH_MAX = 1 << 20                # a longer record is damage: 10 strings are 5 KiB
CHUNK = 1 << 20
MASK = (1 << 64) - 1


class SimpletraceError(Exception):
    """The file is not what it should be."""


class Record:
    """One event. args: values in the order of its declaration; strings are bytes."""
    __slots__ = ('name', 'timestamp_ns', 'pid', 'args', 'decl')

    def __init__(self, name, timestamp_ns, pid, args, decl):
        self.name = name
        self.timestamp_ns = timestamp_ns
        self.pid = pid
        self.args = args
        self.decl = decl            # tracetool.Event, or None if TRACE-EVENTS lacks it


def is_signed(arg):
    words = arg.ctype.split()
    return not (arg.is_pointer or 'unsigned' in words or 'bool' in words or
                any(w.startswith('uint') or w == 'size_t' for w in words))


class Decoder:
    """Arguments of one event, from bytes to values."""

    def __init__(self, decl, order):
        self.decl = decl
        codes = ['s' if a.is_string else 'q' if is_signed(a) else 'Q' for a in decl.args]
        self.fixed = None if 's' in codes else struct.Struct(order + ''.join(codes))
        self.codes = [(c, struct.Struct(order + ('I' if c == 's' else c))) for c in codes]

    def decode(self, data):
        """A tuple of values, or None if they don't fill @data exactly."""
        if self.fixed:
            return self.fixed.unpack(data) if len(data) == self.fixed.size else None
        values, pos = [], 0
        for code, fmt in self.codes:
            if pos + fmt.size > len(data):
                return None
            value, = fmt.unpack_from(data, pos)
            pos += fmt.size
            if code == 's':
                if pos + value > len(data):
                    return None
                value = data[pos:(pos := pos + value)]
            values.append(value)
        return tuple(values) if pos == len(data) else None


DROPPED = tracetool.Event('Dropped_Event', [tracetool.Arg('uint64_t', 'num_events_dropped')],
                          '', [], False, ('', 0))


class Reader:
    """Records of a file, one after the other, in the memory of a chunk."""

    def __init__(self, events, stream, has_header=True):
        self.events = {e.name: e for e in events}
        self.stream = stream
        self.buffer, self.pos, self.before = b'', 0, 0
        self.truncated = False
        self.seen = self.dropped = 0
        self.order = '='
        if has_header:
            self.read_header()
        self.head = struct.Struct(self.order + 'QQ')
        self.rest = struct.Struct(self.order + 'QII')
        self.length = struct.Struct(self.order + 'I')
        self.decoders = {DROPPED_ID: Decoder(DROPPED, self.order)}
        self.names = {DROPPED_ID: DROPPED.name}

    def offset(self):
        return self.before + self.pos

    def fail(self, text):
        raise SimpletraceError(f'at byte {self.offset()}: {text}')

    def have(self, count):
        """Are @count bytes in the buffer? Reads what is missing."""
        if self.pos + count <= len(self.buffer):
            return True
        self.before += self.pos
        parts = [self.buffer[self.pos:]]
        size = len(parts[0])
        while size < count:
            part = self.stream.read(CHUNK)
            if not part:
                break
            parts.append(part)
            size += len(part)
        self.buffer, self.pos = b''.join(parts), 0
        return size >= count

    def read_header(self):
        if not self.have(24):
            self.fail('the file is too short for a header')
        for self.order in '<>':
            ident, magic, version = struct.unpack_from(self.order + 'QQQ', self.buffer)
            if magic == MAGIC and ident == HEADER_ID:
                break
        else:
            self.fail('this is not a simpletrace file')
        if version != VERSION:
            self.fail(f'this is version {version} of simpletrace, only {VERSION} is known')
        self.pos = 24

    def read_mapping(self, ident):
        if not self.have(20):
            return False
        length, = self.length.unpack_from(self.buffer, self.pos + 16)
        if length > LENGTH_MAX:
            self.fail(f'a name of {length} bytes')
        if not self.have(20 + length):
            return False
        name = self.buffer[self.pos + 20:self.pos + 20 + length].decode(errors='replace')
        self.names[ident] = name
        if name in self.events:
            self.decoders[ident] = Decoder(self.events[name], self.order)
        self.pos += 20 + length
        return True

    def read_event(self, ident):
        """A Record, or None if the file ends before."""
        if not self.have(32):
            return None
        timestamp, length, pid = self.rest.unpack_from(self.buffer, self.pos + 16)
        if not EVENT_FIXED <= length <= LENGTH_MAX:
            self.fail(f'a record of {length} bytes')
        end = 8 + length
        if not self.have(end):
            return None
        data = self.buffer[self.pos + 32:self.pos + end]
        name = self.names.get(ident)
        if name is None:
            self.fail(f'an event with id {ident:#x}, which has no name')
        decoder = self.decoders.get(ident)
        args = decoder.decode(data) if decoder else (data,)
        if args is None:
            self.fail(f"the arguments of '{name}' are not those of its declaration in "
                      f'{decoder.decl.where[0]}')
        self.pos += end
        return Record(name, timestamp, pid, args, decoder.decl if decoder else None)

    def __iter__(self):
        while self.have(1):
            if not self.have(16):
                self.truncated = True
                return
            kind, ident = self.head.unpack_from(self.buffer, self.pos)
            if kind == TYPE_MAPPING:
                if not self.read_mapping(ident):
                    self.truncated = True
                    return
            elif kind == TYPE_EVENT:
                rec = self.read_event(ident)
                if rec is None:
                    self.truncated = True
                    return
                if ident == DROPPED_ID:
                    self.dropped += rec.args[0]
                else:
                    self.seen += 1
                yield rec
            else:
                self.fail(f'a record of type {kind:#x}, only mappings (0) and events (1) are known')


class Analyzer:
    """
    Subclass it: a method with the name of an event gets the Record, then the event's arguments.
    Events without one go to catchall().
    """

    def begin(self):
        """Before the first event."""

    def end(self):
        """After the last event."""

    def catchall(self, rec):
        """An event without a method of its own."""

    def process(self, records):
        self.begin()
        for rec in records:
            method = getattr(self, rec.name, None)
            if method and rec.decl:
                method(rec, *rec.args)
            else:
                self.catchall(rec)
        self.end()


def shown(value):
    if isinstance(value, bytes):
        return value.decode(errors='backslashreplace')
    return f'{value & MASK:#x}'


class Printer(Analyzer):
    """What the program does by itself."""

    def begin(self):
        self.last_ns = None

    def process(self, records):
        self.begin()
        for rec in records:
            self.catchall(rec)

    def catchall(self, rec):
        delta_ns = 0 if self.last_ns is None else rec.timestamp_ns - self.last_ns
        self.last_ns = rec.timestamp_ns
        fields = [rec.name, f'{delta_ns / 1000:.3f}', f'pid={rec.pid}']
        if rec.decl:
            fields += [f'{a.name}={shown(v)}' for a, v in zip(rec.decl.args, rec.args)]
        else:
            fields.append('undeclared=' + rec.args[0].hex())
        sys.stdout.write(' '.join(fields) + '\n')


def say_at_end(reader):
    if reader.truncated:
        print(f'simpletrace: the file ends within a record, after byte {reader.offset()}',
              file=sys.stderr)
    if reader.dropped:
        total = reader.seen + reader.dropped
        print(f'simpletrace: {reader.dropped} of {total} events '
              f'({100 * reader.dropped / total:.2f} %) were lost by the writer', file=sys.stderr)


def main(analyzer_class=Printer):
    parser = argparse.ArgumentParser(description='Read a trace of the simple backend.')
    parser.add_argument('--no-header', action='store_true',
                        help='FILE begins with a record instead of the header')
    parser.add_argument('trace_events', metavar='TRACE-EVENTS', help="the build's trace-events-all")
    parser.add_argument('file', metavar='FILE', help="the trace, '-' for standard input")
    opts = parser.parse_args()
    try:
        events = tracetool.parse_file(opts.trace_events, strict=False)
        stream = sys.stdin.buffer if opts.file == '-' else open(opts.file, 'rb')
        with stream:
            reader = Reader(events, stream, not opts.no_header)
            analyzer_class().process(reader)
            say_at_end(reader)
    except BrokenPipeError:
        sys.stderr.close()              # '| head' has what it wanted
    except OSError as err:
        sys.exit(f'simpletrace: {err.filename}: {err.strerror}')
    except tracetool.TraceError as err:
        sys.exit(f'simpletrace: {err}')
    except SimpletraceError as err:
        sys.stdout.flush()
        sys.exit(f'simpletrace: {opts.file}: {err}')


if __name__ == '__main__':
    main()
