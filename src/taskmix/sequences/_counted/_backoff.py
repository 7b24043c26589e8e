r"""What may follow a context by the count of all sequences together, backed off to shorter contexts.

    Witten and Bell, "The zero-frequency problem", IEEE Trans. Information Theory 1991, method C in its
    interpolated form: $P(s|c) = (N(c,s) + T(c) P(s|c')) / (N(c) + T(c))$, where c' is c without its
    oldest symbol and T(c) the number of different symbols seen after c.

It is where the pseudo-counts of a Markov chain go. A context is a number whose digits to the base of
the alphabet plus one are its symbols plus one, the latest in the lowest place; zero is the empty
context at the beginning of a sequence, after which nothing halts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._generator import Floats

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Level:
    """Contexts of one length in order, and what follows them."""

    contexts: Codes
    shares: Floats  # [context, symbol + 1]


@dataclass(frozen=True, eq=False)
class Backoff:
    """Levels from the longest contexts to the shortest; the last row of all is the end."""

    first: Floats  # [symbol + 1], after the empty context
    plain: Floats  # [symbol + 1], after any other where no level knows more
    levels: tuple[Level, ...]

    def after(self, contexts: Codes, order: int) -> Floats:
        """[context, symbol + 1]"""
        found = self._after(contexts, order, len(self.levels) - 1)
        found[contexts == 0] = self.first
        return found

    def _after(self, contexts: Codes, order: int, level: int) -> Floats:
        if level < 0:
            return np.repeat(self.plain[None], len(contexts), axis=0)
        known = self.levels[level]
        found = np.empty((len(contexts), len(self.plain)))
        place = np.minimum(np.searchsorted(known.contexts, contexts), len(known.contexts) - 1)
        there = known.contexts[place] == contexts
        found[there] = known.shares[place[there]]
        if not there.all():
            found[~there] = self._after(
                shorten(contexts[~there], order, len(self.plain)), order - 1, level - 1
            )
        return found


def shorten(contexts: Codes, order: int, base: int) -> Codes:
    """Without the oldest symbol; of none at all, one code stands for every place but the first."""
    return contexts % base ** (order - 1) if order > 1 else np.ones_like(contexts)


def even_backoff(symbols: int, *, halting: bool) -> Backoff:
    """Even shares after every context."""
    first, plain = np.full(symbols + 1, 1 / symbols), np.full(symbols + 1, 1 / (symbols + halting))
    first[-1] = 0.0
    plain[-1] *= halting
    return Backoff(first, plain, ())


def learn_backoff(
    counts: list[tuple[Codes, Codes, Floats]],  # contexts, symbols and how often, from order 0 on
    symbols: int,
    *,
    halting: bool,
) -> Backoff:
    """From how often what followed what."""
    backoff = even_backoff(symbols, halting=halting)
    for order, (contexts, symbol, times) in enumerate(counts):
        begins = contexts == 0
        if order == 0:
            everywhere = np.bincount(symbol, times, symbols + 1).astype(np.float64)
            everywhere[-1] = 0.0
            common = _mixed(everywhere[None], backoff.first[None])[0]
            starting = np.bincount(symbol[begins], times[begins], symbols + 1)
            first = _mixed(starting[None].astype(np.float64), common[None])[0]
            backoff = Backoff(first, backoff.plain, ())
        seen, row = np.unique(contexts[~begins], return_inverse=True)
        if not len(seen):
            break
        table = np.zeros((len(seen), symbols + 1))
        np.add.at(table, (row, symbol[~begins]), times[~begins])
        below = (
            backoff.after(shorten(seen, order, symbols + 1), order - 1) if order else backoff.plain
        )
        level = Level(seen, _mixed(table, np.broadcast_to(below, table.shape)))
        backoff = Backoff(backoff.first, backoff.plain, (*backoff.levels, level))
    return backoff


def _mixed(counts: Floats, below: Floats) -> Floats:
    different = (counts > 0).sum(axis=1, keepdims=True).clip(1)
    total = counts.sum(axis=1, keepdims=True) + different
    return np.asarray((counts + different * below) / total)
