r"""Symbols: what each task has counted, backed off to what the shared generators foresee.

The task's counts of contexts of every length up to `order` are the levels of `_chains.py`. Its
Q is what the mixture foresees after the whole prefix, $\sum_k w_k P_k(s|\text{prefix})$ with
$w_k \propto \theta_k P_k(\text{prefix})$. With few sequences a task speaks as its mixture does, with
many as it did itself. Strengths are learned where both sides are honest: the counts without the sequence
itself, Q from generators that were fitted without it. Each task has its own, near those of all tasks,
where strengths that half of a task's sequences say foresee the other half better.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.numerics import log_sum_exp
from taskmix.sequences._backoff import (
    backed_off_steps,
    learn_strengths,
    learn_strengths_of_groups,
    some_sequences,
)
from taskmix.sequences._bank import Bank
from taskmix.sequences._chains import (
    Chains,
    Codes,
    Counted,
    Strengths,
    Transitions,
    context_codes,
    count_chains,
    find_transitions,
    longest_order,
)
from taskmix.sequences._corpus import Corpus
from taskmix.sequences._generator import Floats, check_whole, prefix_rows, running_totals, safe_log
from taskmix.sequences._sequences import Sequences

_ENOUGH = 200_000  # transitions that strengths are learned from
_SHORT = 4  # symbols of contexts that need not prove their worth


@dataclass(frozen=True)
class OwnStrengths:
    """How far a task's own counts of symbols go, and how strongly they hold; learned where `held` is
    None.
    """

    order: int = 8  # symbols of the longest context; 4 where more do not pay
    held: Strengths | None = None
    tasks: tuple[Hashable, ...] = ()  # whose strengths those of the groups are

    def __post_init__(self) -> None:
        check_whole(0, order=self.order)

    def held_in(self, tasks: Sequence[Hashable]) -> Strengths:
        """Those of these tasks, in their order."""
        assert self.held is not None
        if not self.held.groups:
            return self.held
        usual = replace(self.held, groups=())
        known = dict(zip(self.tasks, self.held.groups, strict=True))
        return replace(usual, groups=tuple(known.get(task, usual) for task in tasks))


@dataclass(frozen=True, eq=False)
class OwnChains:
    """The tasks' own counts, in the order of the tasks."""

    chains: Chains
    held: Strengths
    halting: bool

    def log_likelihood(
        self, trace: StepTrace, sequences: Sequences, theta: Floats, tasks: Codes
    ) -> Floats:
        """[sequence], in its task (-1: none that is known, which has nothing of its own)."""
        steps, _ = mixed_steps(trace, sequences, theta, halting=self.halting)
        seen = find_transitions(sequences, self.chains.order, halting=self.halting)
        logs = self._logs(seen, steps, tasks[seen.owner])
        return np.bincount(seen.owner, logs, minlength=len(sequences)).astype(np.float64)

    def log_likelihood_in(
        self, trace: StepTrace, sequences: Sequences, theta: Floats, tasks: Codes
    ) -> Floats:
        """[sequence, task], of all sequences in each of these tasks, by its shares [task, generator]."""
        seen = find_transitions(sequences, self.chains.order, halting=self.halting)
        found = np.empty((len(sequences), len(tasks)))
        for column, (row, task) in enumerate(zip(theta, tasks.tolist(), strict=True)):
            every = np.repeat(row[None], len(sequences), axis=0)
            steps, _ = mixed_steps(trace, sequences, every, halting=self.halting)
            if task >= 0:
                held = self.held.groups[task] if task < len(self.held.groups) else self.held
                alone = OwnChains(
                    self.chains.of_group(task), replace(held, groups=()), self.halting
                )
                steps = alone._logs(seen, steps, np.zeros(len(steps), np.int64))
            found[:, column] = np.bincount(seen.owner, steps, minlength=len(sequences))
        return found

    def log_prefix(
        self, trace: StepTrace, sequences: Sequences, theta: Floats, tasks: Codes
    ) -> Floats:
        """[prefix]"""
        steps, _ = mixed_steps(trace, sequences, theta, halting=False)
        seen = find_transitions(sequences, self.chains.order, halting=False)
        logs = np.zeros(len(sequences.values))
        logs[sequences.values >= 0] = self._logs(seen, steps, tasks[seen.owner])
        return running_totals(logs, sequences)

    def rows(self, sequences: Sequences, outside: Floats, tasks: Codes) -> Floats:
        """[prefix, symbol + 1], what follows every prefix where the mixture says `outside`."""
        starts, rows = prefix_rows(sequences)
        contexts = np.zeros(starts[-1], np.int64)
        contexts[rows] = context_codes(sequences, self.chains.order, after=True)
        group = np.repeat(tasks, sequences.lengths + 1)
        return np.where(
            group[:, None] >= 0,
            self.chains.rows(np.maximum(group, 0), contexts, outside, self.held),
            outside,
        )

    def with_more(self, corpus: Corpus, tasks: Codes, count: int) -> OwnChains:
        """With more sequences counted, of tasks by their places among `count`."""
        every = corpus.sequences.select(corpus.item)  # of each entry
        seen = find_transitions(every, self.chains.order, halting=self.halting)
        more = self.chains.with_more(
            tasks[corpus.task_of[seen.owner]], seen, corpus.weight[seen.owner], count
        )
        return OwnChains(more, self.held, self.halting)

    def _logs(self, seen: Transitions, steps: Floats, group: Codes) -> Floats:
        known = np.maximum(group, 0)
        counted = self.chains.look_up(known, seen.contexts, seen.symbol)
        return np.where(
            group >= 0, safe_log(backed_off_steps(counted, np.exp(steps), self.held, known)), steps
        )


def count_own(
    sequences: Sequences, tasks: Codes, weight: Floats, names: Sequence[Hashable],
    strengths: OwnStrengths, *, halting: bool,
) -> OwnChains:  # fmt: skip
    """The counts of every task of `names`, held as strongly as is known already."""
    seen = find_transitions(sequences, strengths.order, halting=halting)
    chains = count_chains(
        tasks[seen.owner], seen, weight[seen.owner], groups=len(names), symbols=sequences.symbols,
        order=strengths.order,
    )  # fmt: skip
    return OwnChains(chains, strengths.held_in(names), halting)


def learn_own_strengths(
    sequences: Sequences,
    names: Sequence[Hashable],  # of the tasks
    tasks: Codes,  # [sequence]
    weight: Floats,  # [sequence]
    steps: Floats,  # [transition], log-probabilities by generators that were fitted without it
    order: int,
    *,
    halting: bool,
) -> tuple[OwnStrengths, Floats]:
    """The strengths, and log-likelihoods of the sequences, each left out [sequence].

    Contexts of up to `order` are taken, and strengths of each task, only where they are better by more
    than a standard error than short contexts and the strengths of all tasks.
    """
    longest = min(order, longest_order(sequences.symbols))
    best: tuple[OwnStrengths, Floats] | None = None
    for length in sorted({min(longest, _SHORT), longest}):
        seen = find_transitions(sequences, length, halting=halting)
        group, each = tasks[seen.owner], weight[seen.owner]
        chains = count_chains(
            group, seen, each, groups=len(names), symbols=sequences.symbols, order=length
        )
        left = chains.leave_out(group, seen, each)
        for found in _ways_to_hold(seen, left, names, tasks, weight, steps, length):
            if best is None or _is_better(found[1], best[1], weight):
                best = found
    assert best is not None
    return best


def _ways_to_hold(
    seen: Transitions, left: Counted, names: Sequence[Hashable], tasks: Codes, weight: Floats,
    steps: Floats, order: int,
) -> Iterator[tuple[OwnStrengths, Floats]]:  # fmt: skip
    """All tasks alike, and each by itself."""
    group, each, outside = tasks[seen.owner], weight[seen.owner], np.exp(steps)
    some = some_sequences(seen.owner, _ENOUGH)
    held = learn_strengths(left.select(some), outside[some], each[some])

    def of_groups(rows: NDArray[np.bool_]) -> Strengths:
        return learn_strengths_of_groups(
            left.select(rows), outside[rows], each[rows], group[rows], len(names), held
        )

    def by_sequence(logs: Floats) -> Floats:
        return np.bincount(seen.owner, logs, len(tasks)).astype(np.float64)

    yield OwnStrengths(order, held), by_sequence(safe_log(backed_off_steps(left, outside, held)))
    half = _place_in_task(tasks)[seen.owner] % 2
    logs = np.empty(len(half))
    for which in (0, 1):
        found, rest = of_groups(some & (half != which)), half == which
        logs[rest] = safe_log(
            backed_off_steps(left.select(rest), outside[rest], found, group[rest])
        )
    yield OwnStrengths(order, of_groups(some), tuple(names)), by_sequence(logs)


def _is_better(scores: Floats, others: Floats, weight: Floats) -> bool:
    """By more than a standard error over sequences."""
    gain = weight * (scores - others)
    return bool(gain.sum() > np.sqrt(len(gain)) * gain.std())


def _place_in_task(tasks: Codes) -> Codes:
    """[sequence], how many of its task come before it."""
    order = np.argsort(tasks, kind="stable")
    starts = np.searchsorted(tasks[order], np.arange(int(tasks.max()) + 1))
    place = np.empty(len(tasks), np.int64)
    place[order] = np.arange(len(tasks)) - starts[tasks[order]]
    return place


_CELLS = 1 << 24  # numbers that are held at once


@dataclass(frozen=True, eq=False)
class StepTrace:
    """Log-probabilities by each generator."""

    prefix: Floats  # [prefix, generator]
    end: Floats  # [sequence, generator], after the whole


def trace_sequences(bank: Bank, parameters: Sequence[Any], sequences: Sequences) -> StepTrace:
    """In parts, where a generator has to say all that might have followed."""
    parts = [
        bank.trace(parameters, sequences.select(rows)) for rows in rows_at_once(bank, sequences)
    ]
    if len(parts) == 1:
        return StepTrace(*parts[0])
    return StepTrace(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def mixed_steps(
    trace: StepTrace, sequences: Sequences, theta: Floats, *, halting: bool
) -> tuple[Floats, Floats]:
    """Log-probabilities of every observation and then of every end, given what came before, by the
    mixture with shares `theta` [sequence, generator] [transition]; and of every prefix [prefix]."""
    starts, rows = prefix_rows(sequences)
    logs = safe_log(theta)
    total = log_sum_exp(trace.prefix + np.repeat(logs, sequences.lengths + 1, axis=0))
    with np.errstate(invalid="ignore"):
        steps = total[rows] - total[rows - 1]
    parts = [steps[sequences.values >= 0]]
    if halting:
        last = starts[1:] - 1
        begun = sequences.lengths > 0
        ended = log_sum_exp(trace.prefix[last] + trace.end + logs) - total[last]
        parts.append(ended[begun])
    return np.nan_to_num(np.concatenate(parts), nan=-np.inf, neginf=-np.inf), total


def rows_at_once(bank: Bank, sequences: Sequences) -> Iterator[NDArray[np.int64]]:
    """Rows of sequences whose predictions can be held at once, in their order."""
    width = bank.count * max(sequences.symbols + 1, sequences.dimension**2)
    ends = np.cumsum((sequences.lengths + 1) * width)
    part = ends // _CELLS
    for number in np.unique(part):
        yield np.flatnonzero(part == number)
