from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import kstest
from synthetic_tasks import draw_tasks

from taskmix.errors import InputError, OptionError
from taskmix.sequences import (
    Markov,
    ScoreReference,
    SequenceMixture,
    calibrate_scores,
    load_mixture,
    save_mixture,
)


def fitted(seed: int = 0, **options: Any) -> tuple[SequenceMixture, list[Any], list[str]]:
    sequences, tasks, _ = draw_tasks(4, 30, seed=seed)
    model = SequenceMixture(
        Markov(), 3, n_init=1, max_iter=20, random_state=0, symbols=4, **options
    )
    return model.fit(sequences, tasks), sequences, tasks


def test_the_posterior_of_tasks_is_bayes_rule_with_the_prior_that_was_stated() -> None:
    model, sequences, _ = fitted()
    some = sequences[:7]
    by_task = np.column_stack([model.score_samples(some, [t] * 7) for t in model.tasks_])
    np.testing.assert_allclose(model.task_log_likelihood(some), by_task, rtol=1e-10)
    # Every task was fitted to thirty sequences, so that counts are even as well.
    even = by_task - np.log(np.exp(by_task).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.task_log_posterior(some), even, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.task_log_posterior(some, prior="uniform"), even, atol=1e-9)
    first = {name: float(name == "task 0") for name in model.tasks_}
    np.testing.assert_allclose(model.task_log_posterior(some, prior=first)[:, 0], 0.0)
    with pytest.raises(OptionError, match="counts, uniform"):
        model.task_log_posterior(some, prior="even")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="task 1"):
        model.task_log_posterior(some, prior={"task 0": 1.0})


@pytest.mark.parametrize("own_part", [False, True])
def test_the_ratio_is_to_the_mean_of_the_other_tasks_with_their_own_parts(
    own_part: bool,
) -> None:
    model, sequences, tasks = fitted(own=own_part)
    some, own = sequences[25:35], tasks[25:35]
    by_task = model.task_log_likelihood(some)
    for row, (ratio, task) in enumerate(zip(model.log_ratio(some, own), own, strict=True)):
        here = model.tasks_.index(task)
        others = np.delete(np.exp(by_task[row]), here).mean()
        assert ratio == pytest.approx(by_task[row, here] - np.log(others))
    scores = model.score_sequences(some, own)
    np.testing.assert_allclose(scores.log_ratio, model.log_ratio(some, own))
    np.testing.assert_allclose(
        scores.surprise, -scores.log_likelihood / [len(each) + 1 for each in some]
    )
    with pytest.raises(InputError, match="'nobody'"):
        model.log_ratio(some[:1], ["nobody"])


def test_the_ratio_keeps_what_is_far_below_the_task_itself() -> None:
    """The mean of all tasks minus that of the task itself would be nothing but rounding."""
    letters = ["a" * 300, "b" * 300, "c" * 300]
    options = {"alpha": 1e-80, "learn_alpha": False, "own": False, "random_state": 0}
    model = SequenceMixture(Markov(order=0), 3, **options)
    model.fit(letters * 4, ["x", "y", "z"] * 4)
    by_task = model.task_log_likelihood(letters[:1])[0]
    own, others = by_task[model.tasks_.index("x")], np.sort(by_task)[:2]
    assert own - others.max() > 100
    expected = own - (np.logaddexp(*others) - np.log(2))
    assert model.score_sequences(letters[:1], ["x"]).log_ratio[0] == pytest.approx(expected)


def test_strangers_are_told_by_the_ratio_and_not_by_the_likelihood() -> None:
    """One task writes rare symbols, the other common ones: unlikely is not the same as odd."""
    generator = np.random.default_rng(0)
    rare = [list(generator.choice(20, 12)) for _ in range(60)]
    common = [list(generator.choice(2, 12)) for _ in range(60)]
    model = SequenceMixture(Markov(order=0), 2, alpha=0.1, n_init=3, symbols=20, random_state=0)
    model.fit(rare[:40] + common[:40], ["rare"] * 40 + ["common"] * 40)
    own, planted = model.score_sequences(rare[40:] + common[40:], ["rare"] * 40).log_ratio.reshape(
        2, 20
    )
    assert own.min() > planted.max()
    levels = model.score_samples(rare[40:] + common[40:], ["rare"] * 40).reshape(2, 20)
    assert levels[0].max() < own.min()


def test_p_values_of_a_tasks_own_sequences_are_uniform_and_those_of_others_are_not() -> None:
    own, others = [], []
    for seed in range(6):
        sequences, tasks, _ = draw_tasks(4, 160, generators=4, seed=100 + seed)
        train = [place for place in range(len(tasks)) if place % 160 < 60]
        test = [place for place in range(len(tasks)) if place % 160 >= 60]
        model = SequenceMixture(Markov(), 4, n_init=1, max_iter=30, random_state=0, symbols=4)
        mine = [tasks[place] for place in train]
        model.fit([sequences[place] for place in train], mine)
        calibrate_scores(model, [sequences[place] for place in train], mine, folds=4)
        asked, names = [sequences[place] for place in test], [tasks[place] for place in test]
        own.append(model.anomaly(asked, names))
        own.append(model.anomaly(asked, names, kind="surprise"))
        wrong = [f"task {(int(name[-1]) + 1) % 4}" for name in names]
        others.append(model.anomaly(asked, wrong))
    values = np.concatenate(own[::2])
    surprises = np.concatenate(own[1::2])
    for found in (values, surprises):
        assert kstest(found, "uniform").statistic < 0.06
        for level in (0.05, 0.1, 0.2):
            assert (found <= level).mean() == pytest.approx(level, abs=0.03)
    assert (np.concatenate(others) <= 0.1).mean() > 0.2


def test_p_values_by_hand() -> None:
    codes = np.repeat([0, 1], [19, 3])
    scores = np.concatenate([np.arange(19.0), [100.0, 101.0, 102.0]])
    reference = ScoreReference(("x", "few"), codes, scores, -scores)
    # 3 of the 19 are at most 2; a task with three of its own is compared with all 22.
    assert reference.p_values("log_ratio", np.array([2.0]), ["x"])[0] == pytest.approx(4 / 20)
    assert reference.p_values("surprise", np.array([-2.0]), ["x"])[0] == pytest.approx(4 / 20)
    assert reference.p_values("log_ratio", np.array([2.0]), ["few"])[0] == pytest.approx(4 / 23)


def test_p_values_stay_with_the_model_in_its_file(tmp_path: Path) -> None:
    model, sequences, tasks = fitted()
    with pytest.raises(InputError, match="calibrate_scores"):
        model.anomaly(sequences[:3], tasks[:3])
    calibrate_scores(model, sequences, tasks, folds=2)
    save_mixture(model, tmp_path / "model.safetensors")
    other = load_mixture(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        other.anomaly(sequences[:9], tasks[:9]), model.anomaly(sequences[:9], tasks[:9])
    )


def test_shares_of_a_new_task_are_those_of_the_posterior_by_enumeration() -> None:
    model, sequences, _ = fitted()
    few = sequences[:4]
    levels = np.array(
        [model.bank_.log_likelihood(model.parameters_, model.bank_.prepare(model._gather([each])))[0]
         for each in few]
    )  # fmt: skip
    total, mean = 0.0, np.zeros(3)
    for kinds in product(range(3), repeat=4):
        counts = np.bincount(kinds, minlength=3)
        weight = np.exp(
            sum(levels[row, kind] for row, kind in enumerate(kinds))
            + (gammaln(model.alpha_ + counts) - gammaln(model.alpha_)).sum()
        )
        total += weight
        mean += weight * (model.alpha_ + counts) / (model.alpha_.sum() + 4)
    found = model.estimate_shares(few, ["new"] * 4, random_state=0)
    np.testing.assert_allclose(found.mean[0], mean / total, atol=0.03)
    assert found.counts == (4,)


def test_intervals_of_shares_cover_the_true_ones() -> None:
    model, _, _ = fitted(learn_alpha=False, alpha=1.0)
    generator = np.random.default_rng(1)
    covered = []
    for trial in range(40):
        theta = generator.dirichlet(np.ones(3))
        few = []
        for _ in range(8):
            kind = int(generator.choice(3, p=theta))
            few.append(
                model.bank_.sample(model.parameters_, kind, np.empty(0, np.int32), 60, generator)
            )
        found = model.estimate_shares(few, ["new"] * 8, random_state=trial)
        covered.append((found.low[0] <= theta) & (theta <= found.high[0]))
    assert 0.88 <= np.mean(covered) <= 1.0


def test_the_interval_of_a_symbol_is_of_sequences_the_shares_were_not_estimated_from() -> None:
    model, sequences, _ = fitted()
    few = sequences[:3]
    found = model.estimate_shares([*few, few[0]], ["new"] * 3 + ["single"], random_state=0)
    held = []
    for place in range(3):
        others = [few[other] for other in range(3) if other != place]
        held.append(model.adapt(others, ["new"] * 2).score([few[place]], ["new"]))
    assert found.log_likelihood[0].mean == pytest.approx(
        sum(held) / sum(len(each) + 1 for each in few), rel=1e-6
    )
    assert found.log_likelihood[0].high <= 0
    assert np.isnan(found.log_likelihood[1].mean)
