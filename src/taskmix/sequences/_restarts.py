"""Where EM starts, and the best of several starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from taskmix.sequences._bank import Bank
from taskmix.sequences._corpus import Corpus
from taskmix.sequences._em import EMOptions, MixtureState, variational_em
from taskmix.sequences._generator import Floats

Listener = Callable[[MixtureState], None]
_SHORT = 10  # iterations after which starts are compared


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

    After Biernacki, Celeux and Govaert, "Choosing starting values for the EM algorithm", 2003. Given
    `parameters` are where it starts.
    """
    short = replace(options, iterations=min(_SHORT, options.iterations))
    best: tuple[MixtureState, list[float]] | None = None
    for _ in range(1 if parameters is not None else starts):
        first = parameters if parameters is not None else draw_start(bank, corpus, generator)
        found = _run(
            bank, corpus, first, alpha, options if starts == 1 else short, generator, on_state
        )
        if best is None or found[0].bound > best[0].bound:
            best = found
    assert best is not None
    state, bounds = best
    if state.converged or state.iteration >= options.iterations:
        return best
    states = variational_em(
        bank,
        corpus,
        state.parameters,
        state.alpha,
        options,
        generator,
        gamma=state.gamma,
        iteration=state.iteration - 1,
    )
    for state in states:
        bounds.append(state.bound)
        if on_state is not None:
            on_state(state)
    return state, bounds


def _run(
    bank: Bank,
    corpus: Corpus,
    first: tuple[Any, ...],
    alpha: Floats,
    options: EMOptions,
    generator: np.random.Generator,
    on_state: Listener | None,
) -> tuple[MixtureState, list[float]]:
    bounds, state = [], None
    for state in variational_em(bank, corpus, first, alpha, options, generator):
        bounds.append(state.bound)
        if on_state is not None:
            on_state(state)
    assert state is not None
    return state, bounds
