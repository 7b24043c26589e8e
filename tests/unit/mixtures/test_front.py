from __future__ import annotations

import numpy as np
import pytest

from taskmix.errors import OptionError
from taskmix.mixtures import MixtureLimits, MixtureTarget, find_front

from .known_forecasts import Floats, effective_law, grid_of_three, known

FIRST, SECOND = MixtureTarget(metric="m0"), MixtureTarget(metric="m1")


def far(shares: Floats) -> Floats:
    """Squared distances to two mixtures: the front is the line between them, and convex."""
    one, two = np.array([0.6, 0.2, 0.2]), np.array([0.2, 0.6, 0.2])
    return np.column_stack([((shares - place) ** 2).sum(axis=1) for place in (one, two)])


def hollow(shares: Floats) -> Floats:
    """Roots of distances: the front bends inwards, where no weighted mean has its lowest point."""
    return np.sqrt(np.sqrt(far(shares)))


def beaten(a: Floats, b: Floats, others: Floats) -> np.ndarray:
    """Whether a point of `others` [point, 2] is better than (a, b) in both, by more than rounding."""
    return np.array(
        [
            ((others[:, 0] < x - 2e-3) & (others[:, 1] < y - 2e-3)).any()
            for x, y in zip(a, b, strict=True)
        ]
    )


@pytest.mark.parametrize("law", [far, hollow, effective_law(1)], ids=["far", "hollow", "effective"])
@pytest.mark.parametrize(
    "limits", [MixtureLimits(), MixtureLimits(at_most={"d0": 0.45}, at_least=0.05)]
)
def test_no_mixture_of_a_fine_grid_beats_a_point_of_the_front(law, limits: MixtureLimits) -> None:  # type: ignore[no-untyped-def]
    forecast = known(law)
    front = find_front(forecast, FIRST, SECOND, limits, points=9)
    grid = grid_of_three()
    feasible = limits.feasible(forecast.table.domains)
    grid = grid[feasible.contains(grid)]
    a, b = (
        np.array([getattr(point, name).mean for point in front]) for name in ("first", "second")
    )
    assert not beaten(a, b, law(grid)[:, :2]).any()
    assert (np.diff(a) > 0).all()
    assert (np.diff(b) < 0).all()
    rows = np.array([list(point.shares.values()) for point in front])
    assert feasible.contains(rows).all()
    # The ends are the optima of each target alone.
    assert a[0] <= law(grid)[:, 0].min() + 1e-3
    assert b[-1] <= law(grid)[:, 1].min() + 1e-3


def test_the_front_between_two_places_is_the_line_between_them() -> None:
    front = find_front(known(far), FIRST, SECOND, points=5)
    assert len(front) == 5
    for point in front:
        assert point.shares["d2"] == pytest.approx(0.2, abs=2e-3)
        assert point.shares["d0"] + point.shares["d1"] == pytest.approx(0.8, abs=2e-3)


def test_a_front_that_bends_inwards_has_points_between_its_ends() -> None:
    front = find_front(known(hollow), FIRST, SECOND, points=7)
    between = [point for point in front if 0.25 < point.shares["d0"] < 0.55]
    assert len(between) >= 3


def test_targets_that_agree_have_a_front_of_one_point() -> None:
    same = known(lambda shares: np.repeat(((shares - 1 / 3) ** 2).sum(axis=1)[:, None], 2, axis=1))
    assert len(find_front(same, FIRST, SECOND)) == 1


def test_a_front_of_one_point_cannot_be_asked_for() -> None:
    with pytest.raises(OptionError, match="of a front should be at least 2"):
        find_front(known(far), FIRST, SECOND, points=1)
