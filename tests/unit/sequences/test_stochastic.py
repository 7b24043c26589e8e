from __future__ import annotations

import numpy as np
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


def drawn() -> tuple[Sequences, list[str]]:
    sequences, tasks, _ = draw_tasks(12, 40, generators=3, symbols=4, seed=1)
    return flatten_sequences(sequences, symbols=4), tasks


def test_the_first_step_on_all_data_is_five_steps_of_em() -> None:
    sequences, tasks = drawn()
    corpus, bank = gather_corpus(sequences, tasks), make_bank(Markov(), 3)
    generator = np.random.default_rng(0)
    start = bank.start(corpus.sequences, generator.random((len(corpus.sequences), 3)), generator)
    model = SequenceMixture(Markov(), 3, start=start, symbols=4, random_state=0)
    model.partial_fit(sequences.values, tasks, lengths=sequences.lengths)
    chunks, wanted = bank.prepare(corpus.sequences), start
    for _ in range(5):
        likelihood = bank.log_likelihood(wanted, chunks)
        division = divide_sequences(corpus, likelihood, np.full(3, 0.5))
        statistics, _ = bank.expect(wanted, chunks, division.responsibility)
        wanted = bank.maximise(wanted, statistics)
    found = model.parameters_[0].probabilities
    np.testing.assert_allclose(found, wanted[0].probabilities, rtol=1e-9)


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
