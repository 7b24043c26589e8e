r"""Hidden Markov models whose states emit vectors, each from a normal distribution of its own.

    Rabiner, "A Tutorial on Hidden Markov Models", Proc. IEEE 1989, section IV.A, with one component.

As `HiddenMarkov`, with densities in the place of emission probabilities. The smoothing of states are
pseudo-counts, that of emissions pseudo-observations spread as all data (see `_normal.py`). Where some
or all numbers of a vector are missing, a state has the density of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._gaussian import PreparedVectors
from taskmix.sequences._generator import (
    SHARED,
    ExpectedStatistics,
    Floats,
    Next,
    Statistics,
    check_amount,
    check_fixed,
    check_observes,
    check_whole,
    normalised,
    running_totals,
    sums_by_sequence,
    take_generators,
)
from taskmix.sequences._hidden_passes import Chain, Passed, Trails, make_trails
from taskmix.sequences._hidden_states import States, expect_states, likelihoods, look_ahead, walk
from taskmix.sequences._normal import (
    Background,
    Covariance,
    Moments,
    background,
    check_covariance,
    draw_normals,
    expected_moments,
    find_gaps,
    learn_normals,
    log_densities,
    log_prior_of_normals,
    mixture_moments,
    stack_moments,
)
from taskmix.sequences._sequences import Observed, Sequences


@dataclass(frozen=True, eq=False)
class GaussianHiddenMarkovParameters:
    """Rows of `transition` sum to one minus `halting`."""

    initial: Floats  # [generator, state]
    transition: Floats  # [generator, state, state]
    halting: Floats  # [generator, state]
    mean: Floats  # [generator, state, dimension]
    covariance: Floats  # [generator, state, dimension, dimension]
    behind: Background = field(metadata=SHARED)


@dataclass(frozen=True, eq=False)
class GaussianHiddenMarkovStatistics(Statistics):
    begins: Floats  # [generator, state]
    moves: Floats  # [generator, state, state]
    ends: Floats  # [generator, state]
    moments: Moments  # of the vectors of each state


@dataclass(frozen=True, kw_only=True)
class GaussianHiddenMarkov:
    """Hidden Markov models over vectors.

    >>> hidden = GaussianHiddenMarkov(states=3, covariance="diagonal")
    >>> prepared = hidden.prepare(flatten_sequences([[[0.0, 1.0], [2.0, 3.0]]], observes="vectors"))
    >>> start = hidden.start(prepared, np.ones((1, 1)), np.random.default_rng(0))
    >>> start.mean.shape  # [generator, state, dimension]
    (1, 3, 2)
    """

    states: int = 5
    covariance: Covariance = "full"
    smoothing: float = 0.1
    halting: bool = False
    fixed: tuple[str, ...] = ()  # of `initial`, `transition` (and halting), `mean`, `covariance`

    def __post_init__(self) -> None:
        check_whole(states=self.states)
        check_amount(smoothing=self.smoothing)
        check_covariance(self.covariance)
        check_fixed(self.fixed, ("initial", "transition", "mean", "covariance"))

    @property
    def observes(self) -> Observed:
        return "vectors"

    @property
    def additive(self) -> bool:
        return True

    def prepare(self, sequences: Sequences) -> PreparedVectors:
        check_observes(self, "vectors", sequences)
        return PreparedVectors(sequences, find_gaps(sequences.values))

    def start(
        self, prepared: PreparedVectors, weights: Floats, generator: np.random.Generator
    ) -> GaussianHiddenMarkovParameters:
        behind = background(prepared.sequences.values)
        mean, covariance = draw_normals(
            prepared.gaps, weights[prepared.owner], self.states, behind, generator
        )
        length = float(prepared.sequences.lengths.mean())
        drawn = self._states.draw(weights.shape[1], length, generator)
        return GaussianHiddenMarkovParameters(
            **drawn, mean=mean, covariance=covariance, behind=behind
        )

    def log_likelihood(
        self, parameters: GaussianHiddenMarkovParameters, prepared: PreparedVectors
    ) -> Floats:
        chains, offsets = self._chains(parameters, prepared)
        found = likelihoods(chains, self._trails(prepared))
        return np.asarray(found + sums_by_sequence(offsets, prepared.sequences))

    def expect(
        self,
        parameters: GaussianHiddenMarkovParameters,
        prepared: PreparedVectors,
        weights: Floats,
    ) -> ExpectedStatistics:
        chains, offsets = self._chains(parameters, prepared)

        def collect(passed: list[Passed]) -> GaussianHiddenMarkovStatistics:
            moments = [
                expected_moments(
                    prepared.gaps,
                    each.marks[:-1],
                    parameters.mean[which],
                    parameters.covariance[which],
                    parameters.behind,
                )
                for which, each in enumerate(passed)
            ]
            return GaussianHiddenMarkovStatistics(
                begins=np.array([each.begins for each in passed]),
                moves=np.array([each.moves for each in passed]),
                ends=np.array([each.ends for each in passed]),
                moments=stack_moments(moments),
            )

        found = expect_states(chains, self._trails(prepared), weights, collect)
        assert found.log_likelihood is not None
        shifted = found.log_likelihood + sums_by_sequence(offsets, prepared.sequences)
        return ExpectedStatistics(found.statistics, shifted)

    def maximise(
        self,
        parameters: GaussianHiddenMarkovParameters,
        statistics: GaussianHiddenMarkovStatistics,
    ) -> GaussianHiddenMarkovParameters:
        mean, covariance = learn_normals(self, parameters, statistics.moments)
        learned = self._states.learn(parameters, statistics, self.fixed)
        return replace(parameters, **learned, mean=mean, covariance=covariance)  # type: ignore[arg-type]

    def log_prior(self, parameters: GaussianHiddenMarkovParameters) -> Floats:
        normals = log_prior_of_normals(self, parameters)
        return np.asarray(self._states.log_prior(parameters) + normals.sum(axis=1))

    def follow(self, parameters: GaussianHiddenMarkovParameters, prepared: PreparedVectors) -> Next:
        sequences = prepared.sequences
        chains, offsets = self._chains(parameters, prepared)
        found = look_ahead(parameters, chains, self._trails(prepared), sequences)
        # Given that the sequence goes on, as vectors have no symbol for the end.
        shares = normalised(found.states, np.array(1 / self.states))
        mean, covariance = mixture_moments(shares, parameters.mean, parameters.covariance)
        return Next(
            found.log_prefix + running_totals(offsets, sequences), mean=mean, covariance=covariance
        )

    def sample(
        self,
        parameters: GaussianHiddenMarkovParameters,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        given = Sequences(np.asarray(prefix, np.float64), np.array([0, len(prefix)]))
        one = take_generators(parameters, np.array([which]))
        prepared = self.prepare(given)
        chains, _ = self._chains(one, prepared)
        found = look_ahead(one, chains, self._trails(prepared), given)
        steps = None if length is None else length - len(prefix)
        path = walk(one, 0, (found.states[-1, 0], float(found.end[-1, 0])), steps, generator)
        made = [
            generator.multivariate_normal(one.mean[0, state], one.covariance[0, state])
            for state in path
        ]
        return np.concatenate([given.values, np.array(made).reshape(-1, one.mean.shape[2])])

    @property
    def _states(self) -> States:
        return States(self.states, self.smoothing, self.halting)

    def _trails(self, prepared: PreparedVectors) -> Trails:
        """Every observation has a row of the table to itself."""
        places = np.arange(len(prepared.sequences.values), dtype=np.int32)
        return make_trails(places, prepared.sequences.starts)

    def _chains(
        self, parameters: GaussianHiddenMarkovParameters, prepared: PreparedVectors
    ) -> tuple[list[Chain], Floats]:
        """One chain a generator, and the logarithms [observation, generator] left out of its table,
        the largest of each row."""
        chains, offsets = [], np.empty((len(prepared.gaps.values), len(parameters.mean)))
        for which in range(len(parameters.mean)):
            logs = log_densities(
                prepared.gaps, parameters.mean[which], parameters.covariance[which]
            )
            offsets[:, which] = logs.max(axis=1, initial=-np.inf)
            shifted = np.concatenate([logs - offsets[:, which, None], np.zeros((1, self.states))])
            chains.append(self._states.chain(parameters, which, np.exp(shifted), shifted))
        return chains, offsets
