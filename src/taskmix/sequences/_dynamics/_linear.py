r"""Linear dynamical systems: a hidden state that moves linearly, seen through a linear map with noise.

    Ghahramani and Hinton, "Parameter Estimation for Linear Dynamical Systems", 1996; "Kalman Filter"
    is a heading without text in Crawford and Pineau's draft.

$x_1 \sim N(\mu, V)$, $x_{t+1} = A x_t + N(0, Q)$, $y_t = C x_t + d + N(0, R)$. One M-step of the
mixture is one EM step of each: smoothed states, weighted by φ, then two linear regressions. `smoothing`
is a number of pseudo-observations in which states are standard normal, do not move on and say nothing
of what is observed, which varies as all data; they keep every covariance positive definite. The end of
a sequence is not modelled. Missing numbers are left out of the filter and expected in the M-step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._dynamics._gaps import filter_one
from taskmix.sequences._dynamics._passes import Series, make_series, pass_over, predictions
from taskmix.sequences._dynamics._system import DynamicsStatistics, System
from taskmix.sequences._generator import (
    SHARED,
    ExpectedStatistics,
    Floats,
    Next,
    check_amount,
    check_fixed,
    check_observes,
    check_whole,
    running_totals,
    take_generators,
)
from taskmix.sequences._normal import LOG_TWO_PI, Background, background
from taskmix.sequences._observed import Observed, Sequences

PARAMETERS = ("initial", "transition", "noise", "output", "output_noise")


@dataclass(frozen=True, eq=False)
class PreparedSeries:
    """Sequences, and the same minus their mean as the passes take them."""

    sequences: Sequences
    behind: Background
    series: Series


@dataclass(frozen=True, eq=False)
class LinearDynamicsParameters:
    """What one kind of generator has learned.

    >>> system = LinearDynamics(states=2)
    >>> prepared = system.prepare(flatten_sequences([[1.0, 2.0, 3.0]], observes="vectors"))
    >>> system.start(prepared, np.ones((1, 4)), np.random.default_rng(0)).transition.shape  # of four
    (4, 2, 2)
    """

    initial: Floats  # [generator, state], mean of the first state
    initial_covariance: Floats  # [generator, state, state]
    transition: Floats  # [generator, state, state]
    noise: Floats  # [generator, state, state]
    output: Floats  # [generator, dimension, state]
    offset: Floats  # [generator, dimension]
    output_noise: Floats  # [generator, dimension, dimension]
    behind: Background = field(metadata=SHARED)


@dataclass(frozen=True, kw_only=True)
class LinearDynamics:
    """Linear dynamical systems over vectors.

    >>> from dataclasses import replace
    >>> system, one, zero = LinearDynamics(states=1), np.ones((1, 1, 1)), np.zeros((1, 1, 1))
    >>> prepared = system.prepare(flatten_sequences([[1.0, 2.0]], observes="vectors"))
    >>> halving = replace(
    ...     system.start(prepared, np.ones((1, 1)), np.random.default_rng(0)), initial=one[0],
    ...     initial_covariance=zero, transition=one / 2, noise=zero, output=one, offset=zero[0],
    ...     output_noise=zero)
    >>> system.sample(halving, 0, np.empty((0, 1)), 3, np.random.default_rng(0)).ravel()
    array([1.  , 0.5 , 0.25])
    """

    states: int = 4  # numbers in the hidden state
    smoothing: float = 0.1  # pseudo-observations
    fixed: tuple[str, ...] = ()  # of `initial`, `transition`, `noise`, `output`, `output_noise`

    def __post_init__(self) -> None:
        check_whole(states=self.states)
        check_amount(smoothing=self.smoothing)
        check_fixed(self.fixed, PARAMETERS)

    @property
    def observes(self) -> Observed:
        return "vectors"

    @property
    def halting(self) -> bool:
        return False

    @property
    def additive(self) -> bool:
        return True

    def prepare(self, sequences: Sequences) -> PreparedSeries:
        check_observes(self, "vectors", sequences)
        behind = background(sequences.values)
        series = make_series(sequences.values - behind.mean, sequences.starts)
        return PreparedSeries(sequences, behind, series)

    def start(
        self, prepared: PreparedSeries, weights: Floats, generator: np.random.Generator
    ) -> LinearDynamicsParameters:
        count, behind = weights.shape[1], prepared.behind
        dimension, states = prepared.sequences.dimension, self.states
        owner = np.repeat(np.arange(len(weights)), prepared.sequences.lengths)
        values = np.nan_to_num(prepared.series.values)  # minus their mean
        output = np.empty((count, dimension, states))
        offset, output_noise = np.empty((count, dimension)), np.empty((count, dimension, dimension))
        for which, column in enumerate(weights.T):
            share = column[owner] / max(column[owner].sum(), 1e-300)
            mean = share @ values
            spread = (values * share[:, None]).T @ values - np.outer(mean, mean)
            sizes, axes = np.linalg.eigh(spread + 1e-6 * np.diag(behind.variance))
            noise = (
                0.3 * np.sqrt(behind.variance)[:, None] * generator.normal(size=(dimension, states))
            )
            output[which] = noise
            kept = min(states, dimension)
            main = axes[:, ::-1][:, :kept] * np.sqrt(np.maximum(sizes[::-1][:kept], 0.0))
            output[which, :, :kept] += main
            offset[which] = mean + behind.mean
            output_noise[which] = np.diag(behind.variance) / 2
        square = np.eye(states)
        turn = 0.1 * generator.normal(size=(count, states, states))
        return LinearDynamicsParameters(
            initial=np.zeros((count, states)),
            initial_covariance=np.repeat(square[None], count, axis=0),
            transition=0.8 * square + turn,
            noise=np.repeat(0.4 * square[None], count, axis=0),
            output=output,
            offset=offset,
            output_noise=output_noise,
            behind=behind,
        )

    def log_likelihood(
        self, parameters: LinearDynamicsParameters, prepared: PreparedSeries
    ) -> Floats:
        systems = self._systems(parameters, prepared)
        return np.column_stack([pass_over(each, prepared.series, None)[0] for each in systems])

    def expect(
        self, parameters: LinearDynamicsParameters, prepared: PreparedSeries, weights: Floats
    ) -> ExpectedStatistics:
        found, parts = [], []
        for which, system in enumerate(self._systems(parameters, prepared)):
            logs, sums = pass_over(system, prepared.series, np.ascontiguousarray(weights[:, which]))
            found.append(logs)
            parts.append(_recentred(sums, prepared.behind.mean - parameters.behind.mean))
        names = DynamicsStatistics.__dataclass_fields__
        stacked = [np.array([getattr(part, name) for part in parts]) for name in names]
        return ExpectedStatistics(DynamicsStatistics(*stacked), np.column_stack(found))

    def maximise(
        self, parameters: LinearDynamicsParameters, statistics: DynamicsStatistics
    ) -> LinearDynamicsParameters:
        parts = [
            self._learn_one(take_generators(parameters, np.array([which])), statistics, which)
            for which in range(len(parameters.initial))
        ]
        learned = {name: np.array([part[name] for part in parts]) for name in parts[0]}
        return replace(parameters, **learned)  # type: ignore[arg-type]

    def log_prior(self, parameters: LinearDynamicsParameters) -> Floats:
        square = np.eye(self.states)
        initial = parameters.initial[:, :, None] * parameters.initial[:, None, :]
        moved = parameters.transition @ np.swapaxes(parameters.transition, 1, 2)
        away = parameters.offset - parameters.behind.mean
        seen = parameters.output @ np.swapaxes(parameters.output, 1, 2)
        seen = seen + away[:, :, None] * away[:, None, :] + np.diag(parameters.behind.variance)
        pairs = (
            (parameters.initial_covariance, square + initial),
            (parameters.noise, square + moved),
            (parameters.output_noise, seen),
        )
        total = np.zeros(len(initial))
        for covariance, spread in pairs:
            _, size = np.linalg.slogdet(covariance)
            distance = np.trace(np.linalg.solve(covariance, spread), axis1=1, axis2=2)
            total += size + distance + covariance.shape[1] * LOG_TWO_PI
        return -0.5 * self.smoothing * total

    def follow(self, parameters: LinearDynamicsParameters, prepared: PreparedSeries) -> Next:
        sequences = prepared.sequences
        systems = self._systems(parameters, prepared)
        parts = [predictions(system, prepared.series) for system in systems]
        logs = np.column_stack([part[2] for part in parts])
        return Next(
            running_totals(logs, sequences),
            mean=np.stack([part[0] for part in parts], axis=1) + prepared.behind.mean,
            covariance=np.stack([part[1] for part in parts], axis=1),
        )

    def sample(
        self,
        parameters: LinearDynamicsParameters,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        made = [np.asarray(value, np.float64) for value in prefix]
        one = self._system(parameters, which, parameters.offset[which])
        steps = filter_one(one, np.array(made).reshape(-1, len(one.offset)))
        state = generator.multivariate_normal(steps.predicted[-1], steps.spread[-1])
        for _ in range(len(made), len(made) + 1 if length is None else length):
            noise = generator.multivariate_normal(np.zeros(len(one.offset)), one.output_noise)
            made.append(one.output @ state + one.offset + noise)
            state = one.transition @ state
            state = state + generator.multivariate_normal(np.zeros(self.states), one.noise)
        return np.array(made).reshape(-1, len(one.offset))

    def _system(self, parameters: LinearDynamicsParameters, which: int, offset: Floats) -> System:
        return System(
            first=parameters.initial[which],
            first_covariance=parameters.initial_covariance[which],
            transition=parameters.transition[which],
            noise=parameters.noise[which],
            output=parameters.output[which],
            offset=offset,
            output_noise=parameters.output_noise[which],
        )

    def _systems(
        self, parameters: LinearDynamicsParameters, prepared: PreparedSeries
    ) -> list[System]:
        """Each generator for observations minus their mean."""
        offsets = parameters.offset - prepared.behind.mean
        return [self._system(parameters, which, offset) for which, offset in enumerate(offsets)]

    def _learn_one(
        self, old: LinearDynamicsParameters, statistics: DynamicsStatistics, which: int
    ) -> dict[str, Floats]:
        """The most likely parameters of one generator; `old` has just this one."""
        s = {name: getattr(statistics, name)[which] for name in statistics.__dataclass_fields__}
        pseudo, square = self.smoothing, np.eye(self.states)
        found = {
            name: getattr(old, name)[0] for name in old.__dataclass_fields__ if name != "behind"
        }
        begun = float(s["begin_mass"]) + pseudo
        if "initial" not in self.fixed and begun > 0:
            mean = s["begin"] / begun
            found["initial"] = mean
            found["initial_covariance"] = (s["begins"] + pseudo * square) / begun - np.outer(
                mean, mean
            )
        moved = float(s["move_mass"]) + pseudo
        if moved > 0:
            before, after = s["before"] + pseudo * square, s["after"] + pseudo * square
            if "transition" not in self.fixed:
                found["transition"] = np.linalg.solve(before, s["cross"].T).T
            if "noise" not in self.fixed:
                found["noise"] = _left_over(after, s["cross"], before, found["transition"]) / moved
        mass = float(s["mass"]) + pseudo
        if mass > 0:
            inputs = np.block(
                [
                    [s["states"] + pseudo * square, s["state"][:, None]],
                    [s["state"][None], np.array([[mass]])],
                ]
            )
            crossed = np.column_stack([s["made"], s["seen"]])
            map_ = np.column_stack([found["output"], found["offset"] - old.behind.mean])
            if "output" not in self.fixed:
                map_ = np.linalg.solve(inputs, crossed.T).T
                found["output"] = map_[:, :-1]
                found["offset"] = map_[:, -1] + old.behind.mean
            if "output_noise" not in self.fixed:
                squares = s["squares"] + pseudo * np.diag(old.behind.variance)
                found["output_noise"] = _left_over(squares, crossed, inputs, map_) / mass
        return found


def _left_over(squares: Floats, crossed: Floats, inputs: Floats, map_: Floats) -> Floats:
    """Σ (y − M x)(y − M x)ᵀ from Σ y yᵀ, Σ y xᵀ and Σ x xᵀ, for any M."""
    part = map_ @ crossed.T
    rest = squares - part - part.T + map_ @ inputs @ map_.T
    return np.asarray((rest + rest.T) / 2)


def _recentred(sums: DynamicsStatistics | None, shift: Floats) -> DynamicsStatistics:
    """Sums for observations that are larger by `shift`: other data have another mean."""
    assert sums is not None
    if not shift.any():
        return sums
    crossed = np.outer(sums.seen, shift)
    return replace(
        sums,
        seen=sums.seen + sums.mass * shift,
        made=sums.made + np.outer(shift, sums.state),
        squares=sums.squares + crossed + crossed.T + sums.mass * np.outer(shift, shift),
    )
