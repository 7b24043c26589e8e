r"""The multitask bandit: policies against the oracle where the best division of the budget is known.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 4.1, Figure 1:
    N = 8, α = 2, 10 seeds; Exp3.S with η = 10⁻³, ε = 0.05; the counterfactual policy after two rounds
    of improvement from the uniform one, λ = 0.2.

The paper gives no T; it is 10,000 here. Beside the paper's one environment, others are drawn, since one
draw of eight numbers decides most of a single result. `gap_closed/x` is (x − random)/(oracle − random)
of the mean final scores; its interval is over environments. `paper_recipe` pools the logs of both
rounds; `auto` does the same with λ chosen from the logs; `staged` replaces its second round by a policy
in stages; `both` is the mean of such a policy and of shares by the learning curves, in both rounds;
`optimum` is the best fixed distribution, forgetting counted. All environments and seeds are
played at once, as the rows of arrays.

Beyond the paper, `transfer` and `cost` let arms teach or harm each other and differ in what a pull
costs; rewards are then per unit of cost, and a run ends when its budget is spent. The oracle's shares
are not special then, and gaps are measured up to the optimum instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual import (
    Improvement,
    Log,
    improve_policy,
    improve_stages,
    log_from_arrays,
)
from taskmix.errors import OptionError
from taskmix.numerics import Interval, mean_interval, paired_interval, student_quantile
from taskmix.papers._selection._bandit_runs import Plays, play_exp3s, play_fixed
from taskmix.papers._shared import PaperRow, row
from taskmix.tasks import MultitaskBandit

PAPER_ENTROPY = 0.2


@dataclass(frozen=True, kw_only=True)
class BanditOptions:
    """The paper's bandit, and how many of them.

    >>> BanditOptions(environments=3).as_published, BanditOptions(cost=(1.0, 4.0)).as_published
    (True, False)
    """

    environments: int = 20
    seeds: int = 10
    steps: int = 10_000
    arms: int = 8
    concentration: float = 2.0
    entropy: float = PAPER_ENTROPY  # of the paper's recipe
    rounds: int = 2
    points: int = 100  # of the curves
    transfer: tuple[float, float] = (0.0, 0.0)  # pulls of another arm that a pull is worth
    cost: tuple[float, float] = (1.0, 1.0)  # of a pull
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.environments, self.seeds, self.arms, self.rounds, self.points) < 1:
            raise OptionError("Every number of the bandit experiment should be at least 1.")
        if self.steps < self.points:
            raise OptionError(
                f"`steps` should be at least the {self.points} points of a curve. Found {self.steps}."
            )

    @property
    def as_published(self) -> bool:
        """Whether arms neither teach each other nor differ in cost."""
        return self.transfer == (0.0, 0.0) and self.cost == (1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class BanditResult:
    """What every policy reached in every environment under every seed.

    >>> curve = np.array([[[0.1, 0.2]], [[0.5, 0.7]]])  # two points, one environment, two seeds
    >>> none = np.zeros((1, 2))
    >>> BanditResult(curves={"random": curve}, entropies=none, stages=none, steps=[1, 2]).scores
    {'random': array([[0.5, 0.7]])}
    """

    curves: dict[str, NDArray[np.float64]]  # [point, environment, seed], the mean score over arms
    entropies: NDArray[np.float64]  # [environment, seed], λ of `auto` in its last round
    stages: NDArray[np.int64]  # [environment, seed], of `staged`
    steps: NDArray[np.int64]  # [point]
    goal: str = "oracle"  # the policy whose score closes the whole gap

    @property
    def scores(self) -> dict[str, NDArray[np.float64]]:
        """[environment, seed], at the end."""
        return {name: curve[-1] for name, curve in self.curves.items()}


def play_bandit(
    options: BanditOptions, *, on_progress: Callable[[str], None] | None = None
) -> BanditResult:
    """All policies in all environments.

    >>> small = BanditOptions(arms=2, environments=1, seeds=1, steps=20, points=2)
    >>> result = play_bandit(small)
    >>> result.curves["random"].shape, "exp3s" in result.scores
    ((2, 1, 1), True)
    """
    generator = np.random.default_rng(options.seed)
    bandit = MultitaskBandit.sample(
        generator,
        arms=options.arms,
        concentration=options.concentration,
        steps=options.steps,
        environments=options.environments,
        transfer=options.transfer,
        cost=options.cost,
    )
    many = repeated(bandit, options.seeds)
    uniform = np.full(many.oracle.shape, 1.0 / options.arms)
    plays: dict[str, Plays] = {}

    def fixed(shares: NDArray[np.float64]) -> Plays:
        return play_fixed(many, shares, generator=generator, points=options.points)

    def tell(name: str) -> None:
        if on_progress is not None:
            on_progress(name)

    best = np.repeat(_optima(bandit), options.seeds, axis=0)
    for name, shares in (("random", uniform), ("oracle", many.oracle), ("optimum", best)):
        tell(name)
        plays[name] = fixed(shares)
    tell("exp3s")
    plays["exp3s"] = play_exp3s(many, generator=generator, points=options.points)

    first = [[log] for log in logs_of(plays["random"])]
    entropies = np.zeros(len(uniform))
    learners: dict[str, Callable[[list[Log]], Improvement]] = {
        "paper_recipe": lambda some: improve_policy(some, entropy=options.entropy),
        "auto": lambda some: improve_policy(some, division="entropy"),
        "both": improve_policy,
    }
    for name, learner in learners.items():
        logs = [list(some) for some in first]
        for number in range(options.rounds):
            tell(f"{name} {number + 1}")
            learned = [learner(some) for some in logs]
            plays[name] = fixed(np.array([one.probabilities for one in learned]))
            if number + 1 < options.rounds:
                for some, log in zip(logs, logs_of(plays[name]), strict=True):
                    some.append(log)
        if name == "auto":
            entropies = np.array([one.entropy for one in learned])
            tell("staged")
            staged = [improve_stages(some, stages=(2, 4, 8), division="entropy") for some in logs]
            plays["staged"] = fixed(_in_stages([one.probabilities for one in staged]))
    shape = (options.environments, options.seeds)
    return BanditResult(
        curves={name: play.curve.reshape(-1, *shape) for name, play in plays.items()},
        entropies=entropies.reshape(shape),
        stages=np.array([len(one.begins) for one in staged]).reshape(shape),
        steps=plays["random"].steps,
        goal="oracle" if options.as_published else "optimum",
    )


def bandit_rows(result: BanditResult) -> list[PaperRow]:
    """Scores, gaps closed, and the last points of Figure 1 (the first environment).

    >>> values = {"random": 0.5, "exp3s": 0.6, "oracle": 0.9}
    >>> curves = {name: np.full((1, 1, 1), value) for name, value in values.items()}
    >>> none = np.zeros((1, 1))
    >>> found = bandit_rows(BanditResult(curves=curves, entropies=none, stages=none, steps=[9]))
    >>> found[0].quantity, round(found[0].ours, 2)  # (0.6 - 0.5) / (0.9 - 0.5)
    ('gap_closed/exp3s', 0.25)
    """
    scores = {name: values.mean(axis=1) for name, values in result.scores.items()}
    rows = [
        row(f"gap_closed/{name}", None, gap_closed(values, scores["random"], scores[result.goal]))
        for name, values in scores.items()
        if name not in ("random", result.goal)
    ]
    rows += [row(f"score/{name}", None, mean_interval(values)) for name, values in scores.items()]
    rows.append(
        row(
            "score_difference/exp3s_minus_random",
            None,
            paired_interval(scores["exp3s"], scores["random"]),
        )
    )
    for name, values in result.scores.items():
        seeds = values[0]
        band = Interval(float(np.median(seeds)), float(seeds.min()), float(seeds.max()), len(seeds))
        rows.append(row(f"figure_1/{name}", None, band))
    return rows


def gap_closed(
    scores: NDArray[np.float64],  # [environment]
    random: NDArray[np.float64],  # [environment]
    oracle: NDArray[np.float64],  # [environment]
    *,
    level: float = 0.95,
) -> Interval:
    """The share of the gap that the mean score closes; a ratio of means, by the delta method.

    >>> scores, random, oracle = np.array([0.6, 0.8]), np.array([0.5, 0.7]), np.array([0.7, 0.9])
    >>> round(gap_closed(scores, random, oracle).mean, 2)
    0.5
    """
    gained, gap = scores - random, oracle - random
    share, n = float(gained.mean() / gap.mean()), len(gap)
    if n == 1:
        return Interval(share, float("nan"), float("nan"), n, level)
    error = float((gained - share * gap).std(ddof=1) / abs(gap.mean()) / np.sqrt(n))
    half = student_quantile(level, n - 1) * error
    return Interval(share, share - half, share + half, n, level)


def reproduce_bandit(
    options: BanditOptions | None = None, *, on_progress: Callable[[str], None] | None = None
) -> list[PaperRow]:
    """The experiment as rows.

    >>> small = BanditOptions(arms=2, environments=1, seeds=1, steps=20, points=2)
    >>> {row.quantity.split("/")[0] for row in reproduce_bandit(small)} >= {"score", "gap_closed"}
    True
    """
    return bandit_rows(play_bandit(options or BanditOptions(), on_progress=on_progress))


def repeated(bandit: MultitaskBandit, seeds: int) -> MultitaskBandit:
    """Every environment `seeds` times, [run, arm]."""
    return _each(bandit, lambda array: np.repeat(array, seeds, axis=0))


def _each(
    bandit: MultitaskBandit, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> MultitaskBandit:
    """The same bandit with every array changed."""
    arrays = (bandit.oracle, bandit.ceiling, bandit.learning, bandit.forgetting)
    oracle, ceiling, learning, forgetting = (change(array) for array in arrays)
    transfer = None if bandit.transfer is None else change(bandit.transfer)
    return MultitaskBandit(
        oracle, ceiling, learning, forgetting, bandit.steps, change(bandit.cost), transfer
    )


def logs_of(plays: Plays) -> list[Log]:
    """The log of each run, with the reward of Eq. 16."""
    names = [str(arm) for arm in range(plays.arms)]
    return [
        log_from_arrays(
            plays.tasks[:length, run],
            plays.rewards[:length, run],
            plays.probabilities[:length, run],
            plays.losses[:length, run],
            names=names,
        )
        for run, length in enumerate(plays.lengths)
    ]


def _optima(bandit: MultitaskBandit) -> NDArray[np.float64]:
    """The best fixed distribution of each environment, [environment, arm]."""
    alone = (_each(bandit, itemgetter(place)) for place in range(len(bandit.oracle)))
    return np.array([one.optimum().probabilities for one in alone])


def _in_stages(policies: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Policies of 1, 2, 4 or 8 stages as [stage, run, arm]."""
    most = max(len(one) for one in policies)
    return np.stack([np.repeat(one, most // len(one), axis=0) for one in policies], axis=1)
