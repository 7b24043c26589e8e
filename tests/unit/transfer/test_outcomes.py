from __future__ import annotations

import numpy as np
import pytest

from taskmix.errors import InputError, ShapeError
from taskmix.transfer import gather_outcomes

SUBSETS = [[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1], [0, 0, 0], [1, 0, 1]]
OUTCOMES = [0.5, 0.7, 1.0, 0.9, 1.2, 0.8]
ASK = {"target": "t", "sources": ["a", "b", "c"]}


def test_runs_of_one_subset_become_one_row_of_their_mean() -> None:
    found = gather_outcomes(SUBSETS, OUTCOMES, **ASK)
    assert found.subsets.tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    assert found.losses == pytest.approx([0.6, 0.9, 0.8])
    assert found.weights.tolist() == [2, 1, 1]
    assert found.sizes.tolist() == [2, 2, 2]
    assert found.anchor == pytest.approx(1.1)
    assert (found.anchor_runs, found.anchor_variance) == (2, pytest.approx(0.02))
    # One degree from {a, b}, 0.02, and one from the target alone, 0.02.
    assert (found.seed_variance, found.seed_degrees) == (pytest.approx(0.02), 2)
    assert (found.failed, found.lost) == (0, ())


def test_an_outcome_that_should_be_high_is_negated() -> None:
    losses = gather_outcomes(SUBSETS, OUTCOMES, **ASK)
    scores = gather_outcomes(SUBSETS, [-x for x in OUTCOMES], higher_is_better=True, **ASK)
    np.testing.assert_array_equal(scores.losses, losses.losses)
    assert scores.anchor == losses.anchor
    assert scores.higher_is_better


def test_weights_of_runs_weigh_the_mean_and_add_up() -> None:
    found = gather_outcomes(SUBSETS, OUTCOMES, weights=[3, 1, 1, 1, 1, 2], **ASK)
    assert found.losses[0] == pytest.approx(0.55)
    assert found.weights.tolist() == [4, 1, 2]


def test_failed_runs_are_left_out_and_counted() -> None:
    found = gather_outcomes(
        [*SUBSETS, [1, 1, 1], [1, 1, 1]],
        [np.nan, 0.7, 1.0, 0.9, np.inf, 0.8, np.nan, np.nan],
        **ASK,
    )
    assert found.losses == pytest.approx([0.7, 0.9, 0.8])
    assert found.anchor == 1.0
    assert np.isnan(found.anchor_variance)
    assert found.failed == 4
    assert found.lost == (("a", "b", "c"),)


def test_tables_that_cannot_be_used_are_refused_in_words() -> None:
    with pytest.raises(InputError, match=r"at least 3 source tasks\. Found 2"):
        gather_outcomes([[1, 0], [0, 0]], [1.0, 1.0], target="t", sources=["a", "b"])
    with pytest.raises(InputError, match="not be among its own sources"):
        gather_outcomes(SUBSETS, OUTCOMES, target="a", sources=["a", "b", "c"])
    with pytest.raises(InputError, match="its own name"):
        gather_outcomes(SUBSETS, OUTCOMES, target="t", sources=["a", "a", "c"])
    with pytest.raises(InputError, match="Train it alone"):
        gather_outcomes(SUBSETS[:2], OUTCOMES[:2], **ASK)
    with pytest.raises(InputError, match="all 1 failed"):
        gather_outcomes([[1, 1, 1], [0, 0, 0]], [np.nan, 1.0], **ASK)
    with pytest.raises(InputError, match="Found none with `c`"):
        gather_outcomes([[1, 1, 0], [0, 0, 0], [0, 0, 1]], [1.0, 1.0, np.nan], **ASK)
    with pytest.raises(ShapeError, match="Found shapes"):
        gather_outcomes(SUBSETS, OUTCOMES[:2], **ASK)
    with pytest.raises(ShapeError, match="above zero for each run"):
        gather_outcomes(SUBSETS, OUTCOMES, weights=[0] * 6, **ASK)
