"""Trains a plan beside what anyone would try, under seeds that the adviser has not seen.

The baselines are what anyone would try: each task alone, equally often, in proportion to size, to
its square root, all tasks in every step, and the best by dev of forty random shares, each drawn with
one seed at the advised length. All have as many batches as the plan, at the length for which it makes
its promise and at ten times that; the same seeds are used for all, so differences are paired.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from _advice_asking import CACHE, Asked, ask, cache_of, template
from _advice_measures import (
    LEVEL,
    Regret,
    Scores,
    coverage,
    regret_by_dev,
    regret_by_test,
)
from _advice_settled import settled_row
from _advice_training import (
    DRAWN,
    Effort,
    Found,
    best_of_draws,
    lengths_of,
    models_of,
    say,
    scores_of,
    train,
    usual_ways,
)
from taskmix.engine import Run
from taskmix.numerics import paired_interval
from taskmix.tasks import TaskSet


def compare(
    folder: str,
    words: Sequence[str],
    out: Path,
    effort: Effort,
    *,
    code: Path | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows for the table, and all later scores."""
    asked = ask(folder, out / "advice", words, code=code)
    say(f"{folder}: advised in {asked.seconds:.0f} s, {asked.batches} batches")
    base = template(folder, words)
    rows, scores = judge({"plan": asked}, base, out / "fresh", effort)
    begun: list[dict[str, Any]] = [
        {"what": "advice", "ours": asked.seconds, "unit": "s"}
        | {key: asked.advice[key] for key in ("chosen", "lines", "unlearned", "batches_of_a_run")}
    ]
    rows = begun + rows + [settled_row(asked, base, out / "fresh", effort)]
    return rows, scores


def judge(
    plans: Mapping[str, Asked],  # the first one's length is that of all
    base: Run,
    study: Path,
    effort: Effort,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Plans beside the baselines: regret of each at both lengths, and coverage where it is promised."""
    os.environ[CACHE] = str(cache_of(next(iter(plans.values())).study))
    tasks = base.load()
    made = {name: asked.plan for name, asked in plans.items()}
    batches = next(iter(plans.values())).batches
    # A task that a plan leaves out has no score there.
    names = [name for name in tasks.names if all(name in plan.targets for plan in made.values())]
    ways = {
        **made,
        **usual_ways(tasks),
        DRAWN: best_of_draws(base, batches, names, study, effort),
    }
    lengths = lengths_of(batches, effort)
    jobs = {
        (name, steps, seed): models_of(plan, base, steps, seed)
        for name, plan in ways.items()
        for steps, seeds in lengths.items()
        for seed in seeds
    }
    say(f"training {len(jobs)} times: {len(ways)} ways at {list(lengths)} batches")
    found = train(jobs, study, effort.workers)
    rows = []
    for steps, seeds in lengths.items():
        means = {name: scores_of(found, tasks, names, name, steps, seeds) for name in ways}
        usual = {name: each for name, each in means.items() if name not in made}
        times = round(steps / batches, 1)
        where = {"batches": steps, "times": times, "seeds": len(seeds), "tasks": len(names)}
        where["left_out"] = [name for name in tasks.names if name not in names]
        for plan in made:
            regrets = (regret_by_dev(means[plan], usual), regret_by_test(means[plan], usual))
            rows += [regret_row(plan, regret, means) | where for regret in regrets]
        rows += [
            pair_row(plan, way, means, "against")
            | over_tasks(found, tasks, names, plan, way, steps, seeds)
            | where
            for plan in made
            for way in usual
        ]
        first, *others = made
        rows += [pair_row(other, first, means, "plans") | where for other in others]
    for name, asked in plans.items():
        promised = asked.batches
        if promised in lengths:
            later = [found[name, promised, seed]["test"] for seed in lengths[promised]]
            expected = [
                {"task": each.task, "low": each.low, "high": each.high}
                for each in made[name].expected
                if tasks[each.task].metric == each.metric
            ]
            came = coverage(expected, later)
            unit = f"share of later test scores in the {LEVEL:.0%} intervals"
            rows.append({"what": "coverage", "way": name, "ours": came.share, **asdict(came)})
            rows[-1]["unit"] = unit
    scores = [
        {"way": way, "batches": steps, "seed": seed, **splits}
        for (way, steps, seed), splits in found.items()
    ]
    shares = list(ways[DRAWN].probabilities)
    return rows, {"scores": scores, "drawn_shares": dict(zip(tasks.names, shares, strict=True))}


def regret_row(plan: str, regret: Regret, means: Mapping[str, Scores]) -> dict[str, Any]:
    return pair_row(plan, regret.baseline, means, "regret") | {
        "picked": regret.picked,
        "difference": regret.difference.mean,
        "low": regret.difference.low,
        "high": regret.difference.high,
        "level": regret.difference.level,
        "verdict": regret.verdict,
    }


def pair_row(plan: str, way: str, means: Mapping[str, Scores], what: str) -> dict[str, Any]:
    ours, theirs = means[plan].test, means[way].test
    gain = paired_interval(ours, theirs, LEVEL)
    return {
        "what": what,
        "way": plan,
        "peer_name": way,
        "ours": sum(ours) / len(ours),
        "peer": sum(theirs) / len(theirs),
        "difference": gain.mean,
        "low": gain.low,
        "high": gain.high,
        "unit": "mean test score over tasks",
    }


def over_tasks(
    found: Found,
    tasks: TaskSet,
    names: Sequence[str],
    plan: str,
    way: str,
    batches: int,
    seeds: Sequence[int],
) -> dict[str, Any]:
    """The difference on each task, and the interval that takes tasks, and so their rows, as a sample."""

    def means(each: str) -> list[float]:
        return [
            float(np.mean(scores_of(found, tasks, [name], each, batches, seeds).test))
            for name in names
        ]

    ours, theirs = means(plan), means(way)
    interval = paired_interval(ours, theirs, LEVEL)
    gains = {name: a - b for name, a, b in zip(names, ours, theirs, strict=True)}
    return {"low_over_tasks": interval.low, "high_over_tasks": interval.high, "by_task": gains}
