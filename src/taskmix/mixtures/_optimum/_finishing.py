"""The last digits of an optimum: from a good mixture to the best one near it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from scipy.optimize import minimize

from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._table import Floats

Judge = Callable[[Floats], Floats]  # [mixture, domain] to [mixture], or to [mixture, part]

SMALL = 1e-5  # of a share: the difference that slopes are measured over
MOST_CALLS = 100  # smooth targets of 17 domains need 20 to 60
FINEST = 1e-6  # of a share: exchanges smaller than that are not worth a call


def measure_slopes(judge: Judge, shares: Floats, values: Floats) -> Floats:
    """[mixture, domain], or with parts [mixture, part, domain]: how values change with each share.

    A share is taken from all others in proportion, because forecasts are asked for whole mixtures. What
    that leaves out is the same for all domains, and shares that sum to 1 cannot tell.
    """
    rows, count = shares.shape
    moved = (1 - SMALL) * shares[:, None] + SMALL * np.eye(count)[None]
    changed = judge(moved.reshape(-1, count)).reshape(rows, count, *values.shape[1:])
    slopes = (changed - values[:, None]) / SMALL
    return np.nan_to_num(np.moveaxis(slopes, 1, -1))


class _Enough(Exception):  # noqa: N818 - it ends a search, and no fault is behind it
    """So many calls were made: on edges SLSQP's line search would go on for thousands."""


def finish_mixture(judge: Judge, feasible: FeasibleShares, start: Floats, scale: float) -> Floats:
    """SLSQP from one mixture [domain]; `scale` is how much values differ among mixtures."""
    best, lowest, calls = start, np.inf, 0

    def with_slopes(shares: Floats) -> tuple[float, Floats]:
        nonlocal best, lowest, calls
        calls += 1
        if calls > MOST_CALLS:
            raise _Enough
        whole = feasible.project(shares[None])  # its line search may leave the limits by rounding
        value = judge(whole)
        if value[0] < lowest:
            best, lowest = whole[0], value[0]
        return float(value[0]) / scale, measure_slopes(judge, whole, value)[0] / scale

    with suppress(_Enough):
        minimize(
            with_slopes,
            start,
            jac=True,
            bounds=np.column_stack([feasible.lower, feasible.upper]),
            constraints=[_sum_to_one(len(start)), *_within_groups(feasible, len(start))],
            method="SLSQP",
            options={"maxiter": 60, "ftol": 1e-10},
        )
    return best


def finish_worst(parts: Judge, feasible: FeasibleShares, start: Floats, scale: float) -> Floats:
    """SLSQP for the worst of several parts: a level above all of them is made small.

    The worst has edges where two parts are equal, and its lowest point usually lies on one. The parts
    themselves have none.
    """
    count = len(start)
    known: dict[bytes, tuple[Floats, Floats]] = {}

    def look(point: Floats) -> tuple[Floats, Floats]:
        key = point[:count].tobytes()
        if key not in known:
            known.clear()
            whole = feasible.project(point[None, :count])
            value = parts(whole)
            known[key] = (value[0] / scale, measure_slopes(parts, whole, value)[0] / scale)
        return known[key]

    width = len(look(start)[0])
    above: dict[str, object] = {
        "type": "ineq",
        "fun": lambda point: point[count] - look(point)[0],
        "jac": lambda point: np.column_stack([-look(point)[1], np.ones(width)]),
    }
    level = np.zeros(count + 1)
    level[count] = 1.0
    bounds = [*zip(feasible.lower, feasible.upper, strict=True), (None, None)]
    found = minimize(
        lambda point: float(point[count]),
        np.append(start, look(start)[0].max()),
        jac=lambda _: level,
        bounds=bounds,
        constraints=[_sum_to_one(count, count + 1), *_within_groups(feasible, count + 1), above],
        method="SLSQP",
        options={"maxiter": 60, "ftol": 1e-10},
    )
    return _allowed(found.x[:count], start, feasible)


def exchange_shares(
    judge: Judge,
    feasible: FeasibleShares,
    start: Floats,  # [domain]
    generator: np.random.Generator,
    *,
    rounds: int,
) -> tuple[Floats, float]:
    """Shares moved from domain to domain and along random ways, in steps that shrink."""
    count = len(start)
    corners = np.eye(count)
    best, value = start, float(judge(start[None])[0])
    size, last = 0.05, np.zeros((1, count))
    for _ in range(rounds):
        pairs = generator.integers(0, count, size=(min(count * count, 128), 2))
        between = corners[pairs[:, 0]] - corners[pairs[:, 1]]
        anywhere = generator.standard_normal((64, count)) * np.sqrt(np.maximum(best, 0.01))
        ways = np.concatenate([between, corners - best, anywhere, last, 2 * last])
        tried = feasible.project(best + size * ways)
        found = judge(tried)
        place = int(np.nanargmin(found))
        if found[place] < value:
            last = (tried[place] - best)[None] / size  # what paid once often pays again
            best, value = tried[place], float(found[place])
        else:
            size *= 0.7
        if size < FINEST:
            break
    return best, value


def _sum_to_one(count: int, length: int | None = None) -> dict[str, object]:
    row = np.zeros(length or count)
    row[:count] = 1.0
    return {"type": "eq", "fun": lambda point: point @ row - 1.0, "jac": lambda _: row}


def _within_groups(feasible: FeasibleShares, length: int) -> list[dict[str, object]]:
    if len(feasible.members) == 0:
        return []
    rows = np.zeros((2 * len(feasible.members), length))
    rows[:, : feasible.count] = np.concatenate([feasible.members, -feasible.members])
    ends = np.concatenate([feasible.least, -feasible.most])
    return [{"type": "ineq", "fun": lambda point: rows @ point - ends, "jac": lambda _: rows}]


def _allowed(found: Floats, start: Floats, feasible: FeasibleShares) -> Floats:
    """Where SLSQP ended, within the limits; where it began, if it got lost."""
    if not np.isfinite(found).all():
        return start
    return np.asarray(feasible.project(found[None])[0])


def finish_under(
    judge: Judge,
    other: Judge,
    level: float,
    feasible: FeasibleShares,
    start: Floats,  # [domain], with `other` at most at the level
    scales: tuple[float, float],  # how much values of each differ among mixtures
) -> Floats:
    """SLSQP for the least of `judge` with `other` at most at `level`; never worse than `start`."""

    def look(which: Judge, scale: float) -> tuple[Callable[..., float], Callable[..., Floats]]:
        def value(shares: Floats) -> float:
            return float(which(feasible.project(shares[None]))[0]) / scale

        def slopes(shares: Floats) -> Floats:
            whole = feasible.project(shares[None])
            return np.asarray(measure_slopes(which, whole, which(whole))[0] / scale)

        return value, slopes

    value, slopes = look(judge, scales[0])
    other_value, other_slopes = look(other, scales[1])
    under: dict[str, object] = {
        "type": "ineq",
        "fun": lambda shares: level / scales[1] - other_value(shares),
        "jac": lambda shares: -other_slopes(shares),
    }
    count = len(start)
    found = minimize(
        value,
        start,
        jac=slopes,
        bounds=np.column_stack([feasible.lower, feasible.upper]),
        constraints=[_sum_to_one(count), *_within_groups(feasible, count), under],
        method="SLSQP",
        options={"maxiter": 40, "ftol": 1e-9},
    )
    ended = _allowed(found.x, start, feasible)[None]
    keeps = other(ended)[0] <= level + 1e-6 * scales[1]
    return ended[0] if keeps and judge(ended)[0] < judge(start[None])[0] else start
