from __future__ import annotations

import numpy as np
import pytest

from taskmix.mixtures import measure_sensitivity

from .known_forecasts import Floats, KnownForecast, Law, known, table_of


def linear(*slopes: float) -> Law:
    def law(shares: Floats) -> Floats:
        return (shares @ np.array(slopes))[:, None]

    return law


def test_a_point_more_of_a_domain_changes_a_linear_law_as_worked_out_by_hand() -> None:
    found = measure_sensitivity(known(linear(3.0, 2.0, 1.0)), {"d0": 0.5, "d1": 0.3, "d2": 0.2})
    # d0 from 0.5 to 0.51; d1 and d2 from 0.3 and 0.2 to 0.294 and 0.196.
    by_hand = 3 * 0.01 - 2 * 0.006 - 1 * 0.004
    assert found.changes["d0"] is not None
    assert found.changes["d0"].mean == pytest.approx(by_hand)
    assert found.changes["d0"].low == pytest.approx(by_hand)


def test_intervals_come_from_laws_paired_and_not_from_their_levels() -> None:
    laws = tuple(
        lambda shares, level=level: linear(1.0 + level / 10, 0.0, 0.0)(shares) + level
        for level in range(-5, 6)
    )
    forecast = KnownForecast(table_of(laws[0]), laws)
    change = measure_sensitivity(forecast, {"d0": 0.2, "d1": 0.4, "d2": 0.4}).changes["d0"]
    assert change is not None
    # Levels differ by 10 between laws, which cancels; slopes from 0.5 to 1.5 stay.
    assert (change.low, change.mean, change.high) == pytest.approx((0.0055, 0.01, 0.0145), abs=1e-6)


def test_a_domain_that_has_all_tokens_cannot_get_more() -> None:
    found = measure_sensitivity(known(linear(1.0, 2.0, 3.0)), {"d0": 1.0})
    assert found.changes["d0"] is None
    assert found.changes["d1"] is not None
    assert found.changes["d1"].mean == pytest.approx(0.01)
