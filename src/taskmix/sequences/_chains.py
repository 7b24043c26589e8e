r"""Counts of what follows what, of several groups at once, each context backed off to the shorter one.

    Teh, "A Hierarchical Bayesian Language Model based on Pitman-Yor Processes", ACL 2006, Eq. 5 with one
    table for each symbol (interpolated Kneser-Ney); Wood and Teh, "A Hierarchical Nonparametric Bayesian
    Approach to Statistical Language Model Domain Adaptation", AISTATS 2009, for the second parent.

With the count N of a symbol, T of all and U of the different symbols after a context of length n,

$P_n(s) = (N - d_n \min(N, 1) + (\lambda_n + d_n U)\, B_n(s)) / (T + \lambda_n)$, where
$B_n = (1-\rho_n) P_{n-1} + \rho_n Q$ and $P_{-1} = Q$.

Q is what is known without these counts: even shares where all sequences are one group (a pool), what
a mixture foresees where a group is a task. $\lambda$ is `strength`, d `discount` and $\rho$ `outside` of
`Strengths`; `_backoff.py` learns them. Nothing ends before it has begun: at the beginning ends are
left out of N, T and U. Counts may be fractions.

A context is a number whose digits to the base of the alphabet plus one are its symbols plus one, the
latest in the lowest place; zero is the empty context at the beginning of a sequence. In a model of
order 0 there are two contexts, the beginning (0) and everywhere else (1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.sequences._generator import Floats
from taskmix.sequences._sequences import Sequences


@dataclass(frozen=True, eq=False)
class Level:
    """Contexts of one length, of each group that has them."""

    contexts: Codes  # [context], in order
    pairs: Codes  # [pair], group times contexts plus place of the context, in order
    totals: Floats  # [pair]
    kinds: Floats  # [pair], different symbols
    keys: Codes  # [key], pair times symbols plus symbol, in order
    counts: Floats  # [key]


@dataclass(frozen=True)
class Strengths:
    """How much each level is held to the one below it; from the shortest contexts on."""

    strength: tuple[float, ...]
    discount: tuple[float, ...]
    outside: tuple[float, ...]
    groups: tuple[Strengths, ...] = ()  # of the first groups, where each has its own

    def table(self, group: Codes) -> Floats:
        """[strength, discount and outside; level; row], where rows of one column stand for all."""
        usual = np.array([self.strength, self.discount, self.outside])[:, :, None]
        if not self.groups:
            return usual
        each = [[one.strength, one.discount, one.outside] for one in self.groups]
        whole = np.concatenate([np.array(each).transpose(1, 2, 0), usual], axis=2)
        known = (group >= 0) & (group < len(self.groups))
        return np.asarray(whole[:, :, np.where(known, group, len(self.groups))])


@dataclass(frozen=True, eq=False)
class Counted:
    """N, T and U of some transitions at each level [level, transition]."""

    times: Floats
    totals: Floats
    kinds: Floats

    def select(self, rows: np.ndarray) -> Counted:
        """Of some of the transitions."""
        return Counted(self.times[:, rows], self.totals[:, rows], self.kinds[:, rows])


@dataclass(frozen=True, eq=False)
class Chains:
    """Counts of every group at every length of context, from no context at all on."""

    order: int
    symbols: int
    ends: Floats  # [group]
    levels: tuple[Level, ...]

    def look_up(self, group: Codes, contexts: Codes, symbol: Codes) -> Counted:
        """The counts that matter for these transitions."""
        found = np.zeros((3, len(self.levels), len(contexts)))
        for place, (level, codes) in enumerate(
            zip(self.levels, self._codes(contexts), strict=True)
        ):
            if not len(level.pairs):
                continue  # no sequence is that long
            pair, known = _pairs(level, group, codes)
            key = _find(level.keys, np.where(known, pair * (self.symbols + 1) + symbol, -1))
            found[0, place] = np.where(key >= 0, level.counts[key], 0.0)
            found[1, place] = np.where(known, level.totals[pair], 0.0)
            found[2, place] = np.where(known, level.kinds[pair], 0.0)
        ended = np.where(contexts == 0, self.ends[group], 0.0)
        found[1, 0] -= ended
        found[2, 0] -= np.minimum(ended, 1.0)
        return Counted(*found)

    def leave_out(self, group: Codes, seen: Transitions, weight: Floats) -> Counted:
        """The same as if the sequence that a transition is from had not been counted (one copy of it,
        where its `weight` [transition] is of several)."""
        whole = self.look_up(group, seen.contexts, seen.symbol)
        times, totals, kinds = whole.times.copy(), whole.totals.copy(), whole.kinds.copy()
        copies, width = np.minimum(weight, 1.0), self.symbols + 1
        for place, (level, codes) in enumerate(
            zip(self.levels, self._codes(seen.contexts), strict=True)
        ):
            pair, known = _pairs(level, group, codes)
            if not known.any():
                continue
            pair, owner = pair[known], seen.owner[known]
            rows, row = np.unique(owner * len(level.pairs) + pair, return_inverse=True)
            cells, cell = np.unique(row * width + seen.symbol[known], return_inverse=True)
            one = copies[known]
            here, gone = np.bincount(row, one), np.bincount(cell, one)
            before = np.empty(len(cells))
            before[cell] = whole.times[place, known]
            lost = np.minimum(before, 1.0) - np.minimum(np.maximum(before - gone, 0.0), 1.0)
            times[place, known] -= gone[cell]
            totals[place, known] -= here[row]
            kinds[place, known] -= np.bincount(cells // width, lost, len(rows))[row]
        begins = seen.contexts == 0
        if begins.any():
            left = np.zeros(int(seen.owner.max()) + 1)
            is_end = seen.symbol == self.symbols
            np.add.at(left, seen.owner[is_end], copies[is_end])
            back, ends = left[seen.owner[begins]], self.ends[group[begins]]
            totals[0, begins] += back  # they were taken off with all ends before
            kinds[0, begins] += np.minimum(ends, 1.0) - np.minimum(
                np.maximum(ends - back, 0.0), 1.0
            )
        return Counted(*(np.maximum(each, 0.0) for each in (times, totals, kinds)))

    def rows(
        self,
        group: Codes,
        contexts: Codes,
        outside: Floats,
        held: Strengths,
        top_part: float = 1.0,  # of the counts at the longest context there is
    ) -> Floats:
        """[row, symbol + 1], after each context in a group, where `outside` are those of Q."""
        found, top, table = outside, self.top(contexts), held.table(group)
        for place, (level, codes) in enumerate(
            zip(self.levels, self._codes(contexts), strict=True)
        ):
            counts = np.zeros((len(contexts), self.symbols + 1))
            totals, kinds = np.zeros(len(contexts)), np.zeros(len(contexts))
            if len(level.pairs):
                pair, known = _pairs(level, group, codes)
                counts = _scatter(level, pair, known, self.symbols + 1)
                totals, kinds = level.totals[pair] * known, level.kinds[pair] * known
            if place == 0:
                begins = contexts == 0
                counts[begins, -1] = 0.0
                ended = np.where(begins, self.ends[group], 0.0)
                totals, kinds = totals - ended, kinds - np.minimum(ended, 1.0)
            part = np.where(top == place, top_part, 1.0)
            counts, totals, kinds = counts * part[:, None], totals * part, kinds * part
            strength, discount, outer = table[:, place]
            base = (1 - outer)[:, None] * found + outer[:, None] * outside
            kept = counts - discount[:, None] * np.minimum(counts, 1.0)
            spread = (strength + discount * kinds)[:, None]
            found = (kept + spread * base) / np.maximum(totals + strength, 1e-300)[:, None]
        return np.asarray(found)

    def with_more(self, group: Codes, seen: Transitions, weight: Floats, groups: int) -> Chains:
        """With more counted, of groups that may be new."""
        more = count_chains(
            group, seen, weight, groups=groups, symbols=self.symbols, order=self.order
        )
        ends = more.ends.copy()
        ends[: len(self.ends)] += self.ends
        width, levels = self.symbols + 1, []
        for parts in zip(self.levels, more.levels, strict=True):
            pairs = [level.keys // width for level in parts]
            owners = [
                level.pairs[pair] // len(level.contexts)
                for level, pair in zip(parts, pairs, strict=True)
            ]
            codes = [
                level.contexts[level.pairs[pair] % len(level.contexts)]
                for level, pair in zip(parts, pairs, strict=True)
            ]
            symbol = np.concatenate([level.keys % width for level in parts])
            counts = np.concatenate([level.counts for level in parts])
            levels.append(
                _count(np.concatenate(owners), np.concatenate(codes), symbol, counts, width)
            )
        return Chains(self.order, self.symbols, ends, tuple(levels))

    def of_group(self, group: int) -> Chains:
        """The counts of one group alone, in which its transitions are looked up much faster."""
        width, levels = self.symbols + 1, []
        for level in self.levels:
            begin = group * len(level.contexts)
            low, high = np.searchsorted(level.pairs, [begin, begin + len(level.contexts)])
            first, last = np.searchsorted(level.keys, [low * width, high * width])
            levels.append(
                Level(
                    level.contexts[level.pairs[low:high] - begin],
                    np.arange(high - low),
                    level.totals[low:high],
                    level.kinds[low:high],
                    level.keys[first:last] - low * width,
                    level.counts[first:last],
                )
            )
        return Chains(self.order, self.symbols, self.ends[[group]], tuple(levels))

    def top(self, contexts: Codes) -> Codes:
        """[context], the level of the longest context: shorter where a sequence has just begun."""
        if self.order == 0:
            return np.asarray(contexts == 0, np.int64)
        bounds = np.array(
            [(self.symbols + 1) ** place for place in range(self.order - 1)], np.int64
        )
        return np.asarray(1 + np.searchsorted(bounds, contexts, side="right"))

    def _codes(self, contexts: Codes) -> list[Codes]:
        """The contexts shortened for each level."""
        if self.order == 0:
            return [np.zeros_like(contexts), np.where(contexts == 0, 0, -1)]
        base = self.symbols + 1
        shorter = [contexts % base**length for length in range(1, self.order)]
        return [np.zeros_like(contexts), *shorter, contexts]


def count_chains(
    group: Codes, seen: Transitions, weight: Floats, *, groups: int, symbols: int, order: int
) -> Chains:
    """From transitions, each of a group and counted by its weight."""
    ends = np.bincount(group, np.where(seen.symbol == symbols, weight, 0.0), minlength=groups)
    empty = Chains(order, symbols, ends.astype(np.float64), ())
    levels = []
    for length, codes in enumerate(empty._codes(seen.contexts)):
        # A context that is shorter than its level because the sequence has just begun says the same as
        # on the level below, and is not counted twice.
        counted = codes >= (symbols + 1) ** (length - 2) if length > 1 else codes >= 0
        levels.append(_count(group[counted], codes[counted], seen.symbol[counted], weight[counted],
                             symbols + 1))  # fmt: skip
    return Chains(order, symbols, empty.ends, tuple(levels))


def _count(group: Codes, codes: Codes, symbol: Codes, weight: Floats, width: int) -> Level:
    contexts, place = np.unique(codes, return_inverse=True)
    pairs, pair = np.unique(group * len(contexts) + place, return_inverse=True)
    keys, key = np.unique(pair * width + symbol, return_inverse=True)
    counts = np.bincount(key, weight, len(keys)).astype(np.float64)
    owner = keys // width
    totals = np.bincount(owner, counts, len(pairs)).astype(np.float64)
    kinds = np.bincount(owner, np.minimum(counts, 1.0), len(pairs)).astype(np.float64)
    return Level(contexts, pairs, totals, kinds, keys, counts)


def _find(sorted_values: Codes, wanted: Codes) -> Codes:
    """Places, or -1."""
    if not len(sorted_values):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(sorted_values, wanted), len(sorted_values) - 1)
    return np.where(sorted_values[place] == wanted, place, -1)


def _pairs(level: Level, group: Codes, codes: Codes) -> tuple[Codes, np.ndarray]:
    """The pair of each, 0 where there is none, and whether there is one."""
    context = _find(level.contexts, codes)
    wanted = np.where((context >= 0) & (group >= 0), group * len(level.contexts) + context, -1)
    pair = _find(level.pairs, wanted)
    return np.maximum(pair, 0), pair >= 0


def _scatter(level: Level, pair: Codes, known: np.ndarray, width: int) -> Floats:
    """[row, symbol + 1], the counts of each pair."""
    counts = np.zeros((len(pair), width))
    starts = np.searchsorted(level.keys, pair * width)
    sizes = (np.searchsorted(level.keys, (pair + 1) * width) - starts) * known
    rows = np.repeat(np.arange(len(pair)), sizes)
    ends = np.cumsum(sizes)
    keys = np.repeat(starts - ends + sizes, sizes) + np.arange(int(sizes.sum()))
    counts[rows, level.keys[keys] % width] = level.counts[keys]
    return counts


Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Transitions:
    """Everything observed, ends among them, observation by observation and then end by end."""

    contexts: Codes  # what came before
    symbol: Codes  # the size of the alphabet stands for the end
    owner: Codes  # the sequence


def longest_order(symbols: int) -> int:
    """The longest contexts that can still be numbered."""
    return int(61 // np.log2(symbols + 1))


def context_codes(sequences: Sequences, order: int, *, after: bool) -> Codes:
    """[observation], the context before it, or the one it leaves."""
    base = sequences.symbols + 1
    if base ** max(order, 1) >= 2**62:
        raise OptionError(
            f"`order` {order} over {sequences.symbols} symbols should have fewer contexts than 2^62. "
            "Lower the order."
        )
    place = np.arange(len(sequences.values)) - np.repeat(sequences.starts[:-1], sequences.lengths)
    if order == 0:
        return (place >= (0 if after else 1)).astype(np.int64)
    contexts = np.zeros(len(place), np.int64)
    for back in range(order):
        shift = back if after else back + 1
        digit = np.zeros(len(place), np.int64)
        digit[shift:] = sequences.values[: max(len(place) - shift, 0)] + 1
        digit[place < shift] = 0
        contexts += digit * base**back
    return contexts


def find_transitions(sequences: Sequences, order: int, *, halting: bool) -> Transitions:
    """What followed what; missing symbols are left out."""
    contexts = context_codes(sequences, order, after=False)
    symbol = sequences.values.astype(np.int64)
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    seen = symbol >= 0
    parts = [(contexts[seen], symbol[seen], owner[seen])]
    if halting:
        begun = np.flatnonzero(sequences.lengths)  # a prefix may be empty
        last = context_codes(sequences, order, after=True)[sequences.starts[begun + 1] - 1]
        parts.append((last, np.full(len(begun), sequences.symbols), begun))
    return Transitions(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def context_of(symbols: list[int], order: int, base: int) -> int:
    """The context after these symbols."""
    if order == 0:
        return int(len(symbols) > 0)
    recent = symbols[-order:][::-1]
    return sum((int(symbol) + 1) * base**back for back, symbol in enumerate(recent))
