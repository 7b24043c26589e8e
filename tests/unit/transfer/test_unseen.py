"""Transfer to a task that was not trained, predicted from features of tasks."""

from __future__ import annotations

import numpy as np
import pytest

from taskmix.errors import InputError
from taskmix.transfer import predict_transfer


def test_near_tasks_are_predicted_to_help_and_intervals_cover_left_out_gains() -> None:
    generator = np.random.default_rng(0)
    where = generator.normal(size=(14, 2))
    gains = (
        1 - np.linalg.norm(where[:, None] - where, axis=2) + 0.1 * generator.normal(size=(14, 14))
    )
    np.fill_diagonal(gains, np.nan)
    found = predict_transfer(
        gains[:13, :13], where[:13], where[13], tasks=[str(n) for n in range(13)]
    )
    assert found.tells
    assert np.corrcoef(found.gains, gains[13, :13])[0, 1] > 0.8
    assert found.coverage > 0.85


def test_nothing_is_told_where_features_say_nothing() -> None:
    told = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        gains, where = generator.normal(size=(9, 9)), generator.normal(size=(9, 3))
        found = predict_transfer(gains, where, where[0], tasks=list("abcdefghi"))
        told += found.tells
        if not found.tells:
            assert set(found.answers()) == {"cannot tell"}
    assert told <= 4  # one of twenty is expected by chance


def test_too_few_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="5 known tasks"):
        predict_transfer(np.zeros((3, 3)), np.zeros((3, 1)), [0.0], tasks=list("abc"))
