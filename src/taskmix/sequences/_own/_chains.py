r"""Symbols: what each task has counted, backed off to what the shared generators foresee.

The task's counts of contexts of every length up to `order` are the levels of `_counted/_chains.py`. Its
Q is what the mixture foresees after the whole prefix, $\sum_k w_k P_k(s|\text{prefix})$ with
$w_k \propto \theta_k P_k(\text{prefix})$. With few sequences a task speaks as its mixture does, with
many as it did itself. Strengths are the same in all tasks. They are learned where both sides are honest:
the counts without the sequence itself, Q from generators that were fitted without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    longest_order,
    some_sequences,
)
from taskmix.sequences._generator import Floats, prefix_rows, running_totals, safe_log
from taskmix.sequences._observed import Corpus, Sequences
from taskmix.sequences._own._traces import StepTrace, mixed_steps

_ENOUGH = 200_000  # transitions that strengths are learned from


@dataclass(frozen=True)
class OwnStrengths:
    """How far a task's own counts of symbols go, and how strongly they hold; learned where `held` is
    None.

    >>> OwnStrengths().order
    4
    """

    order: int = 4  # symbols of the longest context
    held: Strengths | None = None

    def __post_init__(self) -> None:
        if isinstance(self.order, bool) or not isinstance(self.order, int) or self.order < 0:
            raise OptionError(
                f"`order` should be a whole number of at least 0. Found {self.order!r}."
            )


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
        seen, entry = _entries(corpus, self.chains.order, self.halting)
        more = self.chains.with_more(
            tasks[corpus.task_of[entry]], seen, corpus.weight[entry], count
        )
        return OwnChains(more, self.held, self.halting)

    def _logs(self, seen: Transitions, steps: Floats, group: Codes) -> Floats:
        known = np.maximum(group, 0)
        counted = self.chains.look_up(known, seen.contexts, seen.symbol)
        return np.where(
            group >= 0, safe_log(backed_off_steps(counted, np.exp(steps), self.held)), steps
        )


def count_own(corpus: Corpus, strengths: OwnStrengths, *, halting: bool) -> OwnChains:
    """The counts of every task, held as strongly as is known already."""
    assert strengths.held is not None
    seen, entry = _entries(corpus, strengths.order, halting)
    chains = count_chains(
        corpus.task_of[entry], seen, corpus.weight[entry], groups=len(corpus.tasks),
        symbols=corpus.sequences.symbols, order=strengths.order,
    )  # fmt: skip
    return OwnChains(chains, strengths.held, halting)


def learn_own_strengths(
    sequences: Sequences,
    tasks: Codes,  # [sequence]
    weight: Floats,  # [sequence]
    steps: Floats,  # [transition], log-probabilities by generators that were fitted without it
    order: int,
    *,
    halting: bool,
) -> tuple[OwnStrengths, Floats]:
    """The strengths, and log-likelihoods of the sequences, each left out [sequence]."""
    order = min(order, longest_order(sequences.symbols))
    seen = find_transitions(sequences, order, halting=halting)
    group, each, outside = tasks[seen.owner], weight[seen.owner], np.exp(steps)
    groups = int(tasks.max()) + 1
    chains = count_chains(group, seen, each, groups=groups, symbols=sequences.symbols, order=order)
    left = chains.leave_out(group, seen, each)
    some = some_sequences(seen.owner, _ENOUGH)
    part = Counted(left.times[:, some], left.totals[:, some], left.kinds[:, some])
    held = learn_strengths(part, outside[some], each[some])
    logs = safe_log(backed_off_steps(left, outside, held))
    found = np.bincount(seen.owner, logs, len(sequences)).astype(np.float64)
    return OwnStrengths(order, held), found


def _entries(corpus: Corpus, order: int, halting: bool) -> tuple[Transitions, Codes]:
    """Transitions of the sequence of every entry, and the entry of each."""
    every = corpus.sequences.select(corpus.item)
    seen = find_transitions(every, order, halting=halting)
    return seen, seen.owner
