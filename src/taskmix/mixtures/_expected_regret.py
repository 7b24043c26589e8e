"""Expected regret: what the mixture chosen now is expected to give away against the best one.

By each of a forecast's equally likely laws the target of the recommended mixture is compared with that
law's own best, and the differences are averaged (Frazier, "A tutorial on Bayesian optimization", 2018,
section 4.2). It is what there is left to win by more runs, and never more than the targets of the runs
differ: of larger differences they say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._first_design import random_of
from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._search import candidate_mixtures, optima_of_draws, search_mixture
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget
from taskmix.mixtures._table import Floats

BETWEEN = (
    120  # mixtures between two that may be best: after more runs the answer is likely to be there
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpectedRegret:
    """What the recommended mixture is expected to give away, in units of the target."""

    recommended: Floats  # [domain]
    mean: float
    error: float  # standard error of the mean, over the draws
    high: float  # nine draws of ten give away no more
    spread: float  # standard deviation of the target between the runs so far

    @property
    def relative(self) -> float:
        """The mean, in spreads of the target between runs."""
        return self.mean / self.spread if self.spread > 0 else (np.inf if self.mean > 0 else 0.0)


def estimate_regret(
    forecast: Forecast,
    target: MixtureTarget | None = None,
    limits: MixtureLimits | None = None,
    *,
    recommended: Floats | None = None,  # [domain]; None: the best in the mean over draws
    best_among: Floats
    | None = None,  # [mixture, domain], those that can be chosen; None: all allowed
    seed: int = 0,
) -> ExpectedRegret:
    """The regret of a mixture against the best one, expected over the forecast's draws.

    >>> from taskmix.mixtures import MixtureTable, forecast_mixtures
    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0.2, 1.0, 8)])
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=tuple("abcdefgh"),
    ...     shares=shares, values=2 + shares[:, :1],
    ... )
    >>> regret = estimate_regret(forecast_mixtures(table, laws=()))
    >>> 0 <= regret.mean <= 2 * regret.spread
    True
    """
    judged = JudgedMixtures(
        forecast=forecast, target=target or MixtureTarget(), limits=limits or MixtureLimits()
    )
    contenders = contenders_for(judged, among=best_among, also=recommended, seed=seed)
    place = contenders.recommended
    if recommended is not None:
        place = int(np.argmin(np.abs(contenders.shares - recommended).sum(axis=1)))
    return regret_at(judged, contenders, place)


def contenders_for(
    judged: JudgedMixtures, *, among: Floats | None, also: Floats | None = None, seed: int
) -> Contenders:
    """Those that may be the best: of the given mixtures, or of all that the limits allow."""
    domains = judged.forecast.table.domains
    feasible = judged.limits.feasible(domains)
    if also is not None:
        also = np.asarray(also, dtype=np.float64)[None]
        if also.shape != (1, len(domains)) or not feasible.contains(also).all():
            raise InputError(
                f"The recommended mixture should have {len(domains)} shares that sum to 1 and keep the "
                f"limits. Found {also[0].round(4).tolist()}."
            )
    if among is None:
        return find_contenders(judged, feasible, random_of(seed, 1), also=also)
    shares = checked_mixtures(among, domains, "best_among")
    shares = shares if also is None else np.concatenate([shares, also])
    return Contenders(shares=shares, targets=judged.each(shares))


def checked_mixtures(shares: Floats, domains: tuple[str, ...], option: str) -> Floats:
    """Given mixtures [mixture, domain] whose rows sum to 1; at least one."""
    found = np.asarray(shares, dtype=np.float64)
    if found.ndim != 2 or found.shape[1:] != (len(domains),) or len(found) == 0:
        raise InputError(
            f"`{option}` should have a row a mixture and {len(domains)} columns, a domain each. Found "
            f"the shape {found.shape}.",
            arguments=(option,),
        )
    if not ((found >= -1e-9).all() and np.allclose(found.sum(axis=1), 1.0, atol=1e-4)):
        raise InputError(
            f"`{option}` should have shares of at least 0 that sum to 1 in each row. Found a row that "
            "does not.",
            arguments=(option,),
        )
    return found


def regret_at(judged: JudgedMixtures, contenders: Contenders, place: int) -> ExpectedRegret:
    regrets, most = contenders.regrets(place), judged.range_of_runs
    return ExpectedRegret(
        recommended=contenders.shares[place],
        mean=min(float(regrets.mean()), most),
        error=float(regrets.std() / np.sqrt(len(regrets))),
        high=min(float(np.quantile(regrets, 0.9)), most),
        spread=judged.spread_of_runs,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Contenders:
    """Mixtures [mixture, domain] with their targets by each draw [draw, mixture]."""

    shares: Floats
    targets: Floats

    @property
    def recommended(self) -> int:
        """The one of the lowest target in the mean over draws."""
        return int(np.argmin(self.targets.mean(axis=0)))

    @property
    def best_of_each(self) -> Floats:
        """[draw], the lowest target that a draw knows of."""
        return np.asarray(self.targets.min(axis=1))

    def regrets(self, place: int) -> Floats:
        """[draw], by how much a mixture's target exceeds the draw's best; never below 0."""
        return np.asarray(self.targets[:, place] - self.best_of_each)

    def closest(self, count: int) -> NDArray[np.int64]:
        """[contender], places of those that matter: the recommended, each draw's best, the next."""
        winners = np.unique(np.argmin(self.targets, axis=1))
        in_mean = np.argsort(self.targets.mean(axis=0), kind="stable")
        behind = (self.targets - self.best_of_each[:, None]).min(axis=0)
        nearly = np.argsort(behind, kind="stable")
        ranked = [in_mean[0], *winners, *np.ravel(np.column_stack([in_mean, nearly]))]
        return np.array(list(dict.fromkeys(int(place) for place in ranked))[:count])


def find_contenders(
    judged: JudgedMixtures,
    feasible: FeasibleShares,
    random: np.random.Generator,
    *,
    also: Floats | None = None,  # [mixture, domain], allowed mixtures that should be among them
) -> Contenders:
    """The optimum of the mean, that of each draw, mixtures between these, and some of every kind."""
    seen = judged.forecast.table.shares
    best, _ = search_mixture(judged.expected, feasible, seen, random, parts=judged.edges)
    broad = candidate_mixtures(feasible, seen, random)
    given = [best[None]] if also is None else [best[None], also]
    optima, _ = optima_of_draws(judged, feasible, np.concatenate([broad, *given]))
    ends = np.concatenate([np.repeat(best[None], len(optima) // 2, axis=0), optima])
    one, other = (ends[random.integers(len(ends), size=BETWEEN)] for _ in range(2))
    between = one + random.random((BETWEEN, 1)) * (other - one)  # allowed, as the limits are convex
    shares = np.concatenate([*given, optima, between, broad])
    return Contenders(shares=shares, targets=judged.each(shares))
