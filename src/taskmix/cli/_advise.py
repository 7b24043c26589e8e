"""`taskmix advise`: from a folder of tasks to a plan, inside a budget."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._display import echo, show
from taskmix.cli._engines import (
    AddressOption,
    Engine,
    EngineOption,
    StoreOption,
    choose_device_on,
    join_cluster,
)
from taskmix.cli._extras import can_write_page, check_extras
from taskmix.cli._options import (
    BatchSizeOption,
    CacheOption,
    DeviceOption,
    FolderArgument,
    LabelOption,
    LearningRateOption,
    MaxLengthOption,
    ModelOption,
    OnlyOption,
    StrictOption,
    TaskColumnOption,
    TasksOption,
    TextOption,
    VectorsOption,
    WorkersOption,
    choose_architecture,
    choose_source,
)
from taskmix.cli._reading import print_reading, reading_document
from taskmix.cli._tracking import MLflowOption, TensorBoardOption, Tracking

if TYPE_CHECKING:
    from taskmix.advise import Advice, Answer, News, Outlook
    from taskmix.engine import Executed


def advise(
    context: typer.Context,
    folder: FolderArgument,
    target: Annotated[
        str | None, typer.Option("--target", help="The one task to help [all of them].")
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", help="A time (90s, 30m, 2h) or batches (20000-steps).")
    ] = "10m",
    out: Annotated[Path, typer.Option("--out", help="The study to write to.")] = Path("advice"),
    model: ModelOption = "auto",
    vectors: VectorsOption = None,
    max_length: MaxLengthOption = None,
    tasks: TasksOption = None,
    only: OnlyOption = None,
    task_column: TaskColumnOption = None,
    label: LabelOption = None,
    text: TextOption = None,
    strict: StrictOption = False,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Batches of a run [from the budget].")
    ] = None,
    batch_size: BatchSizeOption = 32,
    learning_rate: LearningRateOption = None,
    device: DeviceOption = "auto",
    seed: Annotated[int, typer.Option("--seed", help="The first of the seeds.")] = 0,
    workers: WorkersOption = None,
    engine: EngineOption = Engine.AUTO,
    address: AddressOption = None,
    store: StoreOption = None,
    tensorboard: TensorBoardOption = None,
    mlflow: MLflowOption = None,
    cache: CacheOption = None,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Find out how to train on the tasks of FOLDER, and say so in five lines.

    Looks at the data, trains what anyone would try first, studies which tasks help which with a small
    model, and races the candidates that follow from it until the budget is spent. Stop it whenever you
    like: the best plan so far is in the study, and the same command goes on.

    Examples:

        taskmix advise reviews/ --budget 20m --vectors glove.6B.100d.txt

        taskmix advise digits --budget 60000-steps
    """
    begin = time.monotonic()  # before the imports, which take their time
    from taskmix._signals import asked
    from taskmix.advise import (
        AdviseOptions,
        Adviser,
        Budget,
        History,
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
        typed_time,
    )
    from taskmix.cli._display import print_json
    from taskmix.cli._repeat import commands_of_advice, this_command
    from taskmix.cli._transfer_parts import performing
    from taskmix.engine import Optimization, Run, Workers, open_study, save_models
    from taskmix.report import PAGE_PACKAGES, write_report
    from taskmix.transfer import save_transfer, transfer_document

    check_extras(model=model, engine=engine, store=store, tensorboard=tensorboard, mlflow=mlflow)
    has_page = can_write_page(PAGE_PACKAGES)
    timer = Timer(begin=begin)
    options = AdviseOptions(budget=Budget.parse(budget), target=target, batches=steps, seed=seed)
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
    print_reading(loaded, quiet=json_)
    template = Run(
        label="template",
        source=source,
        tasks=kept,
        architecture=architecture,
        optimization=Optimization(learning_rate=rate),
        steps=1,
        batch_size=batch_size,
        device=choose_device_on(engine, device),
        seed=seed,
    )
    probe = probe_of(template)
    study = open_study(out, loaded, source, model=out / "model")
    history = History()
    tracking = Tracking(tensorboard, mlflow)

    def tell(news: News) -> None:
        if not json_:
            left = "" if news.left is None else f", {typed_time(news.left)} left"
            echo(f"[{news.spent:4.0%} spent{left}] {news.words}")

    def told(advice: Advice, found: Answer, ahead: Outlook | None = None) -> dict[str, Any]:
        return advice_document(
            advice,
            found,
            title=f"Advice for {folder}",
            seconds=time.monotonic() - begin,
            history=history,
            outlook=ahead,
            commands=commands_of_advice(context, folder, out, advice.batches),
        )

    def keep(advice: Advice) -> None:
        history.add(advice)
        found = answer(advice)
        plan_of(advice, found).save(out / "plan.json")
        save_advice(out, told(advice, found))

    with advising_alone(out):
        with (
            Workers(workers) as pool,
            performing(
                study,
                engine=engine.value,
                workers=pool,
                fresh=False,
                quiet=json_,
                title="advise",
                is_over=timer.is_over,
            ) as do,
        ):
            seconds = options.budget.seconds

            def perform(runs: Sequence[Run]) -> list[Executed]:
                results = do(runs)
                tracking.tell([run for run in runs if run.label != probe.label], study)
                return results

            advice = Adviser(
                template=template,
                probe=probe,
                study=study,
                options=options,
                perform=perform,
                measure_prices=lambda: measure_prices(
                    template, probe, seconds or 0.0, workers=pool, should_stop=asked
                ),
                timer=timer,
                tell=tell,
                keep=keep,
            ).run()
        found = answer(advice)
        saved = save_models(
            out / "model", best_runs(advice, found), study, notes={"advice": list(found.lines)}
        )
        if advice.lessons is not None:
            save_transfer(out, transfer_document(advice.lessons, command=this_command()))
        document = told(advice, found, outlook(advice, found.chosen.name, study))
        save_advice(out, document)
    if json_:
        print_json(document | reading_document(loaded))
    else:
        _print_answer(advice, found)
    # After the answer, which nothing about the page should cost.
    page = write_report(study, out / "report.html") if has_page else None
    if json_:
        return
    evidence = "" if page is None else f" The page with the evidence: {page}"
    echo(f"The plan: {out / 'plan.json'}.{evidence}")
    echo(f"The model: {saved}. Its answers: taskmix predict {saved} INPUT --task TASK")
    echo(f"Train by it: {document['commands']['Train by the plan']}")


def _print_answer(advice: Advice, found: Answer) -> None:
    from rich.table import Table

    table = Table(
        title=f"Mean dev score of {len(advice.judged)} tasks, and how far behind the first"
    )
    for name in ("way of training", "score", "behind", "seeds", "may be the best"):
        table.add_column(name, justify="left" if name == "way of training" else "right")
    for standing in advice.race.standings:
        behind = standing.behind
        candidate = advice.entries[standing.name][0].candidate
        gap = f"{behind.mean:.4f}"
        if behind.low == behind.low:
            gap += f" ({behind.low:.4f} to {behind.high:.4f})"
        first = standing is advice.race.leader
        table.add_row(
            f"{standing.name}: {candidate.words}",
            f"{standing.mean:.4f}",
            "" if first else gap,
            str(standing.seeds),
            "yes" if standing.is_open else "no",
        )
    show(table)
    for finding in _warnings(advice):
        echo(f"Note: {finding}")
    for note in advice.notes:
        echo(f"Note: {note}")
    for line in found.lines:
        echo(line)


def _warnings(advice: Advice, most: int = 8) -> list[str]:
    said: list[Any] = [finding.words for finding in advice.findings if finding.is_warning]
    more = len(said) - most
    return said if more <= 0 else [*said[:most], f"{more} more such findings are in the page."]
