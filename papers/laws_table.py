"""The table of the study of laws: one row for each combination, from the records of its models.

It is written as .csv or .parquet for `taskmix laws`, with the paper's formulas beside the laws that
are found in it. Scores are fractions; the paper's formulas give hundredths and are divided by 100,
and the mean squares it quotes are of fractions.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as arrow_parquet

from papers.laws import FIGURE_SIZE, LINE_SIZES, LINES, REAL, GridRow, LawsOptions
from papers.rows import PaperRow, row, single
from papers.runner import Desk
from taskmix.engine import Executor
from taskmix.errors import InputError, OptionError, RecordError
from taskmix.files import check_output, make_folder, read_plain, write_bytes
from taskmix.laws import PAPER_LAWS, LawRegressor, compare_formulas
from taskmix.numerics import mean_interval
from taskmix.records import Study
from taskmix.tasks import read_parquet

METRIC = "entity_f1"
FEWEST_ROWS = 4  # rows to compare a formula on
# What is explained by what, on which rows, beside which equation and the mean square it is quoted with.
BALANCED_LAWS = (
    ("n", ("n",), "eq3", 0.027),
    ("ami", ("ami",), "eq4", 0.034),
    ("T", ("T",), "eq5", 0.072),
    ("all", ("n", "ami", "T"), "eq6", 0.009),
)
UNBALANCED_LAWS = (
    ("n_ner", ("n_ner",), "eq7", None),
    ("n_syn", ("n_syn",), "eq8", None),
    ("ami", ("ami",), "eq9", None),
    ("T", ("T",), "eq10", None),
    ("all", ("n_ner", "n_syn", "ami", "T"), "eq11", None),
)


def run(options: LawsOptions, desk: Desk) -> list[PaperRow]:
    """Taggers over samples, tasks and relatedness: the rows from which laws of F1 are found.

    laws-balanced has as many words for every task (1,002 rows), laws-unbalanced more for the
    artificial ones (1,555). Stop it and run it again: what is finished is not trained again, and the
    rows that are finished make the table. All rows get their first model before any gets its second.

    Examples:

        python -m papers laws-balanced conll2003/ --vectors glove.npz --table rows.csv

        python -m papers laws-balanced rows.csv --plot figures.svg
    """
    balanced = desk.name == "laws-balanced"
    options = replace(options, balanced=balanced)
    if options.plot is not None and not balanced:
        raise OptionError("`--plot` should go with laws-balanced, whose figure it is.")
    if options.table is not None:
        check_new_table(options.table)
    have = None if options.have is None else read_laws_table(options.have, balanced=balanced)
    if options.data.suffix in (".csv", ".parquet") and options.data.is_file():
        found = read_laws_table(options.data, balanced=balanced)
    else:
        with desk.working(lean=True) as (study, executor):
            found = reproduce_laws(options, study, executor, have=have)
    if options.table is not None:
        write_laws_table(found, options.table)
    desk.draw(lambda: laws_figure(found), options.plot)
    desk.tell(f"{found.num_rows} of {len(options.grid)} rows")
    return law_rows(found, balanced=balanced, total=len(options.grid))


def reproduce_laws(
    options: LawsOptions, study: Study, executor: Executor, *, have: pa.Table | None = None
) -> pa.Table:
    """Trains what neither the study nor the rows we have hold yet, and gathers what is finished.

    One seed of all rows comes before the next, so that a run that is stopped has the whole grid.
    """
    known = _known(have, options)
    rows = [row for row in sorted(options.grid) if _seeds(known.get(row)) < options.seeds]
    for seed in range(options.seeds):
        done = executor.run([options.runs(row)[seed] for row in rows], study)
        if any(each.outcome == "stopped" for each in done):
            break
    return laws_table(options, study, known)


def laws_table(
    options: LawsOptions, study: Study, known: Mapping[GridRow, dict[str, Any]] | None = None
) -> pa.Table:
    """The rows whose models, one or more, are finished; the mean over these.

    Of a row that is known already, the one with more models counts.
    """
    found = []
    for grid_row in sorted(options.grid):
        before = (known or {}).get(grid_row)
        scores = _scores(options, grid_row, study) if _seeds(before) < options.seeds else []
        if len(scores) > _seeds(before):
            found.append(_table_row(options, grid_row, scores))
        elif before is not None:
            found.append(before)
    if not found:
        raise InputError(
            "There should be a finished model in the study. Found none. Train longer: the same "
            "command goes on."
        )
    return pa.Table.from_pylist(found)


def _known(have: pa.Table | None, options: LawsOptions) -> dict[GridRow, dict[str, Any]]:
    """The rows of a table by their place in the grid."""
    sizes = ("n", "n") if options.balanced else ("n_ner", "n_syn")
    return {
        GridRow(each[sizes[0]], each[sizes[1]], each["T"], float(each["alpha"])): each
        for each in (have.to_pylist() if have is not None else ())
    }


def _seeds(known: dict[str, Any] | None) -> int:
    return known["seeds"] if known is not None else 0


def _scores(options: LawsOptions, grid_row: GridRow, study: Study) -> list[float]:
    scores = []
    for run in options.runs(grid_row):
        summary = study.run(run.specification()).summary()
        if summary is None or summary.status != "finished":
            continue
        scores += [
            score.value
            for score in summary.scores
            if (score.task, score.split, score.metric) == (REAL, "test", METRIC)
        ]
    return scores


def _table_row(options: LawsOptions, grid_row: GridRow, scores: list[float]) -> dict[str, Any]:
    information = options.source(grid_row).information()
    own = [information[name] for name in grid_row.names[1:]]
    interval = mean_interval(scores)
    sizes = (
        {"n": grid_row.real}
        if options.balanced
        else {"n_ner": grid_row.real, "n_syn": grid_row.synthetic}
    )
    return {
        **sizes,
        "T": grid_row.tasks,
        "alpha": grid_row.alpha,
        "ami": float(np.mean(own)) if own else 1.0,
        "f1": interval.mean,
        "f1_low": None if interval.n == 1 else interval.low,
        "f1_high": None if interval.n == 1 else interval.high,
        "seeds": interval.n,
    }


def check_table_path(path: Path) -> None:
    """Raises where no table can be written to a file of that name."""
    if path.suffix not in (".csv", ".parquet"):
        raise OptionError(f"A table should be written to .csv or .parquet. Found {path.name!r}.")


def check_new_table(path: Path) -> None:
    """Raises where a table would take the place of another kind of file."""
    check_table_path(path)

    def is_ours(begin: bytes) -> bool:
        known = ("alpha", "ami", "f1", "seeds")
        if path.suffix == ".parquet":
            return begin[:4] == b"PAR1" and set(known) <= set(arrow_parquet.read_schema(path).names)
        return set(known) <= {name.strip('"') for name in begin.decode().split("\n")[0].split(",")}

    check_output(path, is_ours=is_ours, what="the table")


def write_laws_table(table: pa.Table, path: Path) -> None:
    """The table as a file, whole or not there."""
    check_new_table(path)
    buffer = io.BytesIO()
    if path.suffix == ".csv":
        arrow_csv.write_csv(table, buffer)
    else:
        arrow_parquet.write_table(table, buffer)
    make_folder(path.parent)
    write_bytes(path, buffer.getvalue())


def read_laws_table(path: Path, *, balanced: bool) -> pa.Table:
    """A table that was written before."""
    check_table_path(path)
    try:
        if path.suffix == ".csv":
            table = arrow_csv.read_csv(io.BytesIO(read_plain(path)))
        else:
            table = read_parquet(path)
    except (OSError, RecordError, pa.ArrowException) as error:
        raise InputError(f"{path} should be a table of rows. {error}") from None
    wanted = {"n"} if balanced else {"n_ner", "n_syn"}
    missing = sorted((wanted | {"T", "alpha", "ami", "f1"}) - set(table.column_names))
    if missing:
        raise InputError(
            f"{path} should have the columns of the study. Found no {', '.join(missing)}. Give a "
            "table that this command wrote."
        )
    return table


def law_rows(table: pa.Table, *, balanced: bool, total: int) -> list[PaperRow]:
    """Mean squares of our laws on held-out rows, and of the paper's formulas on the same table."""
    name = "laws-balanced" if balanced else "laws-unbalanced"
    rows = [row(f"{name}/rows", float(total), single(table.num_rows, table.num_rows))]
    for what, inputs, equation, quoted in BALANCED_LAWS if balanced else UNBALANCED_LAWS:
        part = _part(table, what, balanced=balanced)
        columns = {name: part.column(name).to_numpy() for name in inputs}
        if "ami" in columns:  # that of independent labels comes out a little below 0 by chance
            columns["ami"] = np.maximum(columns["ami"], 0.0)
        target = part.column("f1").to_numpy()
        if len(target) < FEWEST_ROWS:  # of a part of the grid
            continue
        rows += _compared(f"{name}/{what}", columns, target, equation, quoted)
    return rows


def _part(table: pa.Table, what: str, *, balanced: bool) -> pa.Table:
    """The rows a law is sought in: those where its inputs mean something."""
    tasks = table.column("T").to_numpy()
    kept = np.ones(len(tasks), dtype=np.bool_)
    if what in ("ami", "n_syn"):
        kept = tasks > 1
    if what == "T" and balanced:
        kept = table.column("n").to_numpy() == FIGURE_SIZE
    return table.filter(pa.array(kept))


def _compared(
    quantity: str,
    columns: dict[str, Any],
    target: Any,
    equation: str,
    quoted: float | None,
) -> list[PaperRow]:
    (given,) = compare_formulas({equation: f"({PAPER_LAWS[equation]})/100"}, columns, target)
    as_given = single(given.as_given, len(target))
    refitted = single(given.refitted, len(target))
    rows = [
        row(f"{quantity}/mse/{equation}", quoted, as_given, given.formula),
        row(f"{quantity}/mse/{equation}_refitted", None, refitted, given.refitted_formula),
    ]
    varied = {name: values for name, values in columns.items() if len(set(values)) > 1}
    try:
        law = LawRegressor().fit(varied, target).law_
    except InputError:  # a part of the grid may have too few rows for a law of its own
        return rows
    held_out, left_out = (
        single(error, len(target)) for error in (law.errors.held_out, law.errors.left_out)
    )
    return [
        row(f"{quantity}/mse", quoted, held_out, law.text),
        row(f"{quantity}/mse_left_out", None, left_out, law.text),
        *rows,
    ]


def laws_figure(table: pa.Table) -> dict[str, Any]:
    """Figures 3a to 3c: F1 against samples, relatedness and tasks, of a balanced table."""
    rows: Sequence[dict[str, Any]] = table.to_pylist()
    for each in rows:
        single = each["T"] == 1
        each["curve"] = "single task" if single else f"alpha {each['alpha']:g}"
        each["size"] = f"n = {each['n']}"
    by_alpha = {"field": "curve", "type": "nominal", "title": None}
    charts = [
        _lines([r for r in rows if r["T"] <= 2 and _is_line(r)], "n", "words per task", by_alpha),
        _lines(
            [r for r in rows if r["T"] == 2 and r["n"] in LINE_SIZES],
            "ami",
            "AMI",
            {
                "field": "size",
                "type": "nominal",
                "title": None,
                "sort": [f"n = {n}" for n in LINE_SIZES],
            },
        ),
        _lines(
            [r for r in rows if r["n"] == FIGURE_SIZE and r["T"] > 1 and _is_line(r)],
            "T",
            "tasks",
            by_alpha,
        ),
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "hconcat": charts,
        "resolve": {"scale": {"color": "independent"}},
    }


def _is_line(each: dict[str, Any]) -> bool:
    return each["T"] == 1 or each["alpha"] in LINES


def _lines(
    values: list[dict[str, Any]], field: str, title: str, color: dict[str, Any]
) -> dict[str, Any]:
    return {
        "width": 300,
        "height": 260,
        "data": {"values": values},
        "mark": {"type": "line", "point": True, "tooltip": True},
        "encoding": {
            "x": {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False}},
            "y": {
                "field": "f1",
                "type": "quantitative",
                "title": "entity F1",
                "scale": {"zero": False},
            },
            "color": color,
        },
    }
