"""`taskmix transfer`: which tasks help a target, which hurt it, and which to train together."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._display import echo
from taskmix.cli._engines import (
    AddressOption,
    Engine,
    EngineOption,
    StoreOption,
    choose_device_on,
    join_cluster,
)
from taskmix.cli._extras import check_extras
from taskmix.cli._options import (
    BatchSizeOption,
    CacheOption,
    ClipNormOption,
    DeviceOption,
    FolderArgument,
    LabelOption,
    LearningRateOption,
    MaxLengthOption,
    ModelOption,
    OnlyOption,
    Optimizer,
    OptimizerOption,
    ResumeOption,
    Schedule,
    ScheduleOption,
    StrictOption,
    TaskColumnOption,
    TasksOption,
    TextOption,
    VectorsOption,
    WarmupOption,
    WeightDecayOption,
    WorkersOption,
    choose_architecture,
    choose_source,
)
from taskmix.cli._reading import print_reading, reading_document
from taskmix.cli._transfer_parts import performing
from taskmix.errors import OptionError


class Design(StrEnum):
    """How subsets are drawn."""

    BALANCED = "balanced"
    FIXED = "fixed"
    ALL_SIZES = "all-sizes"
    LEAVE_ONE_OUT = "leave-one-out"


class Outcome(StrEnum):
    """What is measured of a target on dev."""

    LOSS = "loss"
    MARGIN = "margin"
    METRIC = "metric"


class Budget(StrEnum):
    """What stays the same from run to run."""

    PER_TASK = "per-task"
    TOTAL = "total"


class Estimate(StrEnum):
    """How to do without training every subset."""

    GRADIENTS = "gradients"


def transfer(
    context: typer.Context,
    folder: FolderArgument,
    target: Annotated[
        list[str] | None, typer.Option("--target", help="The task to help; may be repeated.")
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every task as target, from the same runs.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="The study to write to.")] = Path("study"),
    subsets: Annotated[
        int | None, typer.Option("--subsets", min=1, help="Subsets a target [four a source].")
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision",
            help="As many subsets as give effects this standard error, by the noise of a pilot.",
        ),
    ] = None,
    most_subsets: Annotated[
        int, typer.Option("--most-subsets", min=1, help="That --precision may ask for.")
    ] = 5000,
    size: Annotated[
        int | None, typer.Option("--size", min=1, help="Sources in a subset [3, or half of few].")
    ] = None,
    design: Annotated[Design, typer.Option("--design")] = Design.BALANCED,
    held_out: Annotated[
        int | None,
        typer.Option(
            "--held-out",
            min=3,
            help="Subsets of other sizes a target, to try predictions on [a quarter, at least 12].",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Runs of each subset; more subsets tell more.")
    ] = 1,
    alone: Annotated[int, typer.Option("--alone", min=1, help="Runs of each target alone.")] = 10,
    outcome: Annotated[
        Outcome, typer.Option("--outcome", help="Of the target on dev.")
    ] = Outcome.LOSS,
    budget: Annotated[
        Budget,
        typer.Option(
            "--budget", help="per-task: --steps batches of every task; total: of all together."
        ),
    ] = Budget.PER_TASK,
    estimate: Annotated[
        Estimate | None,
        typer.Option(
            "--estimate", help="Estimate subsets from the gradients of one run, not by training."
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Train them too and compare, with --estimate.")
    ] = False,
    smallest: Annotated[
        float, typer.Option("--smallest", min=0, help="Changes of the outcome that do not matter.")
    ] = 0.0,
    false_discovery: Annotated[
        bool,
        typer.Option(
            "--false-discovery",
            help="Of all verdicts, hold the expected share of wrong ones at 5 %.",
        ),
    ] = False,
    prefixes: Annotated[
        int, typer.Option("--prefixes", min=0, help="Selections to measure by training, a target.")
    ] = 4,
    ridge: Annotated[
        float,
        typer.Option("--ridge", min=0, help="Above 0 fewer subsets than sources will do, biased."),
    ] = 0.0,
    largest_group: Annotated[
        int | None, typer.Option("--largest-group", min=1, help="Tasks in a group, with --all.")
    ] = None,
    groups: Annotated[
        int | None, typer.Option("--groups", min=1, help="Groups at most, with --all.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Write what to train together to this plan.")
    ] = None,
    model: ModelOption = "auto",
    vectors: VectorsOption = None,
    max_length: MaxLengthOption = None,
    tasks: TasksOption = None,
    only: OnlyOption = None,
    task_column: TaskColumnOption = None,
    label: LabelOption = None,
    text: TextOption = None,
    strict: StrictOption = False,
    steps: Annotated[int, typer.Option("--steps", min=1)] = 1000,
    batch_size: BatchSizeOption = 32,
    optimizer: OptimizerOption = Optimizer.ADAM,
    learning_rate: LearningRateOption = None,
    weight_decay: WeightDecayOption = 0.0,
    schedule: ScheduleOption = Schedule.CONSTANT,
    warmup: WarmupOption = 0.0,
    clip_norm: ClipNormOption = None,
    device: DeviceOption = "auto",
    engine: EngineOption = Engine.AUTO,
    address: AddressOption = None,
    store: StoreOption = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the subsets, and the first one.")] = 0,
    workers: WorkersOption = None,
    resume: ResumeOption = True,
    cache: CacheOption = None,
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
    """
    from taskmix.cli._display import print_json
    from taskmix.cli._transferred import print_comparison, print_lessons
    from taskmix.engine import Optimization, Run, open_study
    from taskmix.plans import check_plan_path
    from taskmix.transfer import (
        GroupLimits,
        LearningOptions,
        SubsetDesign,
        TransferStudy,
        carry_out,
        compare_estimates,
        estimate_by_gradients,
        learn,
        save_transfer,
        transfer_document,
    )

    if bool(target) == all_:
        raise OptionError(
            "Either --target or --all should be given. Found "
            f"{'both. Leave one of them out.' if all_ else 'neither. Name a task to help.'}"
        )
    check_extras(model=model, engine=engine, store=store)
    if compare and estimate is None:
        raise OptionError("`--compare` should go with --estimate. Found it alone. Leave it out.")
    source, kept = choose_source(
        folder,
        only=only,
        settings=tasks,
        task_column=task_column,
        labels=label,
        text=text,
        strict=strict,
        cache=cache,
    )
    loaded = source.load() if kept is None else source.load().select(kept)
    architecture, pretrained = choose_architecture(model, loaded, vectors, max_length)
    join_cluster(context, engine, address=address, store=store, workers=workers)
    print_reading(loaded, quiet=json_)
    description = TransferStudy(
        template=Run(
            label="transfer",
            source=source,
            tasks=kept,
            architecture=architecture,
            steps=steps,
            seed=seed,
            optimization=Optimization(
                optimizer=optimizer.value,
                learning_rate=Optimization.usual_rate(learning_rate, pretrained=pretrained),
                weight_decay=weight_decay,
                schedule=schedule.value,
                warmup=warmup,
            ),
            batch_size=batch_size,
            clip_norm=clip_norm,
            device=choose_device_on(engine, device),
        ),
        targets=loaded.names if all_ else tuple(target or ()),
        design=SubsetDesign(
            kind=design.value,
            size=size,
            count=subsets,
            precision=precision,
            most=most_subsets,
            held_out=held_out,
            repeats=seeds,
            alone=alone,
            seed=seed,
        ),
        outcome=outcome.value,
        budget=budget.value,
    )
    limits = GroupLimits(largest=largest_group, groups=groups)
    limits.resolved(len(loaded))
    options = LearningOptions(
        ridge=ridge,
        false_discovery=false_discovery,
        smallest=smallest,
        prefixes=prefixes,
        seed=seed,
    )
    if plan is not None:
        check_plan_path(plan)
    study = open_study(out, loaded, source)
    with performing(
        study, engine=engine.value, workers=workers, fresh=not resume, quiet=json_
    ) as do:
        trained = carry_out(description, study, perform=do) if compare or not estimate else None
        carried = estimate_by_gradients(description, study, perform=do) if estimate else trained
        assert carried is not None
        lessons = learn(
            carried, study, perform=None if estimate else do, options=options, limits=limits
        )
    document = transfer_document(lessons, command=shlex.join(["taskmix", *sys.argv[1:]]))
    if trained is not None and estimate:
        document["comparison"] = compare_estimates(carried, trained, study)
    path = save_transfer(study.path, document)
    if plan is not None:
        lessons.plan(document).save(plan)
    if json_:
        print_json(document | reading_document(loaded))
        return
    print_lessons(document)
    if "comparison" in document:
        print_comparison(document["comparison"])
    echo(f"Wrote {path}. The page with the evidence: taskmix report {out}")
    if plan is not None:
        echo(f"Wrote {plan}.")
