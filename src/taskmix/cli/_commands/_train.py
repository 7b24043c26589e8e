"""`taskmix train`: one shared model on the tasks of a folder, with a record of every choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options import (
    ModelOptions,
    OneByOneOptions,
    OptimizationOptions,
    ResumeOption,
    TaskOptions,
    TrackingOptions,
    make_template,
)
from taskmix.cli._options._completing import (
    plan_files,
    policy_words,
    reward_words,
    weighting_words,
)
from taskmix.cli._options._extras import check_extras
from taskmix.cli._options._methods import POLICY_HELP, REWARD_HELP, parse_policy, parse_reward
from taskmix.cli._options._weightings import WEIGHTING_HELP, parse_weighting
from taskmix.cli._printing._display import echo, reading_bar
from taskmix.cli._printing._reading import print_reading, print_tuning
from taskmix.cli._printing._trained import print_results
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskmix.engine import Executed, Run
    from taskmix.plans import ComparisonDocument, Plan
    from taskmix.records import Study
    from taskmix.tasks import TaskSet


class Best(StrEnum):
    """Which evaluation tasks are served by."""

    MEAN = "mean"
    EACH = "each"


class Precision(StrEnum):
    """Of the forward pass."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


@dataclass(frozen=True, kw_only=True)
class WayOptions:
    """Which task a step trains on, or all of them at which weight; one of the four ways."""

    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            help=f"One task a step: {POLICY_HELP} [uniform].",
            autocompletion=policy_words,
        ),
    ] = None
    reward: Annotated[
        str | None,
        typer.Option(
            "--reward",
            help=f"What a step was worth: {REWARD_HELP} [hard; gain/scaled for exp3 and exp3s].",
            autocompletion=reward_words,
        ),
    ] = None
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            help="As a plan says; a model for each of its parts.",
            autocompletion=plan_files,
        ),
    ] = None
    weighting: Annotated[
        str | None,
        typer.Option(
            "--weighting",
            help=f"All tasks every step: {WEIGHTING_HELP}.",
            autocompletion=weighting_words,
        ),
    ] = None
    single: Annotated[
        bool, typer.Option("--single", help="One model for each task, for comparison.")
    ] = False

    @property
    def label(self) -> str:
        """What reports call such runs."""
        named = self.weighting or self.policy or "uniform"
        return "single" if self.single else "plan" if self.plan else named

    def check(self) -> None:
        """One way at a time; a reward is for one task a step."""
        ways = [
            f"--{name}" for name in ("policy", "weighting", "plan", "single") if getattr(self, name)
        ]
        if len(ways) > 1:
            raise OptionError(
                "One of --policy, --plan (one task a step), --weighting (all tasks a step) and "
                f"--single should be given. Found {' and '.join(ways)}. Leave all but one of them out."
            )
        if self.reward and ways in (["--weighting"], ["--single"]):
            raise OptionError(
                f"`--reward` should go with one task a step. Found it with {ways[0]}. Leave it out."
            )

    @cached_property
    def loaded_plan(self) -> Plan | None:
        """The plan of the file, read once."""
        from taskmix.plans import Plan

        return None if self.plan is None else Plan.load(self.plan)

    def runs(self, run: Run, tasks: TaskSet, seeds: range) -> list[Run]:
        """The run this way, for each seed."""
        run = replace(
            run,
            policy=None if self.weighting else parse_policy(self.policy or "uniform"),
            reward=None
            if self.weighting or self.single
            else parse_reward(self.reward, self.policy),
            weighting=parse_weighting(self.weighting) if self.weighting else None,
        )
        if self.loaded_plan is not None:
            return replace(self.loaded_plan, name=run.label).runs(run, seeds=seeds)
        runs = [replace(run, seed=seed) for seed in seeds]
        if self.single:
            return [replace(each, tasks=(name,)) for each in runs for name in tasks.names]
        return runs

    def compare(
        self, run: Run, results: Sequence[Executed], study: Study
    ) -> ComparisonDocument | None:
        """What the plan promised beside what came, kept in the study; None where it promised nothing."""
        from taskmix.plans import compare_with_promise, save_comparison

        if self.loaded_plan is None or self.plan is None:
            return None
        summaries = [result.summary for result in results]
        found = compare_with_promise(self.loaded_plan, self.plan, run, summaries)
        if found is not None:
            save_comparison(study.path, found)
        return found


@dataclass(frozen=True, kw_only=True)
class LengthOptions:
    """How long a run is, and when it is looked at."""

    steps: Annotated[int, typer.Option("--steps", min=1)] = 1000
    evaluate_every: Annotated[
        int | None, typer.Option("--evaluate-every", min=1, help="Steps [a tenth of all].")
    ] = None
    checkpoint_every: Annotated[
        int | None, typer.Option("--checkpoint-every", min=1, help="Steps [a tenth of all].")
    ] = None
    patience: Annotated[
        int | None,
        typer.Option("--patience", min=1, help="Evaluations without a better mean dev score."),
    ] = None
    best: Annotated[
        Best,
        typer.Option(
            "--best",
            help="Serve all tasks by the best mean on dev, or each by its own best evaluation.",
        ),
    ] = Best.MEAN
    precision: Annotated[
        Precision | None,
        typer.Option("--precision", help="[float32; bfloat16 for adapters on a GPU]"),
    ] = None

    def apply(self, run: Run) -> Run:
        """The run with these."""
        tenth = max(self.steps // 10, 1)
        return replace(
            run,
            evaluate_every=self.evaluate_every or tenth,
            checkpoint_every=self.checkpoint_every or tenth,
            patience=self.patience,
            keep=self.best.value,
            precision=run.precision if self.precision is None else self.precision.value,
        )


def train_command(
    context: typer.Context,
    tasks: TaskOptions,
    way: WayOptions,
    model: ModelOptions,
    optimization: OptimizationOptions,
    length: LengthOptions,
    where: OneByOneOptions,
    tracking: TrackingOptions,
    seed: Annotated[int, typer.Option("--seed", help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")] = 1,
    out: Annotated[Path, typer.Option("--out", help="The study to write to.")] = Path("study"),
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Keep the best model here, for taskmix predict."),
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

    from taskmix.engine import (
        check_mergeable,
        is_first_process,
        keep_best,
        open_study,
        read_ahead,
    )
    from taskmix.plans import check_comparison_path

    way.check()
    if merged and keep is None:
        raise OptionError("`--merged` should go with --keep DIR. Found it alone. Give a folder.")
    check_extras(model=model, where=where, tracking=tracking)
    where.join(context)
    run, loaded = make_template(
        way.label, tasks, model, where, optimization, steps=length.steps, seed=seed
    )
    run = length.apply(run)
    runs = way.runs(run, loaded, range(seed, seed + seeds))
    if merged:
        check_mergeable(runs)
    study = open_study(out, loaded, run.source, model=keep)
    if way.loaded_plan is not None and way.loaded_plan.expected:
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
        comparison = way.compare(run, results, study)
        print_results(runs, results, study, loaded, comparison, as_json=json_)


def _introduce(tasks: TaskSet, run: Run) -> None:
    rows = sum(task.size for task in tasks)
    echo(
        f"{len(tasks)} task{'' if len(tasks) == 1 else 's'} with {rows:,} rows to train on; "
        f"{type(run.architecture).__name__}, {run.label}, {run.steps:,} steps of "
        f"{run.batch_size} rows on {run.device}."
    )
    print_reading(tasks)
    print_tuning(run)
