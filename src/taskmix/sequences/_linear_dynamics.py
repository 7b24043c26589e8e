r"""Linear dynamical systems: a hidden state that moves linearly, seen through a linear map with noise.

    Kalman, 1960; Rauch, Tung and Striebel, 1965; Ghahramani and Hinton, "Parameter Estimation for Linear
    Dynamical Systems", 1996; "Kalman Filter" is a heading without text in Crawford and Pineau's draft.

$x_1 \sim N(\mu, V)$, $x_{t+1} = A x_t + N(0, Q)$, $y_t = C x_t + d + N(0, R)$. One M-step of the
mixture is one EM step of each: smoothed states, weighted by φ, then two linear regressions. `smoothing`
is a number of pseudo-observations in which states are standard normal, do not move on and say nothing
of what is observed, which varies as all data; they keep every covariance positive definite. The end of
a sequence is not modelled. Missing numbers are left out of the filter and expected in the M-step.

Covariances and gains do not depend on the data but on which numbers are missing. So all sequences
without gaps are one group, which is filtered and smoothed together, and each with gaps is a group of its
own. Observations of a group are columns, time by time, so that a time is one product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
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
    running_totals,
    take_generators,
)
from taskmix.sequences._normal import LOG_TWO_PI, Background, background
from taskmix.sequences._sequences import Observed, Sequences

PARAMETERS = ("initial", "transition", "noise", "output", "output_noise")
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeriesGroup:
    """Sequences that lack the same numbers. Observations lie time by time: at each time those of the
    sequences that are not over, in their order."""

    rows: Rows  # [sequence], which they are, the longest first
    seen: NDArray[np.bool_]  # [time, dimension]
    going: Rows  # [time], how many are not over
    owner: Rows  # [observation], a place in `rows`
    place: Rows  # [observation], where it is in the data
    values: Floats  # [dimension, observation], minus the mean of all data; 0 where missing

    @property
    def starts(self) -> Rows:
        """[time + 1], where the observations of a time begin."""
        return np.concatenate([[0], np.cumsum(self.going)])

    def select(self, chosen: NDArray[np.bool_]) -> SeriesGroup:
        """These sequences alone; covariances are those of the group."""
        if chosen.all():
            return self
        kept = chosen[self.owner]
        time = np.repeat(np.arange(len(self.going)), self.going)
        return SeriesGroup(
            self.rows[chosen],
            self.seen,
            np.bincount(time[kept], minlength=len(self.going)),
            (np.cumsum(chosen) - 1)[self.owner[kept]],
            self.place[kept],
            self.values[:, kept],
        )


@dataclass(frozen=True, eq=False)
class PreparedSeries:
    sequences: Sequences
    behind: Background
    groups: tuple[SeriesGroup, ...]


@dataclass(frozen=True, eq=False)
class DynamicsStatistics(Statistics):
    """Expected weighted sums; x is the state, y the observation. A generator's, or all of them."""

    begin_mass: Floats  # []
    begin: Floats  # Σ x_1
    begins: Floats  # Σ x_1 x_1ᵀ
    move_mass: Floats  # []
    before: Floats  # Σ x_t x_tᵀ, t before the last
    after: Floats  # Σ x_t x_tᵀ, t after the first
    cross: Floats  # Σ x_{t+1} x_tᵀ
    mass: Floats  # []
    state: Floats  # Σ x
    states: Floats  # Σ x xᵀ
    seen: Floats  # Σ y
    made: Floats  # Σ y xᵀ
    squares: Floats  # Σ y yᵀ


@dataclass(frozen=True, eq=False)
class LinearDynamicsParameters:
    """What one kind of generator has learned."""

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
        return PreparedSeries(sequences, behind, _grouped(sequences, behind.mean))

    def start(
        self, prepared: PreparedSeries, weights: Floats, generator: np.random.Generator
    ) -> LinearDynamicsParameters:
        count, behind = weights.shape[1], prepared.behind
        dimension, states = prepared.sequences.dimension, self.states
        owner = np.repeat(np.arange(len(weights)), prepared.sequences.lengths)
        values = np.nan_to_num(prepared.sequences.values - behind.mean)
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
        some = _relative_to(parameters, prepared.behind.mean)
        found = np.empty((len(prepared.sequences), len(some.initial)))
        for group in prepared.groups:
            known = _covariances(some, group.seen)
            for which in range(len(some.initial)):
                logs = _filter(some, which, known, group)[2]
                found[group.rows, which] = np.bincount(group.owner, logs, len(group.rows))
        return found

    def expect(
        self, parameters: LinearDynamicsParameters, prepared: PreparedSeries, weights: Floats
    ) -> ExpectedStatistics:
        found = np.full(weights.shape, -np.inf)
        sums = [_no_statistics(self.states, prepared.sequences.dimension) for _ in weights.T]
        for group in prepared.groups:
            mine = weights[group.rows]  # [sequence, generator]
            chosen = np.flatnonzero((mine > 0).any(axis=0))
            if len(chosen):
                some = take_generators(parameters, chosen)
                parts = _expect(_relative_to(some, prepared.behind.mean), group, mine[:, chosen])
                for which, (rows, logs, part) in zip(chosen, parts, strict=True):
                    found[rows, which] = logs
                    sums[which] = sums[which] + part
        shift = prepared.behind.mean - parameters.behind.mean
        moved = [_recentred(each, shift) for each in sums]
        names = [each.name for each in fields(DynamicsStatistics)]
        stacked = [np.array([getattr(each, name) for each in moved]) for name in names]
        return ExpectedStatistics(DynamicsStatistics(*stacked), found)

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
        some = _relative_to(parameters, prepared.behind.mean)
        mean, covariance, logs = _predict(some, prepared)
        spread = some.output @ covariance @ np.swapaxes(some.output, 1, 2) + some.output_noise
        seen = (some.output @ mean[..., None])[..., 0] + parameters.offset
        return Next(running_totals(logs, prepared.sequences), mean=seen, covariance=spread)

    def sample(
        self,
        parameters: LinearDynamicsParameters,
        which: int,
        prefix: NDArray[Any],
        length: int | None,
        generator: np.random.Generator,
    ) -> NDArray[Any]:
        made = [np.asarray(value, np.float64) for value in prefix]
        one = take_generators(parameters, np.array([which]))
        given = Sequences(np.array(made).reshape(-1, one.offset.shape[1]), np.array([0, len(made)]))
        groups = _grouped(given, np.zeros(one.offset.shape[1]))
        mean, covariance, _ = _predict(one, PreparedSeries(given, one.behind, groups))
        state = generator.multivariate_normal(mean[-1, 0], covariance[-1, 0])
        zero = np.zeros(one.offset.shape[1])
        for _ in range(len(made), len(made) + 1 if length is None else length):
            noise = generator.multivariate_normal(zero, one.output_noise[0])
            made.append(one.output[0] @ state + one.offset[0] + noise)
            state = one.transition[0] @ state
            state = state + generator.multivariate_normal(np.zeros(self.states), one.noise[0])
        return np.array(made).reshape(-1, len(zero))

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


def _recentred(sums: DynamicsStatistics, shift: Floats) -> DynamicsStatistics:
    """Sums for observations that are larger by `shift`: other data have another mean."""
    crossed = np.outer(sums.seen, shift)
    return replace(
        sums,
        seen=sums.seen + sums.mass * shift,
        made=sums.made + np.outer(shift, sums.state),
        squares=sums.squares + crossed + crossed.T + sums.mass * np.outer(shift, shift),
    )


def _relative_to(parameters: LinearDynamicsParameters, mean: Floats) -> LinearDynamicsParameters:
    """For observations minus this mean."""
    return replace(parameters, offset=parameters.offset - mean)


def _no_statistics(states: int, dimension: int) -> DynamicsStatistics:
    vector, square, zero = np.zeros(states), np.zeros((states, states)), np.zeros(())
    return DynamicsStatistics(
        zero, vector, square, zero, square, square, square, zero, vector, square,
        np.zeros(dimension), np.zeros((dimension, states)), np.zeros((dimension, dimension)),
    )  # fmt: skip


def _grouped(sequences: Sequences, mean: Floats) -> tuple[SeriesGroup, ...]:
    """Those without gaps, and each that has some; observations minus this mean."""
    gaps = np.concatenate([[0], np.cumsum(np.isnan(sequences.values).any(axis=1))])
    broken = np.diff(gaps[sequences.starts]) > 0
    order = np.argsort(-sequences.lengths, kind="stable")
    groups = [order[~broken[order]], *np.flatnonzero(broken)[:, None]]
    return tuple(_group(sequences, rows, mean) for rows in groups if len(rows))


def _group(sequences: Sequences, rows: Rows, mean: Floats) -> SeriesGroup:
    lengths, starts = sequences.lengths[rows], sequences.starts[rows]
    times = np.arange(lengths[0])
    going = np.searchsorted(-lengths, -times)  # how many are longer
    owner = np.arange(going.sum()) - np.repeat(np.cumsum(going) - going, going)
    place = starts[owner] + np.repeat(times, going)
    seen = ~np.isnan(sequences.values[starts[0] : starts[0] + lengths[0]])
    values = np.nan_to_num((sequences.values[place] - mean).T)
    return SeriesGroup(rows, seen, going, owner, place, np.ascontiguousarray(values))


@dataclass(frozen=True, eq=False)
class FilterCovariances:
    """What a filter knows before it sees data. All are [time, generator, ...]."""

    output: Floats  # [dimension, state], where rows of missing numbers are 0
    predicted: Floats  # covariances of the state; one time more
    held: Floats  # the same with what is observed then
    gains: Floats  # [state, dimension]
    whitening: Floats  # [dimension, dimension], of what is predicted of the observation
    size: Floats  # logarithms of 2π and of the determinant of its covariance


def _covariances(some: LinearDynamicsParameters, seen: NDArray[np.bool_]) -> FilterCovariances:
    """A missing number is one that the state has nothing to do with: a row of zeros in C and, in R,
    a variance of one by itself. Its gains are zero, and it adds nothing to a determinant."""
    count, dimension, states = some.output.shape
    both = seen[:, None, :, None] & seen[:, None, None, :]
    outputs = np.where(seen[:, None, :, None], some.output, 0.0)
    noises = np.where(both, some.output_noise, np.eye(dimension))
    predicted = np.empty((len(seen) + 1, count, states, states))
    held = np.empty((len(seen), count, states, states))
    gains = np.empty((len(seen), count, states, dimension))
    innovations = np.empty_like(noises)
    predicted[0] = some.initial_covariance
    moved = np.swapaxes(some.transition, 1, 2)
    try:
        for t, (output, noise) in enumerate(zip(outputs, noises, strict=True)):
            crossed = output @ predicted[t]
            innovations[t] = crossed @ np.swapaxes(output, 1, 2) + noise
            gains[t] = np.swapaxes(np.linalg.solve(innovations[t], crossed), 1, 2)
            left = predicted[t] - gains[t] @ crossed
            held[t] = (left + np.swapaxes(left, 1, 2)) / 2
            predicted[t + 1] = some.transition @ held[t] @ moved + some.noise
        factors = np.linalg.cholesky(innovations)
    except np.linalg.LinAlgError:
        raise InputError(
            "The covariances of a linear dynamical system should be positive definite. Found one "
            "that is not: it has too few observations that differ. Raise `smoothing` above 0."
        ) from None
    size = 2 * np.log(np.diagonal(factors, axis1=2, axis2=3)).sum(axis=2)
    size += LOG_TWO_PI * seen.sum(axis=1)[:, None]
    whitening = np.asarray(np.linalg.inv(factors), np.float64)
    return FilterCovariances(outputs, predicted, held, gains, whitening, size)


def _filter(
    some: LinearDynamicsParameters, which: int, known: FilterCovariances, group: SeriesGroup
) -> tuple[Floats, Floats, Floats]:
    """Means of the state before and after each observation [state, observation], and the logarithm of
    how likely it was."""
    away = group.values - some.offset[which][:, None]
    if not group.seen.all():
        away *= np.repeat(group.seen, group.going, axis=0).T
    expected = np.empty((some.initial.shape[1], away.shape[1]))
    held, starts = np.empty_like(expected), group.starts
    for t, count in enumerate(group.going):
        here = slice(starts[t], starts[t] + count)
        if t:
            before = slice(starts[t - 1], starts[t - 1] + count)
            expected[:, here] = some.transition[which] @ held[:, before]
        else:
            expected[:, here] = some.initial[which][:, None]
        off = away[:, here] - known.output[t, which] @ expected[:, here]
        held[:, here] = expected[:, here] + known.gains[t, which] @ off
        away[:, here] = known.whitening[t, which] @ off
    logs = -0.5 * ((away**2).sum(axis=0) + np.repeat(known.size[:, which], group.going))
    return expected, held, logs


def _predict(
    some: LinearDynamicsParameters, prepared: PreparedSeries
) -> tuple[Floats, Floats, Floats]:
    """Means [prefix, generator, state] and covariances of the state at the next time, and the
    logarithm of how likely each observation was [observation, generator]."""
    starts, count = prepared.sequences.starts, len(some.initial)
    first = starts + np.arange(len(starts))
    mean = np.empty((first[-1], count, some.initial.shape[1]))
    covariance = np.empty((*mean.shape, mean.shape[2]))
    logs = np.empty((len(prepared.sequences.values), count))
    mean[first[:-1]], covariance[first[:-1]] = some.initial, some.initial_covariance
    for group in prepared.groups:
        known, after = _covariances(some, group.seen), group.place + group.rows[group.owner] + 1
        covariance[after] = np.repeat(known.predicted[1:], group.going, axis=0)
        for which in range(count):
            _, held, logs[group.place, which] = _filter(some, which, known, group)
            mean[after, which] = (some.transition[which] @ held).T
    return mean, covariance, logs


def _smoothed_covariances(
    known: FilterCovariances,
    back: Floats,  # [time, generator, state, state], gains of the smoother
    going: Floats,  # [time, generator], the weight of the sequences that are not over
) -> Floats:
    """[time, generator, ...], weighted sums over the sequences: one that ends has the filter's, and one
    that goes on a linear function of that of the next time."""
    spread = going[..., None, None] * known.held
    for t in range(len(spread) - 2, -1, -1):
        beyond = spread[t + 1] - going[t + 1, :, None, None] * known.predicted[t + 1]
        spread[t] += back[t] @ beyond @ np.swapaxes(back[t], 1, 2)
    return np.asarray(spread)


def _expect(
    some: LinearDynamicsParameters, group: SeriesGroup, weights: Floats
) -> Iterator[tuple[Rows, Floats, DynamicsStatistics]]:
    """For each generator: the sequences that count for it, their log-likelihoods, and their sums."""
    known = _covariances(some, group.seen)
    back = np.swapaxes(np.linalg.solve(known.predicted[1:], some.transition @ known.held), 2, 3)
    going = np.cumsum(weights, axis=0)[group.going - 1]  # weight of those that are not over
    ending = going - np.append(going[1:], np.zeros((1, len(weights.T))), axis=0)
    spread = _smoothed_covariances(known, back, going)
    last_spread = (ending[..., None, None] * known.held).sum(axis=0)
    cross_spread = (spread[1:] @ np.swapaxes(back[:-1], 2, 3)).sum(axis=0)
    for which, share in enumerate(weights.T):
        mine = group.select(share > 0)
        expected, smooth, logs = _filter(some, which, known, mine)
        weight, cross = share[share > 0][mine.owner], cross_spread[which]
        starts, many = mine.starts, mine.going[0]
        for t in range(len(mine.going) - 2, -1, -1):
            after = slice(starts[t + 1], starts[t + 2])
            here = slice(starts[t], starts[t] + mine.going[t + 1])
            smooth[:, here] += back[t, which] @ (smooth[:, after] - expected[:, after])
            cross = cross + (weight[after] * smooth[:, after]) @ smooth[:, here].T
        weighed = weight * smooth
        last = starts[np.bincount(mine.owner) - 1] + np.arange(many)
        begin_mass, mass = np.array(going[0, which]), np.array(going[:, which].sum())
        states = weighed @ smooth.T + spread[:, which].sum(axis=0)
        begins = weighed[:, :many] @ smooth[:, :many].T + spread[0, which]
        ends = weighed[:, last] @ smooth[:, last].T + last_spread[which]
        sums = DynamicsStatistics(
            begin_mass=begin_mass,
            begin=weighed[:, :many].sum(axis=1),
            begins=begins,
            move_mass=mass - begin_mass,
            before=states - ends,
            after=states - begins,
            cross=cross,
            mass=mass,
            state=weighed.sum(axis=1),
            states=states,
            seen=mine.values @ weight,
            made=mine.values @ weighed.T,
            squares=(weight * mine.values) @ mine.values.T,
        )
        if not group.seen.all():  # one sequence, so that an observation is a time
            products = spread[:, which] / weight[0] + smooth.T[:, :, None] * smooth.T[:, None, :]
            filled = _filled(some, which, mine, smooth.T, products)
            sums = replace(sums, **{name: weight[0] * value for name, value in filled.items()})
        found = np.bincount(mine.owner, logs, len(mine.rows)).astype(np.float64)
        yield mine.rows, found, sums


def _filled(
    some: LinearDynamicsParameters,
    which: int,
    group: SeriesGroup,
    mean: Floats,  # [time, state]
    products: Floats,  # [time, state, state]
) -> dict[str, Floats]:
    """Expected Σ y, Σ y xᵀ and Σ y yᵀ of a sequence where some of y is missing: given the state x and
    what was seen, it is B x + b with a covariance of its own."""
    output, noise, offset = some.output[which], some.output_noise[which], some.offset[which]
    total, made, squares = np.zeros_like(offset), np.zeros_like(output), np.zeros_like(noise)
    for value, known, at, product in zip(group.values.T, group.seen, mean, products, strict=True):
        lacking, slope, level = ~known, np.zeros_like(output), value.copy()
        rest = np.zeros_like(noise)
        crossed = noise[np.ix_(lacking, known)]
        gain = np.linalg.solve(noise[np.ix_(known, known)], crossed.T).T
        slope[lacking] = output[lacking] - gain @ output[known]
        level[lacking] = offset[lacking] + gain @ (value - offset)[known]
        rest[np.ix_(lacking, lacking)] = noise[np.ix_(lacking, lacking)] - gain @ crossed.T
        part = np.outer(slope @ at, level)
        total += slope @ at + level
        made += slope @ product + np.outer(level, at)
        squares += slope @ product @ slope.T + part + part.T + np.outer(level, level) + rest
    return {"seen": total, "made": made, "squares": squares}
