"""What a task reads: which columns are its inputs, and how they are called in `Split.inputs`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.errors import OptionError
from taskmix.tasks._columns import Stack, family
from taskmix.tasks._notes import Notes
from taskmix.tasks._readers import Rows
from taskmix.tasks._settings import TaskSettings
from taskmix.tasks._streams import show
from taskmix.tasks._targets import flatten
from taskmix.tasks._task import InputKind

_REMEDY = "Correct that row or take it out."


@dataclass(frozen=True)
class InputPlan:
    """The kind of input and the columns of the file that hold it."""

    kind: InputKind
    columns: tuple[str, ...]


def name_columns(part: Rows, settings: TaskSettings) -> Rows:
    """CoNLL columns by the names that settings give them."""
    if settings.columns is None:
        return part
    if part.format != "conll":
        raise OptionError(
            f"`columns` should name the columns of .conll files. Found {part.path.name}. "
            "Leave it out: this format has names of its own."
        )
    if len(set(settings.columns)) != part.table.num_columns:
        part.bad(
            "`columns` should have a different name for each column.",
            f"{part.table.num_columns} columns beside the names {', '.join(settings.columns)}",
            "Correct `columns`.",
        )
    return replace(part, table=part.table.rename_columns(list(settings.columns)))


def tokens_column(stack: Stack, settings: TaskSettings) -> str | None:
    """The column of tokens, where there is one."""
    if stack.parts[0].format == "conll":
        return stack.names[0]
    return settings.tokens or ("tokens" if "tokens" in stack.names else None)


def target_column(stack: Stack, settings: TaskSettings, label: str | None) -> str:
    """The column that is meant: by name, of CoNLL also by number, or the usual one."""
    names = stack.names
    if stack.parts[0].format == "conll":
        if label is None:
            return names[-1]
        if label not in names and label.isdecimal() and 1 <= int(label) <= len(names):
            return names[int(label) - 1]
        return label
    if label is None and "label" not in names:
        tokens = tokens_column(stack, settings)
        lists = [name for name in names if family(stack.parts[0].table[name].type) == "list"]
        tags = [name for name in lists if name != tokens]
        if tokens in lists and len(tags) == 1:
            return tags[0]
    return label or "label"


def plan_inputs(
    stack: Stack,
    settings: TaskSettings,
    *,
    target: str,
    is_tagging: bool,
    apart: Collection[str],  # columns that are no features: targets, task, split
) -> InputPlan:
    """Lists of tokens for tags; the columns named features; text where there is any; a table."""
    tokens = tokens_column(stack, settings)
    if is_tagging and tokens is not None:
        return InputPlan("tokens", (tokens,))
    if settings.features is not None:
        for name in settings.features:
            if name == target:
                raise OptionError(
                    f"`features` should not have the target `{target}`. Found it there. "
                    "Take it out, or it would be read off the answer."
                )
        return InputPlan("table", settings.features)
    text = settings.text or ("text" if "text" in stack.names and target != "text" else None)
    if text is not None:
        text2 = settings.text2
        if settings.text is None and text2 is None and "text2" in stack.names:
            text2 = "text2"
        if text2 is not None and target != text2:
            return InputPlan("pair", (text, text2))
        return InputPlan("text", (text,))
    left_out = {"", *apart, *(settings.ignore or ())}
    return InputPlan("table", tuple(name for name in stack.names if name not in left_out))


def build_inputs(stack: Stack, plan: InputPlan, notes: Notes, origin: str) -> pa.Table:
    """The inputs of all rows, with the columns that the table in `_task.py` lists."""
    if plan.kind == "table":
        return _build_table(stack, plan.columns, notes, origin)
    if plan.kind == "tokens":
        return pa.table({"tokens": _build_tokens(stack, plan.columns[0])})
    if plan.kind == "sequences":
        return pa.table({name: stack.column(name) for name in plan.columns})
    columns = {}
    for standard, name in zip(("text", "text2"), plan.columns, strict=False):
        columns[standard] = stack.text(name, "as an input")
        for part, start, size in zip(stack.parts, stack.starts, stack.sizes, strict=False):
            cells = columns[standard].slice(start, size)
            if not any(cell.as_py().strip() for cell in cells):  # ends at the first word
                should = f"`{name}` should have words in some rows, as an input."
                part.bad(should, "none", "Check which column holds the text.", 0)
    return pa.table(columns)


def _build_tokens(stack: Stack, name: str) -> pa.ChunkedArray:
    cells = stack.column(name)
    should = f"`{name}` should be a list of words in every row."
    if family(cells.type) != "list":
        stack.bad(0, should, show(cells[0].as_py()), _REMEDY)
    stack.bad_where(pc.is_null(cells), should, "nothing", _REMEDY)
    lengths = pc.list_value_length(cells)
    stack.bad_where(pc.equal(lengths, 0), should, "an empty list", _REMEDY)
    flat = flatten(cells)
    is_text = family(flat.type) == "text"
    wrong = pa.array(np.ones(len(flat), dtype=np.bool_))
    if is_text:
        wrong = pc.fill_null(pc.match_substring(flat, "\0"), fill_value=True)
    place = pc.index(wrong, pa.scalar(True)).as_py()
    if place >= 0:
        ends = np.cumsum(lengths.to_numpy())
        row = int(np.searchsorted(ends, place, side="right"))
        stack.bad(row, should, show(flat[place].as_py()), _REMEDY)
    return cells


def _build_table(stack: Stack, names: tuple[str, ...], notes: Notes, origin: str) -> pa.Table:
    columns = {}
    for name in names:
        cells = stack.column(name)
        kind = family(cells.type)
        if kind in ("list", "other", "nothing"):
            word = "no values" if kind == "nothing" else "neither numbers nor text"
            notes.add(f"the column `{name}` of {origin} has {word} and was left out")
            continue
        if kind == "text":
            stack.check_characters(name, cells)
        columns[name] = cells.cast(pa.int8()) if kind == "truth" else cells
    if not columns:
        part = stack.parts[0]
        should = "A table should have at least one column beside the target."
        part.bad(should, "none that can be a feature", "Add one, or name them in `features`.")
    return pa.table(columns)
