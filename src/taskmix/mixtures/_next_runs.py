"""Which mixtures to run next, by what they are expected to tell about the best one, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._expected_regret import (
    Contenders,
    ExpectedRegret,
    checked_mixtures,
    contenders_for,
    regret_at,
)
from taskmix.mixtures._first_design import center_of, crowd_of, random_of, root_distances
from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._knowledge_gradient import Beliefs, regrets_after
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget
from taskmix.mixtures._table import Floats

CONTENDERS = 200  # mixtures among which the answer is thought to be while runs are weighed
NEAR_RUNS = 80  # runs that are weighed: contenders,
FAR_RUNS = 160  # and mixtures of every kind, as what tells most may be far from the best
FEWEST_DRAWS = 8  # of a forecast; below, a covariance of draws says nothing
CLEAR = 1.0  # standard errors by which a batch has to lower the expected regret to be worth it
TOLD_APART = 0.01  # shares that differ by less are the same to a reader
NEAR = 0.12  # distance of roots of shares within which a run is on the recommended mixture


@dataclass(frozen=True, kw_only=True, eq=False)
class NextRuns:
    """Mixtures to run next, why, and whether it is worth running any."""

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
    judged = JudgedMixtures(
        forecast=forecast, target=target or MixtureTarget(), limits=limits or MixtureLimits()
    )
    allowed = _tolerance(judged, tolerance, relative_tolerance)
    found = contenders_for(judged, among=best_among, seed=seed)
    regret = regret_at(judged, found, found.recommended)
    contenders = found.shares[found.closest(CONTENDERS)]
    runs = _runs(judged, found, runs_among, seed)
    taken = _choose(judged, contenders, runs, noise, count, runs_among is not None, seed)
    before = found.regrets(found.recommended)
    after = regrets_after(taken.start, taken.runs, found.best_of_each, random_of(seed, 5))
    shown = regret.mean / max(
        float(before.mean()), 1e-300
    )  # below 1 where the runs' range bounds it
    return NextRuns(
        domains=forecast.table.domains,
        shares=runs[taken.runs],
        reasons=taken.reasons,
        regret=regret,
        # More cannot hurt, only look so.
        regret_after=min(shown * float(after.mean()), regret.mean),
        gain_error=shown * float((before - after).std() / np.sqrt(len(after))),
        tolerance=allowed,
        taken_from=None if runs_among is None else tuple(taken.runs),
    )


@dataclass(frozen=True, eq=False)
class _Taken:
    runs: list[int]
    reasons: tuple[str, ...]
    start: Beliefs


def _choose(
    judged: JudgedMixtures,
    contenders: Floats,
    runs: Floats,
    noise: float | Floats | None,
    count: int,
    is_once: bool,
    seed: int,
) -> _Taken:
    """One run after the other, each the best given those before it."""
    random = random_of(seed, 3)
    table, target = judged.forecast.table, judged.target
    used = np.flatnonzero(target.weights_in(table))  # metrics that the target is made of

    def target_of(values: Floats) -> Floats:  # [..., used metric] to [...]
        whole = np.zeros((*values.shape[:-1], len(table.metrics)))
        whole[..., used] = values
        return target.of(whole, table)

    start = beliefs = Beliefs.before(
        target_of,
        is_linear=not target.worst,
        truth=_draws(judged.forecast, judged.taught(contenders), used),
        run_truth=_draws(judged.forecast, runs, used),  # small runs need not repeat what is scarce
        noise=_noise(judged.forecast, runs, noise)[:, used],
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
                judged.forecast.table.domains,
            )
        )
        beliefs = beliefs.after(run, random)
        if is_once:
            free.remove(run)
    return _Taken(taken, tuple(reasons), start)


def _draws(forecast: Forecast, shares: Floats, used: NDArray[np.intp]) -> Floats:
    """[draw, mixture, used metric].

    Their mean over draws is made the forecast's prediction: by chance it misses it a little, differently
    for each mixture, and of thousands of mixtures one would be best by chance alone.
    """
    found = forecast.draws(shares)[:, :, used]
    if len(found) < FEWEST_DRAWS:
        raise InputError(
            f"A forecast should have at least {FEWEST_DRAWS} draws to say what is worth running. "
            f"Found {len(found)}. Make it with more `draws`.",
            arguments=("draws",),
        )
    return np.asarray(found - found.mean(axis=0) + forecast.predict(shares)[:, used])


def _noise(forecast: Forecast, runs: Floats, given: float | Floats | None) -> Floats:
    """[run, metric], standard deviations: the forecast's, or what a caller knows better."""
    if given is None:
        return forecast.noise(runs)
    every = np.asarray(given, dtype=np.float64)
    if not (np.isfinite(every).all() and (every >= 0).all()):
        raise InputError(
            "`noise` should be standard deviations of at least 0. Found "
            f"{np.atleast_1d(every).tolist()[:8]}.",
            arguments=("noise",),
        )
    return np.broadcast_to(every, (len(runs), len(forecast.table.metrics)))


def _runs(judged: JudgedMixtures, found: Contenders, among: Floats | None, seed: int) -> Floats:
    """[run, domain], those that are weighed."""
    domains = judged.forecast.table.domains
    if among is not None:
        return checked_mixtures(among, domains, "runs_among")
    feasible = judged.limits.feasible(domains)
    center = center_of(feasible, domains, None)
    near = feasible.project(found.shares[found.closest(NEAR_RUNS)])
    corners = feasible.project(np.eye(len(domains)))
    return np.concatenate([near, corners, crowd_of(feasible, center, FAR_RUNS, random_of(seed, 2))])


def _tolerance(judged: JudgedMixtures, tolerance: float | None, relative: float) -> float:
    given, option = (
        (relative, "relative_tolerance") if tolerance is None else (tolerance, "tolerance")
    )
    if not (np.isfinite(given) and given >= 0):
        raise InputError(
            f"`{option}` should be a number of at least 0. Found {given}.", arguments=(option,)
        )
    return relative * judged.spread_of_runs if tolerance is None else tolerance


def reason_of(
    run: Floats,  # [domain]
    after: Beliefs,  # after this run alone
    contenders: Floats,  # [contender, domain]
    domains: tuple[str, ...],
) -> str:
    """What the run settles: the share that differs most between the choices it may lead to."""
    chosen = contenders[np.argmin(after.targets(), axis=1)]  # [draw, domain]
    low, high = np.quantile(chosen, [0.1, 0.9], axis=0)
    place = int(np.argmax(high - low))
    now = contenders[after.chosen]
    if high[place] - low[place] >= TOLD_APART:
        return f"settles the share of {domains[place]}: {low[place]:.2f} or {high[place]:.2f}"
    if root_distances(run[None], now[None])[0, 0] <= NEAR:
        return "checks the mixture that looks best"
    place = int(np.argmax(np.abs(np.sqrt(run) - np.sqrt(now))))
    return (
        f"tells what {domains[place]} teaches: its share is {run[place]:.2f} here, "
        f"{now[place]:.2f} in the mixture that looks best"
    )
