from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, polygamma, psi
from synthetic_tasks import draw_tasks

from taskmix.errors import InputError, OptionError
from taskmix.sequences import (
    EMOptions,
    Gaussian,
    GaussianHiddenMarkov,
    HiddenMarkov,
    LinearDynamics,
    Markov,
    Multinomial,
    Settling,
    divide_sequences,
    flatten_sequences,
    gather_corpus,
    learn_alpha,
    make_bank,
    variational_em,
)


def begin(bank: Any, corpus: Any, generator: np.random.Generator) -> Any:
    """Parameters from sequences that are divided by chance."""
    weights = generator.dirichlet(np.ones(bank.count), len(corpus.sequences))
    return bank.start(corpus.sequences, weights, generator)


def test_gamma_and_phi_by_hand() -> None:
    """One task with one sequence, both generators alike: φ is even and γ is α plus a half."""
    corpus = gather_corpus(flatten_sequences([[0]]), ["a"])
    found = divide_sequences(corpus, np.array([[-1.0, -1.0]]), np.array([1.0, 1.0]))
    np.testing.assert_allclose(found.gamma, [[1.5, 1.5]])
    np.testing.assert_allclose(found.responsibility, [[0.5, 0.5]])
    # log Γ(2) − log Γ(3) + 2 (log Γ(1.5) − log Γ(1)) − 1 + log 2.
    expected = -np.log(2) + 2 * gammaln(1.5) - 1 + np.log(2)
    assert found.bound == pytest.approx(expected)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, int]:
    """A small mixture over a few sequences of a few tasks, and a seed."""
    seed = draw(st.integers(0, 2**31))
    generator = np.random.default_rng(seed)
    options = draw(
        st.sampled_from(
            [
                [Markov(order=0, smoothing=0.5)],
                [Markov(smoothing=1.0)],
                [Markov(order=2, spread="even", smoothing=0.3)],
                [Multinomial()],
                [HiddenMarkov(states=2)],
                [HiddenMarkov(states=4, smoothing=0.0)],
                [Markov(), HiddenMarkov(states=2)],
                [Gaussian()],
                [GaussianHiddenMarkov(states=2, covariance="diagonal")],
                [Gaussian(components=2), LinearDynamics(states=1)],
            ]
        )
    )
    count = draw(st.integers(2, 12))
    lengths = generator.integers(1, 6, count)
    if options[0].observes == "symbols":
        parts: list[Any] = [generator.integers(0, 3, size) for size in lengths]
        sequences = flatten_sequences(parts, symbols=3)
    else:
        parts = [generator.normal(size=(size, 1)).cumsum(axis=0) for size in lengths]
        sequences = flatten_sequences(parts, observes="vectors")
    tasks = generator.integers(0, draw(st.integers(1, 4)), count)
    weights = generator.choice([0.5, 1.0, 3.0], count)
    counts = [draw(st.integers(1, 3)) for _ in options]
    return make_bank(options, counts), gather_corpus(sequences, tasks, weights), seed


@settings(max_examples=300)
@given(problems())
def test_the_bound_never_falls(problem: tuple[Any, Any, int]) -> None:
    bank, corpus, seed = problem
    generator = np.random.default_rng(seed)
    options = EMOptions(iterations=5, tolerance=0.0)
    first = begin(bank, corpus, generator)
    bounds = [
        state.bound
        for state in variational_em(
            bank, corpus, first, np.full(bank.count, 0.7), options, generator
        )
    ]
    falls = -np.diff(bounds)
    assert (falls <= 1e-8 * (1 + np.abs(bounds[:-1]))).all()


def test_likelihoods_too_far_apart_for_a_float_are_divided_in_logarithms() -> None:
    corpus = gather_corpus(flatten_sequences([[0], [1], [2]]), ["a", "a", "b"])
    likelihood = np.array([[0.0, -5000.0], [-5000.0, 0.0], [-1e5, -1e5 - 3]])
    found = divide_sequences(
        corpus, likelihood, np.array([1e-3, 1e-3]), None, Settling(tolerance=1e-10)
    )
    np.testing.assert_allclose(found.gamma[0], [1.001, 1.001])
    assert np.isfinite(found.bounds).all()
    assert found.responsibility.sum() == pytest.approx(3.0)


def test_a_sequence_that_no_generator_can_make_is_a_sentence() -> None:
    corpus = gather_corpus(flatten_sequences([[0], [1]]), ["a", "b"])
    with pytest.raises(InputError, match=r"probability zero under all. Raise the `smoothing`"):
        divide_sequences(corpus, np.array([[0.0, 0.0], [-np.inf, -np.inf]]), np.ones(2))


def level_of(alpha: Any, gamma: Any) -> float:
    logs = (psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))).sum(axis=0)
    normaliser = gammaln(alpha.sum()) - gammaln(alpha).sum()
    return float(len(gamma) * normaliser + ((alpha - 1) * logs).sum())


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(2, 20), st.booleans())
def test_alpha_never_gets_worse(seed: int, generators: int, tasks: int, symmetric: bool) -> None:
    generator = np.random.default_rng(seed)
    gamma = generator.gamma(0.5, 5.0, (tasks, generators)) + 1e-3
    alpha = np.full(generators, generator.uniform(0.01, 10.0))
    learned = learn_alpha(alpha, gamma, symmetric=symmetric)
    assert (np.isfinite(learned) & (learned > 0)).all()
    assert level_of(learned, gamma) >= level_of(alpha, gamma) - 1e-9
    if symmetric:
        assert np.ptp(learned) < 1e-9 * learned.max()


def test_alpha_is_found_from_many_tasks_whose_shares_are_known() -> None:
    generator = np.random.default_rng(0)
    truth = np.array([0.3, 1.0, 2.5])
    gamma = 1e5 * generator.dirichlet(truth, 4000) + truth
    learned = learn_alpha(np.ones(3), gamma)
    np.testing.assert_allclose(learned, truth, rtol=0.1)
    # Newton's optimum: the gradient vanishes.
    logs = (psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))).mean(axis=0)
    slope = psi(learned.sum()) - psi(learned) + logs
    assert np.abs(slope).max() < 1e-8 * polygamma(1, learned).max()


def test_an_empty_generator_is_seeded_anew_where_the_bound_gains() -> None:
    sequences, tasks, _ = draw_tasks(20, 6, seed=4)
    corpus = gather_corpus(flatten_sequences(sequences, symbols=4), tasks)
    bank = make_bank(Markov(smoothing=0.5), 3)
    weights = np.zeros((len(corpus.sequences), 3))
    weights[:, 0] = 1.0
    generator = np.random.default_rng(0)
    start = bank.start(corpus.sequences, weights, generator)
    # The other two can make nothing: all mass on one symbol that ends at once.
    odd = start[0].probabilities.copy()
    odd[1:] = 1e-12
    odd[1:, :, 0] = 1.0
    from dataclasses import replace

    stuck = (replace(start[0], probabilities=odd),)
    kept: dict[int, Any] = {}
    for reseeds in (0, 3):
        options = EMOptions(iterations=40, reseeds=reseeds, learn_alpha=False)
        states = list(variational_em(bank, corpus, stuck, np.full(3, 0.01), options, generator))
        assert (np.diff([state.bound for state in states]) >= -1e-8).all()
        kept[reseeds] = states[-1]
    assert kept[3].bound > kept[0].bound + 1
    assert (kept[3].mass > 1).sum() > (kept[0].mass > 1).sum()


def test_several_threads_give_the_same_as_one() -> None:
    sequences, tasks, _ = draw_tasks(10, 6)
    corpus = gather_corpus(flatten_sequences(sequences, symbols=4), tasks)
    bank = make_bank([Markov(order=2), HiddenMarkov(states=4)], [2, 2])
    found = []
    for workers in (1, 3):
        generator = np.random.default_rng(0)
        first = begin(bank, corpus, generator)
        options = EMOptions(iterations=8, tolerance=0.0, workers=workers)
        states = variational_em(bank, corpus, first, np.full(4, 0.5), options, generator)
        found.append([state.bound for state in states])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_generators_that_cannot_be_compared_are_refused_in_a_sentence() -> None:
    with pytest.raises(OptionError, match=r"Change `observes`"):
        make_bank([Markov(), Gaussian()], [1, 1])
    with pytest.raises(OptionError, match=r"Change `halting`"):
        make_bank([Markov(), HiddenMarkov(halting=False)], [1, 1])
    with pytest.raises(OptionError, match="one number of generators for each kind"):
        make_bank([Markov(), HiddenMarkov()], 2)
    with pytest.raises(OptionError, match="at least 1"):
        make_bank(Markov(), 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Markov(order=-1),
        lambda: Markov(smoothing=-1.0),
        lambda: Markov(spread="odd"),  # type: ignore[arg-type]
        lambda: HiddenMarkov(states=0),
        lambda: Gaussian(covariance="round"),  # type: ignore[arg-type]
        lambda: EMOptions(iterations=0),
        lambda: EMOptions(tolerance=-1.0),
        lambda: EMOptions(annealing=-1),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Any) -> None:
    with pytest.raises(OptionError, match="should be"):
        make()


def test_a_singular_covariance_is_a_sentence_and_smoothing_mends_it() -> None:
    flat = flatten_sequences([[[1.0, 2.0]], [[1.0, 2.0]]], observes="vectors")
    for options in (Gaussian(smoothing=0.0), GaussianHiddenMarkov(states=1, smoothing=0.0)):
        prepared = options.prepare(flat)
        with pytest.raises(
            InputError, match=r"too few observations that differ. Raise `smoothing`"
        ):
            parameters = options.start(prepared, np.ones((2, 1)), np.random.default_rng(0))
            for _ in range(2):
                sums = options.expect(parameters, prepared, np.ones((2, 1))).statistics
                parameters = options.maximise(parameters, sums)
            options.log_likelihood(parameters, prepared)
    mended = Gaussian()
    prepared = mended.prepare(flat)
    parameters = mended.start(prepared, np.ones((2, 1)), np.random.default_rng(0))
    assert np.isfinite(mended.log_likelihood(parameters, prepared)).all()


def test_contexts_beyond_what_can_be_numbered_are_refused() -> None:
    with pytest.raises(OptionError, match="Lower the order"):
        Markov(order=20).prepare(flatten_sequences([[0, 999]], symbols=1000))


def test_several_generators_are_held_less_strongly_where_they_differ() -> None:
    sequences, tasks, _ = draw_tasks(8, 15, generators=4, symbols=5, seed=3)
    corpus = gather_corpus(flatten_sequences(sequences), tasks)
    bank = make_bank(Markov(), 4)
    assert bank.learns_strengths
    options = EMOptions(iterations=25, tolerance=0.0)

    def climb(resume: Any = None) -> list[Any]:
        start = begin(bank, corpus, np.random.default_rng(0))
        random = np.random.default_rng(1)
        alpha = np.full(4, 0.5)
        return list(variational_em(bank, corpus, start, alpha, options, random, resume=resume))

    states = climb()
    strengths = [float(state.parameters[0].strength[1]) for state in states]
    assert len(set(strengths[:10])) == 1
    assert strengths[10] < strengths[0]
    assert strengths[20] <= strengths[10]
    for low, high in ((0, 10), (10, 20), (20, 25)):  # by one prior, it never falls
        bounds = [state.bound for state in states[low:high]]
        assert min(np.diff(bounds)) > -1e-6
    for place in (8, 9, 10, 19, 20):
        rest = climb(states[place])
        assert [each.bound for each in rest] == [each.bound for each in states[place + 1 :]]
    for kind in (Markov(smoothing=3.0), Markov(spread="even"), HiddenMarkov()):
        assert not make_bank(kind, 4).learns_strengths
    assert not make_bank(Markov(), 1).learns_strengths
