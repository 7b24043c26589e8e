"""What the target gains or loses where one domain gets more, and others less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._optimum._judged import JudgedMixtures, interval_of
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._target import MixtureTarget
from taskmix.mixtures._table import Floats
from taskmix.numerics import Interval, check_level

POINT = 0.01  # the share that a domain gets more


@dataclass(frozen=True, kw_only=True)
class ShareCurve:
    """The target against one domain's share, all others keeping their proportions.

    >>> ShareCurve(shares=(0.0, 0.5), target=(3.2, 3.0), low=(3.1, 2.9), high=(3.3, 3.1)).target
    (3.2, 3.0)
    """

    shares: tuple[float, ...]
    target: tuple[float, ...]  # expected, at each share
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class MixtureSensitivity:
    """How the target depends on each domain's share around one mixture.

    >>> found = MixtureSensitivity(changes={"web": None}, curves={}, level=0.9)
    >>> found.changes["web"] is None  # it has all tokens already
    True
    """

    changes: Mapping[str, Interval | None]  # with one point (0.01) more, taken from all others
    curves: Mapping[str, ShareCurve]
    level: float


def measure_sensitivity(
    forecast: Forecast,
    shares: Mapping[str, float],  # by domain, such as an optimum's
    target: MixtureTarget | None = None,
    limits: MixtureLimits | None = None,
    *,
    points: int = 21,
    level: float = 0.9,
) -> MixtureSensitivity:
    """What one point more of each domain changes, and the target along each domain's share.

    What a domain gets is taken from all others in proportion to their shares. Curves reach over the
    shares that the limits leave to the domain alone, and 0 to 1 without limits.

    >>> from taskmix.mixtures import MixtureTable, forecast_mixtures
    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0, 1, 8)])
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=tuple("abcdefgh"),
    ...     shares=shares, values=4 - 2 * shares[:, :1],
    ... )
    >>> forecast = forecast_mixtures(table, laws=())
    >>> found = measure_sensitivity(forecast, {"web": 0.5, "code": 0.5})
    >>> found.changes["web"].mean < 0 < found.changes["code"].mean
    True
    """
    check_level(level)
    table = forecast.table
    judged = JudgedMixtures(
        forecast=forecast, target=target or MixtureTarget(), limits=limits or MixtureLimits()
    )
    judged.target.check(table)
    least, largest = judged.limits.feasible(table.domains).ranges()
    here = np.array([shares.get(name, 0.0) for name in table.domains])
    count = len(here)
    more = np.array([with_share(here, place, here[place] + POINT) for place in range(count)])
    grid = np.linspace(least, largest, points, axis=1)  # [domain, point]
    along = np.array([
        with_share(here, place, share) for place in range(count) for share in grid[place]
    ])  # fmt: skip
    drawn = judged.each(np.concatenate([here[None], more, along]))  # [draw, mixture]
    changes: dict[str, Interval | None] = {}
    curves: dict[str, ShareCurve] = {}
    by_share = drawn[:, 1 + count :].reshape(len(drawn), count, points)
    low, high = np.quantile(by_share, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    for place, name in enumerate(table.domains):
        is_all = here[place] + POINT > 1
        change = drawn[:, 1 + place] - drawn[:, 0]
        changes[name] = None if is_all else interval_of(change, level)
        curves[name] = ShareCurve(
            shares=tuple(grid[place].tolist()),
            target=tuple(by_share[:, place].mean(axis=0).tolist()),
            low=tuple(low[place].tolist()),
            high=tuple(high[place].tolist()),
        )
    return MixtureSensitivity(changes=changes, curves=curves, level=level)


def with_share(shares: Floats, place: int, share: float) -> Floats:
    """[domain], the mixture with another share at `place`, the others keeping their proportions."""
    share = min(max(share, 0.0), 1.0)
    others = np.delete(shares, place)
    rest = (
        others / others.sum() if others.sum() > 0 else np.full(len(others), 1 / max(len(others), 1))
    )
    return np.insert((1 - share) * rest, place, share)
