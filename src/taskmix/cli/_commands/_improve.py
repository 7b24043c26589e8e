"""`taskmix improve`: a better division of the budget, from the records of earlier runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._printing._display import draw_table, echo, note, print_json

if TYPE_CHECKING:
    from taskmix.counterfactual import PolicyLessons, PolicyValue, Range

DIVIDED_BY = {
    "both": "The plan is the mean of that policy and of the shares by the learning curves.",
    "entropy": "The plan is that policy.",
    "curves": "The plan is the shares by the learning curves, and not that policy.",
}


def improve(
    studies: Annotated[list[Path], typer.Argument(help="Studies, as `train --out` writes them.")],
    write_plan: Annotated[Path, typer.Option(help="The plan to write.")] = Path("plan.json"),
    entropy: Annotated[
        float | None, typer.Option(help="The weight of the policy's entropy [from the logs].")
    ] = None,
    division: Annotated[
        str | None,
        typer.Option(
            help="What the shares are made of: entropy (the paper's policy), curves (where the "
            "learning curves of the logs gain most), or both (their mean) [both; entropy with "
            "--entropy]."
        ),
    ] = None,
    reward: Annotated[
        str,
        typer.Option(
            help="What the paper's policy goes by: logged (the reward of the runs) or slope (what a "
            "visit still adds, by the learning curves)."
        ),
    ] = "logged",
    runs: Annotated[
        list[str] | None,
        typer.Option(help="Learn from runs with this label only; may be repeated."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Of the run to plan [as many as were logged].")
    ] = None,
    stages: Annotated[
        bool, typer.Option("--stages/--fixed", help="Let the plan change over the run.")
    ] = True,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Learn from the logs of earlier runs how to divide the next run's budget.

    Every run that drew one task a step has logged its choices, their probabilities and what came of
    them; from that the value of any other policy can be estimated without training it. Prints the
    value of several policies with their intervals and writes the best as a plan, unless rows that did
    not teach it show no gain over the logged shares at the end of training.

    Examples:

        taskmix improve study --write-plan plan.json

        taskmix improve first second --entropy 0.2 --runs uniform --json

        taskmix improve study --division entropy --reward slope
    """
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
    if lessons.has_gain:
        plan.save(write_plan)
    if json_:
        shares = {
            "begins": lessons.improvement.begins.tolist(),
            "probabilities": lessons.improvement.probabilities.tolist(),
            "tasks": list(plan.tasks),
        }
        rows, written = plan.evidence["policies"], str(write_plan) if lessons.has_gain else None
        print_json({"plan": written, "rows": rows, "policy": shares, **plan.evidence})
    elif lessons.has_gain:
        print_improvement(lessons, write_plan)
    else:
        for sentence in lessons.left_out:
            note(sentence)
        echo("Nothing to gain: keep the shares that were logged.")


def print_improvement(lessons: PolicyLessons, out: Path) -> None:
    """Draws the table of policies and the plan on standard output."""
    found = lessons.improvement
    title = (
        f"Mean reward a step, from {len(lessons.runs)} runs and {lessons.steps:,} steps "
        "(95 % intervals)"
    )
    rows = []
    for row in lessons.policies:
        ends = "-" if row.ends_at is None else f"{row.ends_at:.4f}"
        cells = (_shown(row), _shown(row.gain), f"{row.effective_rows:,.0f}", ends)
        rows.append((row.policy, *cells))
    columns = ("policy", "value", "gain over logged", "effective rows", "ends at")
    draw_table(columns, rows, title=title, whole=True)
    tasks, begins = found.fixed.tasks, [f"{100 * begin:.0f} %" for begin in found.begins]
    shares = [[f"{share:.3f}" for share in line] for line in found.probabilities]
    if len(tasks) <= 6:
        lines = [(begin, *line) for begin, line in zip(begins, shares, strict=True)]
        draw_table(("begin", *tasks), lines, title="The plan")
    else:  # many tasks go down, stages across
        lines = list(zip(tasks, *shares, strict=True))
        draw_table(("task", *(f"from {begin}" for begin in begins)), lines, title="The plan")
    echo(f"Weight of the entropy: {found.fixed.entropy:.4g}. {DIVIDED_BY[found.fixed.division]}")
    echo(found.reason)
    for sentence in (*lessons.left_out, *lessons.notes):
        echo(f"Note: {sentence}")
    echo("`ends at` is the mean of exp(-loss) at the end of training, by the learning curves.")
    gain = lessons.gain
    if gain is not None:
        echo(
            f"On rows that did not teach it, the plan ends {gain.value:+.4f} ({gain.low:+.4f} to "
            f"{gain.high:+.4f}) above the logged shares by these curves, transfer between tasks not "
            "counted."
        )
    echo(f"Wrote {out}. Train with it: taskmix train FOLDER --plan {out}")


def _shown(figures: PolicyValue | Range | None) -> str:
    if figures is None:
        return "-"
    return f"{figures.value:.4f} ± {(figures.high - figures.low) / 2:.4f}"
