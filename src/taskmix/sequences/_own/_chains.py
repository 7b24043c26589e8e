r"""Symbols: what each task has counted, backed off to what the shared generators foresee.

The task's counts of contexts of every length up to `order` are the levels of `_counted/_chains.py`. Its
Q is what the mixture foresees after the whole prefix, $\sum_k w_k P_k(s|\text{prefix})$ with
$w_k \propto \theta_k P_k(\text{prefix})$. With few sequences a task speaks as its mixture does, with
many as it did itself. Strengths are learned where both sides are honest: the counts without the sequence
itself, Q from generators that were fitted without it; of a stream, where other fits are too dear, on
sequences that neither has seen. Each task has its own, near those of all tasks, where strengths that
half of a task's sequences say foresee the other half better.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.sequences._counted import (
    Chains,
    Codes,
    Counted,
    Strengths,
    Transitions,
    backed_off_steps,
    context_codes,
    count_chains,
    find_transitions,
    learn_strengths,
    learn_strengths_of_groups,
    longest_order,
    some_sequences,
)
from taskmix.sequences._generator import Floats, prefix_rows, running_totals, safe_log
from taskmix.sequences._observed import Corpus, Sequences
from taskmix.sequences._own._traces import StepTrace, mixed_steps

_ENOUGH = 200_000  # transitions that strengths are learned from
_SHORT = 4  # symbols of contexts that need not prove their worth


@dataclass(frozen=True)
class OwnStrengths:
    """How far a task's own counts of symbols go, and how strongly they hold; learned where `held` is
    None.

    >>> OwnStrengths().order
    8
    """

    order: int = 8  # symbols of the longest context; 4 where more do not pay
    held: Strengths | None = None
    tasks: tuple[Hashable, ...] = ()  # whose strengths those of the groups are

    def __post_init__(self) -> None:
        if isinstance(self.order, bool) or not isinstance(self.order, int) or self.order < 0:
            raise OptionError(
                f"`order` should be a whole number of at least 0. Found {self.order!r}."
            )

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
    counted: tuple[Sequences, Codes] | None = None,
) -> tuple[OwnStrengths, Floats]:
    """The strengths, and log-likelihoods of the sequences, each left out [sequence].

    `counted` are other sequences and their tasks, which are counted instead where they are given.
    Contexts of up to `order` are taken, and strengths of each task, only where they are better by more
    than a standard error than short contexts and the strengths of all tasks.
    """
    longest = min(order, longest_order(sequences.symbols))
    best: tuple[OwnStrengths, Floats] | None = None
    for length in sorted({min(longest, _SHORT), longest}):
        seen = find_transitions(sequences, length, halting=halting)
        left = _left_out(
            seen, sequences, tasks, weight, counted, length, len(names), halting=halting
        )
        for found in _ways_to_hold(seen, left, names, tasks, weight, steps, length):
            if best is None or _is_better(found[1], best[1], weight):
                best = found
    assert best is not None
    return best


def _left_out(
    seen: Transitions, sequences: Sequences, tasks: Codes, weight: Floats,
    counted: tuple[Sequences, Codes] | None, order: int, groups: int, *, halting: bool,
) -> Counted:  # fmt: skip
    """What is counted of each transition without the sequence that it is from."""
    group, each, symbols = tasks[seen.owner], weight[seen.owner], sequences.symbols
    if counted is None:
        chains = count_chains(group, seen, each, groups=groups, symbols=symbols, order=order)
        return chains.leave_out(group, seen, each)
    others = find_transitions(counted[0], order, halting=halting)
    chains = count_chains(
        counted[1][others.owner], others, np.ones(len(others.owner)), groups=groups,
        symbols=symbols, order=order,
    )  # fmt: skip
    return chains.look_up(group, seen.contexts, seen.symbol)


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
