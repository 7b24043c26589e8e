from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from synthetic_tasks import draw_tasks

from taskmix.errors import InputError, OptionError, RecordError
from taskmix.numerics import paired_interval
from taskmix.sequences import (
    Gaussian,
    GaussianHiddenMarkov,
    HiddenMarkov,
    LinearDynamics,
    Markov,
    Multinomial,
    Recurrent,
    SequenceMixture,
    choose_mixture,
    compare_with_baselines,
    load_mixture,
    narrow_smoothing,
    save_mixture,
    task_similarity,
)

NAMES = ["anna", "bob", "ana", "bobo", "nan", "obo", "annan", "boob"]
OWNERS = ["a", "b", "a", "b", "a", "b", "a", "b"]


@pytest.fixture(scope="module")
def model() -> SequenceMixture:
    return SequenceMixture(Markov(smoothing=1.0), 2, random_state=0).fit(NAMES, OWNERS)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.predict_next("a", "x"),
        lambda model: model.score(["a"], ["x"]),
        lambda model: model.transform(["a"], ["x"]),
        lambda model: model.predict(["a"], ["x"]),
        lambda model: model.sample("x"),
        lambda model: model.complete("a", "x"),
    ],
)
def test_what_is_not_fitted_says_so(ask: Any) -> None:
    with pytest.raises(NotFittedError):
        ask(SequenceMixture())


def test_the_seed_alone_decides(model: SequenceMixture) -> None:
    again = SequenceMixture(Markov(smoothing=1.0), 2, random_state=0).fit(NAMES, OWNERS)
    np.testing.assert_array_equal(again.theta_, model.theta_)
    assert again.bounds_ == model.bounds_
    assert again.sample("a", random_state=3) == model.sample("a", random_state=3)


def test_a_flat_array_with_lengths_is_the_same_as_a_list() -> None:
    sequences, tasks, _ = draw_tasks(5, 4)
    one = SequenceMixture(Markov(), 2, random_state=0).fit(sequences, tasks)
    flat, lengths = np.concatenate(sequences), [len(each) for each in sequences]
    other = SequenceMixture(Markov(), 2, random_state=0).fit(flat, tasks, lengths=lengths)
    np.testing.assert_array_equal(one.theta_, other.theta_)
    assert one.score(sequences, tasks) == other.score(flat, tasks, lengths=lengths)


def test_a_sample_weight_is_as_many_copies() -> None:
    sequences, tasks, _ = draw_tasks(5, 4)
    weights = np.random.default_rng(0).integers(1, 4, len(sequences))
    copies = [each for each, times in zip(sequences, weights, strict=True) for _ in range(times)]
    owners = [each for each, times in zip(tasks, weights, strict=True) for _ in range(times)]
    start = SequenceMixture(Markov(), 2, random_state=0, max_iter=1).fit(sequences, tasks)
    options = {"start": start.parameters_, "symbols": 4, "max_iter": 20}
    one = SequenceMixture(Markov(), 2, **options).fit(sequences, tasks, sample_weight=weights)
    other = SequenceMixture(Markov(), 2, **options).fit(copies, owners)
    np.testing.assert_allclose(one.theta_, other.theta_)
    np.testing.assert_allclose(one.bounds_, other.bounds_)


def test_the_next_symbol_mixes_generators_by_share_and_prefix(model: SequenceMixture) -> None:
    found = model.predict_next("an", "a")
    # θ_t(k) P_k(prefix), renormalised, from the likelihoods of all ways on.
    assert found.probabilities is not None
    longer = [model.predict_next(f"an{letter}", "a").log_prefix for letter in "abno"]
    np.testing.assert_allclose(found.probabilities[:4], np.exp(longer - found.log_prefix))
    assert found.probabilities.sum() == pytest.approx(1.0)
    ends = np.exp(model.score_samples(["an"], ["a"])[0] - found.log_prefix)
    assert found.probabilities[-1] == pytest.approx(ends)
    assert len(found.probabilities) == 6  # a symbol never seen, and the end, among them
    assert found.probabilities[4] > 0


def test_a_beam_wide_enough_finds_the_most_likely_completion(model: SequenceMixture) -> None:
    from itertools import product

    way, level = model.complete("an", "a", length=5, width=700)
    every = ["an" + "".join(rest) for size in range(4) for rest in product("abno", repeat=size)]
    scores = model.score_samples(every, ["a"] * len(every))
    shorter = [place for place, each in enumerate(every) if len(each) < 5]
    best = max(scores[place] for place in shorter) - model.predict_next("an", "a").log_prefix
    assert way.startswith("an")
    assert level >= best - 1e-9
    begun = model.predict_next("an", "a").log_prefix
    ended = model.score_samples([way], ["a"])[0]
    whole = ended if len(way) < 5 else model.predict_next(way, "a").log_prefix
    assert level == pytest.approx(whole - begun)


def test_samples_begin_with_their_prefix_and_look_like_their_task(model: SequenceMixture) -> None:
    made = [model.sample("b", "bo", random_state=seed) for seed in range(20)]
    assert all(each.startswith("bo") for each in made)
    fresh = "".join(model.sample("b", random_state=seed) for seed in range(40))
    assert fresh.count("o") > fresh.count("n")


def test_new_tasks_are_learned_without_touching_generators(model: SequenceMixture) -> None:
    shares = model.transform(["bob", "bo", "anna"], ["x", "x", "y"])
    assert shares[0].argmax() == model.theta_[1].argmax()
    assert shares[1].argmax() == model.theta_[0].argmax()
    wider = model.adapt(["bob", "obob"], ["x", "x"])
    assert wider.tasks_ == ("a", "b", "x")
    assert wider.parameters_ is model.parameters_
    assert model.tasks_ == ("a", "b")
    assert wider.score(["bobo"], ["x"]) > wider.score(["bobo"], ["a"])
    known = model.adapt(["anna"] * 50, ["b"] * 50)
    assert known.theta_[1].argmax() == model.theta_[0].argmax()


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda model: model.predict_next("a", "c"), "Found 'c'. Let the model learn it"),
        (lambda model: model.score([""], ["a"]), "at least one observation"),
        (lambda model: model.score(["a"], ["a", "b"]), "each of the 1 sequences"),
        (lambda model: model.fit([], []), "at least one sequence"),
        (lambda model: model.fit(["ab"], ["a", "b"]), "Found 2"),
    ],
)
def test_wrong_questions_are_answered_in_a_sentence(
    model: SequenceMixture, ask: Any, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        ask(clone(model).fit(NAMES, OWNERS) if "fit" in sentence else _copy(model))


def _copy(model: SequenceMixture) -> SequenceMixture:
    from copy import copy

    return copy(model)


def test_options_of_the_mixture_are_checked() -> None:
    named = {"alpha": -1.0, "n_init": 0, "iterations": 0, "n_generators": 0}
    for name, wrong in named.items():
        option = "max_iter" if name == "iterations" else name
        with pytest.raises(OptionError, match=f"`{name}` should be .* Found {wrong}"):
            SequenceMixture(Markov(), **{"n_generators": 2, option: wrong}).fit(NAMES, OWNERS)


def vectors(seed: int = 0) -> tuple[list[Any], list[str]]:
    generator = np.random.default_rng(seed)
    sequences, tasks = [], []
    for task in range(6):
        for _ in range(6):
            slope = 1.0 if task % 2 else -1.0
            steps = np.arange(generator.integers(3, 8))[:, None]
            sequences.append(slope * steps + generator.normal(0, 0.2, (len(steps), 2)))
            tasks.append(f"task {task}")
    return sequences, tasks


@pytest.mark.parametrize(
    "options",
    [
        Gaussian(components=2),
        GaussianHiddenMarkov(states=3),
        LinearDynamics(states=2),
        Recurrent(observes="vectors", hidden=8, steps=5),
    ],
    ids=lambda options: type(options).__name__,
)
def test_vectors_are_foreseen_with_their_variance(options: Any) -> None:
    sequences, tasks = vectors()
    model = SequenceMixture(options, 2, n_init=1, max_iter=20, random_state=1)
    model.fit(sequences, tasks)
    found = model.predict_next(sequences[0][:2], "task 0")
    assert found.mean is not None
    assert found.covariance is not None
    assert found.mean.shape == (2,)
    assert (np.linalg.eigvalsh(found.covariance) > 0).all()
    empty = model.predict_next(np.empty((0, 2)), "task 1")
    assert empty.mean is not None
    assert np.isfinite(empty.mean).all()
    judged = model.judge(sequences, tasks)
    assert np.isfinite(judged.squared_error).all()
    made = model.sample("task 0", sequences[0][:2], length=6, random_state=0)
    assert made.shape == (6, 2)
    way, _ = model.complete(sequences[0][:2], "task 0", length=5)
    assert way.shape == (5, 2)
    with pytest.raises(InputError, match="`length` should be given"):
        model.sample("task 0")
    with pytest.raises(InputError, match="`length` should be given"):
        model.complete(sequences[0][:2], "task 0")
    with pytest.raises(InputError, match="should have 2 numbers"):
        model.score([[[1.0, 2.0, 3.0]]], ["task 0"])


def test_missing_numbers_are_allowed_throughout() -> None:
    sequences, tasks = vectors()
    for each in sequences[::3]:
        each[0, 1] = np.nan
    model = SequenceMixture(LinearDynamics(states=1), 2, n_init=1, max_iter=8, random_state=0)
    model.fit(sequences, tasks)
    assert (np.diff(model.bounds_) >= -1e-8 * abs(model.bounds_[0])).all()
    assert np.isfinite(model.score(sequences, tasks))


def test_shares_and_generators_are_recovered_from_many_sequences() -> None:
    sequences, tasks, shares = draw_tasks(40, 30, seed=1)
    model = SequenceMixture(Markov(smoothing=0.5), 3, random_state=0, n_init=5)
    model.fit(sequences, tasks)
    from itertools import permutations

    error = min(
        np.abs(model.theta_[:, list(order)] - shares).mean() for order in permutations(range(3))
    )
    assert error < 0.08


def test_stochastic_em_comes_near_to_em_and_learns_batch_by_batch() -> None:
    sequences, tasks, _ = draw_tasks(30, 12, seed=2)
    batch = SequenceMixture(Markov(), 3, own=False, random_state=0).fit(sequences, tasks)
    one = SequenceMixture(Markov(), 1, own=False, random_state=0).fit(sequences, tasks)
    streamed = SequenceMixture(
        Markov(), 3, own=False, random_state=0, batch_size=60, max_iter=15, tol=0.0
    ).fit(sequences, tasks)
    gain = batch.score(sequences, tasks) - one.score(sequences, tasks)
    found = streamed.score(sequences, tasks) - one.score(sequences, tasks)
    assert found > 0.6 * gain
    assert set(streamed.tasks_) == set(batch.tasks_)
    by_hand = SequenceMixture(Markov(), 3, random_state=0, symbols=4)
    for first in range(0, len(sequences), 90):
        by_hand.partial_fit(sequences[first : first + 90], tasks[first : first + 90])
    assert by_hand.n_iter_ == 4
    assert by_hand.score(sequences, tasks) > one.score(sequences, tasks) - 0.5
    counts = by_hand.gamma_.sum(axis=1) - by_hand.alpha_.sum()
    np.testing.assert_allclose(counts, 12.0)


def test_baselines_answer_the_same_questions() -> None:
    sequences, tasks, _ = draw_tasks(10, 8, seed=3)
    test, owners, _ = draw_tasks(10, 8, seed=3)
    found = compare_with_baselines(
        SequenceMixture(Markov(), 3, random_state=0), sequences, tasks, test, owners
    )
    assert [row.name for row in found.rows] == [
        "shared generators",
        "one model per task",
        "one model per task, backed off",
        "one pooled model",
        "pooled mixture",
        "plain LDA",
    ]
    for row in found.rows:
        assert row.perplexity > 1
        assert 0 < row.accuracy <= 1
        model = found.models[row.name]
        ahead = model.predict_next([0], "task 0").probabilities
        assert ahead.sum() == pytest.approx(1.0)
        assert len(model.sample("task 0", [1], length=4, random_state=0)) >= 1
        assert len(model.complete([1], "task 0", length=4)[0]) >= 1
        assert model.score(test, owners) == pytest.approx(row.judgement.log_likelihood.mean())
    assert found["one pooled model"].gain is not None
    assert found["shared generators"].gain is None
    with pytest.raises(InputError, match="held-out sequences"):
        compare_with_baselines(SequenceMixture(Markov(), 2), sequences, tasks, [], [])
    with pytest.raises(InputError, match="one of the 10"):
        found.models["one model per task"].predict_next([0], "nobody")


def test_the_number_of_generators_grows_for_as_long_as_it_pays() -> None:
    sequences, tasks, _ = draw_tasks(25, 8, seed=5)
    told: list[str] = []
    model = SequenceMixture(random_state=0, max_iter=40)
    found = choose_mixture(model, sequences, tasks, generator=Markov(), on_progress=told.append)
    # Three generators made the data: one is significantly worse, and sixteen are not tried unless
    # four or eight paid.
    assert 2 <= found.best.generators <= 8
    assert [each.generators for each in found.tried][:3] == [1, 2, 4]
    one = found.tried[0]
    assert one.behind is not None
    assert one.behind.low > 0
    assert paired_interval(found.best.scores, one.scores).mean == pytest.approx(one.behind.mean)
    assert len(told) == len(found.tried)
    assert found.interval.n == len(sequences)
    assert not found.spent


def test_kind_and_order_are_chosen_and_a_budget_ends_it() -> None:
    generator = np.random.default_rng(0)
    # What comes next depends on the last symbol but one alone.
    sequences = []
    for _ in range(60):
        symbols = list(generator.integers(0, 3, 2))
        while len(symbols) < 12:
            follow = generator.random() < 0.9
            symbols.append(symbols[-2] if follow else int(generator.integers(0, 3)))
        sequences.append(np.array(symbols))
    tasks = [place % 3 for place in range(60)]
    found = choose_mixture(SequenceMixture(random_state=0), sequences, tasks, budget=3)
    assert found.best.generator == Markov(order=2)
    assert found.spent
    assert len(found.tried) == 3
    assert found.tried[0].to_json()["mixture"] == "Markov(), 1 generator, own part"
    with pytest.raises(InputError, match="at least 4 sequences"):
        choose_mixture(SequenceMixture(), sequences[:3], [1, 2, 3])
    with pytest.raises(OptionError, match="`budget` should be"):
        choose_mixture(SequenceMixture(), sequences, tasks, budget=0)


def test_similarity_of_tasks_is_one_for_equal_shares_and_zero_for_none_in_common() -> None:
    theta = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    found = task_similarity(theta)
    np.testing.assert_allclose(np.diag(found), 1.0)
    assert found[0, 1] == 0
    assert found[2, 3] == pytest.approx(1.0)
    assert found[0, 2] == pytest.approx(np.sqrt(0.5))
    assert np.linalg.eigvalsh(found).min() > -1e-12
    with pytest.raises(ValueError, match="sum to one"):
        task_similarity([[0.5, 0.1]])


def test_a_model_is_saved_and_read_back_with_the_same_answers(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for kinds, count in (
        ([Markov(order=2), HiddenMarkov(states=2), Multinomial()], [1, 1, 1]),
        (Recurrent(hidden=4, steps=2), 2),
    ):
        model = SequenceMixture(kinds, count, n_init=1, max_iter=3, random_state=0)
        model.fit(NAMES, OWNERS)
        save_mixture(model, path)
        again = load_mixture(path)
        np.testing.assert_array_equal(
            again.score_samples(NAMES, OWNERS), model.score_samples(NAMES, OWNERS)
        )
        assert again.sample("a", random_state=1) == model.sample("a", random_state=1)
        assert again.tasks_ == model.tasks_
    sequences, tasks = vectors()
    for kind in (LinearDynamics(states=1), GaussianHiddenMarkov(states=2), Gaussian()):
        model = SequenceMixture(kind, 2, n_init=1, max_iter=3, random_state=0).fit(sequences, tasks)
        save_mixture(model, path)
        assert load_mixture(path).score(sequences, tasks) == model.score(sequences, tasks)


def test_a_file_that_is_no_model_is_a_sentence(tmp_path: Path) -> None:
    from taskmix.records import save_state

    path = tmp_path / "other.safetensors"
    save_state(path, {"version": 0})
    with pytest.raises(RecordError, match="should hold a mixture"):
        load_mixture(path)
    save_state(
        path,
        {"version": 2, "options": {"generator": {"dataclass": "Mine", "fields": {}}}, "fitted": {}},
    )
    with pytest.raises(RecordError, match="Found 'Mine'"):
        load_mixture(path)


_FITS = """
import pickle, sys
if "without" in sys.argv:
    sys.modules["numba"] = None
import numpy as np
from taskmix.sequences import GaussianHiddenMarkov, HiddenMarkov, Markov, SequenceMixture
found, generator = [], np.random.default_rng(0)
lengths, tasks = generator.integers(1, 9, 40), generator.integers(0, 6, 40)
symbols = [generator.integers(0, 2, size).cumsum() % 3 for size in lengths]
vectors = [generator.normal(size=(size, 2)).cumsum(axis=0) for size in lengths]
options = {"own": False, "n_init": 1, "max_iter": 10, "random_state": 0}
for alpha, kinds, sequences in (
    (0.5, [Markov(), HiddenMarkov(states=4)], symbols),
    (0.01, [HiddenMarkov(states=2, halting=False), HiddenMarkov(states=5, halting=False)], symbols),
    (5.0, [GaussianHiddenMarkov(states=3)], vectors),
    (0.5, [GaussianHiddenMarkov(states=4, covariance="diagonal", halting=True)], vectors),
):
    model = SequenceMixture(kinds, [2] * len(kinds), alpha=alpha, **options).fit(sequences, tasks)
    found.append((model.bounds_, model.theta_, model.score_samples(sequences, tasks)))
sys.stdout.buffer.write(pickle.dumps(found))
"""


def test_without_numba_a_whole_fit_is_the_same() -> None:
    fast, slow = (
        pickle.loads(
            subprocess.run(
                [sys.executable, "-c", _FITS, how], check=True, capture_output=True
            ).stdout
        )
        for how in ("with", "without")
    )
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(other[0], one[0], rtol=1e-6)
        np.testing.assert_allclose(other[1], one[1], atol=1e-3)
        np.testing.assert_allclose(other[2], one[2], rtol=1e-4)


def test_smoothing_that_scores_best_is_found_and_asked_for_once() -> None:
    asked: list[float] = []

    def score(generator: Any) -> float:
        asked.append(generator.smoothing)
        return -abs(np.log(generator.smoothing / 40.0))

    # By hand: 1, 10, 100 (nearer than 10 by logarithm: 0.92 and 1.39), 1000; by roots of ten 31.6 (0.24)
    # and 316; from there 100 and 10, by the fourth root 17.8 and 56.2.
    assert narrow_smoothing(Gaussian(smoothing=1.0), score).smoothing == pytest.approx(31.6)
    assert len(asked) == len(set(asked))
    plain = Markov(smoothing=None)
    assert narrow_smoothing(plain, score) is plain
