"""What the target gains or loses where one domain gets more, and others less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget, interval_of
from taskmix.mixtures._table import Floats
from taskmix.numerics import Interval, check_level

POINT = 0.01  # the share that a domain gets more


@dataclass(frozen=True, kw_only=True)
class MixtureSensitivity:
    """How the target depends on each domain's share around one mixture."""

    changes: Mapping[str, Interval | None]  # with one point (0.01) more, taken from all others
    level: float


def measure_sensitivity(
    forecast: Forecast,
    shares: Mapping[str, float],  # by domain, such as an optimum's
    target: MixtureTarget | None = None,
    limits: MixtureLimits | None = None,
    *,
    level: float = 0.9,
) -> MixtureSensitivity:
    """What one point more of each domain changes, taken from all others in proportion to their shares.

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
    here = np.array([shares.get(name, 0.0) for name in table.domains])
    count = len(here)
    more = np.array([with_share(here, place, here[place] + POINT) for place in range(count)])
    drawn = judged.each(np.concatenate([here[None], more]))  # [draw, mixture]
    changes: dict[str, Interval | None] = {}
    for place, name in enumerate(table.domains):
        is_all = here[place] + POINT > 1
        change = drawn[:, 1 + place] - drawn[:, 0]
        changes[name] = None if is_all else interval_of(change, level)
    return MixtureSensitivity(changes=changes, level=level)


def with_share(shares: Floats, place: int, share: float) -> Floats:
    """[domain], the mixture with another share at `place`, the others keeping their proportions."""
    share = min(max(share, 0.0), 1.0)
    others = np.delete(shares, place)
    rest = (
        others / others.sum() if others.sum() > 0 else np.full(len(others), 1 / max(len(others), 1))
    )
    return np.insert((1 - share) * rest, place, share)
