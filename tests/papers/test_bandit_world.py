from __future__ import annotations

import numpy as np
import pytest

from papers.bandit_world import MultitaskBandit


def small(**options: object) -> MultitaskBandit:
    arrays = {
        "oracle": np.array([0.25, 0.75]),
        "ceiling": np.array([0.5, 1.0]),
        "learning": np.array([0.2, 0.1]),
        "forgetting": np.array([0.001, 0.002]),
        "steps": 10,
        "cost": np.ones(2),
    }
    return MultitaskBandit(**{**arrays, **options})  # type: ignore[arg-type]


def test_the_pulled_arm_learns_and_every_arm_forgets() -> None:
    bandit = small()
    scores = bandit.pull(np.array([0.1, 0.3]), np.array(0))
    np.testing.assert_allclose(scores, [0.299, 0.298])


def test_a_draw_has_the_increments_of_section_4_1() -> None:
    bandit = MultitaskBandit.sample(np.random.default_rng(0), environments=200)
    assert bandit.oracle.shape == (200, 8)
    np.testing.assert_allclose(bandit.oracle.sum(axis=-1), 1.0)
    assert bandit.ceiling.min() >= 0.5
    assert bandit.ceiling.max() <= 1.0
    np.testing.assert_allclose(bandit.learning * 10_000 * bandit.oracle, bandit.ceiling)
    ratio = bandit.forgetting / bandit.learning
    assert ratio.min() >= 0.0
    assert ratio.max() <= 0.01
    # The variance of a share under Dir(2, ..., 2) of 8 is (1/8)(7/8)/17.
    assert bandit.oracle.var() == pytest.approx(7 / 64 / 17, rel=0.1)


def test_transfer_teaches_other_arms_and_negative_transfer_harms_them() -> None:
    bandit = small(transfer=np.array([[0.0, 0.5], [-0.5, 0.0]]), forgetting=np.zeros(2))
    scores = bandit.pull(np.array([0.2, 0.2]), np.array(0))
    np.testing.assert_allclose(scores, [0.4, 0.25])  # half a pull of arm 1
    scores = bandit.pull(scores, np.array(1))
    np.testing.assert_allclose(scores, [0.3, 0.35])  # arm 0 loses half a pull


def test_the_optimum_gives_up_the_arm_that_gains_least_for_its_cost() -> None:
    # Each arm needs half of the budget; the second pull costs twice as much, so it goes short.
    bandit = small(
        ceiling=np.ones(2),
        learning=np.array([0.2, 0.2]),
        forgetting=np.zeros(2),
        cost=np.array([1.0, 2.0]),
    )
    best = bandit.optimum()
    # Five pulls of arm 0 cost 5, the rest buys 2.5 of arm 1: scores 1 and 0.5.
    np.testing.assert_allclose(best.probabilities, [2 / 3, 1 / 3])
    assert best.score == pytest.approx(0.75)
