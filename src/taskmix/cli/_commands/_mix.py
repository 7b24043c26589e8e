"""`taskmix mix`: from a table of runs on mixtures to the mixture to train on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._options._mixtures import (
    amount,
    numbers_by_name,
    read_groups,
    read_shares_of,
    read_supply,
    split_names,
)
from taskmix.cli._printing._display import draw_table, echo, print_json, say_flags_of
from taskmix.cli._printing._repeat import this_command
from taskmix.errors import OptionError


def mix(
    ratios: Annotated[
        Path,
        typer.Argument(help="Shares of domains, a row a run (.csv, ...); or a study's folder."),
    ],
    metrics: Annotated[
        Path | None, typer.Argument(help="Metrics, a row a run; not for a study.")
    ] = None,
    target: Annotated[
        str, typer.Option(help="A metric, or mean, or worst: of all, or of --weights.")
    ] = "mean",
    weights: Annotated[
        str | None, typer.Option(help="Of metrics in the mean: code=2,prose=1")
    ] = None,
    front: Annotated[
        str | None, typer.Option(help="Two metrics whose trade is shown: prose,code")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--parameters", help="Of the model to train, among several sizes [largest]."),
    ] = None,
    at_most: Annotated[
        list[str] | None, typer.Option(help="Largest shares: code=0.3,web=0.5")
    ] = None,
    at_least: Annotated[list[str] | None, typer.Option(help="Smallest shares: wiki=0.02")] = None,
    group: Annotated[
        list[str] | None, typer.Option(help='A bound on a sum: "code+math<=0.4"')
    ] = None,
    supply: Annotated[
        str | None, typer.Option(help="Tokens at hand: web=1B,code=2e8, or a file of them.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Tokens that the large run reads: 10B")] = None,
    repeat_value: Annotated[
        str | None, typer.Option(help="R of repeated tokens [15.4 as published].")
    ] = None,
    run_column: Annotated[
        str | None, typer.Option(help="The column that joins both files [run].")
    ] = None,
    size_column: Annotated[
        str | None, typer.Option(help="The column of sizes of model: 60M, 6e7.")
    ] = None,
    metrics_columns: Annotated[
        str | None, typer.Option(help="Which columns are metrics: loss_*, or a,b.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out: seed,notes")] = None,
    larger_is_better: Annotated[
        str | None, typer.Option("--maximise", help="Metrics that are better when larger.")
    ] = None,
    lower_is_better: Annotated[
        str | None, typer.Option("--minimise", help="Metrics that are not, whatever their names.")
    ] = None,
    changes: Annotated[
        Path | None, typer.Option(help="Domains that were merged, split, renamed: a .toml file.")
    ] = None,
    next_runs: Annotated[
        int, typer.Option("--next", min=0, help="How many runs to do next, chosen to tell most.")
    ] = 0,
    tolerance: Annotated[
        float | None, typer.Option(min=0.0, help="Expected regret that is enough.")
    ] = None,
    predict: Annotated[
        str | None, typer.Option(help="A file of mixtures to predict, a row each.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of folds, draws and searches.")] = 0,
    plan: Annotated[
        Path | None, typer.Option("--write-plan", help="Write the plan to this .json.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Write the page to this .html.")] = (None),
    document: Annotated[Path | None, typer.Option(help="Write everything to this .json.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Find the mixture to train on, from runs on other mixtures: shares and metrics, a row a run.

    Laws are fitted to the runs, every metric is predicted for every mixture with an interval, and the
    mixture that makes the target smallest is looked for. You are told how far to trust it.

    Examples:

        taskmix mix ratios.csv metrics.csv --page mix.html --write-plan plan.json

        taskmix mix ratios.csv metrics.csv --target worst --at-most code=0.3 --group "web+books>=0.2"

        taskmix mix ratios.csv metrics.csv --supply supply.csv --budget 10B --next 8

        taskmix mix runs.csv --metrics-columns "loss_*" --size-column model --parameters 1B
    """
    from taskmix.mixtures import (
        MixtureLimits,
        MixtureTarget,
        apply_changes,
        describe_mixtures,
        learn_mixtures,
        read_changes,
        read_mixtures,
        table_of_study,
        write_mixtures,
    )
    from taskmix.report import write_mixtures_page

    _check_outputs(plan, page, document)
    pair = split_names(front)
    if front is not None and len(pair) != 2:
        raise OptionError(f"`--front` should name two metrics: a,b. Found {front!r}.")
    large = None if size is None else amount(size, "--parameters")
    if ratios.is_dir():
        if metrics is not None:
            raise OptionError(
                f"`metrics` should be left out where `{ratios}` is a study. Found `{metrics}`."
            )
        table = table_of_study(ratios)
    else:
        table = read_mixtures(
            ratios,
            metrics,
            run_column=run_column,
            size_column=size_column,
            metrics_columns=split_names(metrics_columns),
            larger_is_better=split_names(larger_is_better),
            lower_is_better=split_names(lower_is_better),
            ignore=split_names(ignore),
        )
    if changes is not None:
        table = apply_changes(table, read_changes(changes))
    is_of_all = target in ("mean", "worst") and target not in table.metrics
    aim = MixtureTarget(
        metric=None if is_of_all else target,
        weights=numbers_by_name([weights], "--weights", "code=2,prose=1") if weights else None,
        worst=is_of_all and target == "worst",
    )
    aim.check(table)
    limits = MixtureLimits(
        at_most=numbers_by_name(at_most, "--at-most", "code=0.3") if at_most else 1.0,
        at_least=numbers_by_name(at_least, "--at-least", "wiki=0.02") if at_least else 0.0,
        groups=read_groups(group),
        supply=read_supply(supply),
        budget=None if budget is None else amount(budget, "--budget"),
    )
    if repeat_value is not None:
        limits = replace(limits, repetition=amount(repeat_value, "--repeat-value"))
    asked = None if predict is None else read_shares_of(Path(predict), table.domains)
    if not json_:
        echo(f"Read {len(table)} runs, {len(table.domains)} domains, {len(table.metrics)} metrics.")
    lessons = learn_mixtures(
        table,
        target=aim,
        limits=limits,
        size=large,
        front=(pair[0], pair[1]) if front is not None else None,
        next_runs=next_runs,
        tolerance=tolerance,
        predict=asked,
        seed=seed,
        tell=lambda words: echo(f"... {words}", err=True),
    )
    lessons = replace(lessons, document=replace(lessons.document, command=this_command()))
    if document is not None:
        write_mixtures(lessons.document, document)
    if page is not None:
        write_mixtures_page(lessons.document, page)
    if plan is not None:
        lessons.plan().save(plan)
    if json_:
        print_json(lessons.document.as_json())
        return
    for part in describe_mixtures(lessons.document):
        if isinstance(part, str):
            echo(say_flags_of(part))
        else:
            draw_table(part.columns, part.rows, title=part.title, left=("mixture",), wide=True)
    for path in (document, page, plan):
        if path is not None:
            echo(f"Wrote {path}.")


def _check_outputs(plan: Path | None, page: Path | None, document: Path | None) -> None:
    """Before anything is read: are the places to write to free?"""
    from taskmix.files import check_output
    from taskmix.mixtures import is_mixtures_document
    from taskmix.plans import check_plan_path
    from taskmix.report import check_mixtures_page

    if plan is not None:
        check_plan_path(plan)
    if page is not None:
        check_mixtures_page(page)
    if document is not None:
        check_output(document, is_ours=is_mixtures_document, what="the document")
    paths = [path.absolute() for path in (plan, page, document) if path is not None]
    if len(set(paths)) < len(paths):
        raise OptionError("`--write-plan`, `--page` and `--document` should be different files.")
