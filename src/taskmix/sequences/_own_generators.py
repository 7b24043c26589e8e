r"""Vectors: a task's own version of the generator it uses most, as one more generator of the task.

    Gauvain and Lee, "Maximum a Posteriori Estimation for Multivariate Gaussian Mixture Observations of
    Markov Chains", IEEE Trans. Speech and Audio Processing 1994: the prior is what was seen elsewhere.

EM goes on from the shared generator, where `pseudo` sequences as that generator has them on average are
added to the task's own statistics: it works for every kind whose statistics can be added. The weight of
the own generator is learned from sequences that neither it nor the shared generators had seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taskmix.sequences._bank import Bank
from taskmix.sequences._chains import Codes
from taskmix.sequences._corpus import Corpus
from taskmix.sequences._expectation import divide_sequences
from taskmix.sequences._generator import (
    Floats,
    dense,
    put_generators,
    safe_log,
    take_generators,
    take_statistics,
)
from taskmix.sequences._own_chains import OwnChains
from taskmix.sequences._sequences import Sequences

_STEPS = 10  # of EM
PSEUDO = (0.5, 2.0, 8.0)  # pseudo-sequences that are tried
_HELD = 5.0  # sequences of a task that the weight of all tasks counts as


@dataclass(frozen=True)
class AdaptedStrengths:
    """How many sequences the shared generator counts as in a task's own, and the own one's weight."""

    pseudo: float = 2.0
    weight: float = 0.5
    tasks: tuple[float, ...] = ()  # the weight of each task, where it is known

    def with_tasks(self, gained: Floats, tasks: Codes) -> AdaptedStrengths:
        """With the weight of each task, from how much better (in logarithms) its own generator foresaw
        each sequence [sequence]."""
        own, count = own_posterior(gained, self.weight), int(tasks.max()) + 1
        sums = np.bincount(tasks, own, count) + _HELD * self.weight
        weights = sums / (np.bincount(tasks, minlength=count) + _HELD)
        return replace(self, tasks=tuple(weights.tolist()))

    def weights_without(self, gained: Floats, tasks: Codes) -> Floats:
        """[sequence], the weight in its task as the other sequences of it say."""
        own, count = own_posterior(gained, self.weight), int(tasks.max()) + 1
        sums = (np.bincount(tasks, own, count) + _HELD * self.weight)[tasks] - own
        return np.asarray(sums / (np.bincount(tasks, minlength=count) + _HELD - 1)[tasks])


@dataclass(frozen=True, eq=False)
class OwnGenerators:
    """One generator a task, all of one block of the bank."""

    block: int
    parameters: Any  # of as many generators as there are tasks
    statistics: Any  # of the tasks' own sequences
    prior: Any  # of a sequence of each shared generator of the block
    main: Codes  # [task], the shared generator it is adapted from
    weight: Floats  # [task]
    held: AdaptedStrengths

    def with_own(
        self, bank: Bank, found: Floats, sequences: Sequences, theta: Floats, tasks: Codes
    ) -> tuple[Floats, Floats]:
        """[sequence, generator + 1] log-likelihoods and shares: `found` and θ with the task's own."""
        kind, own = bank.blocks[self.block], np.zeros(len(sequences))
        for task in np.unique(tasks[tasks >= 0]):
            rows = np.flatnonzero(tasks == task)
            one = take_generators(self.parameters, np.array([task]))
            own[rows] = kind.log_likelihood(one, kind.prepare(sequences.select(rows)))[:, 0]
        return np.column_stack([found, own]), self.shares(theta, tasks)

    def shares(self, theta: Floats, tasks: Codes) -> Floats:
        """[row, generator + 1]"""
        weight = np.where(tasks >= 0, self.weight[np.maximum(tasks, 0)], 0.0)[:, None]
        return np.concatenate([theta * (1 - weight), weight], axis=1)

    def weighted(self, held: AdaptedStrengths) -> OwnGenerators:
        """With these weights."""
        weight = np.full(len(self.main), held.weight)
        if len(held.tasks) == len(weight):
            weight = np.array(held.tasks)
        return replace(self, weight=weight, held=replace(held, tasks=()))

    def with_more(
        self, bank: Bank, parameters: Sequence[Any], corpus: Corpus, theta: Floats, tasks: Codes,
        count: int,
    ) -> OwnGenerators:  # fmt: skip
        """With more sequences, of tasks by their places among `count`; θ [task of the corpus]."""
        known = len(self.main)
        place = bank.places[self.block]
        main, weight = np.zeros(count, np.int64), np.full(count, self.held.weight)
        main[:known], weight[:known] = self.main, self.weight
        fresh = np.flatnonzero(tasks >= known)
        main[tasks[fresh]] = theta[fresh][:, place].argmax(axis=1)
        start = take_generators(self.parameters, np.minimum(np.arange(count), known - 1))
        if len(fresh):
            shared = take_generators(parameters[self.block], main[tasks[fresh]])
            start = put_generators(start, tasks[fresh], shared)
        before = take_statistics(self.statistics, np.minimum(np.arange(count), known - 1))
        new = np.arange(count) >= known
        before = scale_statistics(before, np.where(new, 0.0, 1.0))
        found, sums = _adapt(
            bank, self.block, corpus, start, self.prior, main, tasks, self.held.pseudo, before
        )
        return replace(self, parameters=found, statistics=sums, main=main, weight=weight)


def adapt_generators(
    bank: Bank,
    parameters: Sequence[Any],
    corpus: Corpus,
    alpha: Floats,
    gamma: Floats,  # [task, generator]
    pseudo: Sequence[float],
) -> list[OwnGenerators] | None:
    """For each number of pseudo-sequences; None where the statistics of no block can be added."""
    places = [place for place in range(len(bank.blocks)) if bank.blocks[place].additive]
    if not places:
        return None
    mass = gamma.sum(axis=0)
    block = max(places, key=lambda place: mass[bank.places[place]].sum())
    place, kind = bank.places[block], bank.blocks[block]
    prepared = kind.prepare(corpus.sequences)
    likelihood = bank.log_likelihood(parameters, bank.prepare(corpus.sequences))
    shares = divide_sequences(corpus, likelihood, alpha, gamma).responsibility[:, place]
    per_sequence = shares / np.maximum(shares.sum(axis=0), 1e-300)
    prior = kind.expect(parameters[block], prepared, np.ascontiguousarray(per_sequence)).statistics
    main = gamma[:, place].argmax(axis=1)
    start = take_generators(parameters[block], main)
    made = []
    for each in pseudo:
        found, sums = _adapt(
            bank, block, corpus, start, prior, main, np.arange(len(corpus.tasks)), each, None
        )
        held = AdaptedStrengths(pseudo=float(each))
        weight = np.full(len(main), held.weight)
        made.append(OwnGenerators(block, found, sums, prior, main, weight, held))
    return made


def own_posterior(gained: Floats, weight: float) -> Floats:
    """[sequence], whether it is from the own generator."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-gained) * (1 - weight) / weight))


def learn_weight(mixed: Floats, own: Floats, sample_weight: Floats) -> float:
    """The weight that foresees best, by EM; kept off its ends."""
    weight, gained = 0.5, own - mixed
    for _ in range(200):
        new = float(np.average(own_posterior(gained, weight), weights=sample_weight))
        new = min(max(new, 1e-3), 1 - 1e-3)
        if abs(new - weight) < 1e-6:
            break
        weight = new
    return weight


def scale_statistics(statistics: Any, factor: Floats) -> Any:
    """Statistics of each generator times its factor."""

    def scaled(values: Floats) -> Floats:
        return values * factor.reshape((-1,) + (1,) * (values.ndim - 1))

    return take_statistics(statistics, None, scaled)


def _adapt(
    bank: Bank, block: int, corpus: Corpus, start: Any, prior: Any, main: Codes, tasks: Codes,
    pseudo: float, before: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Parameters and statistics of each task's own generator."""
    kind = bank.blocks[block]
    prepared = kind.prepare(corpus.sequences)
    weights = np.zeros((len(corpus.sequences), len(main)))
    np.add.at(weights, (corpus.item, tasks[corpus.task_of]), corpus.weight)
    base = take_statistics(prior, main) * pseudo
    parameters = start
    sums = None
    for _ in range(_STEPS):
        sums = kind.expect(parameters, prepared, weights).statistics
        if before is not None:
            sums = sums + before
        parameters = dense(kind.maximise(parameters, sums + base))
    return parameters, sums


def log_mixed(mixed: Floats, own: Floats, weight: Floats) -> Floats:
    """[sequence]"""
    return np.logaddexp(mixed + safe_log(1 - weight), own + safe_log(weight))


Own = OwnChains | OwnGenerators
