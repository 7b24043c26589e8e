from __future__ import annotations

import numpy as np
import pytest

from taskmix.adviser._curves import Curve, best_shares, fit_curve


def test_a_curve_is_found_again() -> None:
    own = np.array([5.0, 10.0, 20.0, 40.0, 80.0, 160.0])
    curve = fit_curve(own, 0.9 - 0.8 * own**-0.5)
    assert curve.power == pytest.approx(0.5)
    assert curve.limit == pytest.approx(0.9)
    assert curve.lack == pytest.approx(0.8)


def test_a_score_that_falls_asks_for_nothing() -> None:
    own = np.array([5.0, 10.0, 20.0, 40.0])
    assert fit_curve(own, np.array([0.9, 0.8, 0.7, 0.6])).lack == 0


def test_of_equal_powers_the_shares_are_those_worked_out_by_hand() -> None:
    # b c n^-2 is the same for both where n1 / n2 = sqrt(b1 / b2) = 2
    curves = [Curve(1.0, 4.0, 1.0), Curve(1.0, 1.0, 1.0), Curve(1.0, 0.0, 1.0)]
    np.testing.assert_allclose(best_shares(curves, 300), [2 / 3, 1 / 3, 0.0], atol=1e-9)


def test_no_other_shares_have_a_larger_sum() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        curves = [Curve(0.9, *generator.uniform(0.1, 1.5, 2)) for _ in range(4)]
        lack = np.array([curve.lack for curve in curves])
        power = np.array([curve.power for curve in curves])
        batches = float(generator.uniform(100, 5000))
        shares = best_shares(curves, batches)
        others = generator.dirichlet(np.ones(4), size=500)
        losses = (lack * (np.vstack([shares, others]) * batches) ** -power).sum(axis=1)
        assert shares.sum() == pytest.approx(1)
        assert losses[0] <= losses[1:].min()
