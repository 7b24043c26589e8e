"""`taskmix transfer`: which tasks help a target, which hurt it, and which to train together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options import (
    ModelOptions,
    OptimizationOptions,
    ResumeOption,
    TaskOptions,
    WhereOptions,
    make_template,
)
from taskmix.cli._options._extras import OWN_MODELS, check_extras
from taskmix.cli._printing._display import reading_bar
from taskmix.cli._printing._reading import print_reading, print_tuning, reading_document
from taskmix.cli._printing._repeat import this_command
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.engine import Run
    from taskmix.tasks import TaskSet
    from taskmix.transfer import GroupLimits, LearningOptions, SubsetDesign, TransferStudy


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


class EstimateName(StrEnum):
    """How to do without training every subset."""

    GRADIENTS = "gradients"


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """Which subsets of sources are trained."""

    subsets: Annotated[
        int | None, typer.Option("--subsets", min=1, help="Subsets a target [four a source].")
    ] = None
    standard_error: Annotated[
        float | None,
        typer.Option(
            "--standard-error",
            help="As many subsets as give effects this standard error, by the noise of a pilot.",
        ),
    ] = None
    most_subsets: Annotated[
        int, typer.Option("--most-subsets", min=1, help="That --standard-error may ask for.")
    ] = 5000
    size: Annotated[
        int | None, typer.Option("--size", min=1, help="Sources in a subset [3, or half of few].")
    ] = None
    design: Annotated[DesignName, typer.Option("--design")] = DesignName.BALANCED
    held_out: Annotated[
        int | None,
        typer.Option(
            "--held-out",
            min=3,
            help="Subsets of other sizes a target, to try predictions on [a quarter, at least 12].",
        ),
    ] = None
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Runs of each subset; more subsets tell more.")
    ] = 1
    alone: Annotated[int, typer.Option("--alone", min=1, help="Runs of each target alone.")] = 10

    def subset_design(self, seed: int) -> SubsetDesign:
        """The same as an object."""
        from taskmix.transfer import SubsetDesign

        return SubsetDesign(
            kind=self.design.value,
            size=self.size,
            count=self.subsets,
            precision=self.standard_error,
            most=self.most_subsets,
            held_out=self.held_out,
            repeats=self.seeds,
            alone=self.alone,
            seed=seed,
        )


@dataclass(frozen=True, kw_only=True)
class LessonOptions:
    """What is made of the outcomes."""

    smallest: Annotated[
        float, typer.Option("--smallest", min=0, help="Changes of the outcome that do not matter.")
    ] = 0.0
    false_discovery: Annotated[
        bool,
        typer.Option(
            "--false-discovery",
            help="Of all verdicts, hold the expected share of wrong ones at 5 %.",
        ),
    ] = False
    prefixes: Annotated[
        int, typer.Option("--prefixes", min=0, help="Selections to measure by training, a target.")
    ] = 4
    ridge: Annotated[
        float,
        typer.Option("--ridge", min=0, help="Above 0 fewer subsets than sources will do, biased."),
    ] = 0.0
    shrink: Annotated[
        bool,
        typer.Option(
            "--shrink", help="Draw effects towards those of other pairs, as far as runs are few."
        ),
    ] = False
    prior: Annotated[
        Path | None,
        typer.Option(
            "--prior-study",
            help="A cheaper study of the same tasks; effects are drawn towards it as far as it agrees.",
        ),
    ] = None
    largest_group: Annotated[
        int | None, typer.Option("--largest-group", min=1, help="Tasks in a group, with --all.")
    ] = None
    groups: Annotated[
        int | None, typer.Option("--groups", min=1, help="Groups at most, with --all.")
    ] = None

    def prior_gains(self, out: Path) -> dict[str, dict[str, float]] | None:
        """What the cheaper study found; None where none was named."""
        from taskmix.transfer import load_transfer

        if self.prior is None:
            return None
        if self.prior.resolve() == out.resolve():
            raise OptionError(
                "`prior` should be another study than --out: the same runs would count twice. Found "
                f"{self.prior} for both."
            )
        document = load_transfer(self.prior)
        if document is None:
            raise OptionError(
                "`prior` should be a study of `taskmix transfer`, with its transfer.json. Found none in "
                f"{self.prior}. Name the folder that was its --out."
            )
        return document.gains

    def learning(self, seed: int, out: Path) -> LearningOptions:
        """The same as an object."""
        from taskmix.transfer import LearningOptions

        return LearningOptions(
            ridge=self.ridge,
            shrink=self.shrink,
            prior=self.prior_gains(out),
            false_discovery=self.false_discovery,
            smallest=self.smallest,
            prefixes=self.prefixes,
            seed=seed,
        )

    def limits(self, tasks: int) -> GroupLimits:
        """The same as an object, for so many tasks."""
        from taskmix.transfer import GroupLimits

        limits = GroupLimits(largest=self.largest_group, groups=self.groups)
        limits.resolved(tasks)
        return limits


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """Which targets, and what is measured of them."""

    target: Annotated[
        list[str] | None, typer.Option("--target", help="The task to help; may be repeated.")
    ] = None
    all_: Annotated[
        bool, typer.Option("--all", help="Every task as target, from the same runs.")
    ] = False
    outcome: Annotated[OutcomeName, typer.Option("--outcome", help="Of the target on dev.")] = (
        OutcomeName.LOSS
    )
    steps: Annotated[int, typer.Option("--steps", min=1)] = 1000
    steps_of: Annotated[
        StepsOf,
        typer.Option("--steps-of", help="Whether --steps are batches of each task or of all."),
    ] = StepsOf.EACH_TASK
    estimate: Annotated[
        EstimateName | None,
        typer.Option(
            "--estimate", help="Estimate subsets from the gradients of one run, not by training."
        ),
    ] = None
    compare: Annotated[
        bool, typer.Option("--compare", help="Train them too and compare, with --estimate.")
    ] = False

    new: Annotated[
        str | None,
        typer.Option(
            "--new",
            help="Train nothing: say who will help the tasks of this folder, by the finished study.",
        ),
    ] = None

    def check(self) -> None:
        """Options that go together, or do not."""
        if self.new is not None:
            if self.target or self.all_ or self.estimate is not None:
                raise OptionError(
                    "`--new` should go without --target, --all and --estimate: the finished study has "
                    "them. Found one of them. Leave it out."
                )
            return
        if bool(self.target) == self.all_:
            found = "both. Leave one of them out." if self.all_ else "neither. Name a task to help."
            raise OptionError(f"Either --target or --all should be given. Found {found}")
        if self.compare and self.estimate is None:
            raise OptionError(
                "`--compare` should go with --estimate. Found it alone. Leave it out."
            )

    def study(self, run: Run, tasks: TaskSet, design: SubsetDesign) -> TransferStudy:
        """The question as an object."""
        from taskmix.transfer import TransferStudy

        return TransferStudy(
            template=run,
            targets=tasks.names if self.all_ else tuple(self.target or ()),
            design=design,
            outcome=self.outcome.value,
            budget="per-task" if self.steps_of is StepsOf.EACH_TASK else "total",
        )


def transfer(
    context: typer.Context,
    tasks: TaskOptions,
    question: QuestionOptions,
    design: DesignOptions,
    lesson: LessonOptions,
    model: ModelOptions,
    optimization: OptimizationOptions,
    where: WhereOptions,
    seed: Annotated[int, typer.Option("--seed", help="Of the subsets, and the first one.")] = 0,
    out: Annotated[Path, typer.Option("--out", help="The study to write to.")] = Path("study"),
    write_plan: Annotated[
        Path | None, typer.Option("--write-plan", help="Write what to train together to this plan.")
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
    from taskmix.cli._printing._transferred import print_transfer
    from taskmix.engine import open_study, read_ahead
    from taskmix.plans import check_plan_path
    from taskmix.records import to_plain
    from taskmix.transfer import save_transfer, study_transfer, transfer_document

    question.check()
    check_extras(model=model, where=where)
    if question.new is not None:
        _answer_for_new(question.new, tasks, model, out, as_json=json_)
        return
    where.join(context)
    run, loaded = make_template(
        "transfer", tasks, model, where, optimization, steps=question.steps, seed=seed
    )
    print_reading(loaded, quiet=json_)
    print_tuning(run, quiet=json_)
    description = question.study(run, loaded, design.subset_design(seed))
    limits, learning = lesson.limits(len(loaded)), lesson.learning(seed, out)
    if write_plan is not None:
        check_plan_path(write_plan)
    study = open_study(out, loaded, run.source)
    with reading_bar(quiet=json_) as tell:
        read_ahead([run], tell)
    with where.executing("transfer", quiet=json_, fresh=not resume) as executor:
        lessons, comparison = study_transfer(
            description,
            study,
            executor=executor,
            options=learning,
            limits=limits,
            estimate=question.estimate is not None,
            compare=question.compare,
        )
    document = transfer_document(lessons, command=this_command(), comparison=comparison)
    save_transfer(study.path, document)
    if write_plan is not None:
        lessons.plan(to_plain(document)).save(write_plan)
    print_transfer(document, study.path, write_plan, loaded, as_json=json_)


def _answer_for_new(
    new: str, tasks: TaskOptions, model: ModelOptions, out: Path, *, as_json: bool
) -> None:
    """Who will help the tasks of a folder that the study does not have."""
    from taskmix.cli._printing._display import print_json
    from taskmix.cli._printing._transferred import print_new_tasks
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
