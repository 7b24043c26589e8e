"""`taskmix plan`: what a plan says, how to train by it here and elsewhere, whether it fits a folder."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._completing import plan_files, plan_targets
from taskmix.cli._options._groups import grouped
from taskmix.cli._options._tasks import TaskOptions
from taskmix.cli._printing._display import draw_table, echo, note, print_json
from taskmix.cli._printing._repeat import settings_as_options
from taskmix.errors import InputError

if TYPE_CHECKING:
    from taskmix.engine import Run
    from taskmix.plans import Plan, PlanFit

PlanArgument = Annotated[
    Path,
    typer.Argument(help="A plan.json, of advise, improve or transfer.", autocompletion=plan_files),
]
StepsOption = Annotated[
    int | None,
    typer.Option("--steps", help="Batches of all models together; the plan's own unless given."),
]
BatchSizeOption = Annotated[
    int | None, typer.Option("--batch-size", help="Rows of a batch; the plan's own unless given.")
]

app = typer.Typer(
    help="Look at a plan, take it elsewhere, or see whether it fits. Example: taskmix plan show "
    "advice/plan.json",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("show")
def plan_show(
    plan: PlanArgument,
    python: Annotated[
        bool, typer.Option("--python", help="Print only the script that trains by it.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what a plan trains, what it promises, and how to train by it.

    Examples:

        taskmix plan show advice/plan.json

        taskmix plan show advice/plan.json --python > train.py
    """
    from taskmix.adviser import IN_PYTHON, TRAIN
    from taskmix.plans import Plan, plan_document, promised_run, training_script

    loaded = Plan.load(plan)
    run = promised_run(loaded)
    script = None if run is None else training_script(run, plan=plan)
    commands = {TRAIN: _line(loaded, plan, run)}
    if script is not None:
        commands[IN_PYTHON] = script
    if python:
        if script is None:
            raise InputError(
                f"`{plan}` should be a plan of `taskmix advise`, which says what a script needs. Found "
                f"no length or settings in it. Train with: {commands[TRAIN]}"
            )
        for line in script.splitlines():
            echo(line)
    elif json_:
        print_json({"plan": str(plan), **plan_document(loaded), "commands": commands})
    else:
        _print_plan(loaded, commands)


@app.command("export")
def plan_export(
    plan: PlanArgument,
    to: Annotated[
        str,
        typer.Option(
            help="The trainer: datasets, trl, axolotl, llamafactory, torchtitan, megatron, nemo or "
            "levanter.",
            autocompletion=plan_targets,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file or folder to write.")],
    data: Annotated[
        Path | None,
        typer.Option(help="The folder with the tasks' files, as the trainer reads them."),
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option(help="TASK=FILE, where a task's file is; may be repeated.")
    ] = None,
    steps: StepsOption = None,
    batch_size: BatchSizeOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of an earlier export that differ.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Write a plan as what another trainer reads: its shares, files and steps.

    Examples:

        taskmix plan export advice/plan.json --to trl --data chats --out mixture.yaml

        taskmix plan export advice/plan.json --to megatron --out blend
    """
    from taskmix.plans import Plan, export_plan

    done = export_plan(
        Plan.load(plan),
        to,
        out,
        data=data,
        paths=_named_paths(path or []),
        steps=steps,
        batch_size=batch_size,
        overwrite=overwrite,
    )
    if json_:
        files = [str(file) for file in done.files]
        print_json({"files": files, "notes": list(done.notes), "usage": done.usage})
        return
    echo(f"Wrote {', '.join(str(file) for file in done.files)}.")
    for sentence in done.notes:
        note(sentence)
    echo(f"Use: {done.usage}")


def plan_check(
    plan: PlanArgument,
    tasks: TaskOptions,
    steps: StepsOption = None,
    batch_size: BatchSizeOption = None,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say whether a plan fits the tasks of FOLDER: names, metrics, rows, and passes over them.

    Rows are compared with those of the study that the plan lies in. Exit code 0: it fits; 2: it does
    not.

    Example: taskmix plan check advice/plan.json reviews
    """
    from taskmix.plans import Plan, check_fit
    from taskmix.records import Subject

    loaded = Plan.load(plan)
    fit = check_fit(
        loaded,
        tasks.source().load(),
        contents=Subject.known(plan.parent),
        steps=steps,
        batch_size=batch_size,
    )
    if json_:
        print_json({"plan": str(plan), "fits": fit.fits, **asdict(fit)})
    else:
        _print_fit(fit)
    if not fit.fits:
        raise InputError(" ".join(fit.problems))
    if not json_:
        echo(f"The plan fits `{tasks.folder}`.")


app.command("check")(grouped(plan_check))


def _print_fit(fit: PlanFit) -> None:
    words, rows = {True: "yes", False: "no", None: "not known"}, []
    for each in fit.tasks:
        passes = "not known" if each.passes is None else f"{each.passes:.2f}"
        cells = (f"{each.share:.1%}", f"{each.rows:,}", passes, words[each.as_planned])
        rows.append((each.task, *cells))
    columns = ("task", "share of batches", "rows", "passes", "rows as planned")
    draw_table(columns, rows, wide=True)
    for sentence in fit.warnings:
        note(sentence)


def _named_paths(given: list[str]) -> dict[str, str]:
    paths = {}
    for each in given:
        name, equals, path = each.rpartition("=")
        if not equals or not name or not path:
            raise InputError(
                f"`--path` should be the name of a task, `=` and its file. Found `{each}`."
            )
        paths[name] = path
    return paths


def _line(plan: Plan, path: Path, run: Run | None) -> str:
    """The line that trains by the plan, as far as the plan knows it."""
    line = ["taskmix", "train", "FOLDER", "--plan", str(path)]
    if plan.length is not None:
        line += ["--steps", str(plan.length.batches)]
        line += ["--batch-size", str(plan.length.batch_size)]
    if run is not None:
        line += settings_as_options(run)
        reads = getattr(run.architecture, "reads", run.architecture)
        for flag, name in (("--model", "path"), ("--vectors", "vectors")):
            given = getattr(reads, name, None)
            line += [] if given is None else [flag, str(given)]
    return shlex.join(line)


def _print_plan(plan: Plan, commands: dict[str, str]) -> None:
    if plan.words:
        echo(plan.words)
    expected = {each.task: each for each in plan.expected}
    columns = ("task", "model", "share of batches", *(("promised",) if expected else ()))
    rows = []
    for number, part in enumerate(plan.parts, 1):
        for task, share in part.probabilities.items():
            helps = "" if task in part.scored else " (helps)"
            cells = [f"{task}{helps}", str(number), f"{part.share * share:.1%}"]
            if expected:
                item = expected.get(task) if task in part.scored else None
                cells.append(
                    f"{item.metric} {item.value:.3f} ({item.low:.3f} to {item.high:.3f})"
                    if item
                    else ""
                )
            rows.append(cells)
    draw_table(columns, rows, wide=True)
    if plan.length is not None:
        echo(
            f"Scores are promised for {plan.length.batches:,} batches of {plan.length.batch_size} rows "
            "over all models."
        )
    for what, line in commands.items():
        echo("")
        echo(f"{what}:")
        for each in line.split("\n"):
            echo(each)
