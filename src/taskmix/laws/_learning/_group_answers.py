"""What is asked of one group: a point names it beside the inputs, `{"n": 2000, "model": "70M"}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskmix.errors import OptionError
from taskmix.laws._fitting import as_columns
from taskmix.laws._forms import Array
from taskmix.laws._judging import TARGET, GroupedLaw, Law
from taskmix.laws._learning._document import PredictionRow
from taskmix.laws._learning._regressor import LawRegressor
from taskmix.laws._learning._targets import long_table

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
