"""`advise`: from tasks to a plan, a trained model and a page of evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from taskmix.adviser._advice import Advice, AdviseOptions, News
from taskmix.adviser._advised import Advised
from taskmix.adviser._adviser import Adviser
from taskmix.adviser._answer import answer, best_runs, plan_of
from taskmix.adviser._budget import Budget, Timer
from taskmix.adviser._document import advice_document
from taskmix.adviser._left_out import made_or_noted
from taskmix.adviser._probe import probe_of
from taskmix.adviser._reading import ReadingProgress
from taskmix.adviser._showing import news_shower, print_lines
from taskmix.engine import (
    Auto,
    DigitsSource,
    Executor,
    FolderSource,
    GivenTasks,
    Optimization,
    Run,
    TaskSource,
    Workers,
    choose_device,
    load_for_runs,
    open_study,
    save_models,
    working_alone,
)
from taskmix.errors import OptionError
from taskmix.extras import missing
from taskmix.models import Architecture, Tuning, choose_architecture, own_module
from taskmix.plans import save_advice, settings_of, training_script
from taskmix.policies import HardProgress
from taskmix.records import Study
from taskmix.report import PAGE_PACKAGES
from taskmix.tasks import HeldEncoding, TaskKind, TaskSet, gather_tasks, reading_lines
from taskmix.transfer import save_transfer, transfer_document

Tasks = Any  # a path, a TaskSet, a source, or whatever `load_tasks` takes: frames, mappings of them
Model = str | nn.Module | Callable[..., nn.Module] | None
MODEL, CHECKED = (
    "model",
    "checked-model",
)  # folders in the study: what is delivered, and before the refit
# What says how tasks are made of a folder or a frame: of no use for tasks that are made already.
READING = (
    *("settings", "task_column", "split_column", "label", "text", "features", "ignore", "kind"),
    *("separator", "metric", "strict"),
)
TRAIN, IN_PYTHON = "Train by the plan", "The same in Python"
ASK_AGAIN = "Ask again: nothing is trained twice, and what was stopped goes on"


def advise(
    tasks: Tasks,
    *,
    model: Model = "auto",
    budget: str | float = "10m",
    out: Path | str = "advice",
    target: str | None = None,
    only: str | Sequence[str] | None = None,
    settings: Path | str | None = None,
    task_column: str | None = None,
    split_column: str | None = None,
    label: str | Sequence[str] | None = None,
    text: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    kind: TaskKind | None = None,
    separator: str | None = None,
    metric: str | None = None,
    strict: bool = False,
    cache: Path | str | None = None,
    steps: int | None = None,
    refit: bool = True,
    batch_size: int = 32,
    learning_rate: float | None = None,
    vectors: Path | str | None = None,
    max_length: int | None = None,
    tune: Tuning | None = None,
    rank: int | None = None,
    adapter: Path | str | None = None,
    collate: Callable[[list[Any]], Any] | None = None,
    device: str = "auto",
    seed: int = 0,
    workers: int = 1,
    executor: Executor | None = None,
    quiet: bool = False,
) -> Advised:
    """Recommends how to train on tasks, and trains it, inside a budget.

    `tasks` is a task folder, a frame (pandas, polars, Arrow, a Hugging Face data set, a mapping from
    columns to values), frames by task or by split, a `TaskSet`, a source of tasks, or a mapping from
    names to (train, dev, test), each a frame, arrays (X, y) or a PyTorch `Dataset` of (input, target).
    `task_column`, `label`, `text` and the others down to `strict` say how tasks are made of a folder or
    a frame, as in `load_tasks`; `only` names those to keep, `settings` is a TOML file that says all of
    this, and `cache` a folder that keeps encoded rows for the next time.

    `model` is a word of the command (auto, convolution, ...), a module of PyTorch that gives a vector
    for each row, or a function that makes one; the heads are ours. Of a pretrained model `tune` says
    what is trained: heads (the default on a CPU), adapters of a `rank` (on a GPU), or all; `adapter` is
    a folder of PEFT, whose adapters every run begins with.

    `budget` is a time ("5m", or 300 seconds) or a number of batches ("16000-steps"); candidates are
    compared by runs of `steps` batches, or of what the budget allows. What is delivered is a blend of
    the best network and the best shallow models, trained again on train and dev rows; with `refit=False`
    it stays as it was checked.

    Runs are done by `executor`: unless one is given, in this process, one after another, or with
    `workers` of 2 and more in processes of their own (call it under `if __name__ == "__main__":` then).
    A module of one's own stays in this process, is never trained as a fleet, and transfer is studied
    with the module itself. The study in `out` holds all runs, the plan, the advice, the trained model
    and the page: what was stopped goes on, and nothing is done twice.

    >>> from taskmix.tasks import digits_tasks
    >>> few = digits_tasks().select(("parity", "half"))
    >>> advised = advise(few, budget="100-steps", steps=50, quiet=True)  # "10m" for an answer to use
    >>> advised.plan().tasks, len(advised.plan().expected)
    (('parity', 'half'), 2)
    """
    begin = time.monotonic()
    own = not (model is None or isinstance(model, str))
    if own and workers != 1:
        raise OptionError("A `model` of one's own should run in this process. Leave `workers` out.")
    reading = FolderSource(
        path=str(tasks) if isinstance(tasks, str | Path) else "",
        tasks=_names(only),
        settings=None if settings is None else Path(settings),
        task_column=task_column,
        split_column=split_column,
        label=_names(label),
        text=_names(text),
        features=_names(features),
        ignore=_names(ignore),
        kind=kind,
        separator=separator,
        metric=metric,
        strict=strict,
        cache=None if cache is None else Path(cache),
    )
    source, held = _source(tasks, reading, hold=own, collate=collate)
    loaded = load_for_runs(source)
    where = choose_device(device)
    file = None if vectors is None else Path(vectors)
    choose = partial(
        choose_architecture,
        vectors=file,
        max_length=max_length,
        tune=tune,
        rank=rank,
        adapter=None if adapter is None else str(adapter),
        device=where,
    )
    architecture, tuning = _architecture(model, loaded, held, choose)
    rate = Optimization.usual_rate(learning_rate, tuning=tuning)
    template = Run(
        label="template",
        source=source,
        architecture=architecture,
        optimization=Optimization(learning_rate=rate),
        steps=1,
        batch_size=batch_size,
        device=where,
        seed=seed,
    )
    options = AdviseOptions(
        budget=Budget.parse(budget),
        target=target,
        batches=steps,
        seed=seed,
        refit=refit,
    )
    study = open_study(out, loaded, source, model=None if own else Path(out) / MODEL)
    if not quiet:
        print_lines(*reading_lines(loaded), *(f"Note: {note}" for note in loaded.notes))
    with _executing(executor, workers) as does:
        return advise_on(
            template,
            study,
            options,
            executor=does,
            title=f"Advice for {tasks}" if isinstance(tasks, str | Path) else "Advice",
            on_news=_ignore if quiet else news_shower(),
            keeps_model=not own,
            begin=begin,
        )


def advise_on(
    template: Run,  # source, model and optimisation of every run
    study: Study,
    options: AdviseOptions,
    *,
    executor: Executor,
    title: str = "Advice",
    commands: Callable[[int], Mapping[str, str]] | None = None,  # for a network of so many batches
    on_news: Callable[[News], None],  # hears what the adviser is at
    on_answer: Callable[[Advised], None] = lambda advised: None,  # before the page is drawn
    reading: ReadingProgress = nullcontext,  # hears how many texts a frozen encoder has read
    keeps_model: bool = True,
    begin: float | None = None,  # of the time of a budget, by `time.monotonic()`
) -> Advised:
    """The same for a run, a study and an executor; `taskmix advise` and `taskmix.advise` both call it.

    Writes into the study, beside the runs: `plan.json`, `advice.json`, `transfer.json`, the model and,
    where the packages for it are there, `report.html`.

    >>> from taskmix.engine import DigitsSource, Here, Run, open_study
    >>> from taskmix.models import Perceptron
    >>> source = DigitsSource(tasks=("parity", "half"))
    >>> run = Run(label="template", source=source, architecture=Perceptron(), steps=1, seed=0)
    >>> options, heard = AdviseOptions(budget=Budget.parse("100-steps"), batches=50), []
    >>> study = open_study("study", source.load(), source)
    >>> advised = advise_on(run, study, options, executor=Here(workers=1), on_news=heard.append)
    >>> [news.stage for news in heard]
    ['look', 'peers', 'baselines', 'candidates', 'end', 'deliver', 'deliver']
    """
    begin = time.monotonic() if begin is None else begin
    timer = Timer(begin=begin)

    def lines(advice: Advice) -> Mapping[str, str]:
        """What each is for, and the line to type."""
        again = {"Make this page again": f"taskmix report {study.path}"}
        batches = max(advice.batches, 1)
        if advice.delivered is not None and advice.delivered.batches:
            batches = advice.delivered.batches
        typed = again if commands is None else commands(batches)
        tenth = max(batches // 10, 1)  # as `taskmix train` has it
        final = replace(template, reward=HardProgress(), steps=batches)
        script = training_script(
            replace(final, evaluate_every=tenth, checkpoint_every=tenth),
            plan=study.path / "plan.json",
            seeds=(options.seed,),
        )
        return typed if script is None else {**typed, IN_PYTHON: script}

    def keep_answer(advice: Advice) -> Advised:
        """Writes the plan, with the settings that it promises its scores for, and the answer."""
        found, typed = answer(advice, study), lines(advice)
        plan = plan_of(advice, found)
        plan = replace(plan, evidence={**plan.evidence, "settings": settings_of(template)})
        plan.save(study.path / "plan.json")
        document = advice_document(
            advice,
            found,
            title=title,
            seconds=time.monotonic() - begin,
            commands=typed,
        )
        save_advice(study.path, document)
        return Advised(advice, found, study, document, plan)

    with working_alone(study.path, "advise"):
        advice = Adviser(
            template=template,
            probe_of=probe_of,
            study=study,
            options=options,
            executor=executor,
            timer=timer,
            tell=on_news,
            keep=keep_answer,
            reading=reading,
        ).run()
        advised = keep_answer(advice)
        found = advised.answer
        if keeps_model:
            about = {"advice": list(found.lines)}
            whole = advice.delivered
            if whole is None:
                save_models(study.path / MODEL, best_runs(advice, found), study, notes=about)
            else:
                whole.final.save(study.path / MODEL, study, about)
                if options.refit:
                    whole.before.save(study.path / CHECKED, study, about)
        # The answer, the plan and the model are there; what follows only adds to them.
        notes: list[str] = []
        if advice.lessons is not None:
            command = lines(advice).get(ASK_AGAIN, "taskmix.advise")
            lessons = advice.lessons

            def save() -> None:
                save_transfer(study.path, transfer_document(lessons, command=command))

            made_or_noted("The file of which tasks help which", save, notes)
        if notes:
            advised = keep_answer(replace(advice, notes=(*advice.notes, *notes)))
    on_answer(advised)
    if missing(*PAGE_PACKAGES, purpose="The page") is None:
        draw = partial(advised.save_report, study.path / "report.html")
        if made_or_noted("The page", draw, notes) is None:
            on_news(News(stage="page", words=notes[-1], spent=1.0))
            advised = keep_answer(replace(advice, notes=(*advice.notes, *notes)))
    return advised


@contextmanager
def _executing(executor: Executor | None, workers: int) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    with Workers(workers) as processes:
        yield Auto(workers=processes)


def _ignore(news: News) -> None:
    pass


def _source(
    tasks: Tasks,
    reading: FolderSource,  # the options by which a folder or a frame is read
    *,
    hold: bool,
    collate: Callable[[list[Any]], Any] | None,
) -> tuple[TaskSource, HeldEncoding | None]:
    said = [name for name in READING if getattr(reading, name) not in (None, False)]
    is_demo = reading.path == "digits" and not Path(reading.path).exists()
    if is_demo or isinstance(tasks, TaskSet) or hasattr(tasks, "load"):
        if said:
            raise OptionError(
                f"`{said[0]}` should go with a folder or a frame. Found tasks that are made already. "
                "Leave it out."
            )
        if is_demo:
            return DigitsSource(tasks=reading.tasks), None
        if isinstance(tasks, TaskSet):
            chosen = tasks if reading.tasks is None else tasks.select(reading.tasks)
            return GivenTasks.of(chosen), None
        if reading.tasks is not None:
            raise OptionError(
                "`only` should go with a folder, a frame or a TaskSet. Found a source of tasks, which "
                "makes its own choice. Leave it out."
            )
        return tasks, None
    if isinstance(tasks, str | Path):
        return reading, None
    found, held = gather_tasks(
        tasks, hold=hold, collate=collate, metric=reading.metric, read=reading.read
    )
    if held is None:
        return GivenTasks.of(found), None
    for name in said:
        if name != "metric":
            raise OptionError(
                f"`{name}` should go with columns. Found pairs of input and target, which have none. "
                "Leave it out."
            )
    return GivenTasks.of(found if reading.tasks is None else found.select(reading.tasks)), held


def _names(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (given,) if isinstance(given, str) else None if given is None else tuple(given)


def _architecture(
    model: Model,
    tasks: TaskSet,
    held: HeldEncoding | None,
    choose: Callable[[str, TaskSet], tuple[Architecture, Tuning | None]],
) -> tuple[Architecture, Tuning | None]:
    if model is None or isinstance(model, str):
        return choose(model or "auto", tasks)
    encoding = held or choose("auto", tasks)[0].encoding
    return own_module(model, encoding, encoding.encode(tasks)), None
