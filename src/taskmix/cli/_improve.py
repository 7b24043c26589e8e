"""`taskmix improve`: a better division of the budget, from the records of earlier runs."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._improved import print_improvement
from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taskmix.counterfactual import Estimate, Log, StagedImprovement
    from taskmix.plans import Plan
    from taskmix.records import RunFolder, RunSummary

    Recorded = tuple[RunFolder, RunSummary]


def improve(
    studies: Annotated[list[Path], typer.Argument(help="Studies, as `train --out` writes them.")],
    out: Annotated[Path, typer.Option("--out", help="The plan to write.")] = Path("plan.json"),
    entropy: Annotated[
        str,
        typer.Option("--entropy", help="The weight of the policy's entropy: auto, or a number."),
    ] = "auto",
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="Learn from runs with this label only; may be repeated."),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, help="Steps of the run to plan [as many as were logged]."),
    ] = None,
    stages: Annotated[
        bool, typer.Option("--stages/--fixed", help="Let the plan change over the run.")
    ] = True,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Learn from the logs of earlier runs how to divide the next run's budget.

    Every run that drew one task a step has logged its choices, their probabilities and what came of
    them; from that the value of any other policy can be estimated without training it. Prints the
    value of several policies with their intervals and writes the best as a plan.

    Examples:

        taskmix improve study --out plan.json

        taskmix improve first second --entropy 0.2 --label uniform --json
    """
    from taskmix.cli._display import print_json
    from taskmix.counterfactual import improve_stages, log_of_runs
    from taskmix.plans import check_plan_path

    check_plan_path(out)
    recorded = _recorded(studies, label)
    logs = log_of_runs([folder for folder, _ in recorded])
    weight = _entropy(entropy)
    if stages:
        found = improve_stages(logs, entropy=weight, budget=budget)
    else:
        found = _fixed(logs, weight, budget)
    rows = _policy_rows(logs, recorded, found, budget)
    notes = [*found.fixed.notes, *_fruitless(recorded, found)]
    plan = _plan(found, recorded, rows, notes)
    plan.save(out)
    if json_:
        shares = {
            "begins": found.begins.tolist(),
            "probabilities": found.probabilities.tolist(),
            "tasks": list(plan.tasks),
        }
        print_json({"plan": str(out), "rows": rows, "policy": shares, **plan.evidence})
        return
    print_improvement(rows, found, recorded, notes, out)


def _entropy(word: str) -> float | str:
    if word == "auto":
        return word
    try:
        value = float(word)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise OptionError(f"`--entropy` should be `auto` or a number above 0. Found {word!r}.")
    return value


def _recorded(paths: list[Path], labels: list[str] | None) -> list[Recorded]:
    """The finished runs that drew one task a step from several, all of the same tasks and reward."""
    from taskmix.records import Study

    runs: list[Recorded] = []
    seen: Counter[str] = Counter()
    for path in paths:
        if not path.is_dir():
            raise InputError(
                f"`{path}` should be a study, a folder with runs in it. Found no such folder. Make "
                "one with `taskmix train FOLDER --out STUDY`."
            )
        for folder in Study(path).runs():
            summary = folder.summary()
            if summary is None or summary.status != "finished" or len(summary.tasks) < 2:
                continue
            if summary.specification.get("weighting") is not None:
                continue
            seen[summary.label] += 1
            if labels is None or summary.label in labels:
                runs.append((folder, summary))
    where = ", ".join(map(str, paths))
    if not runs:
        there = f"runs labelled {', '.join(seen)}" if seen else "none"
        raise InputError(
            "There should be finished runs that drew one task a step from several. Found "
            f"{there} in {where}. Train with `taskmix train FOLDER --policy uniform --out STUDY`."
        )
    _must_agree(runs)
    return runs


def _must_agree(runs: list[Recorded]) -> None:
    """Runs that are pooled are of the same tasks, and their rewards mean the same."""
    first = runs[0][1]
    for _, other in runs[1:]:
        if other.task_names != first.task_names:
            raise InputError(
                "Runs that are pooled should be of the same tasks in the same order. Found "
                f"`{first.label}` with {', '.join(first.task_names)} and `{other.label}` with "
                f"{', '.join(other.task_names)}. Choose runs with --label."
            )
    rewards = {
        json.dumps(summary.specification.get("reward"), sort_keys=True): summary.label
        for _, summary in runs
    }
    if len(rewards) > 1:
        raise InputError(
            "Runs that are pooled should have the same reward. Found different ones in runs labelled "
            f"{' and '.join(f'`{label}`' for label in rewards.values())}. Choose runs with --label."
        )
    if rewards.keys() & {"null"}:
        raise InputError(
            "Runs to learn from should have recorded a reward. Found none in runs labelled "
            f"`{first.label}`. Train with `--reward hard`."
        )


def _fixed(logs: tuple[Log, ...], entropy: float | str, budget: int | None) -> StagedImprovement:
    import numpy as np

    from taskmix.counterfactual import StagedImprovement, improve_policy

    fixed = improve_policy(logs, entropy=entropy, budget=budget)
    reason = "A policy that stays the same over the run was asked for."
    return StagedImprovement(np.zeros(1), fixed.probabilities[None], None, fixed, reason)


def _policy_rows(
    logs: tuple[Log, ...], recorded: list[Recorded], found: StagedImprovement, budget: int | None
) -> list[dict[str, Any]]:
    """Policies with their values, each compared with the shares the logs were drawn with."""
    from functools import reduce
    from operator import add

    import numpy as np

    from taskmix.counterfactual import compare, estimate, learning_curves

    total = reduce(add, (log.total for log in logs))
    logged = total.visits / total.visits.sum()
    count = len(logged)
    sizes = [task.get("sizes", {}).get("train", 0) for task in recorded[0][1].tasks]
    policies: dict[str, NDArray[np.float64]] = {"uniform": np.full(count, 1 / count)}
    if min(sizes) > 0:
        policies["proportional"] = np.array(sizes) / sum(sizes)
        policies["tempered:2"] = np.sqrt(sizes) / np.sqrt(sizes).sum()
    policies = {"as logged": logged, **policies, "learned": found.fixed.probabilities}
    steps = float(budget or np.mean([log.rows for log in logs]))
    curves = learning_curves(logs) if all(log.performance is not None for log in logs) else None
    rows = []
    for name, shares in policies.items():
        ends = float(curves.at(steps * shares).mean()) if curves is not None else None
        rows.append(
            {
                "policy": name,
                **_figures(estimate(total, shares)),
                "gain": _interval(compare(total, shares, logged)),
                "ends_at": ends,
            }
        )
    # Judged on rows it was not learned from, so that the gain is no illusion of the choice.
    rows[-1]["gain"] = _interval(found.fixed.gain)
    return rows


def _figures(value: Estimate) -> dict[str, float]:
    return {
        "value": float(value.value),
        "low": float(value.low),
        "high": float(value.high),
        "effective_rows": float(value.effective_rows),
        "largest_weight": float(value.largest_weight),
    }


def _interval(value: Estimate | None) -> dict[str, float] | None:
    if value is None or value.value != value.value:
        return None
    return {"value": float(value.value), "low": float(value.low), "high": float(value.high)}


def _fruitless(recorded: list[Recorded], found: StagedImprovement) -> list[str]:
    """A sentence for each task that gets more than its share although its dev score did not rise."""
    from taskmix.counterfactual import rises_of_scores
    from taskmix.tasks import METRICS

    lower = [name for name, metric in METRICS.items() if not metric.higher_is_better]
    rises = rises_of_scores([folder for folder, _ in recorded], better_lower=lower)
    notes = []
    for name, share in zip(found.fixed.tasks, found.probabilities.mean(axis=0), strict=True):
        rise = rises.get(name)
        if rise is None or share <= 1 / len(found.fixed.tasks):
            continue
        if (rise.low if rise.n > 1 else rise.mean) <= 0:
            notes.append(
                f"`{name}` gets {share:.0%} of the plan, yet its dev score cannot be seen to rise in "
                f"the logged runs ({rise.mean:+.3f}): the reward looks at training rows, where labels "
                "that mean nothing look like a hard task. Leave the task out, or train with `--reward "
                "score`."
            )
    return notes


def _plan(
    found: StagedImprovement,
    recorded: list[Recorded],
    rows: list[dict[str, Any]],
    notes: list[str],
) -> Plan:
    from taskmix.plans import Division, Part, Plan, Shares, Stage, Stages

    division: Division = Shares(probabilities=tuple(found.fixed.probabilities.tolist()))
    if len(found.begins) > 1:
        pairs = zip(found.begins.tolist(), found.probabilities.tolist(), strict=True)
        division = Stages(
            stages=tuple(Stage(begin=begin, probabilities=tuple(row)) for begin, row in pairs)
        )
    evidence = {
        "command": shlex.join(["taskmix", *sys.argv[1:]]),
        "runs": [summary.name for _, summary in recorded],
        "reward": recorded[0][1].specification.get("reward"),
        "entropy": found.fixed.entropy,
        "policies": rows,
        "stages": found.reason,
        "gain_of_stages": _interval(found.gain),
        "notes": notes,
    }
    tasks = found.fixed.tasks
    part = Part(tasks=tasks, scored=tasks, share=1.0, division=division)
    return Plan(parts=(part,), evidence=evidence)
