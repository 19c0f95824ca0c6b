# SPDX-License-Identifier: GPL-2.0-or-later
"""A checked schema to C: types and the tables that describe them (include/qapi/qapi.h)."""
from .schema import BUILTINS, c_name, c_upper

LICENCE = '/* SPDX-License-Identifier: GPL-2.0-or-later */\n'
NOTICE = '/* Made by scripts/qapi-gen.py from {}. */\n'


def c_type(t):
    """The C type of a slot of type t, ready to put a name behind."""
    if t.kind == 'builtin':
        c = BUILTINS[t.name][0]
        return c if c.endswith('*') else c + ' '
    if t.kind == 'enum':
        return t.name + ' '
    return t.name + ' *'


def table(t):
    return '&qapi_type_' + t.name


def guarded(cond, text):
    return f'#ifdef {cond}\n{text}#endif\n' if cond else text


def conditions(*conds):
    """Nested conditions around one text."""
    def wrap(text):
        for cond in reversed([c for c in dict.fromkeys(conds) if c]):
            text = guarded(cond, text)
        return text
    return wrap


class CTypes:
    """The header and source of one module."""

    def __init__(self, schema, module, directory):
        self.schema, self.module, self.directory = schema, module, directory
        self.types = [t for t in schema.types.values() if t.module == module]

    def include_name(self, module):
        return f'{self.directory}/{module}-types.h'

    # ---- header

    def header(self):
        guard = c_upper(f'{self.directory}_{self.module}_TYPES_H')
        out = LICENCE + NOTICE.format(self.module + '.json')
        out += f'#ifndef {guard}\n#define {guard}\n\n'
        out += '#include "config-host.h"\n#include "qapi/qapi.h"\n'
        for name in self._headers_needed():
            out += f'#include "{name}"\n'
        out += '\n'
        for t in self.types:
            if t.kind == 'enum' and not t.header:
                out += conditions(t.cond)(self._enum(t))
        out += self._forward()
        for t in self._structs_in_order():
            out += conditions(t.cond)(self._struct(t))
        for t in self.types:
            out += conditions(t.cond)(self._functions(t))
        return out + '#endif\n'

    def _by_value(self, t):
        """Types whose definition that of t needs."""
        found = [m.type for m in t.members() if m.type.kind == 'enum']
        found += [branch for branch, _ in t.branches.values()]
        if t.kind == 'list' and t.element.kind == 'enum':
            found.append(t.element)
        return found

    def _headers_needed(self):
        modules, others = set(), set()
        for t in self.types:
            if t.header:
                others.add(t.header)
            for other in self._by_value(t):
                if other.module != self.module:
                    modules.add(other.module)
        return sorted(others) + [self.include_name(m) for m in sorted(modules)]

    def _enum(self, t):
        out = f'typedef enum {t.name} {{\n'
        for value, cond in t.values:
            out += guarded(cond, f'    {t.value_constant(value)},\n')
        out += f'    {t.prefix}__MAX,\n}} {t.name};\n\n'
        return out

    def _forward(self):
        names = set()
        for t in self.types:
            if t.kind not in ('enum', 'builtin'):
                names.add(t.name)
            for other in [m.type for m in t.members()] + ([t.element] if t.element else []):
                if other.kind in ('struct', 'union', 'alternate') or \
                        other.kind == 'list' and other.element.kind != 'builtin':
                    names.add(other.name)
        return ''.join(f'typedef struct {n} {n};\n' for n in sorted(names)) + '\n'

    def _structs_in_order(self):
        """Branches before the unions that embed them."""
        late = ('union',)
        plain = [t for t in self.types if t.kind in ('struct', 'list', 'alternate')]
        return plain + [t for t in self.types if t.kind in late]

    def _member(self, m):
        out = ''
        if m.optional and not m.type.is_pointer():
            out += f'    bool has_{m.c_name()};\n'
        out += f'    {c_type(m.type)}{m.c_name()};\n'
        return conditions(m.cond, m.type.cond)(out)

    def _struct(self, t):
        if t.kind == 'list':
            return (f'struct {t.name} {{\n    size_t count;\n    {c_type(t.element)}*items;\n'
                    '};\n\n')
        if t.kind == 'alternate':
            return self._alternate(t)
        out = f'struct {t.name} {{\n'
        for m in t.members():
            out += self._member(m)
        if not t.members() and not t.branches:
            out += '    char nothing;       /* C wants a member */\n'
        if t.kind == 'union':
            out += '    union {\n        char nothing;\n'
            for value, (branch, cond) in t.branches.items():
                out += conditions(cond, branch.cond)(f'        {branch.name} {c_name(value)};\n')
            out += '    } u;\n'
        return out + '};\n\n'

    def _alternate(self, t):
        out = f'typedef enum {t.name}Kind {{\n'
        for m in t.own:
            out += f'    {t.prefix}_{c_upper(m.name)},\n'
        out += f'}} {t.name}Kind;\n\nstruct {t.name} {{\n    {t.name}Kind kind;\n    union {{\n'
        for m in t.own:
            out += f'        {c_type(m.type)}{m.c_name()};\n'
        return out + '    } u;\n};\n\n'

    def _functions(self, t):
        if t.kind == 'enum':
            out = '' if t.header else f'extern const EnumTable {t.name}_table;\n'
            return out + f'extern const QapiType qapi_type_{t.name};\n\n'
        n = t.name
        return f'''extern const QapiType qapi_type_{n};

static inline {n} *{n}_from_json(JsonValue *json, bool texts, GError **errp)
{{
    return qapi_from_json(&qapi_type_{n}, json, texts, errp);
}}

static inline JsonValue *{n}_to_json(const {n} *value)
{{
    return qapi_to_json(&qapi_type_{n}, value);
}}

static inline void {n}_free({n} *value)
{{
    qapi_free(&qapi_type_{n}, value);
}}

static inline {n} *{n}_clone(const {n} *value)
{{
    return qapi_clone(&qapi_type_{n}, value);
}}

G_DEFINE_AUTOPTR_CLEANUP_FUNC({n}, {n}_free)

'''

    # ---- source

    def source(self):
        modules = {self.module}
        for t in self.types:
            for other in [m.type for m in t.members()] + [b for b, _ in t.branches.values()]:
                if other.module:
                    modules.add(other.module)
        out = LICENCE + NOTICE.format(self.module + '.json')
        for m in sorted(modules):
            out += f'#include "{self.include_name(m)}"\n'
        out += '\n'
        for t in self.types:
            out += conditions(t.cond)(getattr(self, '_table_' + t.kind)(t))
        return out

    def _table_enum(self, t):
        if t.header:
            out = ''
            for i, (value, _) in enumerate(t.values):
                out += f'_Static_assert({t.value_constant(value)} == {i}, "{t.header}");\n'
            out += f'_Static_assert({t.prefix}__MAX == {len(t.values)}, "{t.header}");\n'
        else:
            out = f'static const char *const {t.name}_names[] = {{\n'
            for value, cond in t.values:
                out += guarded(cond, f'    [{t.value_constant(value)}] = "{value}",\n')
            out += f'''}};

const EnumTable {t.name}_table = {{
    .type = "{t.name}",
    .names = {t.name}_names,
    .count = {t.prefix}__MAX,
}};

'''
        return out + f'''const QapiType qapi_type_{t.name} = {{
    .name = "{t.name}",
    .kind = QAPI_ENUM,
    .size = sizeof({t.name}),
    .names = &{t.name}_table,
}};

'''

    def _table_list(self, t):
        return f'''const QapiType qapi_type_{t.name} = {{
    .name = "{t.name}",
    .kind = QAPI_LIST,
    .size = sizeof({t.name}),
    .element = {table(t.element)},
}};

'''

    def _members(self, t):
        out = f'static const QapiMember {t.name}_members[] = {{\n'
        for m in t.members():
            has = 'QAPI_NO_HAS'
            if m.optional and not m.type.is_pointer():
                has = f'offsetof({t.name}, has_{m.c_name()})'
            text = f'    {{ "{m.name}", {table(m.type)}, offsetof({t.name}, {m.c_name()}), {has},\n'
            text += f'      {"true" if m.optional else "false"} }},\n'
            out += conditions(m.cond, m.type.cond)(text)
        return out + '};\n\n'

    def _table_struct(self, t):
        out = self._members(t) if t.members() else ''
        out += f'''const QapiType qapi_type_{t.name} = {{
    .name = "{t.name}",
    .kind = QAPI_OBJECT,
    .size = sizeof({t.name}),
'''
        if t.members():
            out += f'''    .members = {t.name}_members,
    .member_count = G_N_ELEMENTS({t.name}_members),
'''
        return out + '};\n\n'

    def _table_union(self, t):
        tag = next(m for m in t.members() if m.name == t.discriminator)
        at = f'{t.name}_tag'
        out = self._members(t)
        out += f'static const QapiMember {at} = {{\n    "{tag.name}", {table(tag.type)}, '
        out += f'offsetof({t.name}, {tag.c_name()}), QAPI_NO_HAS, false\n}};\n\n'
        out += f'static const QapiType *const {t.name}_branches[{tag.type.prefix}__MAX] = {{\n'
        value_conds = dict(tag.type.values)
        for value, (branch, cond) in t.branches.items():
            text = f'    [{tag.type.value_constant(value)}] = {table(branch)},\n'
            out += conditions(cond, branch.cond, value_conds[value])(text)
        return out + f'''}};

const QapiType qapi_type_{t.name} = {{
    .name = "{t.name}",
    .kind = QAPI_OBJECT,
    .size = sizeof({t.name}),
    .members = {t.name}_members,
    .member_count = G_N_ELEMENTS({t.name}_members),
    .tag = &{at},
    .branches = {t.name}_branches,
    .branch_offset = offsetof({t.name}, u),
}};

'''

    def _table_alternate(self, t):
        out = f'static const QapiMember {t.name}_members[] = {{\n'
        for m in t.own:
            out += (f'    [{t.prefix}_{c_upper(m.name)}] = {{ "{m.name}", {table(m.type)}, '
                    f'offsetof({t.name}, u),\n      QAPI_NO_HAS, false }},\n')
        return out + f'''}};

const QapiType qapi_type_{t.name} = {{
    .name = "{t.name}",
    .kind = QAPI_ALTERNATE,
    .size = sizeof({t.name}),
    .members = {t.name}_members,
    .member_count = G_N_ELEMENTS({t.name}_members),
    .branch_offset = offsetof({t.name}, u),
}};

'''


def schema_header(name, directory):
    guard = c_upper(f'{directory}_{name}_H')
    return (LICENCE + NOTICE.format('the schema') +
            f'#ifndef {guard}\n#define {guard}\n\n#include "qapi/qapi.h"\n\n'
            f'extern const QapiSchema {name};\n\n#endif\n')


def schema_source(schema, name, directory):
    """The list of all that there is, for introspection and the dispatcher."""
    out = LICENCE + NOTICE.format('the schema')
    out += f'#include "{directory}/{name.replace("_", "-")}.h"\n'
    for module in sorted(schema.modules):
        out += f'#include "{directory}/{module}-types.h"\n'
    out += '\nstatic const QapiType *const types[] = {\n'
    for t in sorted((t for t in schema.types.values() if t.module), key=lambda t: t.name):
        out += conditions(t.cond)(f'    {table(t)},\n')
    out += '    NULL\n};\n\nstatic const QapiCommand commands[] = {\n'
    for c in sorted(schema.commands.values(), key=lambda c: c.name):
        arg = table(c.arg) if c.arg else 'NULL'
        ret = table(c.ret) if c.ret else 'NULL'
        oob = 'true' if c.allow_oob else 'false'
        out += conditions(c.cond)(f'    {{ "{c.name}", {arg}, {ret}, {oob} }},\n')
    out += '    { NULL, NULL, NULL, false }\n};\n\nstatic const QapiEvent events[] = {\n'
    for e in sorted(schema.events.values(), key=lambda e: e.name):
        arg = table(e.arg) if e.arg else 'NULL'
        out += conditions(e.cond)(f'    {{ "{e.name}", {arg} }},\n')
    return out + f'''    {{ NULL, NULL }}
}};

const QapiSchema {name} = {{
    .types = types,
    .type_count = G_N_ELEMENTS(types) - 1,
    .commands = commands,
    .command_count = G_N_ELEMENTS(commands) - 1,
    .events = events,
    .event_count = G_N_ELEMENTS(events) - 1,
}};
'''
