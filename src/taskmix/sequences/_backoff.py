"""What may follow a context by the count of all sequences together: where pseudo-counts go.

The levels and their strengths are those of `_chains.py`, learned on sequences left out
(`learn_strengths`). The prior of the rows of generators must not have in it what the rows themselves
will count. With one generator it is the pool of contexts one symbol shorter; with K of them each has
about a K-th of what was counted after a context, and the other (K-1)/K of it are part of its prior
(`others`).

Strengths are what foresees sequences best that were left out. The counts are those without the sequence
itself (`Chains.leave_out`), so that no sequence is foreseen from itself. The gradient is exact; the
priors on strengths and discounts are so wide that they matter only where nothing else speaks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from taskmix.sequences._chains import Chains, Codes, Counted, Strengths, Transitions, count_chains
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


_LEAST = 1e-300
# Log-strengths, and log-odds of discounts and of the outside parent: mean and spread of their priors.
_CENTRES = (np.log(4.0), logit(0.4), logit(0.4))
_SPREAD = 2.0
_NEAR = 1.0  # the spread of groups around what all of them have; more, and small groups over-fit


def backed_off_steps(
    counted: Counted, outside: Floats, held: Strengths, group: Codes | None = None
) -> Floats:
    """[transition], its probability by the longest contexts; `outside` is that by Q. `group` is that of
    each transition, where groups are held differently."""
    found, table = outside, held.table(np.zeros(1, np.int64) if group is None else group)
    for place in range(len(counted.times)):
        found, _, _ = _step(counted, outside, table[:, place], place, found)
    return np.asarray(found)


def learn_strengths(
    counted: Counted,
    outside: Floats,
    weight: Floats,
    *,
    plain_top: bool = False,  # no discount at the top, whose counts will be fractions
    mixed: bool = True,  # whether Q is a parent of every level, or of the lowest alone
) -> Strengths:
    """The most likely strengths, discounts and parts of the outside."""
    count = len(counted.times)
    free = np.ones((3, count), np.bool_)
    free[1, -1] = not plain_top
    free[2] = mixed
    free[2, 0] = False  # Q is its only parent
    centres = np.repeat(np.array(_CENTRES)[:, None], count, axis=1)
    one = np.zeros(len(weight), np.int64)
    values = _most_likely(
        counted, outside, weight, one, centres[:, :, None], free, spread=_SPREAD, iterations=60
    )
    return _held(values[:, :, 0], free)


def learn_strengths_of_groups(
    counted: Counted, outside: Floats, weight: Floats, group: Codes, groups: int, usual: Strengths
) -> Strengths:
    """Strengths of each group as its own transitions say, near the `usual` ones of all of them."""
    free = np.ones((3, len(counted.times)), np.bool_)
    free[2, 0] = False
    known = np.array([usual.strength, usual.discount, usual.outside])
    inside = np.clip(known[1:], 1e-5, 1 - 1e-5)
    centres = np.concatenate([np.log(known[:1]), logit(inside)])
    start = np.repeat(centres[:, :, None], groups, axis=2)
    values = _most_likely(counted, outside, weight, group, start, free, spread=_NEAR, iterations=20)
    each = tuple(_held(values[:, :, place], free) for place in range(groups))
    return replace(usual, groups=each)


def _most_likely(
    counted: Counted,
    outside: Floats,
    weight: Floats,
    group: Codes,  # [transition]
    centres: Floats,  # [kind, level, group]
    free: np.ndarray,  # [kind, level]
    *,
    spread: float,
    iterations: int,
) -> Floats:
    """[kind, level, group], log-strengths and log-odds; groups do not touch each other."""
    values, count, groups = centres.copy(), centres.shape[1], centres.shape[2]

    def total(slopes: Floats) -> Floats:
        return np.asarray(np.bincount(group, slopes, groups), dtype=np.float64)

    def level(free_values: Floats) -> tuple[float, Floats]:
        values[free] = free_values.reshape(-1, groups)
        table = _table(values, free)[:, :, group if groups > 1 else slice(None)]
        steps, found = [], outside
        for place in range(count):
            found, kept, base = _step(counted, outside, table[:, place], place, found)
            steps.append((kept, base))
        safe = np.maximum(found, _LEAST)
        value = float(weight @ np.log(safe))
        slope = np.zeros_like(values)
        pull = weight / safe
        for place in reversed(range(count)):
            kept, base = steps[place]
            strength, discount, outer = table[:, place]
            whole = counted.totals[place] + strength
            share = (strength + discount * counted.kinds[place]) / whole
            slope[0, place] = total(pull * ((base * (1 - share) - kept) / whole) * strength)
            ones = np.minimum(counted.times[place], 1.0)
            change = (counted.kinds[place] * base - ones) / whole
            slope[1, place] = total(pull * change * discount * (1 - discount))
            if place:
                lower = _probability(counted, table[:, place - 1], place - 1, *steps[place - 1])
                slope[2, place] = total(pull * share * (outside - lower) * outer * (1 - outer))
                pull = pull * share * (1 - outer)
        away = (values - centres) / spread**2
        prior = -0.5 * (away * (values - centres))[free].sum()
        return -(value + prior), -(slope - away)[free].ravel()

    found = minimize(
        level, values[free].ravel(), jac=True, method="L-BFGS-B",
        bounds=[(-12.0, 12.0)] * int(free.sum() * groups), options={"maxiter": iterations},
    )  # fmt: skip
    values[free] = found.x.reshape(-1, groups)
    return values


def _table(values: Floats, free: np.ndarray) -> Floats:
    """Strengths, discounts and parts of the outside, as their logarithms and log-odds say."""
    shares = np.where(free[1:, :, None], expit(values[1:]), 0.0)
    return np.concatenate([np.exp(values[:1]), shares])


def _held(values: Floats, free: np.ndarray) -> Strengths:
    return Strengths(*(tuple(each) for each in _table(values[:, :, None], free)[:, :, 0].tolist()))


def _step(
    counted: Counted, outside: Floats, held: Floats, place: int, found: Floats
) -> tuple[Floats, Floats, Floats]:
    """The probability of one level more, the part of the counts in it and what it backs off to."""
    strength, discount, outer = held
    base = (1 - outer) * found + outer * outside
    times = counted.times[place]
    kept = times - discount * np.minimum(times, 1.0)
    kept = kept / np.maximum(counted.totals[place] + strength, _LEAST)
    return _probability(counted, held, place, kept, base), kept, base


def _probability(counted: Counted, held: Floats, place: int, kept: Floats, base: Floats) -> Floats:
    strength, discount, _ = held
    spread = strength + discount * counted.kinds[place]
    return np.asarray(kept + spread / np.maximum(counted.totals[place] + strength, _LEAST) * base)
