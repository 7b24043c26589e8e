"""`taskmix transfer`: which tasks help a target, which hurt it, and which to train together."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._options._tasks import (
    ModelOptions,
    OptimizationOptions,
    TaskOptions,
    make_template,
)
from taskmix.cli._options._where import OWN_MODELS, ResumeOption, WhereOptions, check_extras
from taskmix.cli._printing._display import print_json, reading_bar
from taskmix.cli._printing._reading import print_reading, print_tuning, reading_document
from taskmix.cli._printing._repeat import this_command
from taskmix.cli._printing._transfer import print_new_tasks, print_transfer
from taskmix.errors import OptionError


class DesignName(StrEnum):
    """How subsets are drawn."""

    BALANCED = "balanced"
    FIXED = "fixed"
    ALL_SIZES = "all-sizes"
    LEAVE_ONE_OUT = "leave-one-out"


class OutcomeName(StrEnum):
    """What is measured of a target on dev."""

    LOSS = "loss"
    MARGIN = "margin"
    METRIC = "metric"


class StepsOf(StrEnum):
    """What stays the same from run to run."""

    EACH_TASK = "each-task"
    ALL_TASKS = "all-tasks"


def transfer(
    context: typer.Context,
    tasks: TaskOptions,
    model: ModelOptions,
    optimization: OptimizationOptions,
    where: WhereOptions,
    target: Annotated[
        list[str] | None, typer.Option(help="The task to help; may be repeated.")
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every task as target, from the same runs.")
    ] = False,
    outcome: Annotated[OutcomeName, typer.Option(help="Of the target on dev.")] = (
        OutcomeName.LOSS
    ),
    steps: Annotated[int, typer.Option(min=1)] = 1000,
    steps_of: Annotated[
        StepsOf, typer.Option(help="Whether --steps are batches of each task or of all.")
    ] = StepsOf.EACH_TASK,
    new: Annotated[
        str | None,
        typer.Option(
            help="Train nothing: say who will help the tasks of this folder, by the finished study."
        ),
    ] = None,
    subsets: Annotated[
        int | None, typer.Option(min=1, help="Subsets a target [four a source].")
    ] = None,
    standard_error: Annotated[
        float | None,
        typer.Option(
            help="As many subsets as give effects this standard error, by the noise of a pilot."
        ),
    ] = None,
    most_subsets: Annotated[
        int, typer.Option(min=1, help="That --standard-error may ask for.")
    ] = 5000,
    size: Annotated[
        int | None, typer.Option(min=1, help="Sources in a subset [3, or half of few].")
    ] = None,
    design: Annotated[DesignName, typer.Option()] = DesignName.BALANCED,
    held_out: Annotated[
        int | None,
        typer.Option(
            min=3,
            help="Subsets of other sizes a target, to try predictions on [a quarter, at least 12].",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Runs of each subset; more subsets tell more.")
    ] = 1,
    alone: Annotated[int, typer.Option(min=1, help="Runs of each target alone.")] = 10,
    smallest: Annotated[
        float, typer.Option(min=0, help="Changes of the outcome that do not matter.")
    ] = 0.0,
    false_discovery: Annotated[
        bool,
        typer.Option(
            "--false-discovery",
            help="Of all verdicts, hold the expected share of wrong ones at 5 %.",
        ),
    ] = False,
    prefixes: Annotated[
        int, typer.Option(min=0, help="Selections to measure by training, a target.")
    ] = 4,
    ridge: Annotated[
        float, typer.Option(min=0, help="Above 0 fewer subsets than sources will do, biased.")
    ] = 0.0,
    shrink: Annotated[
        bool,
        typer.Option(
            "--shrink", help="Draw effects towards those of other pairs, as far as runs are few."
        ),
    ] = False,
    prior: Annotated[
        Path | None,
        typer.Option(
            "--prior-study",
            help="A cheaper study of the same tasks; effects are drawn towards it as far as it agrees.",
        ),
    ] = None,
    largest_group: Annotated[
        int | None, typer.Option(min=1, help="Tasks in a group, with --all.")
    ] = None,
    groups: Annotated[int | None, typer.Option(min=1, help="Groups at most, with --all.")] = None,
    seed: Annotated[int, typer.Option(help="Of the subsets, and the first one.")] = 0,
    out: Annotated[Path, typer.Option(help="The study to write to.")] = Path("study"),
    write_plan: Annotated[
        Path | None, typer.Option(help="Write what to train together to this plan.")
    ] = None,
    resume: ResumeOption = True,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Learn which tasks help a target and which hurt it.

    Trains the target alone and with subsets of the other tasks, fits a surrogate that predicts its
    outcome from the subset, and says of each task whether it helps, hurts or cannot be told, with
    intervals. With --all every task is a target, all from the same runs. Run the same command again
    to continue, or with more subsets to learn more: what was trained is not trained again.

    Examples:

        taskmix transfer reviews/ --target books --subsets 60 --vectors glove.6B.100d.txt

        taskmix transfer digits --all --steps 800 --learning-rate 0.005 --outcome metric

        taskmix transfer reviews/ --new garden/ --out study
    """
    from taskmix.engine import open_study, read_ahead
    from taskmix.plans import check_plan_path
    from taskmix.records import to_plain
    from taskmix.transfer import (
        GroupLimits,
        LearningOptions,
        SubsetDesign,
        TransferStudy,
        save_transfer,
        study_transfer,
        transfer_document,
    )

    if new is not None and (target or all_):
        raise OptionError(
            "`--new` should go without --target and --all: the finished study has them. Found "
            "one of them. Leave it out."
        )
    if new is None and bool(target) == all_:
        found = "both. Leave one of them out." if all_ else "neither. Name a task to help."
        raise OptionError(f"Either --target or --all should be given. Found {found}")
    check_extras(model=model.model, where=where)
    if new is not None:
        _answer_for_new(new, tasks, model, out, as_json=json_)
        return
    where.join(context)
    run, loaded = make_template(
        "transfer", tasks, model, where, optimization, steps=steps, seed=seed
    )
    print_reading(loaded, quiet=json_)
    print_tuning(run, quiet=json_)
    description = TransferStudy(
        template=run,
        targets=loaded.names if all_ else tuple(target or ()),
        design=SubsetDesign(
            kind=design.value,
            size=size,
            count=subsets,
            precision=standard_error,
            most=most_subsets,
            held_out=held_out,
            repeats=seeds,
            alone=alone,
            seed=seed,
        ),
        outcome=outcome.value,
        budget="per-task" if steps_of is StepsOf.EACH_TASK else "total",
    )
    limits = GroupLimits(largest=largest_group, groups=groups)
    limits.resolved(len(loaded))
    learning = LearningOptions(
        ridge=ridge,
        shrink=shrink,
        prior=_prior_gains(prior, out),
        false_discovery=false_discovery,
        smallest=smallest,
        prefixes=prefixes,
        seed=seed,
    )
    if write_plan is not None:
        check_plan_path(write_plan)
    study = open_study(out, loaded, run.source)
    with reading_bar(quiet=json_) as tell:
        read_ahead([run], tell)
    with where.executing("transfer", quiet=json_, fresh=not resume) as executor:
        lessons = study_transfer(
            description, study, executor=executor, options=learning, limits=limits
        )
    document = transfer_document(lessons, command=this_command())
    save_transfer(study.path, document)
    if write_plan is not None:
        lessons.plan(to_plain(document)).save(write_plan)
    print_transfer(document, study.path, write_plan, loaded, as_json=json_)


def _prior_gains(prior: Path | None, out: Path) -> dict[str, dict[str, float]] | None:
    """What the cheaper study found; None where none was named."""
    from taskmix.transfer import load_transfer

    if prior is None:
        return None
    if prior.resolve() == out.resolve():
        raise OptionError(
            "`prior` should be another study than --out: the same runs would count twice. Found "
            f"{prior} for both."
        )
    document = load_transfer(prior)
    if document is None:
        raise OptionError(
            "`prior` should be a study of `taskmix transfer`, with its transfer.json. Found none in "
            f"{prior}. Name the folder that was its --out."
        )
    return document.gains


def _answer_for_new(
    new: str, tasks: TaskOptions, model: ModelOptions, out: Path, *, as_json: bool
) -> None:
    """Who will help the tasks of a folder that the study does not have."""
    from taskmix.records import to_plain
    from taskmix.tasks import load_tasks
    from taskmix.transfer import answer_for_new_tasks, load_transfer

    document = load_transfer(out)
    if document is None:
        raise OptionError(
            f"`--new` should go with the --out of a finished study. Found no transfer.json in {out}. "
            "Train it first, with --all."
        )
    known = tasks.source().load()
    asked = load_tasks(new, **tasks.keywords())
    print_reading(asked, quiet=as_json)
    pretrained = None if model.model in (*OWN_MODELS, "causal") else model.model
    with reading_bar(quiet=as_json) as tell:
        answers = answer_for_new_tasks(document, known, asked, model=pretrained, on_progress=tell)
    if as_json:
        print_json({"study": str(out), "tasks": to_plain(answers)} | reading_document(asked))
        return
    texts = any(task.inputs in ("text", "pair", "tokens") for task in (*known, *asked))
    print_new_tasks(answers, document.measure, model=pretrained, texts=texts)
