"""Where EM starts, and the best of several starts.

`fit_states` yields after every iteration all that the fit needs to go on, so that whoever writes a
state down can be interrupted at any moment: the states that follow are the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taskmix.sequences._bank import Bank
from taskmix.sequences._corpus import Corpus
from taskmix.sequences._em import SHORT, EMOptions, MixtureState, anneal, variational_em
from taskmix.sequences._generator import Floats

Listener = Callable[[MixtureState], None]


@dataclass(frozen=True, eq=False)
class FitState:
    """After an iteration of a fit."""

    done: int = 0  # iterations of all starts, with those of annealing
    start: int = 0  # which one it is at; one more than the last where the best of them goes on
    parameters: tuple[Any, ...] = ()  # of this start while it anneals; none before it has begun
    annealed: int = 0  # iterations of this start
    mixture: MixtureState | None = None  # of this start, once it has annealed
    bounds: tuple[float, ...] = ()  # of this start
    best: MixtureState | None = None  # of the starts before this one; None where it goes on
    best_bounds: tuple[float, ...] = ()
    random: Mapping[str, Any] = field(default_factory=dict)  # the random generator's state

    @property
    def bound(self) -> float | None:
        """Of this iteration; None while it anneals."""
        return None if self.mixture is None else self.mixture.bound


def draw_start(bank: Bank, corpus: Corpus, generator: np.random.Generator) -> tuple[Any, ...]:
    """Parameters learned from sequences that were divided at random."""
    shares = generator.dirichlet(np.ones(bank.count), len(corpus.item))
    weights = np.zeros((len(corpus.sequences), bank.count))
    np.add.at(weights, corpus.item, corpus.weight[:, None] * shares)
    return bank.start(corpus.sequences, weights, generator)


def fit_mixture(
    bank: Bank,
    corpus: Corpus,
    options: EMOptions,
    *,
    alpha: Floats,
    starts: int,
    generator: np.random.Generator,
    parameters: tuple[Any, ...] | None = None,
    on_state: Listener | None = None,
) -> tuple[MixtureState, list[float]]:
    """EM from the start that has the highest bound after ten iterations, and all its bounds.

    >>> corpus = gather_corpus(flatten_sequences([[0, 1], [0, 1, 1]]), ["a", "a"])
    >>> state, bounds = fit_mixture(
    ...     make_bank(Markov(), 1), corpus, EMOptions(), alpha=np.ones(1), starts=1,
    ...     generator=np.random.default_rng(0))
    >>> state.converged, state.theta
    (True, array([[1.]]))
    """
    state = FitState()
    for state in fit_states(
        bank,
        corpus,
        options,
        alpha=alpha,
        starts=starts,
        generator=generator,
        parameters=parameters,
    ):
        if on_state is not None and state.mixture is not None:
            on_state(state.mixture)
    return result_of(state)


def result_of(state: FitState) -> tuple[MixtureState, list[float]]:
    """What the last state of a fit has found: the mixture and its bounds."""
    mixture, bounds = _better(state)
    return mixture, list(bounds)


def fit_states(
    bank: Bank,
    corpus: Corpus,
    options: EMOptions,
    *,
    alpha: Floats,
    starts: int,
    generator: np.random.Generator,
    parameters: tuple[Any, ...] | None = None,
    resume: FitState | None = None,
) -> Iterator[FitState]:
    """The states of `fit_mixture`, or those after `resume`.

    After Biernacki, Celeux and Govaert, "Choosing starting values for the EM algorithm", 2003. Given
    `parameters` are where it starts. The generator is taken to where it was at `resume`.
    """
    state = FitState()
    if resume is not None:
        state = resume
        generator.bit_generator.state = resume.random

    def after(state: FitState, **changes: Any) -> FitState:
        random = generator.bit_generator.state
        return replace(state, done=state.done + 1, random=random, **changes)

    def climb(
        state: FitState,
        chosen: EMOptions,
        parameters: tuple[Any, ...],
        alpha: Floats,
        gamma: Floats | None = None,
        iteration: int = 0,
    ) -> Iterator[FitState]:
        for mixture in variational_em(
            bank,
            corpus,
            parameters,
            alpha,
            chosen,
            generator,
            gamma=gamma,
            iteration=iteration,
            resume=state.mixture,
        ):
            bounds = (*state.bounds, mixture.bound)
            state = after(state, parameters=(), mixture=mixture, bounds=bounds)
            yield state

    first = options
    if starts > 1:
        first = replace(options, iterations=min(SHORT, options.iterations))
    count = 1 if parameters is not None else starts
    while state.start < count:
        if state.mixture is None:
            if not state.parameters:
                drawn = draw_start(bank, corpus, generator) if parameters is None else parameters
                state = replace(state, parameters=drawn)
            for found in anneal(bank, corpus, state.parameters, alpha, first, state.annealed):
                state = after(state, parameters=found, annealed=state.annealed + 1)
                yield state
        climbing = climb(state, first, state.parameters, alpha)
        for state in climbing:
            yield state
        best, bounds = _better(state)
        state = FitState(done=state.done, start=state.start + 1, best=best, best_bounds=bounds)
    if state.best is None:
        yield from climb(state, options, (), alpha)  # the state at hand has its own
        return
    best = state.best
    if best.converged or best.iteration >= options.iterations:
        return
    # Its last E-step is done once more, from where it had settled.
    state = replace(state, bounds=state.best_bounds, best=None, best_bounds=())
    begun = best.iteration - 1
    yield from climb(state, options, best.parameters, best.alpha, best.gamma, begun)


def _better(state: FitState) -> tuple[MixtureState, tuple[float, ...]]:
    """The mixture at hand and its bounds, or those of the best start; of equals the first."""
    found, best = state.mixture, state.best
    if best is not None and (found is None or not found.bound > best.bound):
        return best, state.best_bounds
    assert found is not None
    return found, state.bounds
