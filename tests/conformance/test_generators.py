"""One suite that every generator passes, none excepted."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from taskmix.errors import InputError, OptionError
from taskmix.sequences import (
    ExpectedStatistics,
    Gaussian,
    GaussianHiddenMarkov,
    HiddenMarkov,
    LinearDynamics,
    Markov,
    Multinomial,
    Next,
    Recurrent,
    Sequences,
    Statistics,
    flatten_sequences,
    put_generators,
    running_totals,
    sums_by_sequence,
    take_generators,
)

SYMBOLS = 3


@dataclass(frozen=True, eq=False)
class ExponentialParameters:
    rate: np.ndarray  # [generator]


@dataclass(frozen=True, eq=False)
class ExponentialStatistics(Statistics):
    total: np.ndarray  # [generator]
    mass: np.ndarray  # [generator]


@dataclass(frozen=True)
class Exponential:
    """A generator as a user would write it, as docs/sequences.md has it: waiting times."""

    prior: float = 1.0
    observes: str = "vectors"
    halting: bool = False
    additive: bool = True

    def prepare(self, sequences: Sequences) -> Sequences:
        if sequences.observes != "vectors":
            raise InputError("Exponential should be given sequences of vectors. Found symbols.")
        return sequences

    def start(self, prepared: Sequences, weights: Any, generator: Any) -> ExponentialParameters:
        return ExponentialParameters(generator.uniform(0.5, 2.0, weights.shape[1]))

    def _logs(self, parameters: ExponentialParameters, prepared: Sequences) -> Any:
        seen = np.nan_to_num(np.abs(prepared.values[:, :1]))
        missing = np.isnan(prepared.values[:, :1])
        return np.where(missing, 0.0, np.log(parameters.rate) - parameters.rate * seen)

    def log_likelihood(self, parameters: ExponentialParameters, prepared: Sequences) -> Any:
        return sums_by_sequence(self._logs(parameters, prepared), prepared)

    def expect(
        self, parameters: ExponentialParameters, prepared: Sequences, weights: Any
    ) -> ExpectedStatistics:
        seen = ~np.isnan(prepared.values[:, :1])
        total = sums_by_sequence(np.nan_to_num(np.abs(prepared.values[:, :1])), prepared)
        mass = sums_by_sequence(seen.astype(float), prepared)
        return ExpectedStatistics(
            ExponentialStatistics((weights * total).sum(axis=0), (weights * mass).sum(axis=0))
        )

    def maximise(self, parameters: ExponentialParameters, statistics: ExponentialStatistics) -> Any:
        return ExponentialParameters(
            (statistics.mass + self.prior) / (statistics.total + self.prior)
        )

    def log_prior(self, parameters: ExponentialParameters) -> Any:
        return self.prior * (np.log(parameters.rate) - parameters.rate)

    def follow(self, parameters: ExponentialParameters, prepared: Sequences) -> Next:
        log_prefix = running_totals(self._logs(parameters, prepared), prepared)
        shape = (*log_prefix.shape, prepared.dimension)
        mean = np.broadcast_to(1 / parameters.rate[:, None], shape)
        spread = np.broadcast_to(np.eye(prepared.dimension), (*shape, prepared.dimension))
        return Next(log_prefix, mean=mean, covariance=spread)

    def sample(
        self,
        parameters: ExponentialParameters,
        which: int,
        prefix: Any,
        length: Any,
        generator: Any,
    ) -> Any:
        count = (length or len(prefix) + 1) - len(prefix)
        made = generator.exponential(1 / parameters.rate[which], (max(count, 0), prefix.shape[1]))
        return np.concatenate([prefix, made])


GENERATORS: dict[str, Any] = {
    "multinomial": Multinomial(),
    "markov, order 0": Markov(order=0),
    "markov": Markov(),
    "markov, order 2": Markov(order=2, smoothing=2.0),
    "markov, even": Markov(order=2, spread="even"),
    "markov, given lengths": Markov(halting=False),
    "hidden markov, lanes": HiddenMarkov(states=2),
    "hidden markov, batches": HiddenMarkov(states=5),
    "hidden markov, given lengths": HiddenMarkov(states=4, halting=False),
    "gaussian": Gaussian(),
    "gaussian, diagonal": Gaussian(covariance="diagonal"),
    "gaussian mixture": Gaussian(components=3),
    "gaussian hidden markov": GaussianHiddenMarkov(states=3),
    "gaussian hidden markov, diagonal": GaussianHiddenMarkov(
        states=4, covariance="diagonal", halting=True
    ),
    "linear dynamics": LinearDynamics(states=2),
    "recurrent": Recurrent(hidden=5, embedded=4, steps=3),
    "recurrent, vectors": Recurrent(observes="vectors", hidden=5, steps=3),
    "a user's own": Exponential(),
}
MISSING = {name for name in GENERATORS if "markov" not in name and name != "multinomial"}
MISSING |= {name for name in GENERATORS if "hidden" in name} | {"markov, order 0"}
OUR_OWN = [name for name in GENERATORS if name != "a user's own"]

every_generator = pytest.mark.parametrize("name", GENERATORS)


def draw(name: str, count: int = 24, seed: int = 0) -> Sequences:
    """Sequences of lengths from 1 to 8 of the kind that the generator reads."""
    generator = np.random.default_rng(seed)
    lengths = [1, 1, *generator.integers(1, 9, count - 2)]
    if GENERATORS[name].observes == "symbols":
        parts: list[Any] = [generator.integers(0, 2, size).cumsum() % SYMBOLS for size in lengths]
        return flatten_sequences(parts, symbols=SYMBOLS)
    parts = [generator.normal(size=(size, 2)).cumsum(axis=0) + 3 for size in lengths]
    return flatten_sequences(parts, observes="vectors")


def begin(name: str, sequences: Sequences, seed: int = 1) -> tuple[Any, Any, Any, Any]:
    """Options, prepared data, weights and parameters of two generators after a step."""
    options, generator = GENERATORS[name], np.random.default_rng(seed)
    prepared = options.prepare(sequences)
    weights = generator.random((len(sequences), 2)) * (generator.random((len(sequences), 2)) < 0.8)
    parameters = options.start(prepared, weights, generator)
    return options, prepared, weights, step(options, parameters, prepared, weights)


def step(options: Any, parameters: Any, prepared: Any, weights: Any) -> Any:
    return options.maximise(parameters, options.expect(parameters, prepared, weights).statistics)


def assert_same(one: Any, other: Any, tolerance: float = 1e-9) -> None:
    """Two sets of parameters or statistics are the same, array by array."""
    for each in fields(one):
        a, b = getattr(one, each.name), getattr(other, each.name)
        if isinstance(a, Statistics):
            assert_same(a, b, tolerance)
        elif isinstance(a, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=each.name)


@every_generator
def test_the_weighted_likelihood_with_its_prior_never_falls(name: str) -> None:
    options, prepared, weights, parameters = begin(name, draw(name))
    last = -np.inf
    for _ in range(8):
        found = options.log_likelihood(parameters, prepared)
        level = float((weights * found).sum() + options.log_prior(parameters).sum())
        assert level >= last - 1e-9 * abs(level)
        last = level
        parameters = step(options, parameters, prepared, weights)


@every_generator
def test_a_sequence_is_as_likely_as_all_its_steps_and_its_end(name: str) -> None:
    sequences = draw(name)
    options, prepared, _, parameters = begin(name, sequences)
    ahead = options.follow(parameters, prepared)
    ends = sequences.starts[1:] + np.arange(len(sequences))
    total = ahead.log_prefix[ends]
    if ahead.log_probabilities is not None and options.halting:
        total = total + ahead.log_probabilities[ends][..., -1]
    if ahead.log_probabilities is not None or not options.halting:
        np.testing.assert_allclose(total, options.log_likelihood(parameters, prepared))


@every_generator
def test_what_follows_is_a_distribution_after_every_prefix(name: str) -> None:
    sequences = draw(name)
    options, prepared, _, parameters = begin(name, sequences)
    ahead = options.follow(parameters, prepared)
    assert ahead.log_prefix.shape == (len(sequences.values) + len(sequences), 2)
    first = sequences.starts[:-1] + np.arange(len(sequences))
    np.testing.assert_allclose(ahead.log_prefix[first], 0.0, atol=1e-12)
    if ahead.log_probabilities is not None:
        np.testing.assert_allclose(np.exp(ahead.log_probabilities).sum(axis=2), 1.0)
        np.testing.assert_allclose(np.exp(ahead.log_probabilities[first][..., -1]), 0.0, atol=1e-12)
    else:
        assert np.isfinite(ahead.mean).all()
        assert (np.linalg.eigvalsh(ahead.covariance) > 0).all()


@every_generator
def test_prefixes_follow_from_those_before(name: str) -> None:
    sequences = draw(name)
    options, prepared, _, parameters = begin(name, sequences)
    ahead = options.follow(parameters, prepared)
    if ahead.log_probabilities is None:
        return
    longest = int(sequences.lengths.argmax())
    at = int(sequences.starts[longest]) + longest
    level = 0.0
    for place, symbol in enumerate(sequences[longest]):
        level = level + ahead.log_probabilities[at + place][:, symbol]
        np.testing.assert_allclose(ahead.log_prefix[at + place + 1], level)


@every_generator
def test_a_weight_of_three_is_three_copies(name: str) -> None:
    sequences = draw(name)
    options, prepared, weights, parameters = begin(name, sequences)
    thrice = sequences.select(np.concatenate([np.arange(len(sequences)), [3, 3]]))
    copied = np.concatenate([weights, weights[[3, 3]]])
    heavy = weights.copy()
    heavy[3] *= 3
    again = options.prepare(thrice)
    assert_same(
        step(options, parameters, prepared, heavy),
        step(options, parameters, again, copied),
        1e-6 if name.startswith("recurrent") else 1e-9,
    )


@every_generator
def test_a_weight_of_zero_is_no_sequence(name: str) -> None:
    sequences = draw(name)
    options, prepared, weights, parameters = begin(name, sequences)
    weights = weights.copy()
    weights[5:9] = 0.0
    kept = np.concatenate([np.arange(5), np.arange(9, len(sequences))])
    fewer = options.prepare(sequences.select(kept))
    one = step(options, parameters, prepared, weights)
    other = step(options, parameters, fewer, weights[kept])
    likelihood = options.log_likelihood(one, prepared)
    np.testing.assert_allclose(likelihood, options.log_likelihood(other, prepared), rtol=1e-6)


@every_generator
def test_statistics_of_parts_add_up_to_those_of_the_whole(name: str) -> None:
    sequences = draw(name)
    options, prepared, weights, parameters = begin(name, sequences)
    whole = options.expect(parameters, prepared, weights).statistics
    cut = [np.arange(10), np.arange(10, len(sequences))]
    parts = [
        options.expect(
            parameters, options.prepare(sequences.select(rows)), weights[rows]
        ).statistics
        for rows in cut
    ]
    together = options.maximise(parameters, parts[0] + parts[1])
    found = options.log_likelihood(together, prepared)
    expected = options.log_likelihood(options.maximise(parameters, whole), prepared)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    halves = options.maximise(parameters, whole * 0.5 + whole * 0.5)
    np.testing.assert_allclose(options.log_likelihood(halves, prepared), expected, rtol=1e-6)


@every_generator
def test_generators_of_a_block_do_not_know_of_each_other(name: str) -> None:
    options, prepared, weights, parameters = begin(name, draw(name))
    second = np.array([1])
    alone = step(options, take_generators(parameters, second), prepared, weights[:, 1:])
    both = step(options, parameters, prepared, weights)
    assert_same(take_generators(both, second), alone, 1e-6)
    swapped = put_generators(parameters, np.array([0]), take_generators(parameters, second))
    found = options.log_likelihood(swapped, prepared)
    np.testing.assert_allclose(found[:, 0], found[:, 1])


@every_generator
def test_samples_begin_with_the_prefix_and_are_the_seeds(name: str) -> None:
    sequences = draw(name)
    options, _, _, parameters = begin(name, sequences)
    prefix = sequences[int(sequences.lengths.argmax())][:2]
    made = [
        options.sample(parameters, 1, prefix, 6, np.random.default_rng(seed)) for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_array_equal(made[2][:2], prefix)
    assert len(made[0]) == 6 if not options.halting else 2 <= len(made[0]) <= 6
    empty = sequences.values[:0]
    assert len(options.sample(parameters, 0, empty, 3, np.random.default_rng(0))) >= 1


@every_generator
def test_samples_are_as_frequent_as_predicted(name: str) -> None:
    sequences = draw(name)
    options, _, _, parameters = begin(name, sequences)
    generator = np.random.default_rng(3)
    prefix = sequences[int(sequences.lengths.argmax())][:2]
    given = Sequences(prefix, np.array([0, 2]), sequences.symbols)
    ahead = options.follow(parameters, options.prepare(given))
    draws = 150 if name.startswith("recurrent") else 400
    made = [options.sample(parameters, 0, prefix, 3, generator) for _ in range(draws)]
    if ahead.log_probabilities is not None:
        shares = np.exp(ahead.log_probabilities[-1, 0])
        third = [each[2] if len(each) > 2 else SYMBOLS for each in made]
        counts = np.bincount(third, minlength=SYMBOLS + 1)
        error = np.sqrt(shares * (1 - shares) / draws) + 1e-9
        assert (np.abs(counts / draws - shares) < 5 * error).all()
    elif isinstance(options, Gaussian | LinearDynamics | GaussianHiddenMarkov):
        going_on = np.array([each[2] for each in made if len(each) > 2])
        error = np.sqrt(np.diag(ahead.covariance[-1, 0]) / len(going_on))
        assert (np.abs(going_on.mean(axis=0) - ahead.mean[-1, 0]) < 5 * error).all()


@every_generator
def test_missing_observations_are_modelled_or_refused_in_a_sentence(name: str) -> None:
    sequences = draw(name)
    values = sequences.values.astype(np.float64 if not sequences.symbols else np.int32)
    values[::5] = -1 if sequences.symbols else np.nan
    if not sequences.symbols:
        values[3::7, 0] = np.nan  # some numbers of a vector
    gaps = Sequences(values, sequences.starts, sequences.symbols)
    if name not in MISSING:
        with pytest.raises(InputError, match="no model for missing"):
            GENERATORS[name].prepare(gaps)
        return
    options, prepared, weights, parameters = begin(name, gaps)
    for _ in range(3):
        parameters = step(options, parameters, prepared, weights)
    assert np.isfinite(options.log_likelihood(parameters, prepared)).all()
    nothing = Sequences(np.full_like(values[:4], values[0, ...]), np.array([0, 4]), gaps.symbols)
    found = options.log_likelihood(parameters, options.prepare(nothing))
    if not options.halting:
        np.testing.assert_allclose(found, 0.0, atol=1e-9)  # nothing was seen


@every_generator
def test_sequences_of_the_other_kind_are_refused_in_a_sentence(name: str) -> None:
    other = "gaussian" if GENERATORS[name].observes == "symbols" else "markov"
    with pytest.raises(InputError, match="should be given sequences of"):
        GENERATORS[name].prepare(draw(other))


@pytest.mark.parametrize("name", OUR_OWN)
def test_what_is_fixed_stays(name: str) -> None:
    options, prepared, weights, parameters = begin(name, draw(name))
    names = {
        "Multinomial": ["probabilities"],
        "Markov": ["probabilities"],
        "HiddenMarkov": ["initial", "transition", "emission"],
        "Gaussian": ["share", "mean", "covariance"],
        "GaussianHiddenMarkov": ["initial", "transition", "mean", "covariance"],
        "LinearDynamics": ["initial", "transition", "noise", "output", "output_noise"],
        "Recurrent": ["weights"],
    }[type(options).__name__]
    for kept in names:
        held = replace(options, fixed=(kept,))
        before = (weights * options.log_likelihood(parameters, prepared)).sum()
        before += options.log_prior(parameters).sum()
        new = step(held, parameters, prepared, weights)
        np.testing.assert_array_equal(getattr(new, kept), getattr(parameters, kept))
        after = (weights * options.log_likelihood(new, prepared)).sum()
        assert after + options.log_prior(new).sum() >= before - 1e-9 * abs(before)
    with pytest.raises(OptionError, match="names of parameters"):
        replace(options, fixed=("colour",))


@pytest.mark.parametrize("halting", [True, False])
def test_a_device_of_pytorch_gives_the_same(halting: bool) -> None:
    """Any device but `cpu` goes through PyTorch; `cpu:0` is one that is always there."""
    sequences = draw("markov")
    here = HiddenMarkov(states=4, halting=halting)
    there = replace(here, device="cpu:0")
    generator = np.random.default_rng(0)
    weights = generator.random((len(sequences), 2)) * (generator.random((len(sequences), 2)) < 0.7)
    prepared = [options.prepare(sequences) for options in (here, there)]
    parameters = here.start(prepared[0], weights, generator)
    found = [
        options.expect(parameters, data, weights)
        for options, data in zip((here, there), prepared, strict=True)
    ]
    assert_same(found[0].statistics, found[1].statistics)
    np.testing.assert_allclose(found[0].log_likelihood, found[1].log_likelihood)
    np.testing.assert_allclose(
        here.log_likelihood(parameters, prepared[0]), there.log_likelihood(parameters, prepared[1])
    )
