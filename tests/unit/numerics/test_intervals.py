from __future__ import annotations

import math

import numpy as np
import pytest

from taskmix.errors import OptionError, ShapeError
from taskmix.numerics import mean_interval, normal_quantile, paired_interval


def test_the_interval_of_three_seeds_is_the_one_of_the_table() -> None:
    # Mean 2, standard deviation 1, t(0.975, 2) = 4.3027: half-width 4.3027 / sqrt(3) = 2.4841.
    interval = mean_interval([1.0, 2.0, 3.0])
    assert interval.mean == 2.0
    assert interval.half_width == pytest.approx(2.4841, abs=1e-4)
    assert (interval.n, interval.level) == (3, 0.95)


def test_one_seed_has_a_mean_and_no_interval() -> None:
    interval = mean_interval([0.7])
    assert interval.mean == 0.7
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert not interval.excludes(100.0)


def test_the_paired_interval_is_that_of_the_differences() -> None:
    a, b = [0.9, 0.5, 0.7, 0.3], [0.8, 0.45, 0.6, 0.25]
    assert paired_interval(a, b) == mean_interval(np.subtract(a, b))
    assert paired_interval(a, b).excludes(0.0)
    assert not mean_interval(a).excludes(float(np.mean(b)))


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    samples = np.random.default_rng(0).normal(1.0, 2.0, size=(2000, 5))
    covered = sum(not mean_interval(row, 0.9).excludes(1.0) for row in samples)
    assert 0.88 < covered / len(samples) < 0.92


def test_unequal_numbers_of_seeds_are_refused() -> None:
    with pytest.raises(ShapeError, match="same order"):
        paired_interval([1.0, 2.0], [1.0])
    with pytest.raises(ShapeError, match="at least one number"):
        mean_interval([])


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_a_level_outside_zero_and_one_is_refused(level: float) -> None:
    with pytest.raises(OptionError, match="between 0 and 1"):
        mean_interval([1.0], level)
    with pytest.raises(OptionError, match="between 0 and 1"):
        normal_quantile(level)
