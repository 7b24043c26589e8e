"""Whether ways that the race called significantly behind its leader still are with more seeds."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import taskmix.policies
import taskmix.weighting
from _advice_asking import Asked
from _advice_measures import settled
from _advice_training import FRESH, Effort, Models, scores_of, train
from taskmix.engine import Run, undescribe
from taskmix.records import Study, describe

# Of a run, beside its tasks and how they are divided; `keep` only where a way has one.
AS_RECORDED = ("steps", "evaluate_every", "checkpoint_every", "patience", "keep")


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
