"""`taskmix reproduce laws-balanced` and `laws-unbalanced`: the study of ten thousand taggers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._commands._train import Precision
from taskmix.cli._options import WhereOptions
from taskmix.cli._printing._display import echo
from taskmix.cli._printing._reproduced import print_reproduction
from taskmix.cli._reproducing._text import JsonOption, QuickOption
from taskmix.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from taskmix.papers import LawsOptions

QUICK_PARTS = 40  # every fortieth row of the grid
BALANCED = "laws-balanced"


def laws_study(
    context: typer.Context,
    data: Annotated[
        Path, typer.Argument(help="The task folder of CoNLL 2003, or a table written before.")
    ],
    where: WhereOptions,
    vectors: Annotated[
        Path | None,
        typer.Option("--vectors", help="Word vectors: GloVe or fastText text, or .npz."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The study to write to.")] = Path("laws-study"),
    table: Annotated[
        Path | None, typer.Option("--table", help="Write the rows to this .csv or .parquet.")
    ] = None,
    have: Annotated[
        Path | None,
        typer.Option("--have", help="A table written before, whose rows are not trained again."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw Figures 3a to 3c (balanced) into .svg, .png or .html."),
    ] = None,
    part: Annotated[
        str, typer.Option("--part", help="k/m: every m-th row of the grid, from the k-th on.")
    ] = "1/1",
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="Stop cleanly after so long; go on later.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1)] = 5,
    epochs: Annotated[float, typer.Option("--epochs")] = 100.0,
    hidden: Annotated[int, typer.Option("--hidden", min=1, help="Units of each direction.")] = 100,
    shared_layers: Annotated[
        str, typer.Option("--shared-layers", help="Units of dense layers all tasks share: 100,100")
    ] = "",
    task_layers: Annotated[
        str, typer.Option("--task-layers", help="Units of dense layers each task has: 100")
    ] = "",
    precision: Annotated[Precision, typer.Option("--precision")] = Precision.FLOAT32,
    quick: QuickOption = False,
    json_: JsonOption = False,
) -> None:
    """Taggers over samples, tasks and relatedness: the rows from which laws of F1 are found.

    laws-balanced has as many words for every task (1,002 rows), laws-unbalanced more for the
    artificial ones (1,555). Stop it and run it again: what is finished is not trained again, and the
    rows that are finished make the table. All rows get their first model before any gets its second.

    Examples:

        taskmix reproduce laws-balanced conll2003/ --vectors glove.npz --table rows.csv

        taskmix reproduce laws-balanced rows.csv --plot figures.svg
    """
    from taskmix.papers import LawsOptions, check_new_table, read_laws_table
    from taskmix.report import check_chart_path

    name = str(context.info_name)
    if plot is not None:
        check_chart_path(plot)
        if name != BALANCED:
            raise OptionError("`--plot` should go with laws-balanced, whose figure it is.")
    if table is not None:
        check_new_table(table)
    before = None if have is None else read_laws_table(have, balanced=name == BALANCED)
    where.join(context)
    options = LawsOptions(
        data=data,
        vectors=vectors,
        balanced=name == BALANCED,
        part=(1, QUICK_PARTS) if quick else _part(part),
        seeds=1 if quick else seeds,
        epochs=min(epochs, 1.0) if quick else epochs,
        hidden=min(hidden, 8) if quick else hidden,
        shared_layers=_layers("--shared-layers", shared_layers),
        task_layers=_layers("--task-layers", task_layers),
        device=where.choose_device(),
        precision=precision.value,
    )
    begin = time.monotonic()
    if data.suffix in (".csv", ".parquet") and data.is_file():
        found = read_laws_table(data, balanced=options.balanced)
    else:
        found = _trained(name, options, out, where, before, minutes=minutes, quiet=json_)
    _print_study(name, options, found, table, plot, time.monotonic() - begin, as_json=json_)


def _trained(
    name: str,
    options: LawsOptions,
    out: Path,
    where: WhereOptions,
    have: pa.Table | None,
    *,
    minutes: float | None,
    quiet: bool,
) -> pa.Table:
    from taskmix.engine import own_study
    from taskmix.papers import reproduce_laws

    end = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
    with where.executing(name, quiet=quiet, is_over=lambda: time.monotonic() > end) as executor:
        return reproduce_laws(options, own_study(out, lean=True), executor, have=have)


def _print_study(
    name: str,
    options: LawsOptions,
    found: pa.Table,
    table: Path | None,
    plot: Path | None,
    seconds: float,
    *,
    as_json: bool,
) -> None:
    from taskmix.papers import law_rows, laws_figure, write_laws_table
    from taskmix.report import write_chart

    if table is not None:
        write_laws_table(found, table)
    if plot is not None:
        write_chart(laws_figure(found), plot)
    rows = law_rows(found, balanced=options.balanced, total=len(options.grid))
    print_reproduction(name, rows, seconds, as_json=as_json)
    if as_json:
        return
    for each in rows:
        if each.formula is not None:
            echo(f"{each.quantity}: f1 = {each.formula}")
    echo(f"{found.num_rows} of {len(options.grid)} rows.")
    if found.num_rows < len(options.grid):
        echo("The same command, given the task folder, goes on.")


def _part(text: str) -> tuple[int, int]:
    place, _, parts = text.partition("/")
    if not (place.isdigit() and parts.isdigit()):
        raise OptionError(f"`--part` should be k/m, such as 1/4. Found {text!r}.")
    return int(place), int(parts)


def _layers(option: str, text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise OptionError(f"`{option}` should be units of layers, such as 100,100. Found {text!r}.")
    return tuple(int(word) for word in words)
