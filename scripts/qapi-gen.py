#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Make C from the QAPI schema.

    qapi-gen.py headers|sources [--name qapi_schema] [--folder qapi] --modules A,B -o DIR SCHEMA
    qapi-gen.py check SCHEMA

Writes into DIR: for each module (schema file) that defines something MODULE-types.h or
MODULE-types.c, and NAME.h or NAME.c (with '-' for '_') with the list of everything. The headers
are included as "FOLDER/MODULE-types.h". --modules names the modules expected, because meson must
know the outputs beforehand.
"""
import argparse
import os
import sys

from qapi.ctypes import CTypes, schema_header, schema_source
from qapi.parser import SchemaError
from qapi.schema import Schema


def generate(schema, args):
    base = args.name.replace('_', '-')
    ending = '.h' if args.what == 'headers' else '.c'
    texts = {}
    for module in schema.modules:
        c = CTypes(schema, module, args.folder)
        texts[module + '-types'] = c.header() if ending == '.h' else c.source()
    if ending == '.h':
        texts[base] = schema_header(args.name, args.folder)
    else:
        texts[base] = schema_source(schema, args.name, args.folder)
    for name, text in texts.items():
        with open(os.path.join(args.output, name + ending), 'w', encoding='utf-8') as f:
            f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['headers', 'sources', 'check'])
    parser.add_argument('--name', default='qapi_schema')
    parser.add_argument('--folder', default='qapi')
    parser.add_argument('--doc-optional', action='store_true')
    parser.add_argument('--modules')
    parser.add_argument('-o', '--output', default='.')
    parser.add_argument('schema')
    args = parser.parse_args()
    try:
        schema = Schema(args.schema, not args.doc_optional)
    except (SchemaError, OSError, UnicodeDecodeError) as e:
        print(e, file=sys.stderr)
        return 1
    if args.modules is not None and sorted(args.modules.split(',')) != sorted(schema.modules):
        print(f"{args.schema}: modules are {','.join(schema.modules)}, not {args.modules}: "
              'correct the list in meson.build', file=sys.stderr)
        return 1
    if args.what != 'check':
        generate(schema, args)
    return 0


if __name__ == '__main__':
    sys.exit(main())
