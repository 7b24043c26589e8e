"""Generators of sequences against sums over all paths, joint densities, and other packages."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, psi
from scipy.stats import multivariate_normal

from taskmix.sequences import (
    Gaussian,
    GaussianHiddenMarkov,
    HiddenMarkov,
    LinearDynamics,
    LinearDynamicsParameters,
    Markov,
    Multinomial,
    Recurrent,
    SequenceMixture,
    Settling,
    divide_sequences,
    flatten_sequences,
    gather_corpus,
    take_generators,
)
from taskmix.sequences._gaussian_hidden_markov import GaussianHiddenMarkovParameters
from taskmix.sequences._hidden_markov import HiddenMarkovParameters
from taskmix.sequences._hidden_passes import Chain, forward, forward_backward, make_trails
from taskmix.sequences._normal import Background, find_gaps, log_densities


def random_chain(states: int, symbols: int, seed: int, *, halting: bool) -> HiddenMarkovParameters:
    generator = np.random.default_rng(seed)
    halt = generator.uniform(0.05, 0.4, (1, states)) if halting else np.zeros((1, states))
    return HiddenMarkovParameters(
        initial=generator.dirichlet(np.ones(states), 1),
        transition=generator.dirichlet(np.ones(states), (1, states)) * (1 - halt[..., None]),
        halting=halt,
        emission=generator.dirichlet(np.ones(symbols), (1, states)),
        common=np.full(symbols, 1 / symbols),
    )


def path_weights(
    parameters: HiddenMarkovParameters, sequence: Any, *, halting: bool
) -> list[tuple[tuple[int, ...], float]]:
    """Every path of states with its joint probability."""
    states = parameters.initial.shape[1]
    found = []
    for path in product(range(states), repeat=len(sequence)):
        weight = parameters.initial[0, path[0]]
        for before, after in pairwise(path):
            weight *= parameters.transition[0, before, after]
        for state, symbol in zip(path, sequence, strict=True):
            weight *= parameters.emission[0, state, symbol] if symbol >= 0 else 1.0
        weight *= parameters.halting[0, path[-1]] if halting else 1.0
        found.append((path, float(weight)))
    return found


@pytest.mark.parametrize("halting", [True, False])
@pytest.mark.parametrize("states", [2, 4])
def test_a_hidden_markov_model_sums_over_all_paths(states: int, halting: bool) -> None:
    parameters = random_chain(states, 3, states, halting=halting)
    options = HiddenMarkov(states=states, halting=halting, smoothing=0.0)
    given = [[0, 2, 1, 1, 0], [2], [1, -1, 0, 2], [0, 0]]
    sequences = flatten_sequences(given, symbols=3)
    prepared = options.prepare(sequences)
    found = options.log_likelihood(parameters, prepared)[:, 0]
    weights = np.array([1.0, 0.5, 2.0, 0.0])
    sums = options.expect(parameters, prepared, weights[:, None]).statistics
    begins, moves = np.zeros(states), np.zeros((states, states))
    ends, visits = np.zeros(states), np.zeros((states, 3))
    for sequence, likelihood, weight in zip(given, found, weights, strict=True):
        paths = path_weights(parameters, sequence, halting=halting)
        total = sum(value for _, value in paths)
        assert likelihood == pytest.approx(np.log(total), abs=1e-12)
        for path, value in paths:
            share = weight * value / total
            begins[path[0]] += share
            ends[path[-1]] += share
            for before, after in pairwise(path):
                moves[before, after] += share
            for state, symbol in zip(path, sequence, strict=True):
                visits[state, symbol] += share if symbol >= 0 else 0.0
    np.testing.assert_allclose(sums.begins[0], begins)
    np.testing.assert_allclose(sums.moves[0], moves, atol=1e-12)
    np.testing.assert_allclose(sums.ends[0], ends)
    np.testing.assert_allclose(sums.visits[0], visits, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        Markov(order=0),
        Markov(),
        Markov(order=2),
        Markov(order=3, spread="even"),
        HiddenMarkov(states=3),
        Multinomial(),
        Recurrent(hidden=4, embedded=3, steps=2),
    ],
    ids=lambda options: f"{type(options).__name__} {getattr(options, 'order', '')}",
)
def test_all_sequences_together_have_probability_one(options: Any) -> None:
    generator = np.random.default_rng(0)
    seen = [generator.integers(0, 2, generator.integers(1, 3)) for _ in range(40)]
    prepared = options.prepare(flatten_sequences(seen, symbols=2))
    parameters = options.start(prepared, np.ones((40, 1)), generator)
    every = [list(each) for size in range(1, 12) for each in product(range(2), repeat=size)]
    whole = options.prepare(flatten_sequences(every, symbols=2))
    ahead = options.follow(parameters, whole)
    total = np.exp(options.log_likelihood(parameters, whole)).sum()
    longest = flatten_sequences([each for each in every if len(each) == 11], symbols=2)
    ahead = options.follow(parameters, options.prepare(longest))
    going_on = ahead.log_prefix[11::12, 0] + np.log1p(
        -np.exp(ahead.log_probabilities[11::12, 0, -1])
    )
    assert total + np.exp(going_on).sum() == pytest.approx(1.0, abs=1e-9)


def test_a_markov_chain_by_hand() -> None:
    """P(x) = π(x1) Π T h, without smoothing the counts themselves."""
    options = Markov(smoothing=0.0)
    sequences = flatten_sequences([[0, 1, 1], [0, 0], [1]], symbols=2)
    prepared = options.prepare(sequences)
    weights = np.array([[1.0], [2.0], [1.0]])
    parameters = options.start(prepared, weights, np.random.default_rng(0))
    # π = (3/4, 1/4). After 0: once 1, twice 0, twice the end. After 1: once 1, twice the end.
    expected = [3 / 4 * 1 / 5 * 1 / 3 * 2 / 3, 3 / 4 * 2 / 5 * 2 / 5, 1 / 4 * 2 / 3]
    np.testing.assert_allclose(np.exp(options.log_likelihood(parameters, prepared))[:, 0], expected)


def test_scales_that_vanish_are_done_again_in_logarithms() -> None:
    """Observations whose densities are below what a float holds, against the same in logarithms."""
    generator = np.random.default_rng(0)
    states, times = 5, 30
    logs = generator.normal(-900.0, 800.0, (times, states))
    logs[::3, 1:] = -np.inf  # only one state is possible, which was nearly impossible before
    table = np.concatenate([np.exp(logs), np.ones((1, states))])
    chain = Chain(
        initial=generator.dirichlet(np.ones(states)),
        transition=generator.dirichlet(np.ones(states), states),
        final=np.ones(states),
        table=table,
        log_table=np.concatenate([logs, np.zeros((1, states))]),
    )
    trails = make_trails(np.arange(times, dtype=np.int32), np.array([0, 12, times]))
    expected = []
    for span in (slice(0, 12), slice(12, times)):
        level = np.log(chain.initial) + logs[span][0]
        for row in logs[span][1:]:
            level = np.logaddexp.reduce(level[:, None] + np.log(chain.transition), axis=0) + row
        expected.append(np.logaddexp.reduce(level))
    np.testing.assert_allclose(forward(chain, trails), expected)
    passed = forward_backward(chain, trails, np.array([1.0, 2.0]))
    np.testing.assert_allclose(passed.log_likelihood, expected)
    np.testing.assert_allclose(passed.marks[:12].sum(axis=1), 1.0)
    np.testing.assert_allclose(passed.marks[12:times].sum(axis=1), 2.0)
    assert passed.moves.sum() == pytest.approx(11 + 2 * 17)


def joint_normal(system: LinearDynamicsParameters, times: int) -> tuple[Any, Any]:
    """Mean and covariance of all observations of one linear dynamical system."""
    one = SimpleNamespace(
        **{
            each.name: getattr(system, each.name)[0]
            for each in fields(system)
            if each.name != "behind"
        }
    )
    means, spreads = [one.initial], [one.initial_covariance]
    for _ in range(times - 1):
        means.append(one.transition @ means[-1])
        spreads.append(one.transition @ spreads[-1] @ one.transition.T + one.noise)
    dimension = len(one.offset)
    covariance = np.zeros((times * dimension, times * dimension))
    for a, b in product(range(times), repeat=2):
        early, late = min(a, b), max(a, b)
        cross = np.linalg.matrix_power(one.transition, late - early) @ spreads[early]
        block = one.output @ cross @ one.output.T
        block = block if a >= b else block.T
        block = block + (one.output_noise if a == b else 0)
        covariance[a * dimension : (a + 1) * dimension, b * dimension : (b + 1) * dimension] = block
    return np.concatenate([one.output @ mean + one.offset for mean in means]), covariance


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_kalman_likelihood_is_that_of_the_joint_normal(missing: float) -> None:
    generator = np.random.default_rng(0)
    options = LinearDynamics(states=3)
    lengths = [6, 1, 4, 4]
    given = [generator.normal(size=(size, 2)).cumsum(axis=0) for size in lengths]
    for each in given:
        each[generator.random(each.shape) < missing] = np.nan
    sequences = flatten_sequences(given, observes="vectors")
    prepared = options.prepare(sequences)
    weights = np.ones((4, 2))
    parameters = options.start(prepared, weights, generator)
    for _ in range(4):
        sums = options.expect(parameters, prepared, weights).statistics
        parameters = options.maximise(parameters, sums)
    found = options.log_likelihood(parameters, prepared)
    ahead = options.follow(parameters, prepared)
    for which in range(2):
        system = take_generators(parameters, np.array([which]))
        for row, values in enumerate(given):
            flat = values.ravel()
            seen = ~np.isnan(flat)
            mean, covariance = joint_normal(system, len(values) + 1)
            inside = np.flatnonzero(seen)
            expected = multivariate_normal(mean[inside], covariance[np.ix_(inside, inside)])
            assert found[row, which] == pytest.approx(expected.logpdf(flat[inside]))
            # The next observation given all before, by conditioning the joint normal.
            after = np.arange(len(flat), len(flat) + 2)
            gain = np.linalg.solve(
                covariance[np.ix_(inside, inside)], covariance[np.ix_(inside, after)]
            ).T
            at = int(sequences.starts[row + 1]) + row
            np.testing.assert_allclose(
                ahead.mean[at, which], mean[after] + gain @ (flat[inside] - mean[inside])
            )
            spread = covariance[np.ix_(after, after)] - gain @ covariance[np.ix_(inside, after)]
            np.testing.assert_allclose(ahead.covariance[at, which], spread, atol=1e-10)


def test_em_of_linear_dynamics_ends_where_the_gradient_vanishes() -> None:
    generator = np.random.default_rng(1)
    options = LinearDynamics(states=1, smoothing=2.0)
    given = [generator.normal(size=(size, 2)).cumsum(axis=0) for size in (5, 7, 3, 6)]
    prepared = options.prepare(flatten_sequences(given, observes="vectors"))
    weights = np.array([[1.0], [0.3], [2.0], [1.0]])
    parameters = options.start(prepared, weights, generator)
    for _ in range(2000):
        sums = options.expect(parameters, prepared, weights).statistics
        parameters = options.maximise(parameters, sums)

    def level(**changed: Any) -> float:
        other = replace(parameters, **changed)
        found = options.log_likelihood(other, prepared)
        return float((weights * found).sum() + options.log_prior(other).sum())

    for name in ("transition", "output", "offset", "initial", "noise", "initial_covariance"):
        value = getattr(parameters, name)
        for place in np.ndindex(*value.shape):
            step = np.zeros_like(value)
            step[place] = 1e-5
            slope = (level(**{name: value + step}) - level(**{name: value - step})) / 2e-5
            assert abs(slope) < 2e-3


def test_gaps_in_a_vector_leave_the_density_of_the_rest() -> None:
    generator = np.random.default_rng(0)
    root = generator.normal(size=(3, 3))
    covariance, mean = root @ root.T + np.eye(3), generator.normal(size=3)
    values = generator.normal(size=(5, 3))
    values[1, 0] = values[2, [0, 2]] = values[3] = np.nan
    found = log_densities(find_gaps(values), mean[None], covariance[None])[:, 0]
    for row, value in enumerate(values):
        seen = ~np.isnan(value)
        expected = 0.0
        if seen.any():
            normal = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
            expected = float(normal.logpdf(value[seen]))
        assert found[row] == pytest.approx(expected)


@pytest.mark.parametrize("options", [Gaussian(), Gaussian(covariance="diagonal")])
def test_em_with_gaps_ends_where_the_likelihood_is_highest(options: Gaussian) -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=(60, 2)) @ np.array([[1.0, 0.7], [0.0, 0.5]]) + [1.0, -2.0]
    values[generator.random(values.shape) < 0.2] = np.nan
    prepared = options.prepare(flatten_sequences(list(values[:, None]), observes="vectors"))
    weights = np.ones((60, 1))
    parameters = options.start(prepared, weights, generator)
    for _ in range(300):
        sums = options.expect(parameters, prepared, weights).statistics
        parameters = options.maximise(parameters, sums)

    def level(mean: Any, covariance: Any) -> float:
        other = replace(parameters, mean=mean, covariance=covariance)
        found = options.log_likelihood(other, prepared).sum()
        return float(found + options.log_prior(other).sum())

    best = level(parameters.mean, parameters.covariance)
    for step in (1e-3, -1e-3):
        for place in range(2):
            mean = parameters.mean.copy()
            mean[0, 0, place] += step
            assert level(mean, parameters.covariance) < best
            covariance = parameters.covariance.copy()
            covariance[0, 0, place, place] += step
            assert level(parameters.mean, covariance) < best


def hmmlearn_of(kind: str, **options: Any) -> Any:
    package = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is not installed")
    return getattr(package, kind)(n_iter=1, tol=-np.inf, init_params="", **options)


@pytest.mark.parametrize("states", [3, 7])
def test_one_generator_of_one_task_is_hmmlearns_model_and_em_step(states: int) -> None:
    generator = np.random.default_rng(states)
    given = [generator.integers(0, 4, size) for size in generator.integers(2, 12, 20)]
    parameters = random_chain(states, 4, 7, halting=False)
    other = hmmlearn_of("CategoricalHMM", n_components=states, implementation="scaling")
    other.startprob_, other.transmat_ = parameters.initial[0], parameters.transition[0]
    other.emissionprob_ = parameters.emission[0]
    flat, lengths = np.concatenate(given)[:, None], [len(each) for each in given]
    options = HiddenMarkov(states=states, smoothing=0.0, halting=False)
    sequences = flatten_sequences(given, symbols=4)
    prepared = options.prepare(sequences)
    ours = options.log_likelihood(parameters, prepared).sum()
    assert ours == pytest.approx(other.score(flat, lengths), abs=1e-8)
    model = SequenceMixture(
        options, 1, start=(parameters,), max_iter=2, tol=0.0, symbols=4, learn_alpha=False
    ).fit(given)
    other.fit(flat, lengths)
    learned = model.parameters_[0]
    np.testing.assert_allclose(learned.initial[0], other.startprob_, atol=1e-8)
    np.testing.assert_allclose(learned.transition[0], other.transmat_, atol=1e-8)
    np.testing.assert_allclose(learned.emission[0], other.emissionprob_, atol=1e-8)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_gaussian_hidden_markov_model_is_hmmlearns(covariance: Any) -> None:
    generator = np.random.default_rng(0)
    given = [generator.normal(size=(size, 2)).cumsum(axis=0) for size in (20, 11, 30, 6)]
    states = 3
    chain = random_chain(states, 2, 1, halting=False)
    mean = generator.normal(size=(1, states, 2))
    spread = np.array([np.diag(generator.uniform(1, 3, 2)) for _ in range(states)])[None]
    parameters = GaussianHiddenMarkovParameters(
        chain.initial,
        chain.transition,
        chain.halting,
        mean,
        spread,
        Background(np.zeros(2), np.ones(2)),
    )
    kind = "full" if covariance == "full" else "diag"
    other = hmmlearn_of(
        "GaussianHMM",
        n_components=states,
        covariance_type=kind,
        covars_prior=0.0,
        covars_weight=3.0 if kind == "full" else 1.0,
        min_covar=0.0,
        implementation="log",
    )
    other.startprob_, other.transmat_ = chain.initial[0], chain.transition[0]
    other.means_ = mean[0]
    other.covars_ = spread[0] if kind == "full" else np.array([np.diag(each) for each in spread[0]])
    flat, lengths = np.concatenate(given), [len(each) for each in given]
    options = GaussianHiddenMarkov(states=states, covariance=covariance, smoothing=0.0)
    prepared = options.prepare(flatten_sequences(given, observes="vectors"))
    found = options.log_likelihood(parameters, prepared).sum()
    assert found == pytest.approx(other.score(flat, lengths), abs=1e-8)
    sums = options.expect(parameters, prepared, np.ones((4, 1))).statistics
    learned = options.maximise(parameters, sums)
    other.fit(flat, lengths)
    np.testing.assert_allclose(learned.transition[0], other.transmat_, atol=1e-8)
    np.testing.assert_allclose(learned.mean[0], other.means_, atol=1e-8)
    if kind == "full":
        # hmmlearn divides by the mass plus what its prior weighs less the dimension, here one more.
        mass = sums.moments.mass[0][:, None, None]
        np.testing.assert_allclose(
            learned.covariance[0] * mass / (mass + 1), other.covars_, atol=1e-8
        )


def test_with_fixed_topics_the_bound_is_scikit_learns() -> None:
    from sklearn.decomposition import LatentDirichletAllocation

    generator = np.random.default_rng(0)
    topics, words, documents = 3, 12, 8
    beta = generator.dirichlet(np.full(words, 0.5), topics)
    counts = generator.integers(0, 4, (documents, words))
    counts[:, 0] += 1
    alpha = 0.4
    other = LatentDirichletAllocation(
        topics, doc_topic_prior=alpha, max_doc_update_iter=2000, mean_change_tol=1e-9
    )
    other.fit(counts[:1])
    # Topics known so well that their posterior is a point.
    other.components_ = 1e9 * beta
    other.exp_dirichlet_component_ = np.exp(
        psi(other.components_) - psi(other.components_.sum(axis=1, keepdims=True))
    )
    gamma = other._unnormalized_transform(counts.astype(float))
    nothing = np.zeros((1, words))
    of_topics = other._approx_bound(nothing, np.full((1, topics), alpha), False)
    theirs = other._approx_bound(counts.astype(float), gamma, False) - of_topics

    task, word = np.nonzero(counts)
    sequences = flatten_sequences(word[:, None], symbols=words)
    corpus = gather_corpus(sequences, task, counts[task, word])
    likelihood = np.log(beta.T)[corpus.sequences.values]
    found = divide_sequences(
        corpus,
        likelihood,
        np.full(topics, alpha),
        None,
        Settling(iterations=5000, tolerance=1e-10, cut=0.0),
    )
    np.testing.assert_allclose(found.gamma, gamma, atol=1e-4)
    assert found.bound == pytest.approx(theirs, abs=1e-4)


def test_the_bound_is_below_the_evidence_and_exact_for_one_sequence() -> None:
    """With one sequence a task the evidence is Σ_k α_k/Σα P_k, and so is the best bound but for the
    mean-field gap; with one generator there is no gap."""
    generator = np.random.default_rng(0)
    sequences = flatten_sequences([[0], [1], [2]], symbols=3)
    alpha = np.array([0.5, 1.0])
    likelihood = generator.normal(size=(3, 2))
    corpus = gather_corpus(sequences, [0, 1, 2])
    found = divide_sequences(
        corpus, likelihood, alpha, None, Settling(tolerance=1e-12, iterations=2000)
    )
    evidence = np.log((np.exp(likelihood) * alpha / alpha.sum()).sum(axis=1))
    assert (found.bounds <= evidence + 1e-12).all()
    alone = divide_sequences(corpus, likelihood[:, :1], alpha[:1])
    np.testing.assert_allclose(alone.bounds, likelihood[:, 0])


def test_the_bound_by_its_definition() -> None:
    """E_q[log p − log q] written out term by term for given γ and φ."""
    generator = np.random.default_rng(3)
    sequences = flatten_sequences([[0], [1], [2], [0]], symbols=3)
    corpus = gather_corpus(sequences, ["a", "a", "b", "b"])
    alpha, likelihood = np.array([0.3, 0.8]), generator.normal(size=(3, 2))
    how = Settling(iterations=3000, tolerance=1e-13, cut=0.0)
    found = divide_sequences(corpus, likelihood, alpha, None, how)
    total = 0.0
    for task in range(2):
        gamma = found.gamma[task]
        logs = psi(gamma) - psi(gamma.sum())
        span = slice(corpus.starts[task], corpus.starts[task + 1])
        phi = np.exp(likelihood[corpus.item[span]] + logs)
        phi /= phi.sum(axis=1, keepdims=True)
        total += gammaln(alpha.sum()) - gammaln(alpha).sum() + ((alpha - 1) * logs).sum()
        total -= gammaln(gamma.sum()) - gammaln(gamma).sum() + ((gamma - 1) * logs).sum()
        total += (phi * (likelihood[corpus.item[span]] + logs - np.log(phi))).sum()
    assert found.bound == pytest.approx(total, abs=1e-9)


def test_the_recurrent_network_is_pytorchs_gru() -> None:
    import torch

    from taskmix.sequences._recurrent import NetworkLayout, run

    layout = NetworkLayout(inputs=3, embedded=0, hidden=4, outputs=2)
    weights = torch.tensor(layout.draw(2, np.random.default_rng(0)))
    inputs = torch.randn(5, 6, 3, dtype=torch.float64, generator=torch.manual_seed(0))
    found = run(layout, weights, inputs)
    for which in range(2):
        parts = {name: part[which] for name, part in layout.cut(weights).items()}
        gru = torch.nn.GRU(3, 4, batch_first=True, dtype=torch.float64)
        with torch.no_grad():
            gru.weight_ih_l0.copy_(parts["read"].T)
            gru.weight_hh_l0.copy_(parts["recur"].T)
            gru.bias_ih_l0.copy_(parts["read_bias"][0])
            gru.bias_hh_l0.copy_(parts["recur_bias"][0])
            states, _ = gru(inputs)
        torch.testing.assert_close(found[which], states @ parts["say"] + parts["say_bias"])
