"""Trains a plan beside what anyone would try, under seeds that the adviser has not seen.

The baselines are what anyone would try: each task alone, equally often, in proportion to size, to
its square root, all tasks in every step, and the best by dev of forty random shares, each drawn with
one seed at the advised length. All have as many batches as the plan, at the length for which it makes
its promise and at ten times that; the same seeds are used for all, so differences are paired.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import taskmix.policies
import taskmix.weighting
from _advice_asking import CACHE, Asked, ask, cache_of, template
from _advice_measures import (
    LEVEL,
    Regret,
    Scores,
    coverage,
    random_shares,
    regret_by_dev,
    regret_by_test,
    settled,
)
from taskmix.adviser import cheap_evaluations, mean_comparable
from taskmix.engine import Auto, Run, undescribe
from taskmix.numerics import paired_interval
from taskmix.plans import Part, Plan, Shares, Weighted
from taskmix.policies import SizeProportional, Tempered
from taskmix.records import Study, describe
from taskmix.tasks import TaskSet
from taskmix.weighting import Equal

FRESH = 1000  # the first of the seeds that the adviser has not seen
OF_DRAWS = 900  # the seed of all random shares
DRAWN = "drawn shares"
# Of a run, beside its tasks and how they are divided; `keep` only where a way has one.
AS_RECORDED = ("steps", "evaluate_every", "checkpoint_every", "patience", "keep")

Models = Sequence[tuple[Run, Sequence[str]]]  # runs of one way and seed, and the tasks each is for
Key = tuple[str, int, int]  # a way, the batches of a run, a seed
Found = Mapping[Key, Mapping[str, Mapping[str, float]]]  # by split and task


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is trained to judge a plan."""

    seeds: int = 10  # at the advised length
    long_seeds: int = 5  # at ten times it
    times: int = 10
    draws: int = 40
    more_seeds: int = 10  # of every settled pair
    workers: int = 1
    longest: int | None = None  # batches: ten times the advised length is cut to so many


def together(name: str, tasks: TaskSet, division: Shares | Weighted) -> Plan:
    part = Part(tasks=tasks.names, scored=tasks.names, share=1.0, division=division)
    return Plan(name=name, parts=(part,))


def usual_ways(tasks: TaskSet) -> dict[str, Plan]:
    """The baselines but for drawn shares; spelt out here, so that they stay as the adviser changes."""
    one = Shares.equal(1)
    alone = tuple(
        Part(tasks=(name,), scored=(name,), share=1 / len(tasks), division=one)
        for name in tasks.names
    )
    divisions: dict[str, Shares | Weighted] = {
        "uniform": Shares.equal(len(tasks)),
        "size": Shares.of(SizeProportional(), tasks.sizes),
        "tempered": Shares.of(Tempered(temperature=2.0), tasks.sizes),
        "equal": Weighted(method=Equal()),
    }
    shared = {name: together(name, tasks, each) for name, each in divisions.items()}
    return {"single": Plan(name="single", parts=alone), **shared}


def models_of(plan: Plan, base: Run, batches: int, seed: int) -> Models:
    often = cheap_evaluations(base.load(), batches, base.batch_size)
    runs = plan.runs(replace(base, steps=batches), seeds=[seed], evaluations=often)
    models = getattr(plan, "models", plan.parts)  # fewer than its parts where a plan merges them
    return [(run, model.scored) for run, model in zip(runs, models, strict=True)]


def train(asked: Mapping[Key, Models], study: Path, workers: int) -> Found:
    """All at once, so that models of one kind train side by side; the scores of each way and seed."""
    flat = [run for models in asked.values() for run, _ in models]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = iter(Auto(workers=workers).run(flat, Study(study)))
    found: dict[Key, dict[str, dict[str, float]]] = {}
    for key, models in asked.items():
        found[key] = {"dev": {}, "test": {}}
        for _, scored in models:
            result = next(results)
            if not result.is_done or result.summary is None:
                raise SystemExit(f"A run of {key[0]} did not finish: {result.error}")
            for score in result.summary.scores:
                if score.metric != "loss" and score.task in scored and score.split in found[key]:
                    found[key][score.split][score.task] = score.value
    return found


def scores_of(
    found: Found, tasks: TaskSet, names: Sequence[str], way: str, batches: int, seeds: Iterable[int]
) -> Scores:
    """The means over the tasks called `names`."""
    kept = [found[way, batches, seed] for seed in seeds]
    return Scores(
        dev=tuple(mean_comparable(tasks, each["dev"], names) for each in kept),
        test=tuple(mean_comparable(tasks, each["test"], names) for each in kept),
    )


def best_of_draws(
    base: Run, batches: int, names: Sequence[str], study: Path, effort: Effort
) -> Plan:
    """The shares that are best on dev with one seed."""
    tasks = base.load()
    drawn = {
        f"drawn-{place}": together(DRAWN, tasks, Shares(probabilities=shares))
        for place, shares in enumerate(random_shares(len(tasks), effort.draws))
    }
    asked = {
        (name, batches, OF_DRAWS): models_of(plan, base, batches, OF_DRAWS)
        for name, plan in drawn.items()
    }
    found = train(asked, study, effort.workers)
    return max(
        drawn.items(),
        key=lambda each: mean_comparable(tasks, found[each[0], batches, OF_DRAWS]["dev"], names),
    )[1]


def lengths_of(batches: int, effort: Effort) -> dict[int, list[int]]:
    """The seeds for the advised length and for the long one."""
    long = min(effort.times * batches, effort.longest or effort.times * batches)
    found = {batches: list(range(FRESH, FRESH + effort.seeds))}
    if long > batches and effort.long_seeds:
        found[long] = list(range(FRESH, FRESH + effort.long_seeds))
    return found


def recorded_ways(asked: Asked, base: Run) -> tuple[dict[str, Models], list[str]]:
    """The leader and every way that is significantly behind, as their records have them.

    Where a task is in several models of a way, the records do not say which of them it is scored by,
    and where the model is another than the base's, only the adviser can make it: those are named.
    """
    first, *others = asked.advice["candidates"]
    study, known = Study(asked.study), (taskmix.policies, taskmix.weighting)
    ways: dict[str, Models] = {}
    unchecked = []
    for row in [first, *(each for each in others if not each["open"])]:
        models, seen, plain = [], [], True
        summaries = [study.run_named(name).summary() for name in row["runs"]]
        done = [each for each in summaries if each is not None]
        for each in (each for each in done if each.seed == done[0].seed):
            words = each.specification
            names = tuple(words["tasks"]["names"])
            seen += names
            policy, weighting = words.get("policy"), words.get("weighting")
            run = replace(
                base,
                label=row["name"],
                tasks=names,
                policy=None if policy is None else undescribe(policy, *known),
                weighting=None if weighting is None else undescribe(weighting, *known),
                **{key: words[key] for key in AS_RECORDED if key in words},
            )
            models.append((run, names))
            plain &= "merge" not in words and describe(base.architecture) == words["architecture"]
        if not models or not plain or len(seen) != len(set(seen)):
            unchecked.append(row["name"])
        else:
            ways[row["name"]] = models
    return ways, unchecked


def settled_row(asked: Asked, base: Run, study: Path, effort: Effort) -> dict[str, Any]:
    """Of the pairs that the race called settled, how many stay so with more seeds."""
    ways, unchecked = recorded_ways(asked, base)
    leader = asked.advice["candidates"][0]["name"]
    row: dict[str, Any] = {"what": "settled", "unit": "settled pairs that stay so on dev"}
    if leader not in ways:
        return row | {"ours": float("nan"), "pairs": 0, "unchecked": unchecked}
    seeds = range(FRESH, FRESH + effort.more_seeds)
    jobs = {
        (name, 0, seed): [(replace(run, seed=seed), scored) for run, scored in models]
        for name, models in ways.items()
        for seed in seeds
    }
    found, tasks = train(jobs, study, effort.workers), base.load()
    judged = asked.advice["judged"]
    scores = {name: scores_of(found, tasks, judged, name, 0, seeds) for name in ways}
    came = settled(scores.pop(leader), scores, unchecked)
    return row | {"ours": came.share, **asdict(came)}


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


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
