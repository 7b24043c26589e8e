"""What is asked for of an origin: its targets, found in the files as they are written there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from taskmix.tasks._columns import StackedFiles, match_column, usual_label
from taskmix.tasks._formats import Rows, show_path
from taskmix.tasks._loading._inputs import (
    InputPlan,
    plan_inputs,
    plan_written,
    target_column,
    tokens_column,
)
from taskmix.tasks._loading._label import guess_label
from taskmix.tasks._loading._names import as_written
from taskmix.tasks._loading._notes import Notes
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._targets import Target, read_target
from taskmix.tasks._loading._written import find_written
from taskmix.tasks._reading import WRITTEN


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One target asked for: its column, and the name of its task where it has one of its own."""

    label: str | None
    settings: TaskSettings
    name: str | None = None


def wanted_as_written(want: Wanted, names: Sequence[str]) -> Wanted:
    """The same with the names of columns as the files have them."""
    label = None if want.label is None else match_column(names, want.label)
    return replace(want, settings=as_written(want.settings, names), label=label or want.label)


def with_targets(
    parts: Mapping[str, Rows], wanted: Sequence[Wanted], notes: Notes, *, strict: bool
) -> dict[str, Rows]:
    """The files, without a `test` that has no target: those of competitions keep it to themselves."""
    first, *_ = parts.values()
    names = first.table.column_names
    label = match_column(names, wanted[0].label or "label") or usual_label(names)
    test = parts.get("test")
    if (
        strict
        or test is None
        or first is test
        or first.format == "conll"
        or label is None
        or label in test.table.column_names
    ):
        return dict(parts)
    name = show_path(Path(test.path.name))
    notes.add(f"{name} has no column `{label}`, so it was left out: nothing can be scored on it")
    return {split: part for split, part in parts.items() if part is not test}


def read_wanted(stack: StackedFiles, want: Wanted, beside: Sequence[str]) -> Target:
    """The target asked for, or the one that is guessed."""
    column = target_column(stack, want.settings, want.label)
    said = want.settings.kind in WRITTEN or want.settings.prompt or want.settings.answer
    if said or column not in stack.names:
        written = find_written(stack, want.settings, want.label, beside)
        if written is not None:
            return Target(written.answer or written.columns[0], written.kind, written=written)
    tokens = tokens_column(stack, want.settings)
    has_names = not stack.parts[0].begins_with_data()
    if column in stack.names or want.label is not None or not has_names:
        return read_target(stack, column, want.settings, tokens)
    column, remark = guess_label(stack, want.settings, beside)
    target = read_target(stack, column, want.settings, tokens)
    return replace(target, remarks=(remark, *target.remarks))


def plan_wanted(
    stack: StackedFiles, want: Wanted, target: Target | None, features_not: Collection[str]
) -> InputPlan:
    """Which columns a target is predicted from."""
    if target is None:
        shape = "symbols" if "symbols" in stack.names else "values"
        return InputPlan("sequences", (shape,))
    if target.written is not None:
        return plan_written(stack, target.written, features_not)
    is_tagging = target.kind == "tagging"
    return plan_inputs(
        stack, want.settings, target=target.column, is_tagging=is_tagging, apart=features_not
    )
