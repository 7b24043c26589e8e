"""Laws documents whose truth is plain: f1 = 0.95 - 2 (1 + 1/T) / sqrt(n), found without a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from taskmix.laws import Law, LawPicture, LawsDocument, fit_formula
from taskmix.laws._document import GainRow, LeftOutRange, PredictionRow
from taskmix.laws._front import Front
from taskmix.laws._law import Errors
from taskmix.laws._picture import picture_laws
from taskmix.laws._rows import law_row

FORMULAS = ("1", "n^0.1", "1 - 2/sqrt(n)", "1 - 2*(1 + 1/T)/sqrt(n)")


def results_table(noise: float = 0.006) -> dict[str, NDArray[np.float64]]:
    """A row for every size and every number of tasks, three seeds each."""
    n, tasks, _ = (
        each.ravel()
        for each in np.meshgrid([250, 500, 1000, 2000, 4000, 8000], [1, 2, 4, 8], [0, 1, 2])
    )
    generator = np.random.default_rng(0)
    f1 = 0.95 - 2 * (1 + 1 / tasks) / np.sqrt(n) + noise * generator.normal(size=len(n))
    return {"n": n.astype(float), "T": tasks.astype(float), "f1": f1}


def laws_document(
    *, names: Mapping[str, str] | None = None, formulas: tuple[str, ...] = FORMULAS
) -> LawsDocument:
    """The last formula is the chosen one; `names` are other names of the columns."""
    table = results_table()
    X = {name: table[name] for name in ("n", "T")}
    laws = []
    for signs, formula in enumerate(formulas):
        law = fit_formula(formula, X, table["f1"], name="f1")
        error = float(np.mean((law.predict(X).values - table["f1"]) ** 2))
        r_squared = 1 - error / float(np.var(table["f1"]))
        far = Errors(
            held_out=error, held_out_r2=r_squared, left_out=2 * error, left_out_relative=0.02
        )
        laws.append(replace(law, errors=far, length=float(signs)))
    front = Front(tuple(laws), len(laws) - 1, "n", 7, 12)
    law = front.chosen
    document = LawsDocument(
        command="taskmix laws rows.csv --explain f1 --inputs n,T",
        engine="search",
        target="f1",
        inputs=("n", "T"),
        rows=len(table["f1"]),
        noise="absolute",
        notes=("Nothing was left out.",),
        law=law_row(law),
        front=tuple(front.rows()),
        left_out=LeftOutRange("n", 12),
        prediction=PredictionRow({"n": 8000.0, "T": 2.0}, 0.916, 0.914, 0.918, ""),
        gain=GainRow(
            {"n": 32000.0}, 0.0168, 0.016, 0.0176, "Outside the range of the data: n = 32000."
        ),
        picture=picture_laws(front, X, table["f1"]),
        seconds=3.2,
    )
    return document if names is None else _renamed(document, names)


def picture_of(law: Law, X: Mapping[str, NDArray[np.float64]]) -> LawPicture:
    """What is drawn of one law of `f1`."""
    front = Front((law,), 0, next(iter(X)), 1, 1)
    return picture_laws(front, X, results_table()["f1"])


def _renamed(document: LawsDocument, names: Mapping[str, str]) -> LawsDocument:
    """The same with other names of columns, wherever they stand."""

    def point(values: Mapping[str, float]) -> dict[str, float]:
        return {names.get(name, name): value for name, value in values.items()}

    picture = document.picture
    assert picture is not None
    return replace(
        document,
        target=names.get(document.target, document.target),
        inputs=tuple(names.get(name, name) for name in document.inputs),
        law=replace(
            document.law,
            formula=f"{names.get('f1', 'f1')} = {names.get('n', 'n')}",
            growth={names.get(name, name): rate for name, rate in document.law.growth.items()},
        ),
        picture=replace(
            picture,
            curves=tuple(
                replace(
                    curve,
                    input=names.get(curve.input, curve.input),
                    beside=names.get(curve.beside, curve.beside),
                    others=point(curve.others),
                )
                for curve in picture.curves
            ),
            far_ends=tuple(
                replace(end, input=names.get(end.input, end.input), at=point(end.at))
                for end in picture.far_ends
            ),
            rows=tuple(replace(row, at=point(row.at)) for row in picture.rows),
        ),
    )
