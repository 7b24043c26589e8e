"""`taskmix improve`: a better division of the budget, from the records of earlier runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._printing._improved import print_improvement


def improve(
    studies: Annotated[list[Path], typer.Argument(help="Studies, as `train --out` writes them.")],
    write_plan: Annotated[Path, typer.Option("--write-plan", help="The plan to write.")] = Path(
        "plan.json"
    ),
    entropy: Annotated[
        float | None,
        typer.Option("--entropy", help="The weight of the policy's entropy [from the logs]."),
    ] = None,
    division: Annotated[
        str | None,
        typer.Option(
            "--division",
            help="What the shares are made of: entropy (the paper's policy), curves (where the "
            "learning curves of the logs gain most), or both (their mean) [both; entropy with "
            "--entropy].",
        ),
    ] = None,
    reward: Annotated[
        str,
        typer.Option(
            "--reward",
            help="What the paper's policy goes by: logged (the reward of the runs) or slope (what a "
            "visit still adds, by the learning curves).",
        ),
    ] = "logged",
    runs: Annotated[
        list[str] | None,
        typer.Option("--runs", help="Learn from runs with this label only; may be repeated."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", min=1, help="Of the run to plan [as many as were logged]."),
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

        taskmix improve study --write-plan plan.json

        taskmix improve first second --entropy 0.2 --runs uniform --json

        taskmix improve study --division entropy --reward slope
    """
    from taskmix.cli._printing._display import print_json
    from taskmix.cli._printing._repeat import this_command
    from taskmix.counterfactual import learn
    from taskmix.plans import check_plan_path

    check_plan_path(write_plan)
    weight = "auto" if entropy is None else entropy
    lessons = learn(
        studies,
        labels=runs,
        entropy=weight,
        division=division,
        reward=reward,
        budget=steps,
        stages=stages,
    )
    plan = lessons.plan(command=this_command())
    plan.save(write_plan)
    if json_:
        shares = {
            "begins": lessons.improvement.begins.tolist(),
            "probabilities": lessons.improvement.probabilities.tolist(),
            "tasks": list(plan.tasks),
        }
        rows = plan.evidence["policies"]
        print_json({"plan": str(write_plan), "rows": rows, "policy": shares, **plan.evidence})
        return
    print_improvement(lessons, write_plan)
