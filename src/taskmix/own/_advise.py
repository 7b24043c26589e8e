"""`taskmix.advise`: the adviser from Python, also for models and data sets of one's own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from taskmix.advise import (
    Advice,
    AdviseOptions,
    Adviser,
    Budget,
    History,
    News,
    Timer,
    advice_document,
    advising_alone,
    answer,
    best_runs,
    measure_prices,
    outlook,
    plan_of,
    probe_of,
    save_advice,
)
from taskmix.engine import (
    DigitsSource,
    Executed,
    FolderSource,
    Optimization,
    Run,
    TaskSource,
    Workers,
    choose_device,
    open_study,
    run_all,
    save_models,
)
from taskmix.errors import OptionError, printable
from taskmix.models import Architecture, choose_architecture
from taskmix.own._advised import Advised
from taskmix.own._data import gather_tasks
from taskmix.own._module import own_module
from taskmix.tasks import HeldEncoding, TaskSet, reading_lines

Tasks = str | Path | TaskSet | Mapping[str, Any]
Model = str | nn.Module | Callable[..., nn.Module] | None


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
    steps: int | None = None,
    batch_size: int = 32,
    learning_rate: float | None = None,
    vectors: Path | str | None = None,
    collate: Callable[[list[Any]], Any] | None = None,
    device: str = "auto",
    seed: int = 0,
    workers: int = 1,
    quiet: bool = False,
) -> Advised:
    """Finds out how to train on tasks, as the command does, inside a budget.

    `tasks` is a task folder, a `TaskSet`, or a mapping from names to (train, dev, test), each a
    PyTorch `Dataset` of (input, target), arrays (X, y), a Hugging Face data set, an Arrow table or a
    list of mappings. `model` is a word of the command (auto, convolution, ...), a module of PyTorch
    that gives a vector for each row, or a function that makes one; the heads are ours.

    Runs execute in this process, one after another; with a word for a model, `workers` of 2 and more
    execute them in processes of their own (call it under `if __name__ == "__main__":` then). For a
    module of one's own nothing is trained as a fleet, and transfer is studied with the module
    itself. The study in `out` holds all runs: what was stopped goes on, and nothing is done twice.
    """
    begin = time.monotonic()
    own = not (model is None or isinstance(model, str))
    if own and workers != 1:
        raise OptionError("A `model` of one's own should run in this process. Leave `workers` out.")
    source, held = _source(tasks, hold=own, collate=collate)
    loaded = source.load()
    architecture, pretrained = _architecture(model, loaded, held, vectors)
    rate = Optimization.usual_rate(learning_rate, pretrained=pretrained)
    template = Run(
        label="template",
        source=source,
        architecture=architecture,
        optimization=Optimization(learning_rate=rate),
        steps=1,
        batch_size=batch_size,
        device=choose_device(device),
        seed=seed,
    )
    options = AdviseOptions(budget=Budget.parse(budget), target=target, batches=steps, seed=seed)
    study = open_study(out, loaded, source, model=None if own else Path(out) / "model")
    timer, history, probe = Timer(begin=begin), History(), probe_of(template)

    def say(words: str) -> None:
        if not quiet:
            print(printable(words), file=sys.stderr)  # noqa: T201

    def tell(news: News) -> None:
        say(f"[{news.spent:4.0%} spent] {news.words}")

    for line in (*reading_lines(loaded), *(f"Note: {note}" for note in loaded.notes)):
        say(line)

    def document(advice: Advice, *, end: bool) -> Any:
        found = answer(advice)
        return advice_document(
            advice,
            found,
            title="Advice",
            seconds=time.monotonic() - begin,
            history=history,
            outlook=outlook(advice, found.chosen.name, study) if end else None,
            commands={"Make this page again": f"taskmix report {out}"},
        )

    def keep(advice: Advice) -> None:
        history.add(advice)
        plan_of(advice, answer(advice)).save(study.path / "plan.json")
        save_advice(study.path, document(advice, end=False))

    with advising_alone(study.path):
        with Workers(workers) as pool:

            def perform(runs: Any) -> list[Executed]:
                return run_all(runs, study, engine="auto", workers=pool, should_stop=timer.is_over)

            advice = Adviser(
                template=template,
                probe=probe,
                study=study,
                options=options,
                perform=perform,
                measure_prices=lambda: measure_prices(
                    template, probe, options.budget.seconds or 0.0, workers=pool
                ),
                timer=timer,
                tell=tell,
                keep=keep,
            ).run()
        found = answer(advice)
        save_advice(study.path, document(advice, end=True))
        if not own:
            save_models(study.path / "model", best_runs(advice, found), study)
    return Advised(advice, found, study)


def _source(
    tasks: Tasks, *, hold: bool, collate: Callable[[list[Any]], Any] | None
) -> tuple[TaskSource, HeldEncoding | None]:
    if isinstance(tasks, str | Path):
        if str(tasks) == "digits" and not Path(tasks).exists():
            return DigitsSource(), None
        return FolderSource(path=str(tasks)), None
    held = None
    if isinstance(tasks, Mapping):
        tasks, held = gather_tasks(tasks, hold=hold, collate=collate)
    if not isinstance(tasks, TaskSet):
        raise OptionError(
            "`tasks` should be a folder, a TaskSet, or a mapping from names to (train, dev, test). "
            f"Found {type(tasks).__name__}."
        )
    return GivenTasks(tasks.content, tasks), held


def _architecture(
    model: Model, tasks: TaskSet, held: HeldEncoding | None, vectors: Path | str | None
) -> tuple[Architecture, bool]:
    file = None if vectors is None else Path(vectors)
    if model is None or isinstance(model, str):
        return choose_architecture(model or "auto", tasks, file)
    encoding = held or choose_architecture("auto", tasks, file)[0].encoding
    return own_module(model, encoding, encoding.encode(tasks)), False
