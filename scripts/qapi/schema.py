# SPDX-License-Identifier: GPL-2.0-or-later
"""
Expressions to a checked schema.

    { 'enum': NAME, 'data': [ VALUE, ... ], 'prefix': P, 'c-header': H }
    { 'struct': NAME, 'data': MEMBERS, 'base': NAME }
    { 'union': NAME, 'base': NAME or MEMBERS, 'discriminator': MEMBER, 'data': { VALUE: NAME } }
    { 'alternate': NAME, 'data': { BRANCH: TYPE } }
    { 'command': NAME, 'data': NAME or MEMBERS, 'returns': TYPE, 'allow-oob': true }
    { 'event': NAME, 'data': NAME or MEMBERS }

MEMBERS is { NAME: TYPE }, where '*NAME' is optional and TYPE a name, [ NAME ] for a list, or
{ 'type': TYPE, 'if': CONFIG }. A VALUE may be { 'name': VALUE, 'if': CONFIG }. Every definition
may have an 'if'. Members and values whose condition is not met are not there at all.
"""
import re

from .parser import Parser, SchemaError

BUILTINS = {
    # name: (C type, json kind, table)
    'bool': ('bool', 'boolean'), 'int': ('int64_t', 'number'), 'int8': ('int8_t', 'number'),
    'int16': ('int16_t', 'number'), 'int32': ('int32_t', 'number'),
    'int64': ('int64_t', 'number'), 'uint8': ('uint8_t', 'number'),
    'uint16': ('uint16_t', 'number'), 'uint32': ('uint32_t', 'number'),
    'uint64': ('uint64_t', 'number'), 'size': ('uint64_t', 'number'),
    'number': ('double', 'number'), 'str': ('char *', 'string'), 'any': ('JsonValue *', None),
}
C_WORDS = set('''auto break case char const continue default do double else enum extern float for
    goto if inline int long register restrict return short signed sizeof static struct switch
    typedef union unsigned void volatile while bool true false asm typeof linux unix u kind
    '''.split())
TYPE_NAME = re.compile(r'[A-Z][A-Za-z0-9]*\Z')
MEMBER_NAME = re.compile(r'[a-z][a-z0-9_-]*\Z')
VALUE_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]*\Z')
EVENT_NAME = re.compile(r'[A-Z][A-Z0-9_]*\Z')
CONDITION = re.compile(r'CONFIG_[A-Z0-9_]+\Z')


def c_name(name):
    """A member as a C identifier."""
    name = re.sub(r'[^A-Za-z0-9_]', '_', name)
    if name in C_WORDS or name[0].isdigit():
        return 'q_' + name
    return name


def c_upper(name):
    """CamelCase to CAMEL_CASE."""
    name = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name)
    name = re.sub(r'([A-Z]+)([A-Z][a-z])', r'\1_\2', name)
    return re.sub(r'[^A-Za-z0-9]', '_', name).upper()


class Member:
    def __init__(self, name, optional, type_name, is_list, cond, where):
        self.name, self.optional, self.where = name, optional, where
        self.type_name, self.is_list, self.cond = type_name, is_list, cond
        self.type = None            # filled by Schema.resolve()

    def c_name(self):
        return c_name(self.name)


class Type:
    """Any type; kind is builtin, enum, struct, union, alternate or list."""

    def __init__(self, kind, name, expr=None):
        self.kind, self.name = kind, name
        self.expr = expr
        self.where = expr.where if expr else None
        self.module = expr.module if expr else None
        self.doc = expr.doc if expr else None
        self.cond = None
        self.values = []            # enum: (name, condition)
        self.prefix = c_upper(name)
        self.header = None          # enum: the C header that has it
        self.own = []               # struct, union, alternate: members
        self.base_name = self.base = None
        self.discriminator = None
        self.branches = {}          # union: value -> (type name, condition), then type
        self.element = None         # list

    def members(self):
        """With those of the bases, theirs first."""
        return (self.base.members() if self.base else []) + self.own

    def is_pointer(self):
        return self.kind not in ('builtin', 'enum') or self.name in ('str', 'any')

    def value_constant(self, value):
        return f'{self.prefix}_{c_upper(value)}'


class Command:
    def __init__(self, expr, name):
        self.name, self.where, self.doc, self.module = name, expr.where, expr.doc, expr.module
        self.arg_name = self.arg = None
        self.ret = self.ret_member = None
        self.allow_oob = False
        self.cond = None


class Schema:
    """Everything that a root schema file and its includes define."""

    KEYS = {
        'enum': ({'data'}, {'prefix', 'c-header', 'if'}),
        'struct': ({'data'}, {'base', 'if'}),
        'union': ({'data', 'base', 'discriminator'}, {'if'}),
        'alternate': ({'data'}, {'if'}),
        'command': (set(), {'data', 'returns', 'allow-oob', 'if'}),
        'event': (set(), {'data', 'if'}),
    }

    def __init__(self, path, doc_required):
        self.types = {}
        self.commands, self.events = {}, {}
        self.modules = []
        self.doc_required = doc_required
        for name in BUILTINS:
            self.types[name] = Type('builtin', name)
        for expr in Parser(path).exprs:
            if expr.module not in self.modules:
                self.modules.append(expr.module)
            self._define(expr)
        self._resolve()
        self._check_docs()

    # ---- definitions

    def _define(self, expr):
        kinds = [k for k in self.KEYS if k in expr.data]
        if len(kinds) != 1:
            raise SchemaError(expr.where, 'expected one of include, ' + ', '.join(self.KEYS))
        kind = kinds[0]
        need, may = self.KEYS[kind]
        for key in expr.data:
            if key != kind and key not in need | may:
                raise SchemaError(expr.where, f"{kind} has unknown key '{key}'")
        for key in sorted(need):
            if key not in expr.data:
                raise SchemaError(expr.where, f"{kind} lacks key '{key}'")
        name = expr.data[kind]
        pattern = {'command': MEMBER_NAME, 'event': EVENT_NAME}.get(kind, TYPE_NAME)
        if not isinstance(name, str) or not pattern.match(name):
            raise SchemaError(expr.where, f'bad name {name!r} for {kind}')
        getattr(self, '_define_' + kind)(expr, name)

    def _add(self, table, what, name, thing, where):
        if name in table:
            place = f', also at {table[name].where}' if table[name].where else ''
            raise SchemaError(where, f"{what} '{name}' is defined twice{place}")
        table[name] = thing

    def _condition(self, data, where):
        cond = data.get('if')
        if cond is not None and (not isinstance(cond, str) or not CONDITION.match(cond)):
            raise SchemaError(where, f"'if' must be CONFIG_NAME, not {cond!r}")
        return cond

    def _define_enum(self, expr, name):
        t = Type('enum', name, expr)
        t.cond = self._condition(expr.data, expr.where)
        t.header = expr.data.get('c-header')
        prefix = expr.data.get('prefix', t.prefix)
        if not isinstance(prefix, str) or not re.match(r'[A-Z][A-Z0-9_]*\Z', prefix):
            raise SchemaError(expr.where, f'bad prefix {prefix!r}')
        t.prefix = prefix
        data = expr.data['data']
        if not isinstance(data, list) or not data:
            raise SchemaError(expr.where, f"enum '{name}' needs a list of values")
        for value in data:
            cond = None
            if isinstance(value, dict):
                if 'name' not in value or set(value) - {'name', 'if'}:
                    raise SchemaError(expr.where, "a value has 'name' and perhaps 'if'")
                cond = self._condition(value, expr.where)
                value = value['name']
            if not isinstance(value, str) or not VALUE_NAME.match(value):
                raise SchemaError(expr.where, f'bad value {value!r}')
            if c_upper(value) in [c_upper(v) for v, _ in t.values] + ['_MAX']:
                raise SchemaError(expr.where, f"value '{value}' collides with another")
            t.values.append((value, cond))
        self._add(self.types, 'type', name, t, expr.where)

    def _type_ref(self, ref, where):
        """('Name', is it a list?) of 'Name' or ['Name']."""
        is_list = isinstance(ref, list)
        if is_list:
            if len(ref) != 1:
                raise SchemaError(where, 'a list type names one element type')
            ref = ref[0]
        if not isinstance(ref, str):
            raise SchemaError(where, f'expected the name of a type, not {ref!r}')
        return ref, is_list

    def _members(self, data, where, owner):
        if not isinstance(data, dict):
            raise SchemaError(where, f"'{owner}' needs a dictionary of members")
        result = []
        for name, ref in data.items():
            cond = None
            optional = name.startswith('*')
            name = name[1:] if optional else name
            if isinstance(ref, dict):
                if 'type' not in ref or set(ref) - {'type', 'if'}:
                    raise SchemaError(where, f"member '{name}' has 'type' and perhaps 'if'")
                cond = self._condition(ref, where)
                ref = ref['type']
            if not MEMBER_NAME.match(name) or name.startswith('has-'):
                raise SchemaError(where, f"bad member name '{name}'")
            type_name, is_list = self._type_ref(ref, where)
            result.append(Member(name, optional, type_name, is_list, cond, where))
        return result

    def _define_struct(self, expr, name):
        t = Type('struct', name, expr)
        t.cond = self._condition(expr.data, expr.where)
        t.own = self._members(expr.data['data'], expr.where, name)
        t.base_name = expr.data.get('base')
        if t.base_name is not None and not isinstance(t.base_name, str):
            raise SchemaError(expr.where, "a struct's base is the name of a struct")
        self._add(self.types, 'type', name, t, expr.where)

    def _define_union(self, expr, name):
        t = Type('union', name, expr)
        t.cond = self._condition(expr.data, expr.where)
        t.discriminator = expr.data['discriminator']
        base = expr.data['base']
        if isinstance(base, dict):
            t.own = self._members(base, expr.where, name)
        else:
            t.base_name = self._type_ref(base, expr.where)[0]
        data = expr.data['data']
        if not isinstance(data, dict):
            raise SchemaError(expr.where, f"union '{name}' needs a dictionary of branches")
        for value, ref in data.items():
            cond = None
            if isinstance(ref, dict):
                cond = self._condition(ref, expr.where)
                ref = ref.get('type')
            if not isinstance(ref, str):
                raise SchemaError(expr.where, f"branch '{value}' must name a struct")
            t.branches[value] = (ref, cond)
        self._add(self.types, 'type', name, t, expr.where)

    def _define_alternate(self, expr, name):
        t = Type('alternate', name, expr)
        t.cond = self._condition(expr.data, expr.where)
        t.own = self._members(expr.data['data'], expr.where, name)
        for m in t.own:
            if m.optional or m.is_list or m.cond:
                raise SchemaError(expr.where, f"branch '{m.name}' must be a plain type")
        if len(t.own) < 2:
            raise SchemaError(expr.where, f"alternate '{name}' needs two branches or more")
        self._add(self.types, 'type', name, t, expr.where)

    def _arg_type(self, expr, name, suffix):
        """The type of 'data': named, or an anonymous one made here."""
        data = expr.data.get('data')
        if data is None:
            return None
        if isinstance(data, str):
            return data
        camel = ''.join(w.capitalize() for w in re.split('[-_]', name.lower()))
        t = Type('struct', camel + suffix, expr)
        t.doc = None
        t.own = self._members(data, expr.where, name)
        self._add(self.types, 'type', t.name, t, expr.where)
        return t.name

    def _define_command(self, expr, name):
        c = Command(expr, name)
        c.cond = self._condition(expr.data, expr.where)
        c.arg_name = self._arg_type(expr, name, 'Arg')
        c.allow_oob = expr.data.get('allow-oob', False)
        if not isinstance(c.allow_oob, bool):
            raise SchemaError(expr.where, "'allow-oob' must be true or false")
        if 'returns' in expr.data:
            type_name, is_list = self._type_ref(expr.data['returns'], expr.where)
            c.ret_member = Member('returns', False, type_name, is_list, None, expr.where)
        self._add(self.commands, 'command', name, c, expr.where)

    def _define_event(self, expr, name):
        e = Command(expr, name)
        e.cond = self._condition(expr.data, expr.where)
        e.arg_name = self._arg_type(expr, name, 'EventData')
        self._add(self.events, 'event', name, e, expr.where)

    # ---- references

    def _type(self, name, where):
        if name not in self.types:
            raise SchemaError(where, f"unknown type '{name}'")
        return self.types[name]

    def _member_type(self, m):
        element = self._type(m.type_name, m.where)
        if not m.is_list:
            return element
        name = element.name + '_List'
        if name not in self.types:
            t = Type('list', name)
            t.element, t.where, t.module = element, element.where, element.module
            t.cond = element.cond
            self.types[name] = t
        return self.types[name]

    def _resolve(self):
        defined = [t for t in self.types.values() if t.expr]
        for t in defined:
            if t.base_name:
                t.base = self._type(t.base_name, t.where)
                if t.base.kind != 'struct':
                    raise SchemaError(t.where, f"base '{t.base_name}' is no struct")
            for m in t.own:
                m.type = self._member_type(m)
        for t in defined:
            self._check_bases(t)
        for t in defined:
            self._check_members(t)
            if t.kind == 'union':
                self._check_union(t)
            elif t.kind == 'alternate':
                self._check_alternate(t)
        for c in [*self.commands.values(), *self.events.values()]:
            if c.arg_name:
                c.arg = self._type(c.arg_name, c.where)
                if c.arg.kind not in ('struct', 'union'):
                    raise SchemaError(c.where, f"'data' of '{c.name}' must be a struct or union")
            if c.ret_member:
                c.ret = self._member_type(c.ret_member)

    def _check_bases(self, t):
        seen = [t]
        while t.base:
            t = t.base
            if t in seen:
                raise SchemaError(seen[0].where, f"'{seen[0].name}' is its own base")
            seen.append(t)

    def _check_members(self, t):
        names = {}
        for m in t.members():
            for c in [m.c_name()] + (['has_' + m.c_name()] if m.optional else []):
                if c in names:
                    raise SchemaError(t.where, f"member '{m.name}' of '{t.name}' collides with "
                                      f"'{names[c]}'")
                names[c] = m.name

    def _check_union(self, t):
        tag = [m for m in t.members() if m.name == t.discriminator]
        if not tag:
            raise SchemaError(t.where, f"discriminator '{t.discriminator}' is no base member")
        enum = tag[0].type
        if enum.kind != 'enum' or tag[0].optional or tag[0].cond:
            raise SchemaError(t.where, f"discriminator '{t.discriminator}' must be an enum, "
                              'neither optional nor conditional')
        values = [v for v, _ in enum.values]
        common = {m.c_name() for m in t.members()}
        for value, (name, cond) in t.branches.items():
            if value not in values:
                raise SchemaError(t.where, f"branch '{value}' is no value of '{enum.name}'")
            branch = self._type(name, t.where)
            if branch.kind != 'struct':
                raise SchemaError(t.where, f"branch '{value}' is no struct")
            for m in branch.members():
                if m.c_name() in common:
                    raise SchemaError(t.where, f"member '{m.name}' of branch '{value}' collides "
                                      'with the base')
            t.branches[value] = (branch, cond)

    def _check_alternate(self, t):
        kinds = {}
        for m in t.own:
            if m.type.kind == 'builtin':
                kind = BUILTINS[m.type.name][1]
            else:
                kind = {'enum': 'string', 'struct': 'object', 'union': 'object'}.get(m.type.kind)
            if kind is None:
                raise SchemaError(t.where, f"branch '{m.name}' can't be of type '{m.type.name}'")
            if kind in kinds:
                raise SchemaError(t.where, f"branch '{m.name}' can't be told from '{kinds[kind]}'")
            kinds[kind] = m.name

    # ---- docs

    def _check_docs(self):
        for t in [t for t in self.types.values() if t.expr and t.name in t.expr.data.values()]:
            if t.kind == 'enum':
                names = [v for v, _ in t.values]
            else:
                names = [m.name for m in t.own]
            self._check_doc(t, names)
        for c in [*self.commands.values(), *self.events.values()]:
            inline = c.arg and c.arg.expr and c.arg.where is c.where
            self._check_doc(c, [m.name for m in c.arg.own] if inline else [])

    def _check_doc(self, thing, names):
        doc = thing.doc
        if not doc:
            if self.doc_required:
                raise SchemaError(thing.where, f"'{thing.name}' has no doc comment")
            return
        if doc.symbol != thing.name:
            raise SchemaError(doc.where, f"doc comment is for '{doc.symbol}', but '{thing.name}' "
                              'follows')
        for name in doc.members:
            if name not in names:
                raise SchemaError(doc.where, f"'{thing.name}' has no member '{name}' to document")
        for name in names:
            if self.doc_required and not doc.members.get(name):
                raise SchemaError(doc.where, f"member '{name}' of '{thing.name}' is not documented")
