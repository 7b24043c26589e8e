"""`taskmix laws`: formulas for a column of results, from the columns it may depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._printing._display import echo, print_json, show
from taskmix.cli._printing._repeat import this_command
from taskmix.errors import OptionError

if TYPE_CHECKING:
    from rich.table import Table

    from taskmix.laws import LawRegressor, LawsDocument, LawTable


class LossKind(StrEnum):
    """How deviations count in a fit."""

    AUTO = "auto"
    SQUARES = "squares"
    HUBER = "huber"


@dataclass(frozen=True, kw_only=True)
class SearcherOptions:
    """How formulas are found, and judged."""

    noise: Annotated[
        str,
        typer.Option(
            "--noise",
            help="Deviations: auto, absolute (one size), relative, root, or like an input: n^-0.5",
        ),
    ] = "auto"
    loss: Annotated[
        LossKind,
        typer.Option("--loss", help="Squares, or Huber's loss, which rows far off decide less."),
    ] = LossKind.AUTO
    range_input: Annotated[
        str | None,
        typer.Option("--range", help="Leave out its largest values in turn [first input]."),
    ] = None
    increasing: Annotated[
        str | None, typer.Option("--increasing", help="Inputs with which the law may not fall: n,T")
    ] = None
    decreasing: Annotated[
        str | None, typer.Option("--decreasing", help="Inputs with which it may not rise.")
    ] = None
    bounded: Annotated[
        bool, typer.Option("--bounded", help="The law has a finite limit as each input grows.")
    ] = False
    folds: Annotated[int, typer.Option("--folds", min=0, help="Cross-validate the front.")] = 0
    seed: Annotated[int, typer.Option("--seed", help="Of the held-out rows.")] = 0

    def model(self, box: dict[str, tuple[float, float]]) -> LawRegressor:
        """The same as an object, with the box in which the law has to hold."""
        from taskmix.laws import LawRegressor

        return LawRegressor(
            noise=self.noise,
            loss=self.loss.value,
            range_input=self.range_input,
            folds=self.folds,
            box=box or None,
            increasing=_names(self.increasing),
            decreasing=_names(self.decreasing),
            bounded=self.bounded,
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """What is asked of the law."""

    formula: Annotated[
        list[str] | None,
        typer.Option("--formula", help="A formula to judge on the same rows, or `paper`."),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            "--group", help="The column of groups, or several: model,data. They share a form."
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option("--at", help="Predict here: n=2000,T=2; of a group: n=2000,model=70M"),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option("--weights", help="A column: how many measurements a row is the mean of."),
    ] = None
    to: Annotated[
        str | None, typer.Option("--to", help="And the gain of this change from there: T=5")
    ] = None
    box: Annotated[
        str | None,
        typer.Option("--box", help="Where the law has to hold: n=1000:100000,T=1:20"),
    ] = None
    bootstrap: Annotated[
        int,
        typer.Option("--bootstrap", min=0, help="Intervals of constants from this many tables."),
    ] = 0


def laws(
    table: Annotated[
        Path, typer.Argument(help="A .csv, .jsonl or .parquet file, one row a result.")
    ],
    explain: Annotated[
        str, typer.Option("--explain", help="The column to explain, or several: loss_a,loss_b")
    ],
    inputs: Annotated[str, typer.Option("--inputs", help="The columns it may depend on: n,ami,T")],
    asked: AskOptions,
    search: SearcherOptions,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the front into this .svg, .png or .html.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", help="Write the page of the law to this .html.")
    ] = None,
    document: Annotated[
        Path | None, typer.Option("--document", help="Write everything to this .json.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Find formulas for a column of a table: the front of complexity against held-out error.

    A tenth of the rows is held out, and the largest and smallest values of each input are left out in
    turn: error outside the data is what tells a law from a fit. A law with a pole or an undefined part
    inside the box (where the points of `--at` and `--to` are, or past the data) is not chosen.

    Examples:

        taskmix laws results.csv --explain f1 --inputs n,ami,T --page laws.html

        taskmix laws results.csv --explain f1 --inputs n,T --formula "a*sqrt(n)" --at n=2000,T=2 --to T=5

        taskmix laws results.csv --explain loss --inputs n --group model --at n=2000,model=70M
    """
    from taskmix.laws import learn_laws, read_table, write_laws
    from taskmix.report import front_chart, write_chart, write_laws_page

    _check(plot, page, document)
    names, targets, groups = _names(inputs), _names(explain), _names(asked.group)
    named = [*groups, "group", "target"] if groups or len(targets) > 1 else []
    start, change = _point("--at", asked.at, names, named), _point("--to", asked.to, names)
    change_to = {name: float(value) for name, value in change.items()}
    box = _box(asked.box, names)
    more = [asked.weights] if asked.weights else []
    columns = read_table(table, [*names, *targets, *groups, *more])
    if not json_ and targets:
        echo(_reading_words(table, targets, names, groups, len(columns[targets[0]])))
    found = learn_laws(
        columns,
        target=targets,
        inputs=names,
        model=search.model(box),
        compare=asked.formula or (),
        group=groups or None,
        at=start,
        to=change_to,
        bootstrap=asked.bootstrap,
        weights=asked.weights,
    )
    learned = replace(found.document, command=this_command())
    if plot is not None:
        write_chart(front_chart(found.front), plot)
    if page is not None:
        write_laws_page(learned, page)
    if document is not None:
        write_laws(learned, document)
    if json_:
        print_json(replace(learned, picture=None).as_json())  # what is drawn is for the page
        return
    print_laws(learned)
    for path in (plot, page, document):
        if path is not None:
            echo(f"Wrote {path}.")


def print_laws(document: LawsDocument) -> None:
    """The front, the law and what was asked of it."""
    from taskmix.laws import describe_laws

    for part in describe_laws(document):
        if isinstance(part, str):
            echo(part)
        else:
            show(_drawn(part))


def _drawn(table: LawTable) -> Table:
    from rich import box
    from rich.table import Table

    drawn = Table(title=table.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for place, name in enumerate(table.columns):
        if place == table.formula:
            drawn.add_column(name, overflow="fold", min_width=30 if place else None)
        else:
            drawn.add_column(name, justify="right")
    for row in table.rows:
        drawn.add_row(*row)
    return drawn


def _check(plot: Path | None, page: Path | None, out: Path | None) -> None:
    """Before anything is read: are the places to write to free?"""
    from taskmix.files import check_output
    from taskmix.laws import is_laws_document
    from taskmix.report import check_chart_path, check_laws_page

    if plot is not None:
        check_chart_path(plot)
    if page is not None:
        check_laws_page(page)
    if out is not None:
        check_output(out, is_ours=is_laws_document, what="the law")


def _reading_words(
    table: Path, targets: list[str], names: list[str], groups: list[str], rows: int
) -> str:
    target, inputs, group = (
        ", ".join(f"`{name}`" for name in each) for each in (targets, names, groups)
    )
    grouped_by = f", groups by {group}" if groups else ""
    word = "targets" if len(targets) > 1 else "target"
    return (
        f"Read {table.name}: {word} {target}, inputs {inputs}{grouped_by}; {rows:,} rows, none left "
        "out."
    )


def _names(text: str | None) -> list[str]:
    """`n,T` as words."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _point(
    option: str, text: str | None, names: list[str], groups: Sequence[str] = ()
) -> dict[str, float | str]:
    """`n=2000,T=2` as numbers, and what names a group as a word."""
    point: dict[str, float | str] = {}
    for part in (text or "").split(",") if text else ():
        name, sign, value = (each.strip() for each in part.partition("="))
        if sign and name in groups and name not in names:
            point[name] = value
            continue
        try:
            point[name] = float(value)
        except ValueError:
            sign = ""
        if not sign or name not in names:
            example = f", such as {names[0]}=100" if names else ""
            raise OptionError(f"`{option}` should give inputs values{example}. Found {part!r}.")
    return point


def _box(text: str | None, names: list[str]) -> dict[str, tuple[float, float]]:
    """`n=1000:100000,T=1:20` as ranges."""
    box: dict[str, tuple[float, float]] = {}
    for part in text.split(",") if text else ():
        name, _, ends = part.partition("=")
        low, sign, high = ends.partition(":")
        try:
            box[name.strip()] = (float(low), float(high))
        except ValueError:
            sign = ""
        if not sign or name.strip() not in names:
            example = f", such as {names[0]}=1:100" if names else ""
            raise OptionError(f"`--box` should give inputs ranges{example}. Found {part!r}.")
    return box
