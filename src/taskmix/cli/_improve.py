"""`taskmix improve`: a better division of the budget, from the records of earlier runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._improved import print_improvement
from taskmix.errors import OptionError


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
    from taskmix.counterfactual import learn
    from taskmix.plans import check_plan_path

    check_plan_path(out)
    lessons = learn(studies, labels=label, entropy=_entropy(entropy), budget=budget, stages=stages)
    plan = lessons.plan(command=shlex.join(["taskmix", *sys.argv[1:]]))
    plan.save(out)
    if json_:
        shares = {
            "begins": lessons.improvement.begins.tolist(),
            "probabilities": lessons.improvement.probabilities.tolist(),
            "tasks": list(plan.tasks),
        }
        rows = plan.evidence["policies"]
        print_json({"plan": str(out), "rows": rows, "policy": shares, **plan.evidence})
        return
    print_improvement(lessons, out)


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
