"""`advise`: from tasks to a plan, a trained model and a page of evidence."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from taskmix.adviser._advice import Advice, AdviseOptions, News
from taskmix.adviser._advised import Advised
from taskmix.adviser._adviser import Adviser
from taskmix.adviser._alone import advising_alone
from taskmix.adviser._answer import Answer, answer, best_runs, plan_of
from taskmix.adviser._budget import Budget, Timer, parse_time
from taskmix.adviser._document import advice_document
from taskmix.adviser._history import History
from taskmix.adviser._outlook import outlook
from taskmix.adviser._probe import probe_of
from taskmix.adviser._reading import ReadingProgress
from taskmix.engine import (
    Auto,
    DigitsSource,
    Executor,
    FolderSource,
    Optimization,
    Run,
    TaskSource,
    Workers,
    choose_device,
    open_study,
    save_models,
)
from taskmix.errors import OptionError, printable
from taskmix.extras import missing
from taskmix.models import Architecture, Tuning, choose_architecture, own_module
from taskmix.plans import AdviceDocument, Plan, save_advice, settings_of, training_script
from taskmix.policies import HardProgress
from taskmix.records import Study
from taskmix.report import PAGE_PACKAGES
from taskmix.tasks import HeldEncoding, TaskSet, gather_tasks, reading_lines
from taskmix.transfer import save_transfer, transfer_document

Tasks = str | Path | TaskSet | TaskSource | Mapping[str, Any]
Model = str | nn.Module | Callable[..., nn.Module] | None
MODEL = "model"  # the folder in the study for the trained model
OUTLOOK_SECONDS = 8.0  # of a budget that are left, below which no law is searched for
TRAIN, IN_PYTHON = "Train by the plan", "The same in Python"
ASK_AGAIN = "Ask again: nothing is trained twice, and what was stopped goes on"


@dataclass(frozen=True)
class GivenTasks:
    """Tasks in memory as a source; equal where their content is."""

    content: str
    tasks: TaskSet = field(compare=False, repr=False)

    def load(self) -> TaskSet:
        return self.tasks


def advise(
    tasks: Tasks,
    *,
    model: Model = "auto",
    budget: str = "10m",
    out: Path | str = "advice",
    target: str | None = None,
    metric: str | None = None,
    steps: int | None = None,
    train_steps: int | None = None,
    train_time: str | None = None,
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
    """Finds out how to train on tasks, inside a budget.

    `tasks` is a task folder, a `TaskSet`, a source of tasks, or a mapping from names to (train, dev,
    test), each a PyTorch `Dataset` of (input, target), arrays (X, y), a Hugging Face data set, an Arrow
    table or a list of mappings. `model` is a word of the command (auto, convolution, ...), a module of
    PyTorch that gives a vector for each row, or a function that makes one; the heads are ours. Of a
    pretrained model `tune` says what is trained: heads (the default on a CPU), adapters of a `rank` (on
    a GPU), or all; `adapter` is a folder of PEFT, whose adapters every run begins with. `metric` names
    what tasks of a folder or a mapping are scored by; where a class is rare, that is not accuracy.

    `train_steps` or `train_time` (such as "2h" of this device) says how long the final training will be;
    without them it is as long as the learning curves still rise. Ways are ranked for that length.

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
    source, held = _source(tasks, hold=own, collate=collate, metric=metric)
    loaded = source.load()
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
        train_batches=train_steps,
        train_seconds=parse_time(train_time),
    )
    study = open_study(out, loaded, source, model=None if own else Path(out) / MODEL)
    if not quiet:
        _print_lines(*reading_lines(loaded), *(f"Note: {note}" for note in loaded.notes))
    with _executing(executor, workers) as does:
        return advise_on(
            template,
            study,
            options,
            executor=does,
            title=f"Advice for {tasks}" if isinstance(tasks, str | Path) else "Advice",
            on_news=_ignore if quiet else _print_news,
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
    commands: Callable[[int], Mapping[str, str]] | None = None,  # for runs of so many batches
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
    ['look', 'baselines', 'runs', 'candidates', 'runs', 'end']
    """
    begin = time.monotonic() if begin is None else begin
    timer = Timer(begin=begin)
    history = History()

    def lines(advice: Advice) -> Mapping[str, str]:
        """What each is for, and the line to type."""
        again = {"Make this page again": f"taskmix report {study.path}"}
        typed = again if commands is None else commands(advice.promised)
        tenth = max(advice.promised // 10, 1)  # as `taskmix train` has it
        final = replace(template, reward=HardProgress(), steps=advice.promised)
        script = training_script(
            replace(final, evaluate_every=tenth, checkpoint_every=tenth),
            plan=study.path / "plan.json",
            seeds=(options.seed,),
        )
        return typed if script is None else {**typed, IN_PYTHON: script}

    def kept_plan(advice: Advice, found: Answer) -> Plan:
        """The plan, with the settings that it promises its scores for and how to train by it."""
        plan = plan_of(advice, found)
        training = {
            what: line for what, line in lines(advice).items() if what in (TRAIN, IN_PYTHON)
        }
        more = {"settings": settings_of(template), "commands": training}
        return replace(plan, evidence={**plan.evidence, **more})

    def document(advice: Advice, *, end: bool = False) -> AdviceDocument:
        found = answer(advice, study)
        return advice_document(
            advice,
            found,
            title=title,
            seconds=time.monotonic() - begin,
            history=history,
            outlook=outlook(advice, found.chosen.name, study)
            if end and timer.rest() > OUTLOOK_SECONDS
            else None,
            commands=lines(advice),
        )

    def keep(advice: Advice) -> None:
        history.add(advice)
        kept_plan(advice, answer(advice, study)).save(study.path / "plan.json")
        save_advice(study.path, document(advice))

    with advising_alone(study.path):
        advice = Adviser(
            template=template,
            probe=probe_of(template),
            study=study,
            options=options,
            executor=executor,
            timer=timer,
            tell=on_news,
            keep=keep,
            reading=reading,
        ).run()
        found = answer(advice, study)
        if keeps_model:
            notes = {"advice": list(found.lines)}
            save_models(study.path / MODEL, best_runs(advice, found), study, notes=notes)
        if advice.lessons is not None:
            command = lines(advice).get(ASK_AGAIN, "taskmix.advise")
            save_transfer(study.path, transfer_document(advice.lessons, command=command))
        final = document(advice, end=True)
        save_advice(study.path, final)
        kept = kept_plan(advice, found)
        kept.save(study.path / "plan.json")
    advised = Advised(advice, found, study, final, kept)
    on_answer(advised)
    if missing(*PAGE_PACKAGES, purpose="The page") is None:
        advised.save_report(study.path / "report.html")
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


def _print_news(news: News) -> None:
    _print_lines(f"[{news.spent:4.0%} spent] {news.words}")


def _print_lines(*lines: str) -> None:
    for line in lines:
        print(printable(line), file=sys.stderr)  # noqa: T201


def _source(
    tasks: Tasks,
    *,
    hold: bool,
    collate: Callable[[list[Any]], Any] | None,
    metric: str | None,
) -> tuple[TaskSource, HeldEncoding | None]:
    if isinstance(tasks, str | Path):
        if str(tasks) == "digits" and not Path(tasks).exists():
            return DigitsSource(), None
        return FolderSource(path=str(tasks), metric=metric), None
    held = None
    if isinstance(tasks, Mapping):
        tasks, held = gather_tasks(tasks, hold=hold, collate=collate, metric=metric)
    elif metric is not None:
        raise OptionError(
            "`metric` should be that of each task, where there are tasks. Leave it out."
        )
    if isinstance(tasks, TaskSet):
        return GivenTasks(tasks.content, tasks), held
    if hasattr(tasks, "load"):
        return tasks, None
    raise OptionError(
        "`tasks` should be a folder, a TaskSet, or a mapping from names to (train, dev, test). Found "
        f"{type(tasks).__name__}."
    )


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
