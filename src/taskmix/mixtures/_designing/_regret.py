"""Expected regret: what the mixture chosen now is expected to give away against the best one.

By each of a forecast's equally likely laws the target of the recommended mixture is compared with that
law's own best, and the differences are averaged (Frazier, "A tutorial on Bayesian optimization", 2018,
section 4.2). It is what there is left to win by more runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._designing._asking import Asked
from taskmix.mixtures._designing._contenders import Contenders, find_contenders
from taskmix.mixtures._designing._crowd import random_of
from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._optimum import MixtureLimits, MixtureTarget
from taskmix.mixtures._table import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpectedRegret:
    """What the recommended mixture is expected to give away, in units of the target.

    >>> recommended = np.array([0.4, 0.6])
    >>> ExpectedRegret(recommended=recommended, mean=0.1, error=0.01, high=0.2, spread=0.5).relative
    0.2
    """

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
    asked = Asked(
        forecast=forecast, target=target or MixtureTarget(), limits=limits or MixtureLimits()
    )
    contenders = contenders_for(asked, among=best_among, also=recommended, seed=seed)
    place = contenders.recommended
    if recommended is not None:
        place = int(np.argmin(np.abs(contenders.shares - recommended).sum(axis=1)))
    return regret_at(asked, contenders, place)


def contenders_for(
    asked: Asked, *, among: Floats | None, also: Floats | None = None, seed: int
) -> Contenders:
    """Those that may be the best: of the given mixtures, or of all that the limits allow."""
    domains = asked.forecast.table.domains
    feasible = asked.limits.feasible(domains)
    if also is not None:
        also = np.asarray(also, dtype=np.float64)[None]
        if also.shape != (1, len(domains)) or not feasible.contains(also).all():
            raise InputError(
                f"The recommended mixture should have {len(domains)} shares that sum to 1 and keep the "
                f"limits. Found {also[0].round(4).tolist()}."
            )
    if among is None:
        return find_contenders(asked, feasible, random_of(seed, 1), also=also)
    shares = checked_mixtures(among, domains, "best_among")
    shares = shares if also is None else np.concatenate([shares, also])
    return Contenders(shares=shares, targets=asked.judged.each(shares))


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


def regret_at(asked: Asked, contenders: Contenders, place: int) -> ExpectedRegret:
    regrets = contenders.regrets(place)
    return ExpectedRegret(
        recommended=contenders.shares[place],
        mean=float(regrets.mean()),
        error=float(regrets.std() / np.sqrt(len(regrets))),
        high=float(np.quantile(regrets, 0.9)),
        spread=asked.spread(),
    )
