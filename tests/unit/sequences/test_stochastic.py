from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from synthetic_tasks import draw_tasks

from taskmix.sequences import (
    EMOptions,
    Markov,
    SequenceMixture,
    Sequences,
    divide_sequences,
    flatten_sequences,
    gather_corpus,
    make_bank,
    variational_em,
)
from taskmix.sequences._mixture import StochasticOptions, absorb, begin
from taskmix.sequences._mixture._expectation import divide_by


def drawn() -> tuple[Sequences, list[str]]:
    sequences, tasks, _ = draw_tasks(12, 40, generators=3, symbols=4, seed=1)
    return flatten_sequences(sequences, symbols=4), tasks


def test_the_first_step_on_all_data_is_a_step_of_em() -> None:
    sequences, tasks = drawn()
    corpus, bank = gather_corpus(sequences, tasks), make_bank(Markov(), 3)
    generator = np.random.default_rng(0)
    start = bank.start(corpus.sequences, generator.random((len(corpus.sequences), 3)), generator)
    alpha, chunks = np.full(3, 0.5), bank.prepare(corpus.sequences)
    division = divide_sequences(corpus, bank.log_likelihood(start, chunks), alpha)
    statistics, _ = bank.expect(start, chunks, division.responsibility)
    (wanted,) = bank.maximise(start, statistics)
    state = begin(bank, corpus, alpha, generator, start)
    (found,) = absorb(bank, state, corpus, StochasticOptions(inner=1)).parameters
    np.testing.assert_allclose(found.probabilities, wanted.probabilities, rtol=1e-9)


def test_batches_come_to_rest_where_em_on_all_data_does() -> None:
    sequences, tasks = drawn()
    model = SequenceMixture(
        Markov(), 3, batch_size=48, max_iter=120, tol=-np.inf, own=False, symbols=4, random_state=0
    )
    model.fit(sequences.values, tasks, lengths=sequences.lengths)
    corpus = gather_corpus(sequences, tasks)
    order = [model.tasks_.index(name) for name in corpus.tasks]
    states = variational_em(
        model.bank_,
        corpus,
        model.parameters_,
        model.alpha_,
        EMOptions(iterations=60, tolerance=0.0),
        np.random.default_rng(0),
        gamma=model.gamma_[order],
        iteration=10,
    )
    found = [next(states) for _ in range(20)]
    # Twenty iterations of EM over all data find nothing to gain, and tasks keep their shares. Where
    # every batch goes on finding the γ of its tasks anew, they gain 6e-5.
    assert (found[-1].bound - found[0].bound) / len(tasks) < 5e-6
    np.testing.assert_allclose(found[-1].theta, model.theta_[order], atol=2e-3)
    np.testing.assert_allclose(found[-1].alpha, model.alpha_, rtol=5e-3)


def test_threads_find_what_one_finds() -> None:
    sequences, tasks = drawn()

    def fitted(threads: int) -> Any:
        model = SequenceMixture(
            Markov(), 3, batch_size=100, max_iter=4, n_jobs=threads, own=False, random_state=0
        )
        return model.fit(sequences.values, tasks, lengths=sequences.lengths)

    one, three = fitted(1), fitted(3)
    np.testing.assert_allclose(three.bounds_, one.bounds_, rtol=1e-9)
    np.testing.assert_allclose(three.theta_, one.theta_, rtol=1e-6)


def test_known_shares_divide_as_em_does_where_it_rests() -> None:
    sequences, tasks = drawn()
    corpus, bank = gather_corpus(sequences, tasks), make_bank(Markov(), 2)
    generator = np.random.default_rng(0)
    start = bank.start(corpus.sequences, generator.random((len(corpus.sequences), 2)), generator)
    likelihood, alpha = bank.log_likelihood(start, bank.prepare(corpus.sequences)), np.ones(2)
    gamma = divide_sequences(corpus, likelihood, alpha).gamma
    for _ in range(400):  # Eqs. 11 and 12 in turns, as far as they go
        settled = divide_by(corpus, likelihood, alpha, gamma - alpha)
        gamma = settled.gamma - (gamma - alpha)
    found = divide_by(corpus, likelihood, alpha, gamma - alpha)
    np.testing.assert_allclose(found.gamma - gamma, gamma - alpha, atol=1e-6)
    rested = divide_sequences(corpus, likelihood, alpha, gamma)
    assert found.bound == pytest.approx(rested.bound, abs=1e-3)
    np.testing.assert_allclose(found.responsibility, rested.responsibility, atol=1e-2)
