"""`taskmix advise`: from a folder of tasks to a plan, inside a budget; `demo` does it on known tasks."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._tasks import ModelOptions, TaskOptions, make_template
from taskmix.cli._options._where import (
    TrackingOptions,
    WhereOptions,
    WorkersOption,
    can_write_page,
    check_extras,
)
from taskmix.cli._printing._display import draw_table, echo, print_json, reading_bar
from taskmix.cli._printing._reading import print_reading, print_tuning, reading_document
from taskmix.cli._printing._repeat import commands_of_advice

if TYPE_CHECKING:
    from taskmix.adviser import Advised, News

# Steps, so that everyone sees the same answer: with all that comes before and after, half a minute of
# one core.
DEMO_BUDGET = "8000-steps"
_MOST_WARNINGS = 8  # on a terminal; the page has all of them


def advise_command(
    context: typer.Context,
    tasks: TaskOptions,
    model: ModelOptions,
    where: WhereOptions,
    tracking: TrackingOptions,
    target: Annotated[str | None, typer.Option(help="The one task to help [all of them].")] = None,
    budget: Annotated[
        str, typer.Option(help="A time (90s, 30m, 2h) or batches (20000-steps).")
    ] = "10m",
    steps: Annotated[
        int | None, typer.Option(min=1, help="Batches of a run [from the budget].")
    ] = None,
    refit: Annotated[
        bool, typer.Option(help="Train what is delivered again on train and dev rows.")
    ] = True,
    seed: Annotated[int, typer.Option(help="The first of the seeds.")] = 0,
    out: Annotated[Path, typer.Option(help="The study to write to.")] = Path("advice"),
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Recommend how to train on the tasks of FOLDER, and train it.

    Looks at the data, fits linear models and trees, trains what anyone would try first, studies which
    tasks help which with a small model, and races the candidates that follow from it. The model that you
    get is a blend of the best of these, chosen and weighed on dev rows and trained again on all of them.
    Stop it whenever you like: the best plan so far is in the study, and the same command goes on.

    Examples:

        taskmix advise reviews/ --budget 20m --vectors glove.6B.100d.txt

        taskmix advise digits --budget 60000-steps --steps 4000
    """
    begin = time.monotonic()  # before the imports, which take their time
    from taskmix.adviser import MODEL, AdviseOptions, Budget, advise_on, useful_workers
    from taskmix.engine import open_study
    from taskmix.records import to_plain
    from taskmix.report import PAGE_PACKAGES

    check_extras(model=model.model, where=where, tracking=tracking)
    can_write_page(PAGE_PACKAGES)
    options = AdviseOptions(
        budget=Budget.parse(budget),
        target=target,
        batches=steps,
        seed=seed,
        refit=refit,
    )
    where.join(context)
    template, loaded = make_template("template", tasks, model, where, steps=1, seed=seed)
    print_reading(loaded, quiet=json_)
    print_tuning(template, quiet=json_)
    study = open_study(out, loaded, template.source, model=out / MODEL)

    def show_answer(advised: Advised) -> None:
        if json_:
            print_json(to_plain(advised.document) | reading_document(loaded))
        else:
            print_advised(advised)

    if where.workers is None and useful_workers(template, None) == 1:
        import torch

        torch.set_num_threads(1)  # threads of a small model wait for each other more than they work
        where = replace(where, workers=1)
    with where.executing("advise", quiet=json_, tracking=tracking) as executor:
        advised = advise_on(
            template,
            study,
            options,
            executor=executor,
            title=f"Advice for {tasks.folder}",
            commands=lambda batches: commands_of_advice(
                context, tasks.folder, out, template, batches
            ),
            on_news=(lambda news: None) if json_ else _print_news,
            on_answer=show_answer,
            reading=partial(reading_bar, quiet=json_),
            begin=begin,
        )
    if not json_:
        print_places(advised)


def _print_news(news: News) -> None:
    from taskmix.adviser import typed_time

    left = "" if news.left is None else f", {typed_time(news.left)} left"
    echo(f"[{news.spent:4.0%} spent{left}] {news.words}")


def print_advised(advised: Advised) -> None:
    """The race as a table, what was noticed, and the answer."""
    document = advised.document
    if document.candidates:
        title = (
            f"Mean dev score of {len(document.judged)} tasks, how far behind the first, and what a "
            "seed costs"
        )
        header, *rows = advised.table()
        draw_table(header, rows, title=title, wide=True)
    warnings = list(document.warnings)
    more = len(warnings) - _MOST_WARNINGS
    if more > 0:
        warnings[_MOST_WARNINGS:] = [f"{more} more such findings are in the page."]
    for words in (*warnings, *document.notes):
        echo(f"Note: {words}")
    for line in document.lines:
        echo(line)


def print_places(advised: Advised) -> None:
    """Where plan, page and model are, and how to go on."""
    from taskmix.adviser import MODEL, TRAIN

    folder = advised.study.path
    page, model = folder / "report.html", folder / MODEL
    echo(f"The model to use: {model}. Its answers: taskmix predict {model} INPUT --task TASK")
    echo(
        f"The recipe for training the network elsewhere: {folder / 'plan.json'}. Here: "
        f"{advised.document.commands[TRAIN]}"
    )
    if page.exists():
        echo(f"The page with the evidence: {page}")


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="The study to write.")] = Path("taskmix-demo"),
    budget: Annotated[
        str, typer.Option(help="A time (60s, 5m) or batches (30000-steps).")
    ] = DEMO_BUDGET,
    seed: Annotated[int, typer.Option(help="The first of the seeds.")] = 0,
    workers: WorkersOption = None,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Ask for advice on eight small tasks, two of which are known to be worth nothing.

    The tasks are made from the digits that come with scikit-learn; two of them have shuffled labels.
    The adviser is not told, and should find it out: `taskmix advise digits`. Nothing is downloaded.
    Run it again: it is done already.

    Example: taskmix demo --out taskmix-demo
    """
    if not json_:
        echo(
            "Eight tasks from handwritten digits. The two named `shuffled…` have random labels; the "
            "adviser is not told."
        )
    advise_command(
        context,
        TaskOptions(folder="digits"),
        ModelOptions(),
        WhereOptions(workers=workers),
        TrackingOptions(),
        out=out,
        budget=budget,
        seed=seed,
        json_=json_,
    )
