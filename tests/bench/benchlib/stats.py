# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians, and ratios between runs that stood side by side."""


def median(values):
    """None for no values. Of an even number: the mean of the two in the middle."""
    ordered = sorted(v for v in values if v is not None)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def ratio(a, b):
    """a / b; None where there is nothing to divide, or nothing to divide by."""
    if a is None or b is None or b <= 0:
        return None
    return a / b


def polled_share(sleeps_per_io):
    """The share of the requests that were served without a sleep, at least."""
    return None if sleeps_per_io is None else max(0.0, 1 - sleeps_per_io)


class Spread:
    """The median of some ratios, and the least and the largest of them."""

    def __init__(self, values):
        self.values = [v for v in values if v is not None]
        self.median = median(self.values)
        self.low = min(self.values, default=None)
        self.high = max(self.values, default=None)

    def __bool__(self):
        return self.median is not None

    def text(self, unit=''):
        if not self:
            return '-'
        text = f'{self.median:.2f}{unit}'
        if len(self.values) > 1:
            text += f' ({self.low:.2f} to {self.high:.2f})'
        return text


def pairs(ours, stock):
    """Samples of both sides that belong together, [(ours, stock)]: those of the same pair, each
    used once. Where a pair was repeated its last one counts."""
    theirs = {s['pair']: s for s in stock}
    return [(s, theirs[s['pair']]) for s in ours if s['pair'] in theirs]


def pairwise(ours, stock, value):
    """Spread of value(our sample) / value(stock's sample of the same pair)."""
    return Spread(ratio(value(a), value(b)) for a, b in pairs(ours, stock))


def by_round(samples):
    """{round: sample}; of several in one round the last."""
    return {s['round']: s for s in samples}


def moved(values, limit):
    """True if the largest of the values is more than @limit times the least."""
    known = [v for v in values if v]
    return len(known) > 1 and max(known) > limit * min(known)
