"""From a table to a document about its law: what the command `taskmix laws` does, as a function."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from taskmix.errors import OptionError
from taskmix.laws._choose import Stack
from taskmix.laws._compare import (
    Bootstrap,
    FormulaComparison,
    bootstrap_law,
    compare_formulas,
    paper_comparisons,
)
from taskmix.laws._description import LawTable, describe_laws, laws_html
from taskmix.laws._document import GainRow, LawsDocument, LeftOutRange, PredictionRow
from taskmix.laws._evaluate import Array
from taskmix.laws._factors import TARGET
from taskmix.laws._front import Front
from taskmix.laws._groups import GroupedLaw
from taskmix.laws._law import Law
from taskmix.laws._picture import picture_laws
from taskmix.laws._regressor import LawRegressor
from taskmix.laws._rows import fitted_constants, law_row
from taskmix.laws._table import as_columns, check_names, names_of_columns, read_table
from taskmix.laws._targets import long_table

GROUP_WORD = "group"  # names the group in a point, whatever the column is called

Point = Mapping[str, float | str]


def check_targets(target: str | Sequence[str], inputs: Sequence[str]) -> list[str]:
    """The columns to explain; none of them may be an input."""
    targets = [target] if isinstance(target, str) else list(target)
    if (
        set(targets) & set(inputs)
        or len(set(inputs)) != len(inputs)
        or len(set(targets)) != len(targets)
        or not (inputs and targets)
    ):
        raise OptionError(
            "The inputs should be different columns, none of them the target. Found "
            f"{', '.join(inputs) or 'none'} for the target {', '.join(targets)}."
        )
    return targets


def split_point(
    point: Point | None, columns: Sequence[str], *, has_targets: bool
) -> tuple[dict[str, float], dict[str, str]]:
    """The inputs of a point, and the groups it names."""
    named = {*columns, *([TARGET] if has_targets else [])}
    numbers: dict[str, float] = {}
    groups: dict[str, str] = {}
    for name, value in (point or {}).items():
        if name in named:
            groups[name] = str(value)
        elif name == GROUP_WORD and len(columns) == 1:
            groups[columns[0]] = str(value)
        elif isinstance(value, str):
            known = ", ".join(sorted(named)) or "none: name the column of groups"
            raise OptionError(
                f"A point should give inputs numbers and groups names. Found {name}={value}, and the "
                f"columns of groups are {known}."
            )
        else:
            numbers[name] = float(value)
    return numbers, groups


def law_asked(grouped: GroupedLaw | None, law: Law, groups: Mapping[str, str]) -> tuple[Law, str]:
    """The law of the groups that a point names, and a warning where one of them is new."""
    if grouped is None or not groups:
        return law, ""
    factors = grouped.fit.factors
    whole = {name: groups.get(name, "") for name in factors.columns}
    new = [each for name, each in whole.items() if each and each not in factors.levels[name]]
    open_words = [name for name, each in whole.items() if not each]
    words = ""
    if new:
        words = f"{', '.join(new)} was not among the groups: "
    elif open_words:
        words = f"No {', '.join(open_words)} is named: "
    if words:
        words += "the mean over groups, and the interval holds the spread between them."
    return grouped.law(whole), words


def predict_asked(
    grouped: GroupedLaw, law: Law, point: Mapping[str, float], groups: Mapping[str, str]
) -> PredictionRow:
    """What the law of a group says at a point."""
    own, words = law_asked(grouped, law, groups)
    found = own.predict({name: [value] for name, value in {**law.typical, **point}.items()})
    return PredictionRow(
        dict(point),
        float(found.values[0]),
        float(found.low[0]),
        float(found.high[0]),
        " ".join(each for each in (words, found.warning) if each),
        group=dict(groups),
    )


def predict_targets(
    model: LawRegressor, point: Mapping[str, float], groups: Mapping[str, str]
) -> tuple[PredictionRow, ...] | None:
    """What is said of each of several columns; None where one was explained, or is named."""
    if model.groups_ is None or not model.targets_ or TARGET in groups:
        return None
    return tuple(
        predict_asked(model.groups_, model.law_, point, {TARGET: target, **groups})
        for target in model.targets_
    )


def rows_of_mean_group(
    model: LawRegressor, X: Mapping[str, Any], y: Any, groups: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Array]:
    """Inputs and target of the rows as the mean group would have them, for what knows no groups."""
    if model.groups_ is None:
        return dict(X), as_columns({"y": y})["y"]
    if not model.targets_:
        return dict(X), model.groups_.levelled(X, y, groups)
    long = long_table(X, y, groups)
    flat = replace(model.groups_, units={}).levelled(long.columns, long.target, long.groups)
    return dict(long.columns), flat


PAPER = ("paper", "document")  # the second is what the word was before
LEAST_REPEATS = 20  # fewer tables give no percentiles


@dataclass(frozen=True, eq=False)
class LearnedLaws:
    """The laws of a table, and the document that says what they are."""

    front: Front
    document: LawsDocument
    groups: GroupedLaw | None = None  # where a column of groups was named
    bootstrap: Bootstrap | None = None  # where tables were to be drawn anew

    @property
    def law(self) -> Law:
        """The chosen one."""
        return self.front.chosen

    def __repr__(self) -> str:
        parts = describe_laws(self.document)
        return "\n".join(part for part in parts if not isinstance(part, LawTable))

    def _repr_html_(self) -> str:
        """For notebooks: what the command prints."""
        return laws_html(self.document)


def learn_laws(
    table: Any,  # a mapping, a pandas or Arrow table, or the path of a file
    *,
    target: str | Sequence[str],
    inputs: Sequence[str],
    model: LawRegressor | None = None,
    compare: Sequence[str] = (),
    group: str | Sequence[str] | None = None,
    at: Point | None = None,
    to: Mapping[str, float] | None = None,
    bootstrap: int = 0,
    weights: str | None = None,
) -> LearnedLaws:
    """Finds the law of a column of results, as `taskmix laws` does.

    `model` says how it is looked for. `compare` are formulas to judge on the same rows, or `paper` for
    those of the paper. Several targets are explained by one form. A column `group` (or several) names
    groups of rows, whose constants are shared or their own, by evidence. The law is asked for its value
    `at` a point, which may name a group, and for the gain of changing inputs `to` others from there.
    `bootstrap` is the number of tables drawn anew for intervals of the constants.
    A column `weights` says how many measurements each row is the mean of.

    >>> n = np.arange(1.0, 21.0)
    >>> table = {"n": n, "f1": 3 * np.sqrt(n)}
    >>> model = LawRegressor(enough=0.99)
    >>> learn_laws(table, target="f1", inputs=["n"], model=model, at={"n": 16}, to={"n": 25})
    Law: f1 = 3*sqrt(n)
      3 (3 to 3)
    For large values it grows like n: n^0.5.
    At n = 16: 12 (12 to 12).
    Change to n = 25: +3 (3 to 3). Outside the range of the data: n = 25 (data 1 to 20)...
    20 rows, absolute noise, ... s.
    """
    targets = check_targets(target, inputs)
    columns = [group] if isinstance(group, str) else list(group or ())
    if to and not at:
        raise OptionError(
            "A change `to` other inputs should come with `at`, where it begins. Found it alone."
        )
    used = [*inputs, *targets, *columns, *([weights] if weights else [])]
    if isinstance(table, str | Path):
        table = read_table(table, used)
    check_names(used, names_of_columns(table))
    X = {name: table[name] for name in inputs}
    y = {name: table[name] for name in targets} if len(targets) > 1 else table[targets[0]]
    if len(targets) > 1 and compare:
        raise OptionError("Formulas should be compared on one target. Found several targets.")
    groups = {name: table[name] for name in columns} or None
    at, asked = split_point(at, columns, has_targets=len(targets) > 1)
    begin = time.monotonic()
    compared = _compared(compare, X, y) if compare else []
    model = model or LawRegressor()
    points = [point for point in (at, {**at, **to} if at and to else None) if point]
    sample = as_columns({weights: table[weights]})[weights] if weights else None
    model.fit(X, y, name=targets[0], points=points, groups=groups, sample_weight=sample)
    front, law, grouped = model.front_, model.law_, model.groups_
    X, y = rows_of_mean_group(model, X, y, groups)
    drawn = None
    if bootstrap:
        generator, repeats = np.random.default_rng(model.seed), max(bootstrap, LEAST_REPEATS)
        drawn = bootstrap_law(
            law,
            X,
            y,
            generator=generator,
            repeats=repeats,
            loss=model.loss_,
            sample_weight=None if model.targets_ else sample,
        )
    document = LawsDocument(
        command="",
        engine="search",
        target=", ".join(targets),
        inputs=tuple(inputs),
        rows=law.rows,
        noise=law.noise,
        notes=tuple(model.notes_),
        law=law_row(law),
        front=tuple(front.rows()),
        left_out=LeftOutRange(front.range_input, front.left_out_rows),
        ranges=front.ranges,
        stack=tuple(front.stack_rows()) or None,
        tied=tuple(each.text for each in front.tied) if len(front.tied) > 1 else None,
        loss=model.loss_,
        weights=weights,
        lack_of_fit=model.lack_of_fit_,
        stack_prediction=_asked(front.stack, at) if at and front.stack is not None else None,
        bootstrap=fitted_constants(drawn.constants()) if drawn is not None else None,
        comparisons=tuple(compared) if compare else None,
        groups=tuple(grouped.rows()) if grouped is not None else None,
        between_groups=tuple(grouped.between.tolist()) if grouped is not None else None,
        group_columns=grouped.fit.factors.columns if grouped is not None else None,
        shared=tuple(grouped.shared_rows()) if grouped is not None else None,
        target_predictions=predict_targets(model, at, asked) if at else None,
        prediction=_prediction(front, at, asked) if at else None,
        gain=_gain(law_asked(grouped, law, asked)[0], at, to) if at and to else None,
        next_runs=model.next_runs(at),
        picture=picture_laws(front, X, y),
        seconds=round(time.monotonic() - begin, 2),
    )
    return LearnedLaws(front, document, grouped, drawn)


def _compared(formulas: Sequence[str], X: dict[str, Any], y: Any) -> list[FormulaComparison]:
    own = {f"given {n}": text for n, text in enumerate(formulas, 1) if text not in PAPER}
    found = compare_formulas(own, X, y)
    return found + (paper_comparisons(X, y) if set(PAPER) & set(formulas) else [])


def _prediction(
    front: Front, point: Mapping[str, float], groups: Mapping[str, str]
) -> PredictionRow:
    """What the chosen law says; its interval holds what tied laws say otherwise."""
    law = front.chosen
    missing = [name for name in law.inputs if name not in point]
    if missing:
        raise OptionError(
            f"`at` should give every input of the law a value. Found none for {', '.join(missing)}."
        )
    if front.groups is not None and groups:
        return predict_asked(front.groups, law, point, groups)
    return _asked(law, point)


def _asked(law: Law | Stack, point: Mapping[str, float]) -> PredictionRow:
    medians = law.typical if isinstance(law, Law) else law.laws[0].typical
    whole = {**medians, **point}  # a tied law may have an input that the chosen one has not
    found = law.predict({name: [value] for name, value in whole.items()})
    value, low, high = (float(each[0]) for each in (found.values, found.low, found.high))
    return PredictionRow(dict(point), value, low, high, found.warning)


def _gain(law: Law, point: Mapping[str, float], change: Mapping[str, float]) -> GainRow:
    found = law.gain(point, **change)
    interval = found.interval
    return GainRow(dict(change), interval.mean, interval.low, interval.high, found.warning)
