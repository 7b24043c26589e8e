"""`taskmix mix`: from a table of runs on mixtures to the mixture to train on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options._mixtures import (
    amount,
    by_name,
    read_groups,
    read_shares_of,
    read_supply,
    split_names,
)
from taskmix.cli._printing._display import echo, print_json
from taskmix.cli._printing._mixed import print_mixtures
from taskmix.cli._printing._repeat import this_command
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.mixtures import (
        DomainFeatures,
        MixtureLessons,
        MixtureLimits,
        MixtureTable,
        MixtureTarget,
    )


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How the files are read."""

    run_column: Annotated[
        str | None, typer.Option("--run-column", help="The column that joins both files [run].")
    ] = None
    size_column: Annotated[
        str | None, typer.Option("--size-column", help="The column of sizes of model: 60M, 6e7.")
    ] = None
    metrics_columns: Annotated[
        str | None,
        typer.Option("--metrics-columns", help="Which columns are metrics: loss_*, or a,b."),
    ] = None
    ignore: Annotated[
        str | None, typer.Option("--ignore", help="Columns to leave out: seed,notes")
    ] = None
    larger_is_better: Annotated[
        str | None, typer.Option("--maximise", help="Metrics that are better when larger.")
    ] = None
    lower_is_better: Annotated[
        str | None, typer.Option("--minimise", help="Metrics that are not, whatever their names.")
    ] = None
    changes: Annotated[
        Path | None,
        typer.Option("--changes", help="Domains that were merged, split, renamed: a .toml file."),
    ] = None

    domain_features: Annotated[
        str | None,
        typer.Option("--domain-features", help="What domains are like, new ones included: a file."),
    ] = None

    def read(self, ratios: Path, metrics: Path | None) -> MixtureTable:
        """The runs."""
        from taskmix.mixtures import apply_changes, read_changes, read_mixtures, table_of_study

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
                run_column=self.run_column,
                size_column=self.size_column,
                metrics_columns=split_names(self.metrics_columns),
                larger_is_better=split_names(self.larger_is_better),
                lower_is_better=split_names(self.lower_is_better),
                ignore=split_names(self.ignore),
            )
        return table if self.changes is None else apply_changes(table, read_changes(self.changes))

    def features(self) -> DomainFeatures | None:
        """What domains are like."""
        from taskmix.mixtures import read_features

        return None if self.domain_features is None else read_features(self.domain_features)


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """What the mixture is to be good at, and at which size."""

    target: Annotated[
        str, typer.Option("--target", help="A metric, or mean, or worst: of all, or of --weights.")
    ] = "mean"
    weights: Annotated[
        str | None, typer.Option("--weights", help="Of metrics in the mean: code=2,prose=1")
    ] = None
    front: Annotated[
        str | None, typer.Option("--front", help="Two metrics whose trade is shown: prose,code")
    ] = None
    size: Annotated[
        str | None,
        typer.Option("--parameters", help="Of the model to train, among several sizes [largest]."),
    ] = None

    def make(self, table: MixtureTable) -> MixtureTarget:
        """The same as an object."""
        from taskmix.mixtures import MixtureTarget

        weights = by_name([self.weights], "--weights", "code=2,prose=1") if self.weights else None
        if self.target in ("mean", "worst") and self.target not in table.metrics:
            return MixtureTarget(weights=weights, worst=self.target == "worst")
        return MixtureTarget(metric=self.target, weights=weights)

    def pair(self) -> tuple[str, str] | None:
        """The two metrics of the front."""
        if self.front is None:
            return None
        names = split_names(self.front)
        if len(names) != 2:
            raise OptionError(f"`--front` should name two metrics: a,b. Found {self.front!r}.")
        return names[0], names[1]


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """Which mixtures may be taken."""

    at_most: Annotated[
        list[str] | None, typer.Option("--at-most", help="Largest shares: code=0.3,web=0.5")
    ] = None
    at_least: Annotated[
        list[str] | None, typer.Option("--at-least", help="Smallest shares: wiki=0.02")
    ] = None
    group: Annotated[
        list[str] | None, typer.Option("--group", help='A bound on a sum: "code+math<=0.4"')
    ] = None
    supply: Annotated[
        str | None,
        typer.Option("--supply", help="Tokens at hand: web=1B,code=2e8, or a file of them."),
    ] = None
    budget: Annotated[
        str | None, typer.Option("--budget", help="Tokens that the large run reads: 10B")
    ] = None
    repeat_value: Annotated[
        str | None,
        typer.Option("--repeat-value", help="R of repeated tokens, or learn [15.4 as published]."),
    ] = None
    run_tokens: Annotated[
        str | None,
        typer.Option("--run-tokens", help="Tokens that each small run read, to learn R from."),
    ] = None

    def make(self, table: MixtureTable, seed: int) -> tuple[MixtureLimits, list[str]]:
        """The same as an object, and notes."""
        from taskmix.mixtures import MixtureLimits

        limits = MixtureLimits(
            at_most=by_name(self.at_most, "--at-most", "code=0.3") if self.at_most else 1.0,
            at_least=by_name(self.at_least, "--at-least", "wiki=0.02") if self.at_least else 0.0,
            groups=read_groups(self.group),
            supply=read_supply(self.supply),
            budget=None if self.budget is None else amount(self.budget, "--budget"),
        )
        if self.repeat_value is None:
            return limits, []
        if self.repeat_value != "learn":
            worth = amount(self.repeat_value, "--repeat-value")
            return replace(limits, repetition=worth), []
        return self._learned(limits, table, seed)

    def _learned(
        self, limits: MixtureLimits, table: MixtureTable, seed: int
    ) -> tuple[MixtureLimits, list[str]]:
        import numpy as np

        from taskmix.mixtures import learn_repetition

        if self.run_tokens is None or limits.supply is None:
            raise OptionError(
                "`--repeat-value learn` should come with `--supply` and `--run-tokens`, how many tokens "
                "each run of the table read. Found only one of them, or none."
            )
        tokens = np.full(len(table), amount(self.run_tokens, "--run-tokens"))
        found = learn_repetition(table, tokens, limits.supply, seed=seed)
        return replace(limits, repetition=found.worth), [found.words]


@dataclass(frozen=True, kw_only=True)
class WrittenOptions:
    """What is written, and how it is told."""

    plan: Annotated[
        Path | None, typer.Option("--write-plan", help="Write the plan to this .json.")
    ] = None
    page: Annotated[Path | None, typer.Option("--page", help="Write the page to this .html.")] = (
        None
    )
    document: Annotated[
        Path | None, typer.Option("--document", help="Write everything to this .json.")
    ] = None
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False

    def check(self) -> None:
        """Before anything is read: are the places to write to free?"""
        from taskmix.files import check_output
        from taskmix.mixtures import is_mixtures_document
        from taskmix.plans import check_plan_path
        from taskmix.report import check_mixtures_page

        if self.plan is not None:
            check_plan_path(self.plan)
        if self.page is not None:
            check_mixtures_page(self.page)
        if self.document is not None:
            check_output(self.document, is_ours=is_mixtures_document, what="the document")
        paths = [path for path in (self.plan, self.page, self.document) if path is not None]
        if len({path.absolute() for path in paths}) < len(paths):
            raise OptionError(
                "`--write-plan`, `--page` and `--document` should be different files."
            )

    def write(self, lessons: MixtureLessons) -> None:
        """The files that were asked for."""
        from taskmix.mixtures import write_mixtures
        from taskmix.report import write_mixtures_page

        if self.document is not None:
            write_mixtures(lessons.document, self.document)
        if self.page is not None:
            write_mixtures_page(lessons.document, self.page)
        if self.plan is not None:
            lessons.plan().save(self.plan)


def mix(
    ratios: Annotated[
        Path,
        typer.Argument(help="Shares of domains, a row a run (.csv, ...); or a study's folder."),
    ],
    metrics: Annotated[
        Path | None, typer.Argument(help="Metrics, a row a run; not for a study.")
    ] = None,
    *,
    aim: TargetOptions,
    limits: LimitOptions,
    reading: TableOptions,
    written: WrittenOptions,
    next_runs: Annotated[
        int, typer.Option("--next", min=0, help="How many runs to do next, chosen to tell most.")
    ] = 0,
    tolerance: Annotated[
        float | None, typer.Option("--tolerance", min=0.0, help="Expected regret that is enough.")
    ] = None,
    predict: Annotated[
        str | None, typer.Option("--predict", help="A file of mixtures to predict, a row each.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of folds, draws and searches.")] = 0,
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
    from taskmix.mixtures import learn_mixtures

    written.check()
    pair = aim.pair()
    size = None if aim.size is None else amount(aim.size, "--parameters")
    table = reading.read(ratios, metrics)
    target = aim.make(table)
    target.check(table)
    held, told = limits.make(table, seed)
    described = reading.features()
    domains = (*table.domains, *(() if described is None else described.names))
    asked = None if predict is None else read_shares_of(Path(predict), domains)
    if not written.json_:
        echo(f"Read {len(table)} runs, {len(table.domains)} domains, {len(table.metrics)} metrics.")
    lessons = learn_mixtures(
        replace(table, notes=(*table.notes, *told)),
        target=target,
        limits=held,
        size=size,
        front=pair,
        next_runs=next_runs,
        tolerance=tolerance,
        predict=asked,
        features=described,
        seed=seed,
        tell=lambda words: echo(f"... {words}", err=True),
    )
    lessons = replace(lessons, document=replace(lessons.document, command=this_command()))
    written.write(lessons)
    if written.json_:
        print_json(lessons.document.as_json())
        return
    print_mixtures(lessons.document)
    for path in (written.document, written.page, written.plan):
        if path is not None:
            echo(f"Wrote {path}.")
