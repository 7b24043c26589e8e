from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_up_advice import TASKS, Curve, MadeUpStudy, made_up_advice

from taskmix.adviser._outlook import outlook

STEPS = tuple(range(100, 801, 100))
SCORES = {"uniform": [0.9, 0.9, 0.9], "single": [0.8, 0.8, 0.8], "equal": [0.85, 0.85, 0.85]}


def study_of(score: Callable[[int, int], float], seeds: int = 3, steps: Any = STEPS) -> Any:
    """Both tasks have the same dev score, a function of seed and step."""
    curves: dict[int, Curve] = {
        seed: {task: [(step, score(seed, step)) for step in steps] for task in TASKS}
        for seed in range(seeds)
    }
    return MadeUpStudy(curves)


def test_the_law_of_a_known_curve_says_what_twice_the_batches_bring() -> None:
    def score(seed: int, step: int) -> float:
        return 0.9 - 20 / step + 0.002 * seed

    found = outlook(made_up_advice(SCORES), "uniform", study_of(score))
    law = found.law
    assert law is not None
    # From 800 to 1600 batches the curve rises by 20/800 - 20/1600 = 0.0125, whatever the seed.
    assert law.gain.mean == pytest.approx(0.0125, abs=5e-4)
    assert law.gain.low <= 0.0125 <= law.gain.high
    assert law.gain.n == 3
    assert law.explained > 0.98
    assert (law.batches, law.more) == (800, 1600)
    # The second half of the batches brought 20/400 - 20/800 = 0.025.
    assert law.observed == pytest.approx(0.025)
    assert law.predicted == pytest.approx(0.025, abs=2e-3)
    assert "outside the data, which end at 800" in found.words
    assert len(found.evaluations) == 3 * len(STEPS)


def test_a_law_that_was_wrong_about_the_second_half_has_a_wide_interval() -> None:
    def score(seed: int, step: int) -> float:
        rise = 0.9 - 20 / min(step, 500)  # it stops soon after half-way, which no early row tells
        return rise + 0.001 * seed

    law = outlook(made_up_advice(SCORES), "uniform", study_of(score)).law
    assert law is not None
    assert law.gain.half_width >= abs(law.predicted - law.observed)


def test_two_shapes_that_fit_alike_widen_the_interval() -> None:
    generator = np.random.default_rng(3)
    noise = generator.normal(0, 0.01, (3, 900))  # too much to tell one exponent from another
    study = study_of(lambda seed, step: 0.9 - 20 / step + noise[seed, step])
    law = outlook(made_up_advice(SCORES), "uniform", study).law
    assert law is not None
    assert law.gain.low <= 0.0125 <= law.gain.high


def test_few_points_in_the_first_half_are_no_test_of_a_law() -> None:
    study = study_of(lambda seed, step: 0.9 - 20 / step + 0.002 * seed, 4, (100, 200, 300, 400))
    found = outlook(made_up_advice(SCORES | {"uniform": [0.9] * 4}), "uniform", study)
    assert found.law is None
    assert "Longer runs have more" in found.words


def test_a_score_that_does_not_depend_on_batches_has_no_law() -> None:
    generator = np.random.default_rng(5)
    noise = generator.normal(0, 0.02, (3, 900))
    # The best so far rises a little by luck; with a good start it hardly does.
    study = study_of(lambda seed, step: 0.9 if step == 100 else 0.88 + noise[seed, step] / 4)
    found = outlook(made_up_advice(SCORES), "uniform", study)
    assert found.law is None
    assert "no law" in found.words.lower()


@pytest.mark.parametrize("seeds", [0, 1])
def test_too_few_evaluations_are_told(seeds: int) -> None:
    found = outlook(made_up_advice(SCORES), "uniform", study_of(lambda *_: 0.9, seeds))
    assert found.law is None
    assert "at least 16 rows" in found.words
    assert len(found.evaluations) == seeds * len(STEPS)


def test_the_best_so_far_never_falls_and_both_tasks_count() -> None:
    curves = {
        0: {
            "parity": [(100, 0.5), (200, 0.9), (300, 0.4)],
            "half": [(100, 0.7), (200, 0.7), (300, 0.7)],
        }
    }
    study: Any = MadeUpStudy(curves)
    found = outlook(made_up_advice(SCORES), "uniform", study).evaluations
    assert [each.score for each in found] == pytest.approx([0.6, 0.8, 0.8])
    assert [each.batches for each in found] == [100, 200, 300]


def test_models_of_one_candidate_add_up_and_a_weighted_step_is_a_batch_of_each_task() -> None:
    advice = made_up_advice(SCORES)
    study = study_of(lambda seed, step: 0.8, 1, (50, 100))
    alone = outlook(advice, "single", study).evaluations  # two models, each with steps of its own
    assert [each.batches for each in alone] == [100, 200]
    weighted = outlook(advice, "equal", study).evaluations  # one model, two batches a step
    assert [each.batches for each in weighted] == [100, 200]
