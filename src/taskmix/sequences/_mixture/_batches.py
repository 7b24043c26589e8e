"""Passes of stochastic EM over data that are there as a whole, in batches that are drawn anew each time.

`batch_states` yields after every batch all that is needed to go on from there, bit for bit. The order
of a pass is no part of it but drawn again, from the random generator as it was before the pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._generator import Floats
from taskmix.sequences._mixture._bank import Bank
from taskmix.sequences._mixture._em import MixtureState
from taskmix.sequences._mixture._stochastic import (
    StochasticOptions,
    StochasticState,
    absorb,
    begin,
    next_pass,
)
from taskmix.sequences._observed import Sequences, gather_corpus


@dataclass(frozen=True, eq=False)
class BatchState:
    """After a batch."""

    done: int  # batches
    learned: StochasticState
    bounds: tuple[float, ...]  # of whole passes, this one too where it is whole
    place: int  # sequences that this pass has been over
    total: float  # the bound of this pass so far
    whole: bool  # whether the pass is
    converged: bool
    shuffled: Mapping[
        str, Any
    ]  # the random generator's state before the order of this pass was drawn
    random: Mapping[str, Any]  # and now

    @property
    def bound(self) -> float | None:
        """Of the pass; None where it is not whole."""
        return self.bounds[-1] if self.whole else None

    @property
    def gamma(self) -> Floats:
        """[task, generator]"""
        return np.array([self.learned.alpha + counts for counts in self.learned.counts.values()])

    @property
    def mixture(self) -> MixtureState | None:
        """As after an E-step over all data; None where the pass is not whole."""
        if not self.whole:
            return None
        alpha, gamma = self.learned.alpha, self.gamma
        mass = gamma.sum(axis=0) - len(gamma) * alpha
        return MixtureState(
            self.learned.parameters,
            alpha,
            gamma,
            self.total,
            mass,
            len(self.bounds),
            self.converged,
        )


def batch_states(
    bank: Bank,
    sequences: Sequences,
    tasks: NDArray[Any],  # [sequence], the name of its task
    weights: Floats,  # [sequence]
    options: StochasticOptions,
    *,
    batch_size: int,
    passes: int,
    tolerance: float,  # gain of the bound, for each sequence, that ends it
    alpha: Floats,
    generator: np.random.Generator,
    parameters: tuple[Any, ...] | None = None,
    resume: BatchState | None = None,
) -> Iterator[BatchState]:
    """The state after each batch, or after each that comes after `resume`."""
    learned: StochasticState | None = None
    bounds: tuple[float, ...] = ()
    done, place, total = 0, 0, 0.0
    inside = resume if resume is not None and not resume.whole else None  # of a pass
    if resume is not None:
        if resume.converged or len(resume.bounds) >= passes:
            return
        generator.bit_generator.state = resume.random
        learned, bounds, done = resume.learned, resume.bounds, resume.done
        if resume.whole:
            learned = next_pass(learned)
    while True:
        shuffled = generator.bit_generator.state
        if inside is not None:
            generator.bit_generator.state = shuffled = inside.shuffled
        order = generator.permutation(len(tasks))
        if inside is not None:
            generator.bit_generator.state = inside.random
            place, total, inside = inside.place, inside.total, None
        while place < len(order):
            rows = order[place : place + batch_size]
            batch = gather_corpus(sequences.select(rows), tasks[rows], weights[rows])
            if learned is None:
                learned = begin(bank, batch, alpha, generator, parameters)
            learned = absorb(bank, learned, batch, options)
            total += learned.bound * batch.total
            place, done = place + len(rows), done + 1
            whole, converged = place == len(order), False
            if whole:
                gain = total - bounds[-1] if bounds else np.inf
                bounds, converged = (*bounds, total), bool(gain < tolerance * weights.sum())
            random = generator.bit_generator.state
            yield BatchState(
                done, learned, bounds, place, total, whole, converged, shuffled, random
            )
        if converged or len(bounds) >= passes:
            return
        assert learned is not None
        learned, place, total = next_pass(learned), 0, 0.0
