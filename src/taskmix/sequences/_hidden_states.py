"""What hidden Markov models of all emissions share: states, their counts, and how they go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._generator import (
    ExpectedStatistics,
    Floats,
    normalised,
    prefix_rows,
    running_totals,
    weighted_log,
)
from taskmix.sequences._hidden_passes import (
    Chain,
    Passed,
    Trails,
    filtered,
    forward,
    forward_backward,
)
from taskmix.sequences._sequences import Sequences


class StateParameters(Protocol):
    """Rows of `transition` sum to one minus `halting`, which is zero where nothing halts."""

    @property
    def initial(self) -> Floats: ...  # [generator, state]
    @property
    def transition(self) -> Floats: ...  # [generator, state, state]
    @property
    def halting(self) -> Floats: ...  # [generator, state]


class StateCounts(Protocol):
    """Expected visits."""

    @property
    def begins(self) -> Floats: ...  # [generator, state]
    @property
    def moves(self) -> Floats: ...  # [generator, state, state]
    @property
    def ends(self) -> Floats: ...  # [generator, state]


@dataclass(frozen=True)
class States:
    """Options about states that all emissions have in common."""

    count: int
    smoothing: float
    halting: bool

    def draw(
        self, generators: int, mean_length: float, generator: np.random.Generator
    ) -> dict[str, Floats]:
        """States that tend to stay, with some noise to tell them apart."""
        shape = (generators, self.count)
        initial = generator.dirichlet(np.full(self.count, 5.0), generators)
        moves = generator.dirichlet(np.full(self.count, 5.0), shape) + np.eye(self.count) / 2
        halting = np.full(shape, 1 / (1 + mean_length) if self.halting else 0.0)
        transition = moves / moves.sum(axis=2, keepdims=True) * (1 - halting[..., None])
        return {"initial": initial, "transition": transition, "halting": halting}

    def learn(
        self, parameters: StateParameters, counts: StateCounts, fixed: Sequence[str]
    ) -> dict[str, Floats]:
        """The most likely initial, transition and halting probabilities."""
        learned: dict[str, Floats] = {}
        if "initial" not in fixed:
            learned["initial"] = normalised(counts.begins + self.smoothing, parameters.initial)
        if "transition" not in fixed:
            ends = counts.ends[..., None] if self.halting else np.zeros((*counts.ends.shape, 1))
            whole = np.concatenate([counts.moves, ends], axis=2)
            whole[..., : self.count + self.halting] += self.smoothing
            before = np.concatenate([parameters.transition, parameters.halting[..., None]], axis=2)
            rows = normalised(whole, before)
            learned["transition"] = np.ascontiguousarray(rows[..., :-1])
            learned["halting"] = rows[..., -1]
        return learned

    def log_prior(self, parameters: StateParameters) -> Floats:
        prior = weighted_log(self.smoothing, parameters.initial).sum(axis=1)
        prior += weighted_log(self.smoothing, parameters.transition).sum(axis=(1, 2))
        if self.halting:
            prior += weighted_log(self.smoothing, parameters.halting).sum(axis=1)
        return np.asarray(prior)

    def chain(
        self, parameters: StateParameters, which: int, table: Floats, logs: Floats | None = None
    ) -> Chain:
        """One generator as the passes take it."""
        return Chain(
            initial=parameters.initial[which],
            transition=parameters.transition[which],
            final=parameters.halting[which] if self.halting else np.ones(self.count),
            table=table,
            log_table=logs,
        )


def likelihoods(chains: Sequence[Chain], trails: Trails) -> Floats:
    """[sequence, generator]"""
    return np.column_stack([forward(chain, trails) for chain in chains])


def expect_states(
    chains: Sequence[Chain],
    trails: Trails,
    weights: Floats,
    collect: Callable[[list[Passed]], Any],
) -> ExpectedStatistics:
    """Weighted passes of every generator over the sequences that it has a share in."""
    passed = [
        forward_backward(chain, trails, np.ascontiguousarray(weights[:, which]))
        for which, chain in enumerate(chains)
    ]
    return ExpectedStatistics(
        collect(passed), np.column_stack([each.log_likelihood for each in passed])
    )


@dataclass(frozen=True, eq=False)
class StatesAhead:
    """Where the states are after every prefix."""

    log_prefix: Floats  # [prefix, generator]
    states: Floats  # [prefix, generator, state], of the next observation; sums to one minus `end`
    end: Floats  # [prefix, generator]


def look_ahead(
    parameters: StateParameters, chains: Sequence[Chain], trails: Trails, sequences: Sequences
) -> StatesAhead:
    """States of the next observation after every prefix, from the empty one to the whole."""
    starts, rows = prefix_rows(sequences)
    count, states = len(chains), parameters.initial.shape[1]
    ahead = np.empty((starts[-1], count, states))
    end, logs = np.zeros((starts[-1], count)), np.empty((len(trails.places), count))
    for which, chain in enumerate(chains):
        alpha, logs[:, which] = filtered(chain, trails)
        ahead[starts[:-1], which] = parameters.initial[which]
        ahead[rows, which] = alpha @ parameters.transition[which]
        end[rows, which] = alpha @ parameters.halting[which]
    return StatesAhead(running_totals(logs, sequences), ahead, end)


def walk(
    parameters: StateParameters,
    which: int,
    ahead: tuple[Floats, float],  # states of the next observation and the end, after the prefix
    steps: int | None,
    generator: np.random.Generator,
) -> list[int]:
    """States from there on, until they halt or `steps` are made."""
    states, end = ahead
    path: list[int] = []
    while steps is None or len(path) < steps:
        shares = np.append(states, end)
        state = int(generator.choice(len(shares), p=shares / shares.sum()))
        if state == len(states):
            break
        path.append(state)
        states, end = parameters.transition[which, state], float(parameters.halting[which, state])
    return path


def trail_places(sequences: Sequences, size: int) -> NDArray[np.int32]:
    """Codes as places of a table of `size` rows, the last of which is for missing ones."""
    return np.where(sequences.values < 0, size - 1, sequences.values).astype(np.int32)
