from __future__ import annotations

import numpy as np
import pytest

from taskmix.adviser._curves import best_shares
from taskmix.numerics import PowerLaw


def test_a_score_that_falls_asks_for_nothing() -> None:
    curves = [PowerLaw(0.5, 0.4, 1.0), PowerLaw(0.9, -0.4, 1.0)]
    np.testing.assert_allclose(best_shares(curves, 300), [0.0, 1.0], atol=1e-9)


def test_of_equal_powers_the_shares_are_those_worked_out_by_hand() -> None:
    # b c n^-2 is the same for both where n1 / n2 = sqrt(b1 / b2) = 2
    curves = [PowerLaw(1.0, factor, 1.0) for factor in (-4.0, -1.0, 0.0)]
    np.testing.assert_allclose(best_shares(curves, 300), [2 / 3, 1 / 3, 0.0], atol=1e-9)


def test_no_other_shares_have_a_larger_sum() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        drawn = generator.uniform(0.1, 1.5, (4, 2))
        curves = [PowerLaw(0.9, -lack, power) for lack, power in drawn]
        lack = np.array([-curve.factor for curve in curves])
        power = np.array([curve.power for curve in curves])
        batches = float(generator.uniform(100, 5000))
        shares = best_shares(curves, batches)
        others = generator.dirichlet(np.ones(4), size=500)
        losses = (lack * (np.vstack([shares, others]) * batches) ** -power).sum(axis=1)
        assert shares.sum() == pytest.approx(1)
        assert losses[0] <= losses[1:].min()
