"""Mixtures that go down: many at once by their slopes, then the last digits of the best one.

Each mixture may have a function of its own. Slopes are measured by differences, and several steps tried
along two ways: that of the gradient, projected onto what is allowed, which brings domains in that had
no share, and that of shares multiplied by what each promises (exponentiated gradient; Kivinen and
Warmuth, 1997), which moves small shares by small steps. All starts and steps are one call, because a
forecast answers hundreds of mixtures about as fast as one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._table import Floats

LENGTHS = 4.0 ** np.arange(1, -3, -1)  # tried at once, times the step that last paid
FIRST = np.array([0.125, 1.0])  # of the two ways: in shares, and in logarithms of shares
LONGEST = np.array([0.5, 4.0])
ABSENT = 1e-6  # the share that a domain without any is taken to have where shares are multiplied
Judge = Callable[[Floats], Floats]  # [mixture, domain] to [mixture], or to [mixture, part]

SMALL = 1e-5  # of a share: the difference that slopes are measured over
MOST_CALLS = 100  # smooth targets of 17 domains need 20 to 60
FINEST = 1e-6  # of a share: exchanges smaller than that are not worth a call


def descend_together(
    judge: Callable[[Floats, NDArray[np.intp]], Floats],  # mixtures, and the start that each is of
    feasible: FeasibleShares,
    starts: Floats,
    *,
    steps: int,
    lower: Floats | None = None,  # [start, domain], narrower bounds than the limits'
    upper: Floats | None = None,
) -> tuple[Floats, Floats]:
    """All starts go down together [start, domain]; with their values [start]. None ever rises."""
    starts, count = starts.copy(), starts.shape[1]
    low = np.broadcast_to(feasible.lower if lower is None else lower, starts.shape)
    high = np.broadcast_to(feasible.upper if upper is None else upper, starts.shape)
    values = judge(starts, np.arange(len(starts)))
    sizes = np.tile(FIRST, (len(starts), 1))  # [start, way], the step that last paid
    active = np.arange(len(starts))
    for _ in range(steps):
        here, owners = starts[active], active
        slopes = measure_slopes(_of_starts(judge, owners, count), here, values[active])
        tried = _steps(here, slopes, sizes[active])  # [start, step, domain]
        each = tried.shape[1]
        tried = feasible.project(
            tried.reshape(-1, count),
            lower=np.repeat(low[active], each, axis=0),
            upper=np.repeat(high[active], each, axis=0),
        ).reshape(tried.shape)
        found = _of_starts(judge, owners, each)(tried.reshape(-1, count)).reshape(-1, each)
        place = np.where(np.isnan(found), np.inf, found).argmin(axis=1)
        rows = np.arange(len(active))
        gained = values[active] - found[rows, place]
        paid = gained > 1e-12 * np.maximum(np.abs(values[active]), 1e-12)
        active, rows, place = active[paid], rows[paid], place[paid]
        if len(active) == 0:
            break
        starts[active], values[active] = tried[rows, place], found[rows, place]
        way, step = np.divmod(place, len(LENGTHS))
        sizes[active, way] = np.minimum(sizes[active, way] * LENGTHS[step], LONGEST[way])
    return starts, values


def _of_starts(
    judge: Callable[[Floats, NDArray[np.intp]], Floats], starts: NDArray[np.intp], each: int
) -> Callable[[Floats], Floats]:
    """Judges rows of which so many, one after another, are of each of the starts."""
    owners = np.repeat(starts, each)
    return lambda rows: judge(rows, owners)


def _steps(here: Floats, slopes: Floats, sizes: Floats) -> Floats:
    """Where the steps lead [start, step, domain]: those of the first way, then of the second."""
    slopes = slopes - slopes.mean(axis=1, keepdims=True)
    largest = np.abs(slopes).max(axis=1, keepdims=True)
    ways = (-slopes / np.where(largest > 0, largest, 1.0))[:, None]
    lengths = sizes[:, :, None] * LENGTHS
    straight = here[:, None] + lengths[:, 0, :, None] * ways
    factors = np.exp(np.clip(lengths[:, 1, :, None] * ways, -5.0, 5.0))
    multiplied = np.maximum(here, ABSENT)[:, None] * factors
    multiplied = multiplied / multiplied.sum(axis=2, keepdims=True)
    return np.concatenate([straight, multiplied], axis=1)


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
