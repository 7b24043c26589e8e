"""Which mixtures to run next, by what they are expected to tell about the best one, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._designing._asking import Asked
from taskmix.mixtures._designing._contenders import Contenders
from taskmix.mixtures._designing._crowd import center_of, crowd_of, random_of
from taskmix.mixtures._designing._foretelling import regrets_after
from taskmix.mixtures._designing._gaining import Beliefs
from taskmix.mixtures._designing._reasons import reason_of
from taskmix.mixtures._designing._regret import (
    ExpectedRegret,
    checked_mixtures,
    contenders_for,
    regret_at,
)
from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._optimum import MixtureLimits, MixtureTarget
from taskmix.mixtures._table import Floats

CONTENDERS = 200  # mixtures among which the answer is thought to be while runs are weighed
NEAR_RUNS = 80  # runs that are weighed: contenders,
FAR_RUNS = 160  # and mixtures of every kind, as what tells most may be far from the best
CLEAR = 1.0  # standard errors by which a batch has to lower the expected regret to be worth it


@dataclass(frozen=True, kw_only=True, eq=False)
class NextRuns:
    """Mixtures to run next, why, and whether it is worth running any.

    >>> shares = np.array([[0.4, 0.6]])
    >>> found = NextRuns(
    ...     domains=("web", "code"), shares=shares, reasons=("the best by now",),
    ...     regret=ExpectedRegret(recommended=shares[0], mean=0.5, error=0.01, high=0.9, spread=0.5),
    ...     regret_after=0.25, gain_error=0.01, tolerance=0.1,
    ... )
    >>> found.gain, found.is_good_enough
    (0.25, False)
    """

    domains: tuple[str, ...]
    shares: Floats  # [run, domain], the most telling first
    reasons: tuple[str, ...]  # [run]
    regret: ExpectedRegret  # now
    regret_after: float  # expected after the batch
    gain_error: float  # standard error of the difference between the two
    tolerance: float  # the regret that was asked for, in units of the target
    taken_from: tuple[int, ...] | None = None  # [run], rows of `runs_among` where these were given

    def __len__(self) -> int:
        return len(self.shares)

    @property
    def gain(self) -> float:
        """By how much the batch is expected to lower the regret."""
        return self.regret.mean - self.regret_after

    @property
    def is_good_enough(self) -> bool:
        """Whether the expected regret is what was asked for, or below."""
        return self.regret.mean <= self.tolerance

    @property
    def is_worth_running(self) -> bool:
        """Whether the batch is expected to lower the regret by more than chance in that estimate."""
        return self.gain > CLEAR * self.gain_error

    @property
    def is_enough(self) -> bool:
        """Whether to stop: the answer is good enough, or these runs would not make it better."""
        return self.is_good_enough or not self.is_worth_running

    def describe(self) -> str:
        """Whether to go on, and why, in a sentence."""
        now, runs = f"{self.regret.mean:.3g}", f"{len(self)} more run{'s' if len(self) > 1 else ''}"
        if self.is_good_enough:
            return f"Enough: the expected regret is {now}, and {self.tolerance:.3g} was asked for."
        if self.is_enough:
            return (
                f"Enough: the expected regret is {now}, above the {self.tolerance:.3g} that was asked "
                f"for, but {runs} would lower it by {self.gain:.2g} ± "
                f"{CLEAR * self.gain_error:.2g} only."
            )
        return (
            f"Go on: the expected regret is {now}, {self.tolerance:.3g} was asked for, and {runs} are "
            f"expected to leave {self.regret_after:.3g}."
        )


def next_mixtures(
    forecast: Forecast,
    target: MixtureTarget | None = None,
    limits: MixtureLimits | None = None,
    *,
    count: int,
    tolerance: float | None = None,  # in units of the target; None: by `relative_tolerance`
    relative_tolerance: float = 0.02,  # of the target's standard deviation between the runs so far
    noise: float | Floats | None = None,  # [metric] or one, of a run; None: the forecast's
    runs_among: Floats | None = None,  # [mixture, domain], those that can be run; None: all allowed
    best_among: Floats | None = None,  # [mixture, domain], those that can be chosen in the end
    seed: int = 0,
) -> NextRuns:
    """The `count` runs that together are expected to lower the expected regret most.

    >>> from taskmix.mixtures import MixtureTable, forecast_mixtures
    >>> shares = np.random.default_rng(0).dirichlet(np.ones(3), size=12)
    >>> table = MixtureTable(
    ...     domains=("web", "code", "books"), metrics=("loss",), runs=tuple("abcdefghijkl"),
    ...     shares=shares, values=2 + shares[:, :1] - np.sqrt(shares[:, 1:2]),
    ... )
    >>> runs = next_mixtures(forecast_mixtures(table), count=2)
    >>> len(runs), runs.regret_after <= runs.regret.mean
    (2, True)
    """
    if count < 1:
        raise InputError(
            f"`count` should be at least 1, the number of runs. Found {count}.",
            arguments=("count",),
        )
    asked = Asked(
        forecast=forecast, target=target or MixtureTarget(), limits=limits or MixtureLimits()
    )
    allowed = _tolerance(asked, tolerance, relative_tolerance)
    found = contenders_for(asked, among=best_among, seed=seed)
    regret = regret_at(asked, found, found.recommended)
    contenders = found.shares[found.closest(CONTENDERS)]
    runs = _runs(asked, found, runs_among, seed)
    taken = _choose(asked, contenders, runs, noise, count, runs_among is not None, seed)
    before = found.regrets(found.recommended)
    after = regrets_after(taken.start, taken.runs, found.best_of_each, random_of(seed, 5))
    return NextRuns(
        domains=forecast.table.domains,
        shares=runs[taken.runs],
        reasons=taken.reasons,
        regret=regret,
        regret_after=min(float(after.mean()), regret.mean),  # more cannot hurt, only look so
        gain_error=float((before - after).std() / np.sqrt(len(after))),
        tolerance=allowed,
        taken_from=None if runs_among is None else tuple(taken.runs),
    )


@dataclass(frozen=True, eq=False)
class _Taken:
    runs: list[int]
    reasons: tuple[str, ...]
    start: Beliefs


def _choose(
    asked: Asked,
    contenders: Floats,
    runs: Floats,
    noise: float | Floats | None,
    count: int,
    is_once: bool,
    seed: int,
) -> _Taken:
    """One run after the other, each the best given those before it."""
    random = random_of(seed, 3)
    known = asked.noise(runs) if noise is None else asked.given_noise(noise, len(runs))
    start = beliefs = Beliefs.before(
        asked.of,
        is_linear=not asked.target.worst,
        truth=asked.draws(contenders, is_final=True),
        run_truth=asked.draws(runs, is_final=False),
        noise=known,
        random=random,
    )
    taken: list[int] = []
    reasons: list[str] = []
    free = list(range(len(runs)))
    for _ in range(min(count, len(runs)) if is_once else count):
        won = beliefs.won_after_each(free).mean(axis=1)
        if won.max() <= beliefs.won().mean() + 1e-12:  # none changes the choice by itself
            won = beliefs.explained(free)
        run = free[int(np.argmax(won))]
        taken.append(run)
        reasons.append(
            reason_of(
                runs[run],
                start.after(run, random_of(seed, 4)),
                contenders,
                asked.forecast.table.domains,
            )
        )
        beliefs = beliefs.after(run, random)
        if is_once:
            free.remove(run)
    return _Taken(taken, tuple(reasons), start)


def _runs(asked: Asked, found: Contenders, among: Floats | None, seed: int) -> Floats:
    """[run, domain], those that are weighed."""
    domains = asked.forecast.table.domains
    if among is not None:
        return checked_mixtures(among, domains, "runs_among")
    feasible = asked.limits.feasible(domains)
    center = center_of(feasible, domains, None)
    near = feasible.project(found.shares[found.closest(NEAR_RUNS)])
    corners = feasible.project(np.eye(len(domains)))
    return np.concatenate([near, corners, crowd_of(feasible, center, FAR_RUNS, random_of(seed, 2))])


def _tolerance(asked: Asked, tolerance: float | None, relative: float) -> float:
    given, option = (
        (relative, "relative_tolerance") if tolerance is None else (tolerance, "tolerance")
    )
    if not (np.isfinite(given) and given >= 0):
        raise InputError(
            f"`{option}` should be a number of at least 0. Found {given}.", arguments=(option,)
        )
    return relative * asked.spread() if tolerance is None else tolerance
