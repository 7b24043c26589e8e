"""Passes of stochastic EM over the same data, in batches that are drawn anew each time, or read again.

`batch_states` yields after every batch all that is needed to go on from there, bit for bit. The order
of a pass is no part of it but drawn again, from the random generator as it was before the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
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
from taskmix.sequences._observed import Corpus, Sequences, SequenceSource, gather_corpus


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
    return _states(
        bank,
        partial(_drawn, sequences, tasks, weights, batch_size),
        options,
        size=float(weights.sum()),
        passes=passes,
        tolerance=tolerance,
        alpha=alpha,
        generator=generator,
        parameters=parameters,
        resume=resume,
    )


def source_states(
    bank: Bank,
    source: SequenceSource,
    options: StochasticOptions,
    *,
    batch_size: int,
    passes: int,
    tolerance: float,
    alpha: Floats,
    generator: np.random.Generator,
    parameters: tuple[Any, ...] | None = None,
    resume: BatchState | None = None,
) -> Iterator[BatchState]:
    """The same for sequences that are read again in every pass, in the order they come in."""

    def read(generator: np.random.Generator, place: int) -> Iterator[tuple[int, Corpus]]:
        done = 0
        for part, names in source.batches(batch_size):
            done += len(part)
            if done > place:
                yield done, gather_corpus(part, names)

    return _states(
        bank,
        read,
        options,
        size=float(len(source)),
        passes=passes,
        tolerance=tolerance,
        alpha=alpha,
        generator=generator,
        parameters=parameters,
        resume=resume,
    )


def _drawn(
    sequences: Sequences,
    tasks: NDArray[Any],
    weights: Floats,
    size: int,
    generator: np.random.Generator,
    place: int,
) -> Iterator[tuple[int, Corpus]]:
    """The batches of a pass in an order that is drawn, from `place` on."""
    order = generator.permutation(len(tasks))
    for low in range(place, len(order), size):
        rows = order[low : low + size]
        batch = gather_corpus(sequences.select(rows), tasks[rows], weights[rows])
        yield low + len(rows), batch


def _states(
    bank: Bank,
    batches: Callable[[np.random.Generator, int], Iterator[tuple[int, Corpus]]],
    options: StochasticOptions,
    *,
    size: float,  # sequences, by their weights
    passes: int,
    tolerance: float,
    alpha: Floats,
    generator: np.random.Generator,
    parameters: tuple[Any, ...] | None,
    resume: BatchState | None,
) -> Iterator[BatchState]:
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
            place, total = inside.place, inside.total
        coming = batches(generator, place)
        upcoming = next(coming, None)  # draws the order of the pass, where there is one
        if inside is not None:
            generator.bit_generator.state, inside = inside.random, None
        converged = False
        while upcoming is not None:
            place, batch = upcoming
            if learned is None:
                learned = begin(bank, batch, alpha, generator, parameters)
            learned = absorb(bank, learned, batch, options)
            total += learned.bound * batch.total
            done += 1
            upcoming = next(coming, None)
            whole = upcoming is None
            if whole:
                gain = total - bounds[-1] if bounds else np.inf
                # The first pass with settled γ has a bound of another kind than the one before.
                bounds, converged = (*bounds, total), bool(gain < tolerance * size)
                converged = converged and learned.passes > options.fresh
            random = generator.bit_generator.state
            yield BatchState(
                done, learned, bounds, place, total, whole, converged, shuffled, random
            )
        if converged or len(bounds) >= passes:
            return
        assert learned is not None
        learned, place, total = next_pass(learned), 0, 0.0
