"""Trains ways of dividing the batches under seeds that the adviser has not seen.

Everything that is asked for at once goes to the executor at once, so that models of one kind train side
by side, and into a study, so that what is done is not done again.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from _advice_measures import Scores, random_shares
from taskmix.adviser import cheap_evaluations, mean_comparable
from taskmix.engine import Auto, Run
from taskmix.plans import Part, Plan, Shares, Weighted
from taskmix.policies import SizeProportional, Tempered
from taskmix.records import Study
from taskmix.tasks import TaskSet
from taskmix.weighting import Equal

FRESH = 1000  # the first of the seeds that the adviser has not seen
OF_DRAWS = 900  # the seed of all random shares
DRAWN = "drawn shares"

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


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
