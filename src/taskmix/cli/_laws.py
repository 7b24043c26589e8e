"""`taskmix laws`: formulas for a column of results, from the columns it may depend on."""

from __future__ import annotations

import json
import shlex
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskmix.cli._display import echo
from taskmix.errors import OptionError
from taskmix.extras import require

if TYPE_CHECKING:
    from taskmix.laws import FormulaComparison, GroupedLaw, Law


class Engine(StrEnum):
    """Who looks for formulas."""

    SEARCH = "search"
    OPERON = "operon"
    GPLEARN = "gplearn"


class Noise(StrEnum):
    """How the deviations of the target are taken to be."""

    AUTO = "auto"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


def laws(
    table: Annotated[
        Path, typer.Argument(help="A .csv, .jsonl or .parquet file, one row a result.")
    ],
    target: Annotated[str, typer.Option("--target", help="The column to explain.")],
    inputs: Annotated[str, typer.Option("--inputs", help="The columns it may depend on: n,ami,T")],
    engine: Annotated[
        Engine, typer.Option("--engine", help="Who looks for formulas.")
    ] = Engine.SEARCH,
    compare: Annotated[
        list[str] | None,
        typer.Option("--compare", help="A formula to judge on the same rows, or `document`."),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="Constants of each value of this column, shrunk.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", help="Predict here: n=2000,ami=0.6,T=2")] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="And the gain of this change from there: T=5")
    ] = None,
    noise: Annotated[
        Noise, typer.Option("--noise", help="Deviations of one size, or relative.")
    ] = Noise.AUTO,
    range_input: Annotated[
        str | None,
        typer.Option("--range", help="Leave out its largest values in turn [first input]."),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", min=0, help="Cross-validate the front.")] = 0,
    bootstrap: Annotated[
        int,
        typer.Option("--bootstrap", min=0, help="Intervals of constants from this many tables."),
    ] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the front into this .svg, .png or .html.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write everything to this .json.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Of the held-out rows and other engines.")
    ] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Find formulas for a column of a table: the front of complexity against held-out error.

    A tenth of the rows is held out, and the rows with the largest values of the first input are left
    out in turn: error outside the data is what tells a law from a fit.

    Examples:

        taskmix laws results.csv --target f1 --inputs n,ami,T --plot front.svg

        taskmix laws results.csv --target f1 --inputs n,T --compare "a*sqrt(n)" --at n=2000,T=2 --to T=5
    """
    import numpy as np

    from taskmix.cli._display import print_json
    from taskmix.cli._laws_told import print_laws
    from taskmix.files import check_output, has_keys
    from taskmix.laws import LawRegressor, bootstrap_law, fit_groups, read_table
    from taskmix.report import check_chart_path, front_chart, write_chart

    if plot is not None:
        check_chart_path(plot)
    if out is not None:
        check_output(out, is_ours=has_keys("command", "engine", "law"), what="the law")
    if engine is not Engine.SEARCH:
        package = "pyoperon" if engine is Engine.OPERON else "gplearn"
        require(package, purpose=f"`--engine {engine.value}`")
    names = [name.strip() for name in inputs.split(",") if name.strip()]
    if target in names or len(set(names)) != len(names) or not names:
        raise OptionError(
            f"`--inputs` should name different columns, none of them the target. Found {inputs!r}."
        )
    start, change = _point("--at", at, names), _point("--to", to, names)
    if change and not start:
        raise OptionError(
            "`--to` should come with `--at`, where the change begins. Found it alone."
        )
    columns = read_table(table, [*names, target, *([group] if group else [])])
    X, y = {name: columns[name] for name in names}, columns[target]
    if not json_:
        grouped_by = f", groups by `{group}`" if group else ""
        echo(
            f"Read {table.name}: target `{target}`, inputs {', '.join(f'`{n}`' for n in names)}"
            f"{grouped_by}; {len(y):,} rows, none left out."
        )
    begin = time.monotonic()
    compared = _compared(compare or [], X, y)
    regressor = LawRegressor(
        engine.value, noise=noise.value, range_input=range_input, folds=folds, seed=seed
    )
    regressor.fit(X, _Named(y, target))
    law = regressor.law_
    found: dict[str, Any] = {
        "command": shlex.join(["taskmix", *sys.argv[1:]]),
        "engine": engine.value,
        "target": target,
        "inputs": names,
        "rows": law.rows,
        "noise": law.noise,
        "notes": list(regressor.notes_),
        "law": _law_row(law),
        "front": regressor.front_.rows(),
        "left_out": {
            "input": regressor.front_.range_input,
            "rows": regressor.front_.left_out_rows,
        },
    }
    if bootstrap:
        generator = np.random.default_rng(seed)
        drawn = bootstrap_law(law, X, y, generator=generator, repeats=max(bootstrap, 20))
        found["bootstrap"] = [_interval(each) for each in drawn.constants()]
    if compare:
        found["comparisons"] = [vars(each) for each in compared]
    if group:
        grouped: GroupedLaw = fit_groups(law, X, y, columns[group])
        found["groups"] = grouped.rows()
        found["between_groups"] = grouped.between.tolist()
    if start:
        found["prediction"] = _prediction(law, start)
    if change:
        found["gain"] = _gain(law, start, change)
    found["seconds"] = round(time.monotonic() - begin, 2)
    if plot is not None:
        write_chart(front_chart(regressor.front_), plot)
    if out is not None:
        _write(out, found)
    if json_:
        print_json(found)
        return
    print_laws(found)
    for path in (plot, out):
        if path is not None:
            echo(f"Wrote {path}.")


class _Named(list[Any]):
    """A column that knows its name, as pandas' do."""

    def __init__(self, values: list[Any], name: str) -> None:
        super().__init__(values)
        self.name = name


def _point(option: str, text: str | None, names: list[str]) -> dict[str, float]:
    """`n=2000,T=2` as numbers."""
    point: dict[str, float] = {}
    for part in (text or "").split(",") if text else ():
        name, sign, value = part.partition("=")
        try:
            point[name.strip()] = float(value)
        except ValueError:
            sign = ""
        if not sign or name.strip() not in names:
            raise OptionError(
                f"`{option}` should give inputs values, such as {names[0]}=100. Found {part!r}."
            )
    return point


def _compared(formulas: list[str], X: dict[str, Any], y: list[Any]) -> list[FormulaComparison]:
    from taskmix.laws import compare_formulas, paper_comparisons

    own = {f"given {n}": text for n, text in enumerate(formulas, 1) if text != "document"}
    found = compare_formulas(own, X, y)
    return found + (paper_comparisons(X, y) if "document" in formulas else [])


def _law_row(law: Law) -> dict[str, Any]:
    return {
        "formula": str(law),
        "complexity": law.complexity,
        "constants": [_interval(each) for each in law.constants()],
        "growth": {n: None if g is None else g.describe(n) for n, g in law.growth().items()},
        "ranges": {name: list(ends) for name, ends in law.ranges.items()},
        "deviation": law.deviation,
        "latex": law.latex,
        "python": law.python,
    }


def _interval(interval: Any) -> dict[str, float]:
    return {"value": interval.mean, "low": interval.low, "high": interval.high}


def _prediction(law: Law, point: dict[str, float]) -> dict[str, Any]:
    missing = [name for name in law.inputs if name not in point]
    if missing:
        raise OptionError(
            f"`--at` should give every input of the law a value. Found none for {', '.join(missing)}."
        )
    found = law.predict({name: [value] for name, value in point.items()})
    return {
        "at": point,
        "value": float(found.values[0]),
        "low": float(found.low[0]),
        "high": float(found.high[0]),
        "warning": found.warning,
    }


def _gain(law: Law, point: dict[str, float], change: dict[str, float]) -> dict[str, Any]:
    found = law.gain(point, **change)
    return {"to": change, **_interval(found.interval), "warning": found.warning}


def _write(path: Path, found: dict[str, Any]) -> None:
    from taskmix.files import write_bytes
    from taskmix.records import without_nan

    text = json.dumps(without_nan(found), indent=2, ensure_ascii=False) + "\n"
    write_bytes(path, text.encode())
