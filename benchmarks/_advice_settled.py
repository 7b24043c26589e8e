"""Whether ways that the race called significantly behind its leader still are with more seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import taskmix.policies
import taskmix.weighting
from _advice_asking import Asked
from _advice_measures import settled
from _advice_training import FRESH, Effort, Models, scores_of, train
from taskmix.adviser import cheap_evaluations
from taskmix.engine import Run, undescribe
from taskmix.policies import Scheduled
from taskmix.records import Study, describe

# Of a run, beside its tasks and how they are divided; `keep` only where a way has one.
AS_RECORDED = ("steps", "patience", "keep")
KNOWN = (taskmix.policies, taskmix.weighting)


def recorded_ways(asked: Asked, base: Run) -> tuple[dict[str, Models], list[str]]:
    """The leader and every way that is significantly behind, at the length that is spoken of.

    Where a task is in several models of a way, the records do not say which of them it is scored by,
    and where the model is another than the base's, only the adviser can make it: those are named.
    """
    first, *others = asked.advice["candidates"]
    study = Study(asked.study)
    ways: dict[str, Models] = {}
    unchecked = []
    for row in [first, *(each for each in others if not each["open"])]:
        summaries = [study.run_named(name).summary() for name in row["runs"]]
        done = [each for each in summaries if each is not None]
        # One run for each model: those of the first seed, without longer ones of the same tasks.
        models: dict[tuple[str, ...], Run] = {}
        plain = True
        for each in (each for each in done if each.seed == done[0].seed):
            words = each.specification
            plain &= "merge" not in words and describe(base.architecture) == words["architecture"]
            names = tuple(words["tasks"]["names"])
            models.setdefault(names, recorded_run(words, base, row["name"]))
        scored = [name for names in models for name in names]
        if models and plain and len(scored) == len(set(scored)):
            runs = as_long(list(models.values()), asked.batches)
            ways[row["name"]] = list(zip(runs, models, strict=True))
        else:
            unchecked.append(row["name"])
    return ways, unchecked


def recorded_run(words: Mapping[str, Any], base: Run, label: str) -> Run:
    """The run of a specification, but for its seed and its evaluations."""
    policy, weighting = (
        None if description is None else undescribe(description, *KNOWN)
        for description in (words.get("policy"), words.get("weighting"))
    )
    return replace(
        base,
        label=label,
        tasks=tuple(words["tasks"]["names"]),
        policy=policy,
        weighting=weighting,
        **{key: words[key] for key in AS_RECORDED if key in words},
    )


def as_long(runs: Sequence[Run], batches: int) -> list[Run]:
    """The models of one way with so many batches together, and evaluated as a plan's are."""
    longer = batches / sum(run.steps * run.batches_a_step for run in runs)
    often = cheap_evaluations(replace(runs[0], tasks=None).load(), batches, runs[0].batch_size)
    found = []
    for run in runs:
        steps = max(round(run.steps * longer), 1)
        every = max(steps // often, 1)
        policy = run.policy
        if isinstance(policy, Scheduled):
            stages = tuple((round(start * longer), shares) for start, shares in policy.stages)
            policy = replace(policy, stages=stages)
        run = replace(run, steps=steps, evaluate_every=every, checkpoint_every=every, policy=policy)
        found.append(run)
    return found


def settled_row(asked: Asked, base: Run, study: Path, effort: Effort) -> dict[str, Any]:
    """Of the pairs that the race called settled, how many stay so with more seeds."""
    ways, unchecked = recorded_ways(asked, base)
    leader = asked.advice["candidates"][0]["name"]
    row: dict[str, Any] = {"what": "settled", "unit": "settled pairs that stay so on dev"}
    row["batches"] = asked.batches
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
