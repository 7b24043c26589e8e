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
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from papers.bandit_world import MultitaskBandit, Plays, play_exp3s, play_fixed
from papers.rows import PaperRow, row
from papers.runner import Desk, Flag, Plot
from taskmix.counterfactual import (
    Improvement,
    Log,
    improve_policy,
    improve_stages,
    log_from_arrays,
)
from taskmix.errors import OptionError
from taskmix.numerics import Interval, paired_interval, student_quantile

PAPER_ENTROPY = 0.2


@dataclass(frozen=True, kw_only=True)
class BanditOptions:
    """The paper's bandit, and how many of them."""

    QUICK: ClassVar[dict[str, Any]] = {"environments": 3, "seeds": 3, "steps": 2_000}
    environments: Annotated[int, Flag()] = 20
    seeds: Annotated[int, Flag()] = 10
    steps: Annotated[int, Flag()] = 10_000
    arms: int = 8
    concentration: float = 2.0
    entropy: Annotated[float, Flag("Its weight in the paper's recipe.")] = PAPER_ENTROPY
    rounds: int = 2
    points: int = 100  # of the curves
    transfer: tuple[float, float] = (0.0, 0.0)  # pulls of another arm that a pull is worth
    cost: tuple[float, float] = (1.0, 1.0)  # of a pull
    seed: Annotated[int, Flag()] = 0
    plot: Plot = None

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
    """What every policy reached in every environment under every seed."""

    curves: dict[str, NDArray[np.float64]]  # [point, environment, seed], the mean score over arms
    entropies: NDArray[np.float64]  # [environment, seed], λ of `auto` in its last round
    stages: NDArray[np.int64]  # [environment, seed], of `staged`
    steps: NDArray[np.int64]  # [point]
    goal: str = "oracle"  # the policy whose score closes the whole gap

    @property
    def scores(self) -> dict[str, NDArray[np.float64]]:
        """[environment, seed], at the end."""
        return {name: curve[-1] for name, curve in self.curves.items()}


def run(options: BanditOptions, desk: Desk) -> list[PaperRow]:
    """Policies on the multitask bandit, where the best division of the budget is known.

    Example: python -m papers bandit --plot figure1.svg
    """
    result = play_bandit(options, desk.tell)
    desk.draw(lambda: bandit_figure(result), options.plot)
    return bandit_rows(result)


def play_bandit(
    options: BanditOptions, tell: Callable[[str], None] = lambda name: None
) -> BanditResult:
    """All policies in all environments."""
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
    """Scores, gaps closed, and the last points of Figure 1 (the first environment)."""
    scores = {name: values.mean(axis=1) for name, values in result.scores.items()}
    rows = [
        row(f"gap_closed/{name}", None, gap_closed(values, scores["random"], scores[result.goal]))
        for name, values in scores.items()
        if name not in ("random", result.goal)
    ]
    rows += [row(f"score/{name}", None, values) for name, values in scores.items()]
    gained = paired_interval(scores["exp3s"], scores["random"])
    rows.append(row("score_difference/exp3s_minus_random", None, gained))
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
    """The share of the gap that the mean score closes; a ratio of means, by the delta method."""
    gained, gap = scores - random, oracle - random
    share, n = float(gained.mean() / gap.mean()), len(gap)
    if n == 1:
        return Interval(share, float("nan"), float("nan"), n, level)
    error = float((gained - share * gap).std(ddof=1) / abs(gap.mean()) / np.sqrt(n))
    half = student_quantile(level, n - 1) * error
    return Interval(share, share - half, share + half, n, level)


def repeated(bandit: MultitaskBandit, seeds: int) -> MultitaskBandit:
    """Every environment `seeds` times, [run, arm]."""
    return _each(bandit, lambda array: np.repeat(array, seeds, axis=0))


def _each(
    bandit: MultitaskBandit, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> MultitaskBandit:
    """The same bandit with every array changed."""
    names = ("oracle", "ceiling", "learning", "forgetting", "cost", "transfer")
    changed: dict[str, Any] = {}
    for name in names:
        if (array := getattr(bandit, name)) is not None:
            changed[name] = change(array)
    return replace(bandit, **changed)


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


# Dark enough to be told apart on white, by people who do not see red and green alike as well.
COLOURS = {
    "random": "#7a7a7a",
    "exp3s": "#d55e00",
    "paper_recipe": "#0072b2",
    "auto": "#009e73",
    "staged": "#cc79a7",
    "both": "#56b4e9",
    "oracle": "#000000",
    "optimum": "#e69f00",
}


def bandit_figure(result: BanditResult, environment: int | None = 0) -> dict[str, Any]:
    """A Vega-Lite chart: the median over seeds in one environment, or of the means over all (None).

    Bands go from the lowest to the highest seed, or from the lowest to the highest environment.
    """
    values = []
    for name, curve in result.curves.items():
        runs = curve.mean(axis=2) if environment is None else curve[:, environment]  # [point, run]
        for step, line in zip(result.steps.tolist(), runs, strict=True):
            values.append(
                {
                    "policy": name,
                    "step": step,
                    "score": float(np.median(line)),
                    "low": float(line.min()),
                    "high": float(line.max()),
                }
            )
    names = list(result.curves)
    colour = {
        "field": "policy",
        "type": "nominal",
        "scale": {"domain": names, "range": [COLOURS[name] for name in names]},
        "legend": {"symbolOpacity": 1},
    }
    step = {"field": "step", "type": "quantitative", "title": "step"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 560,
        "height": 320,
        "background": "white",
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.15},
                "encoding": {
                    "x": step,
                    "y": {
                        "field": "low",
                        "type": "quantitative",
                        "title": "mean score over the arms",
                        "scale": {"zero": False},
                    },
                    "y2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "line", "tooltip": True},
                "encoding": {
                    "x": step,
                    "y": {"field": "score", "type": "quantitative"},
                    "color": colour,
                },
            },
        ],
    }
