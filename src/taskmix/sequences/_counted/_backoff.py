"""What may follow a context by the count of all sequences together: where pseudo-counts go.

The levels and their strengths are those of `_chains.py`, learned on sequences left out. The prior of the
rows of generators must not have in it what the rows themselves will count. With one generator it is the
pool of contexts one symbol shorter; with K of them each has about a K-th of what was counted after a
context, and the other (K-1)/K of it are part of its prior (`others`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.sequences._counted._chains import Chains, Strengths, count_chains
from taskmix.sequences._counted._contexts import Codes, Transitions
from taskmix.sequences._counted._strengths import learn_strengths
from taskmix.sequences._generator import Floats

# Strengths are a few numbers: beyond so many transitions, some of the sequences say as much as all.
_ENOUGH = 100_000


@dataclass(frozen=True, eq=False)
class Backoff:
    """Shares of symbols after any context; the last is the end."""

    chains: Chains
    held: Strengths
    halting: bool
    others: float  # the part of a context's own counts that belongs to its prior

    def after(self, contexts: Codes) -> Floats:
        """[context, symbol + 1], the prior mean of the rows of generators."""
        group = np.zeros(len(contexts), np.int64)
        even = even_shares(contexts, self.chains.symbols, halting=self.halting)
        if not self.chains.levels:
            return even
        return self.chains.rows(group, contexts, even, self.held, self.others)

    def strength(self, contexts: Codes) -> Floats:
        """[context], the pseudo-counts of a row."""
        if not len(self.held.strength):
            return np.ones(len(contexts))
        return np.array(self.held.strength)[self.chains.top(contexts)]


def even_shares(contexts: Codes, symbols: int, *, halting: bool) -> Floats:
    """[context, symbol + 1], even; nothing ends before it has begun."""
    rows = np.full((len(contexts), symbols + 1), 1 / (symbols + halting))
    rows[:, -1] *= halting
    rows[contexts == 0] = 1 / symbols
    rows[contexts == 0, -1] = 0.0
    return rows


def even_backoff(symbols: int, order: int, *, halting: bool) -> Backoff:
    """Even shares after every context, which count as one observation."""
    chains = Chains(order, symbols, np.zeros(1), ())
    return Backoff(chains, Strengths((), (), ()), halting, 0.0)


def learn_backoff(
    seen: Transitions,
    weight: Floats,  # [transition]
    *,
    symbols: int,
    order: int,
    halting: bool,
    generators: int = 1,
) -> Backoff:
    """From what followed what in all sequences."""
    group = np.zeros(len(weight), np.int64)
    chains = count_chains(group, seen, weight, groups=1, symbols=symbols, order=order)
    chosen = some_sequences(seen.owner, _ENOUGH)
    part = Transitions(seen.contexts[chosen], seen.symbol[chosen], seen.owner[chosen])
    left = chains.leave_out(group[chosen], part, weight[chosen])
    even = np.where(part.contexts == 0, 1 / symbols, 1 / (symbols + halting))
    held = learn_strengths(left, even, weight[chosen], plain_top=True, mixed=False)
    return Backoff(chains, held, halting, 1 - 1 / generators)


def some_sequences(owner: Codes, enough: int) -> np.ndarray:
    """[transition], whether it is of a sequence that is taken, so that about `enough` are."""
    if len(owner) <= enough:
        return np.ones(len(owner), np.bool_)
    step = -(-len(owner) // enough)
    return np.asarray(owner % step == 0)
