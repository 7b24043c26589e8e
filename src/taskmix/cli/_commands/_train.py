"""`taskmix train`: one shared model on the tasks of a folder, with a record of every choice."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._options._completing import plan_files, policy_words, reward_words, weighting_words
from taskmix.cli._options._methods import (
    POLICY_HELP,
    REWARD_HELP,
    WEIGHTING_HELP,
    parse_policy,
    parse_reward,
    parse_weighting,
)
from taskmix.cli._options._tasks import (
    ModelOptions,
    OptimizationOptions,
    TaskOptions,
    make_template,
)
from taskmix.cli._options._where import OneByOneOptions, ResumeOption, TrackingOptions, check_extras
from taskmix.cli._printing._display import draw_table, echo, print_json, reading_bar
from taskmix.cli._printing._reading import print_reading, print_tuning, reading_document
from taskmix.cli._printing._tables import print_table, score_table
from taskmix.errors import OptionError, RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskmix.engine import Executed, Run
    from taskmix.plans import ComparisonDocument, Plan
    from taskmix.records import RunSummary, Study
    from taskmix.tasks import TaskSet


class Precision(StrEnum):
    """Of the forward pass."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


def train_command(
    context: typer.Context,
    tasks: TaskOptions,
    model: ModelOptions,
    optimization: OptimizationOptions,
    where: OneByOneOptions,
    tracking: TrackingOptions,
    policy: Annotated[
        str | None,
        typer.Option(
            help=f"One task a step: {POLICY_HELP} [uniform].", autocompletion=policy_words
        ),
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(
            help=f"What a step was worth: {REWARD_HELP} [hard; gain/scaled for exp3 and exp3s].",
            autocompletion=reward_words,
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            help="As a plan says; a model for each of its parts.", autocompletion=plan_files
        ),
    ] = None,
    weighting: Annotated[
        str | None,
        typer.Option(
            help=f"All tasks every step: {WEIGHTING_HELP}.", autocompletion=weighting_words
        ),
    ] = None,
    single: Annotated[
        bool, typer.Option("--single", help="One model for each task, for comparison.")
    ] = False,
    steps: Annotated[int, typer.Option(min=1)] = 1000,
    evaluate_every: Annotated[
        int | None, typer.Option(min=1, help="Steps [a tenth of all].")
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(min=1, help="Steps [a tenth of all].")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Evaluations without a better mean dev score.")
    ] = None,
    precision: Annotated[
        Precision | None, typer.Option(help="[float32; bfloat16 for adapters on a GPU]")
    ] = None,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 1,
    out: Annotated[Path, typer.Option(help="The study to write to.")] = Path("study"),
    keep: Annotated[
        Path | None, typer.Option(help="Keep the best model here, for taskmix predict.")
    ] = None,
    merged: Annotated[
        bool,
        typer.Option(
            "--merged",
            help="With --keep: also as a model with the adapters added into its weights.",
        ),
    ] = False,
    resume: ResumeOption = True,
    json_: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Train one shared model on all tasks of FOLDER.

    With a policy each step trains on one task it draws; with a weighting each step trains on all of
    them. Everything goes into the study: run the same command again to continue a run that was
    stopped, and `taskmix report STUDY` for the page. After training by a plan that promises scores,
    they are compared with those that came.

    Examples:

        taskmix train reviews/ --policy tempered:2 --vectors glove.6B.100d.txt --seeds 3

        taskmix improve study && taskmix train reviews/ --plan plan.json

        taskmix train reviews/ --model minilm/ --adapter peft/ --keep model/ --merged
    """
    import torch

    from taskmix.engine import check_mergeable, is_first_process, keep_best, open_study, read_ahead
    from taskmix.plans import Plan, check_comparison_path

    _check_way(policy, weighting, plan, single, reward)
    if merged and keep is None:
        raise OptionError("`--merged` should go with --keep DIR. Found it alone. Give a folder.")
    check_extras(model=model.model, where=where, tracking=tracking)
    where.join(context)
    label = "single" if single else "plan" if plan else weighting or policy or "uniform"
    run, loaded = make_template(label, tasks, model, where, optimization, steps=steps, seed=seed)
    run = replace(
        run,
        evaluate_every=evaluate_every or max(steps // 10, 1),
        checkpoint_every=checkpoint_every or max(steps // 10, 1),
        patience=patience,
        precision=run.precision if precision is None else precision.value,
        policy=None if weighting else parse_policy(policy or "uniform"),
        reward=None if weighting or single else parse_reward(reward, policy),
        weighting=parse_weighting(weighting) if weighting else None,
    )
    followed = None if plan is None else Plan.load(plan)
    every = range(seed, seed + seeds)
    if followed is not None:
        runs = replace(followed, name=label).runs(run, seeds=every)
    elif single:
        runs = [replace(run, seed=each, tasks=(name,)) for each in every for name in loaded.names]
    else:
        runs = [replace(run, seed=each) for each in every]
    if merged:
        check_mergeable(runs)
    study = open_study(out, loaded, run.source, model=keep)
    if followed is not None and followed.expected:
        check_comparison_path(study.path)
    quiet = json_ or not is_first_process()
    if not quiet:
        _introduce(loaded, run)
    with reading_bar(quiet=quiet) as tell:
        read_ahead(runs, tell)
    if len(runs) == 1:
        torch.set_num_threads(where.workers or 1)
    with where.executing(
        run.label, quiet=quiet, fresh=not resume, rounds=False, tracking=tracking
    ) as executor:
        results = executor.run(runs, study)
    if is_first_process():
        if keep is not None:
            keep_best(runs, results, study, keep, merged=merged)
            for path in sorted(keep.glob("merged*")) if merged and not json_ else ():
                echo(f"Merged model: {path}")
        comparison = None
        if followed is not None and plan is not None:
            comparison = _compare(followed, plan, run, results, study)
        _print_results(runs, results, study, loaded, comparison, as_json=json_)


def _check_way(
    policy: str | None, weighting: str | None, plan: Path | None, single: bool, reward: str | None
) -> None:
    """One way at a time; a reward is for one task a step."""
    given = {"--policy": policy, "--weighting": weighting, "--plan": plan, "--single": single}
    ways = [flag for flag, value in given.items() if value]
    if len(ways) > 1:
        raise OptionError(
            "One of --policy, --plan (one task a step), --weighting (all tasks a step) and "
            f"--single should be given. Found {' and '.join(ways)}. Leave all but one of them out."
        )
    if reward and ways in (["--weighting"], ["--single"]):
        raise OptionError(
            f"`--reward` should go with one task a step. Found it with {ways[0]}. Leave it out."
        )


def _compare(
    plan: Plan, path: Path, run: Run, results: Sequence[Executed], study: Study
) -> ComparisonDocument | None:
    """What the plan promised beside what came, kept in the study; None where it promised nothing."""
    from taskmix.plans import compare_with_promise, save_comparison

    found = compare_with_promise(plan, path, run, [result.summary for result in results])
    if found is not None:
        save_comparison(study.path, found)
    return found


def _introduce(tasks: TaskSet, run: Run) -> None:
    rows = sum(task.size for task in tasks)
    echo(
        f"{len(tasks)} task{'' if len(tasks) == 1 else 's'} with {rows:,} rows to train on; "
        f"{type(run.architecture).__name__}, {run.label}, {run.steps:,} steps of "
        f"{run.batch_size} rows on {run.device}."
    )
    print_reading(tasks)
    print_tuning(run)


def _print_results(
    runs: list[Run],
    results: list[Executed],
    study: Study,
    tasks: TaskSet,
    comparison: ComparisonDocument | None,
    *,
    as_json: bool,
) -> None:
    """Scores with intervals as tables, or everything as JSON; raises where a run did not finish."""
    done = [
        result.summary
        for result in results
        if result.summary is not None and result.summary.status == "finished"
    ]
    tables = {split: score_table(done, split) for split in ("dev", "test")}
    entities = _entity_reports(runs, study, done)
    if as_json:
        print_json(
            {
                "study": str(study.path),
                "runs": [_run_row(result) for result in results],
                "rows": [row for table in tables.values() for row in table.rows()],
                "conlleval": entities,
                **({} if comparison is None else {"comparison": comparison}),
                **reading_document(tasks),
            }
        )
    else:
        sizes = {task.name: task.size for task in tasks}
        for split, table in tables.items():
            if table.cells:
                print_table(table, sizes, title=f"Scores on {split}")
        for name, text in entities.items():
            echo(f"Entities of `{name}` on test, as the CoNLL script counts them:\n{text}")
        if comparison is not None:
            _print_comparison(comparison)
        echo(f"Records: {study.path}. The page: taskmix report {study.path}")
    for result in results:
        for note in result.notes:
            echo(f"Note: {note}", err=True)
    _complain(results)


def _print_comparison(comparison: ComparisonDocument) -> None:
    """What was promised beside what came, and what to make of it."""
    rows = []
    for row in comparison.rows:
        outside = "better" if row.better else "worse"
        rows.append(
            (
                row.task,
                f"{row.metric}, {row.split}",
                f"{row.expected:.3f}",
                f"{row.low:.3f} to {row.high:.3f}",
                "-" if row.found is None else f"{row.found:.3f}",
                "unknown" if row.found is None else "inside" if row.inside else outside,
            )
        )
    interval = f"{100 * comparison.level:.0f} % interval"
    columns = ("task", "metric", "promised", interval, "came", "is")
    title = f"What {comparison.plan} promised, and what came"
    draw_table(columns, rows, title=title, left=("metric", "is"))
    for line in comparison.lines:
        echo(line)


def _complain(results: list[Executed]) -> None:
    """Raises where a run asked for did not finish."""
    reasons = {
        "stopped": "stopped; run the same command again to continue",
        "busy": "busy: another process is at it",
        "failed": "failed",
    }
    for result in results:
        if result.outcome in reasons:
            count = sum(other.outcome == result.outcome for other in results)
            raise RunError(
                f"{count} of {len(results)} runs {reasons[result.outcome]}. {result.error or ''}"
            )


def _run_row(result: Executed) -> dict[str, Any]:
    summary = result.summary
    return {
        "outcome": result.outcome,
        "run": summary.name if summary else None,
        "seed": summary.seed if summary else None,
        "step": summary.step if summary else None,
        "best_step": summary.best_step if summary else None,
        "seconds": summary.seconds if summary else None,
        "error": result.error,
    }


def _entity_reports(runs: list[Run], study: Study, done: list[RunSummary]) -> dict[str, str]:
    """The CoNLL script's figures for each entity task, from the first finished run."""
    from taskmix.engine import model_of_run
    from taskmix.tasks import conlleval_report
    from taskmix.training import predict_tags

    finished = {summary.name for summary in done}
    for run in runs:
        if study.run(run.specification()).name not in finished:
            continue
        names = [
            task.name for task in run.load() if task.metric == "entity_f1" and "test" in task.splits
        ]
        if not names:
            continue
        reports = {}
        model, tasks = model_of_run(run, study)
        for name in names:
            predicted, true, sentences = predict_tags(model, tasks, name, "test")
            reports[name] = conlleval_report(predicted, true, tasks[name].labels, sentences)
        return reports
    return {}
