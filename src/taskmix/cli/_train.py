"""`taskmix train`: one shared model on the tasks of a folder, with a record of every choice."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from taskmix.cli._keep import keep_best
from taskmix.cli._methods import POLICY_HELP, REWARD_HELP, parse_policy, parse_reward
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
from taskmix.cli._reading import print_reading
from taskmix.cli._tracking import MLflowOption, TensorBoardOption, Tracking
from taskmix.cli._trained import tell_results
from taskmix.cli._weightings import WEIGHTING_HELP, parse_weighting
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.engine import Executed, Run
    from taskmix.records import Study
    from taskmix.tasks import TaskSet
    from taskmix.training import Event


class Precision(StrEnum):
    """Of the forward pass."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


def train(
    context: typer.Context,
    folder: FolderArgument,
    out: Annotated[Path, typer.Option("--out", help="The study to write to.")] = Path("study"),
    policy: Annotated[
        str | None, typer.Option("--policy", help=f"One task a step: {POLICY_HELP} [uniform].")
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(
            "--reward",
            help=f"What a step was worth: {REWARD_HELP} [hard; gain/scaled for exp3 and exp3s].",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="As a plan says; a model for each of its groups."),
    ] = None,
    weighting: Annotated[
        str | None, typer.Option("--weighting", help=f"All tasks every step: {WEIGHTING_HELP}.")
    ] = None,
    single: Annotated[
        bool, typer.Option("--single", help="One model for each task, for comparison.")
    ] = False,
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
    evaluate_every: Annotated[
        int | None, typer.Option("--evaluate-every", min=1, help="Steps [a tenth of all].")
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option("--checkpoint-every", min=1, help="Steps [a tenth of all].")
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option("--patience", min=1, help="Evaluations without a better mean dev score."),
    ] = None,
    precision: Annotated[Precision, typer.Option("--precision")] = Precision.FLOAT32,
    device: DeviceOption = "auto",
    seed: Annotated[int, typer.Option("--seed", help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")] = 1,
    workers: WorkersOption = None,
    engine: EngineOption = Engine.HERE,
    address: AddressOption = None,
    store: StoreOption = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Keep the best model here, for taskmix predict."),
    ] = None,
    tensorboard: TensorBoardOption = None,
    mlflow: MLflowOption = None,
    resume: ResumeOption = True,
    cache: CacheOption = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Train one shared model on all tasks of FOLDER.

    With a policy each step trains on one task it draws; with a weighting each step trains on all of
    them. Everything goes into the study: run the same command again to continue a run that was
    stopped, and `taskmix report STUDY` for the page.

    Examples:

        taskmix train reviews/ --policy tempered:2 --vectors glove.6B.100d.txt --seeds 3

        taskmix improve study --out plan.json && taskmix train reviews/ --plan plan.json
    """
    from taskmix.engine import Optimization, Run, is_first_process, open_study
    from taskmix.plans import Plan

    _check_one_way(policy=policy, weighting=weighting, plan=plan, reward=reward, single=single)
    check_extras(model=model, engine=engine, store=store, tensorboard=tensorboard, mlflow=mlflow)
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
    rate = Optimization.usual_rate(learning_rate, pretrained=pretrained)
    run = Run(
        label="single" if single else "plan" if plan else weighting or policy or "uniform",
        source=source,
        tasks=kept,
        architecture=architecture,
        policy=parse_policy(policy or "uniform") if not weighting else None,
        reward=parse_reward(reward, policy) if not (weighting or single) else None,
        weighting=parse_weighting(weighting) if weighting else None,
        optimization=Optimization(
            optimizer=optimizer.value,
            learning_rate=rate,
            weight_decay=weight_decay,
            schedule=schedule.value,
            warmup=warmup,
        ),
        steps=steps,
        batch_size=batch_size,
        evaluate_every=evaluate_every or max(steps // 10, 1),
        checkpoint_every=checkpoint_every or max(steps // 10, 1),
        patience=patience,
        clip_norm=clip_norm,
        precision=precision.value,
        device=choose_device_on(engine, device),
        seed=seed,
    )
    runs = [replace(run, seed=number) for number in range(seed, seed + seeds)]
    if single:
        runs = [replace(each, tasks=(name,)) for each in runs for name in loaded.names]
    if plan is not None:
        wanted = replace(Plan.load(plan), name=run.label)
        runs = wanted.runs(run, seeds=range(seed, seed + seeds))
    study = open_study(out, loaded, source, model=keep)
    quiet = json_ or not is_first_process()
    if not quiet:
        _introduce(loaded, run)
    tracking = Tracking(tensorboard, mlflow)
    results = _carry_out(
        runs,
        study,
        engine=engine,
        workers=workers,
        fresh=not resume,
        quiet=quiet,
        tracking=tracking,
    )
    if is_first_process():
        tracking.tell(runs, study)
        if keep is not None:
            keep_best(runs, results, study, keep)
        tell_results(runs, results, study, loaded, as_json=json_)


def _check_one_way(**given: Any) -> None:
    """One way to train at a time: a reward is for one task a step."""
    names = [f"--{name}" for name, value in given.items() if value]
    ways = [name for name in names if name != "--reward"]
    if len(ways) > 1:
        raise OptionError(
            "One of --policy, --plan (one task a step), --weighting (all tasks a step) and --single "
            f"should be given. Found {' and '.join(ways)}. Leave all but one of them out."
        )
    if "--reward" in names and ways in (["--weighting"], ["--single"]):
        raise OptionError(
            f"`--reward` should go with one task a step. Found it with {ways[0]}. Leave it out."
        )


def _introduce(tasks: TaskSet, run: Run) -> None:
    rows = sum(task.size for task in tasks)
    echo(
        f"{len(tasks)} task{'' if len(tasks) == 1 else 's'} with {rows:,} rows to train on; "
        f"{type(run.architecture).__name__}, {run.label}, {run.steps:,} steps of "
        f"{run.batch_size} rows on {run.device}."
    )
    print_reading(tasks)


def _carry_out(
    runs: list[Run],
    study: Study,
    *,
    engine: Engine,
    workers: int | None,
    fresh: bool,
    quiet: bool,
    tracking: Tracking,
) -> list[Executed]:
    from taskmix.cli._display import many_runs_bar, one_run_bar
    from taskmix.cli._stopping import clean_stop
    from taskmix.cli._together import carry_out_together
    from taskmix.engine import execute, launched_processes, run_all

    if launched_processes() > 1:
        return carry_out_together(runs, study, engine=engine, fresh=fresh, quiet=quiet)
    with clean_stop() as should_stop:
        if len(runs) == 1 and engine is not Engine.RAY:
            import torch

            torch.set_num_threads(workers or 1)
            names = runs[0].load().names
            with (
                one_run_bar(runs[0], names, quiet=quiet) as bar,
                tracking.live(runs[0], study) as log,
            ):

                def listen(event: Event) -> None:
                    bar(event)
                    log(event)

                return [
                    execute(runs[0], study, listener=listen, should_stop=should_stop, fresh=fresh)
                ]
        with many_runs_bar(runs, quiet=quiet, title=runs[0].label) as tell:
            return run_all(
                runs,
                study,
                engine=engine.value,
                workers=workers,
                on_progress=tell,
                should_stop=should_stop,
                fresh=fresh,
            )
