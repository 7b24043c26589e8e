r"""Hidden Markov models that emit symbols.

    Rabiner, "A Tutorial on Hidden Markov Models", Proc. IEEE 1989; "Hidden Markov Model Topics" is
    a heading without text in Crawford and Pineau's draft, and the M-step is their Eq. 15 by EM.

Each generator has its own states. One M-step of the mixture is one EM step of each: the expected
visits of the states, weighted by φ, then their shares, with `smoothing` pseudo-counts for every
initial state, every transition and every symbol; those of symbols are spread as all sequences together
have them. A missing symbol is one that any state may have emitted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    safe_log,
    take_generators,
    weighted_log,
)
from taskmix.sequences._hidden_passes import Chain, Passed, Trails, make_trails
from taskmix.sequences._hidden_states import (
    States,
    expect_states,
    likelihoods,
    look_ahead,
    trail_places,
    walk,
)
from taskmix.sequences._sequences import Observed, Sequences


@dataclass(frozen=True, eq=False)
class PreparedHidden:
    """Sequences, and where the passes go along."""

    sequences: Sequences
    trails: Trails


@dataclass(frozen=True, eq=False)
class HiddenMarkovParameters:
    """Rows of `transition` sum to one minus `halting`."""

    initial: Floats  # [generator, state]
    transition: Floats  # [generator, state, state]
    halting: Floats  # [generator, state]
    emission: Floats  # [generator, state, symbol]
    common: Floats = field(metadata=SHARED)  # [symbol], how often it occurs at all


@dataclass(frozen=True, eq=False)
class HiddenMarkovStatistics(Statistics):
    begins: Floats  # [generator, state]
    moves: Floats  # [generator, state, state]
    ends: Floats  # [generator, state]
    visits: Floats  # [generator, state, symbol]


@dataclass(frozen=True, kw_only=True)
class HiddenMarkov:
    """Hidden Markov models over an alphabet.

    >>> two = HiddenMarkovParameters(  # a state that says 0, then one that says 1, then the end
    ...     initial=np.array([[1.0, 0.0]]), transition=np.array([[[0.0, 1.0], [0.0, 0.0]]]),
    ...     halting=np.array([[0.0, 1.0]]), emission=np.eye(2)[None], common=np.full(2, 0.5))
    >>> HiddenMarkov(states=2).sample(two, 0, np.array([], int), None, np.random.default_rng(0)).tolist()
    [0, 1]
    """

    states: int = 5
    smoothing: float = 0.1
    halting: bool = True
    fixed: tuple[str, ...] = ()  # of `initial`, `transition` (and halting with it) and `emission`
    device: str = "cpu"  # or another of PyTorch's, such as `cuda`

    def __post_init__(self) -> None:
        check_whole(states=self.states)
        check_amount(smoothing=self.smoothing)
        check_fixed(self.fixed, ("initial", "transition", "emission"))

    @property
    def observes(self) -> Observed:
        return "symbols"

    @property
    def additive(self) -> bool:
        return True

    def prepare(self, sequences: Sequences) -> PreparedHidden:
        check_observes(self, "symbols", sequences)
        places = trail_places(sequences, sequences.symbols + 1)
        return PreparedHidden(sequences, make_trails(places, sequences.starts, self.device))

    def start(
        self, prepared: PreparedHidden, weights: Floats, generator: np.random.Generator
    ) -> HiddenMarkovParameters:
        sequences, count = prepared.sequences, weights.shape[1]
        owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
        totals = np.zeros((count, sequences.symbols + 1))
        for which in range(count):
            totals[which] = np.bincount(
                prepared.trails.places, weights[owner, which], sequences.symbols + 1
            )
        own = normalised(totals[:, :-1] + 1.0, np.array(0.0))
        noise = generator.gamma(1.0, size=(count, self.states, sequences.symbols))
        return HiddenMarkovParameters(
            **self._states.draw(count, float(sequences.lengths.mean()), generator),
            emission=normalised(own[:, None] * (0.1 + noise), np.array(0.0)),
            common=normalised(totals[:, :-1].sum(axis=0) + 1.0, np.array(0.0)),
        )

    def log_likelihood(
        self, parameters: HiddenMarkovParameters, prepared: PreparedHidden
    ) -> Floats:
        return likelihoods(self._chains(parameters), prepared.trails)

    def expect(
        self, parameters: HiddenMarkovParameters, prepared: PreparedHidden, weights: Floats
    ) -> ExpectedStatistics:
        def collect(passed: list[Passed]) -> HiddenMarkovStatistics:
            return HiddenMarkovStatistics(
                begins=np.array([each.begins for each in passed]),
                moves=np.array([each.moves for each in passed]),
                ends=np.array([each.ends for each in passed]),
                visits=np.array([each.marks[:-1].T for each in passed]),
            )

        return expect_states(self._chains(parameters), prepared.trails, weights, collect)

    def maximise(
        self, parameters: HiddenMarkovParameters, statistics: HiddenMarkovStatistics
    ) -> HiddenMarkovParameters:
        learned = self._states.learn(parameters, statistics, self.fixed)
        if "emission" not in self.fixed:
            visits = statistics.visits + self._pseudo(parameters)
            learned["emission"] = normalised(visits, parameters.emission)
        return replace(parameters, **learned)

    def log_prior(self, parameters: HiddenMarkovParameters) -> Floats:
        emission = weighted_log(self._pseudo(parameters), parameters.emission).sum(axis=(1, 2))
        return np.asarray(self._states.log_prior(parameters) + emission)

    def follow(self, parameters: HiddenMarkovParameters, prepared: PreparedHidden) -> Next:
        sequences = prepared.sequences
        found = look_ahead(parameters, self._chains(parameters), prepared.trails, sequences)
        symbols = np.einsum("pkh,khs->pks", found.states, parameters.emission)
        return Next(
            found.log_prefix, safe_log(np.concatenate([symbols, found.end[..., None]], axis=2))
        )

    def sample(
        self,
        parameters: HiddenMarkovParameters,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        symbols = parameters.emission.shape[2]
        given = Sequences(np.asarray(prefix, np.int32), np.array([0, len(prefix)]), symbols)
        one = take_generators(parameters, np.array([which]))
        prepared = self.prepare(given)
        found = look_ahead(one, self._chains(one), prepared.trails, given)
        steps = None if length is None else length - len(prefix)
        ahead = (found.states[-1, 0], float(found.end[-1, 0]))
        path = walk(one, 0, ahead, steps, generator)
        made = [generator.choice(symbols, p=one.emission[0, state]) for state in path]
        return np.concatenate([given.values, np.array(made, np.int32)])

    def _pseudo(self, parameters: HiddenMarkovParameters) -> Floats:
        return np.asarray(self.smoothing * len(parameters.common) * parameters.common)

    @property
    def _states(self) -> States:
        return States(self.states, self.smoothing, self.halting)

    def _chains(self, parameters: HiddenMarkovParameters) -> list[Chain]:
        every = np.ones((1, self.states))
        return [
            self._states.chain(parameters, which, np.concatenate([emission.T, every]))
            for which, emission in enumerate(parameters.emission)
        ]
