# SPDX-License-Identifier: GPL-2.0-or-later
"""Plain text tables, and figures in the width of a column."""


def number(value, digits=3):
    """At most @digits significant digits, no exponent; '-' for None."""
    if value is None:
        return '-'
    if value == 0:
        return '0'
    magnitude, size = 0, abs(value)
    while size >= 10:
        size /= 10
        magnitude += 1
    while size < 1:
        size *= 10
        magnitude -= 1
    decimals = max(0, min(digits - 1 - magnitude, 3))
    text = f'{value:.{decimals}f}'
    return '<0.001' if float(text) == 0 else text


def micros(ns):
    return number(None if ns is None else ns / 1000)


def kilo(value):
    return number(None if value is None else value / 1000)


def percent(share):
    return '-' if share is None else f'{100 * share:.0f}%'


def milli(ns):
    return number(None if ns is None else ns / 1e6)


def render(header, rows, left=1):
    """Lines; the first @left columns are aligned to the left, the others to the right. A row that
    is a string stands alone."""
    cells = [header] + [r for r in rows if not isinstance(r, str)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row):
        if isinstance(row, str):
            return row
        return '  '.join(c.ljust(w) if i < left else c.rjust(w)
                         for i, (c, w) in enumerate(zip(row, widths))).rstrip()

    return [line(header)] + [line(r) for r in rows]


def wrap(text, width=78, indent=''):
    """Lines of at most @width columns."""
    lines, current = [], indent
    for word in text.split():
        if len(current) > len(indent) and len(current) + 1 + len(word) > width:
            lines.append(current)
            current = indent
        current += (' ' if len(current) > len(indent) else '') + word
    return lines + [current]
