"""What a task reads: which columns are its inputs, and how they are called in `Split.inputs`.

Text is the column named in settings, the one called `text` (or `Text`), or the only one that holds
sentences. Without any the inputs are a table, of the columns that are neither something else nor names
of rows; dates become numbers. `tasks/_columns/_roles.py` says what each column is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from taskmix.errors import OptionError
from taskmix.tasks._columns._dates import DateColumn, dates_of
from taskmix.tasks._columns._roles import UNUSABLE, ColumnRole, as_pair, role_of
from taskmix.tasks._columns._spelling import normal_cells
from taskmix.tasks._columns._stack import StackedFiles, cell_family, match_column
from taskmix.tasks._formats._readers import Rows
from taskmix.tasks._formats._words import quoted
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._written import WrittenColumns, build_passages, build_written
from taskmix.tasks._reading import InputKind

_REMEDY = "Correct that row or take it out."
_LEFT_OUT = {
    "differs in every row": "differs in every row, as names of rows do,",
    "differs in most rows": "differs in most rows, as names of things do,",
    "numbers the rows": "numbers the rows",
}


@dataclass(frozen=True)
class InputPlan:
    """The kind of input and the columns of the file that hold it."""

    kind: InputKind
    columns: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # other columns, and why
    remarks: tuple[str, ...] = ()
    answer: str | None = None  # the column of answers to prompts, where they are known


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


def tokens_column(stack: StackedFiles, settings: TaskSettings) -> str | None:
    """The column of tokens, where there is one."""
    if stack.parts[0].format == "conll":
        return stack.names[0]
    return settings.tokens or match_column(stack.names, "tokens")


def target_column(stack: StackedFiles, settings: TaskSettings, label: str | None) -> str:
    """The column that is meant: by name, of CoNLL also by number, or the usual one."""
    names = stack.names
    if stack.parts[0].format == "conll":
        if label is None:
            return names[-1]
        if label not in names and label.isdecimal() and 1 <= int(label) <= len(names):
            return names[int(label) - 1]
        return label
    meant = match_column(names, label or "label")
    if label is None and meant is None:
        tokens = tokens_column(stack, settings)
        lists = [name for name in names if cell_family(stack.parts[0].table[name].type) == "list"]
        tags = [name for name in lists if name != tokens]
        if tokens in lists and len(tags) == 1:
            return tags[0]
    return meant or label or "label"


def plan_inputs(
    stack: StackedFiles,
    settings: TaskSettings,
    *,
    target: str,
    is_tagging: bool,
    apart: Collection[str],  # columns that are no features: targets, task, split
) -> InputPlan:
    """Lists of tokens for tags; the columns named features; text where there is any; a table."""
    tokens = tokens_column(stack, settings)
    left_out = {"", *apart, *(settings.ignore or ())}
    names = [name for name in stack.names if name not in left_out]
    if is_tagging and tokens is not None:
        return _beside("tokens", (tokens,), names)
    if settings.features is not None:
        for name in settings.features:
            if name == target:
                raise OptionError(
                    f"`features` should not have the target `{target}`. Found it there. "
                    "Take it out, or it would be read off the answer."
                )
        return _plan_table(stack, settings.features, are_chosen=True)
    text, text2 = settings.text, settings.text2
    if text is None:
        text = _called("text", stack.names, target)
        text2 = text2 or (None if text is None else _called("text2", stack.names, target))
    remarks: tuple[str, ...] = ()
    if text is None and text2 is None:
        text, text2, remarks = _find_text(stack, names)
    if text is None:
        return _plan_table(stack, names)
    if text2 is not None and target != text2:
        return _beside("pair", (text, text2), names, remarks)
    return _beside("text", (text,), names, remarks)


def plan_written(stack: StackedFiles, written: WrittenColumns, apart: Collection[str]) -> InputPlan:
    """Prompts or passages, beside which other columns are left alone."""
    used = {*written.columns, written.answer, *apart}
    kind: InputKind = "prompt" if written.kind == "generation" else "passage"
    others = tuple((name, f"beside the {kind}") for name in stack.names if name not in used)
    return InputPlan(kind, written.columns, others, answer=written.answer)


def _called(word: str, names: Collection[str], target: str) -> str | None:
    """The column of that name, whatever the case of its letters, unless it is the target."""
    found = match_column(names, word)
    return found if found != target else None


def _find_text(
    stack: StackedFiles, names: Collection[str]
) -> tuple[str | None, str | None, tuple[str, ...]]:
    """The columns that hold sentences, if it can be told which are meant."""
    found = [name for name in names if role_of(stack, name).kind == "text"]
    if not found:
        return None, None, ()
    pair = as_pair(found)
    if len(found) > 1 and pair is None:
        stack.parts[0].bad(
            "One column should hold the text, or two that are called as pairs usually are.",
            f"sentences in the columns {', '.join(found[:8])}",
            "Say which are meant: as text columns, or `text` and `text2` in task.toml; or `features`, "
            "for a table.",
        )
    shown = " and ".join(f"`{name}`" for name in pair or found)
    hold = "hold sentences and were" if pair else "holds sentences and was"
    remark = f"{shown} {hold} taken for the text; `text=...` or `features=...` says otherwise"
    return *(pair or (found[0], None)), (remark,)


def _beside(
    kind: InputKind, columns: tuple[str, ...], names: Collection[str], remarks: tuple[str, ...] = ()
) -> InputPlan:
    why = f"beside the {'tokens' if kind == 'tokens' else 'text'}"
    others = tuple((name, why) for name in names if name not in columns)
    return InputPlan(kind, columns, others, remarks)


def _plan_table(
    stack: StackedFiles, names: Collection[str], *, are_chosen: bool = False
) -> InputPlan:
    """The columns that can be features, and the others."""
    left_out: list[tuple[str, str]] = []
    remarks: list[str] = []
    for name in names:
        role = role_of(stack, name)
        if role.kind == "other":
            stack.column(name)  # raises what is wrong with it, if it could not be read
        if role.kind in UNUSABLE:
            why = "no values" if role.kind == "empty" else "neither numbers nor text"
            left_out.append((name, why))
            remarks.append(f"the column `{name}` has {why} and was left out")
        elif role.kind == "id" and not are_chosen:
            left_out.append((name, role.why))
            words = _LEFT_OUT[role.why]
            remarks.append(f"the column `{name}` {words} and was left out; `features=...` keeps it")
        elif role.kind == "date":
            dates = dates_of(stack, name)
            if dates is None:
                raise AssertionError("a column of dates should have dates")
            if not dates.can_be_told:
                left_out.append((name, role.why))
            remarks.append(_remark_on_dates(role, dates))
    without = dict(left_out)
    columns = tuple(name for name in names if name not in without)
    if not columns:
        found = "none that can be a feature"
        if left_out:
            found += f" ({', '.join(f'`{name}`: {why}' for name, why in left_out[:8])})"
        should = "A table should have at least one column beside the target."
        remedy = "Add one, or name them in `features`; a column of text is named by `text`."
        stack.parts[0].bad(should, found, remedy)
    return InputPlan("table", columns, tuple(left_out), tuple(remarks))


def _remark_on_dates(role: ColumnRole, dates: DateColumn) -> str:
    holds = f"the column `{role.name}` holds dates from {dates.first} to {dates.last}"
    if not dates.can_be_told:
        return (
            f"{holds}, written as {dates.way}, and was left out, as a single new row would not tell day "
            "and month apart; write them as 2021-12-31 or 31.12.2021"
        )
    others = "" if not dates.others else f" ({role.why} count as missing)"
    written = "" if dates.way == "a type of its own" else f", written as {dates.way},"
    return f"{holds}{written} and was read as days since 1970-01-01{others}; `ignore=...` leaves it out"


def build_inputs(stack: StackedFiles, plan: InputPlan) -> pa.Table:
    """The inputs of all rows, with the columns that the table in `_task.py` lists."""
    if plan.kind == "table":
        return _build_table(stack, plan.columns)
    if plan.kind == "tokens":
        return pa.table({"tokens": _build_tokens(stack, plan.columns[0])})
    if plan.kind == "prompt":
        return build_written(stack, plan.columns, plan.answer)
    if plan.kind == "passage":
        return build_passages(stack, plan.columns[0])
    if plan.kind == "sequences":
        return pa.table({name: stack.column(name) for name in plan.columns})
    columns = {}
    for standard, name in zip(("text", "text2"), plan.columns, strict=False):
        columns[standard] = stack.text(name, "as an input", may_miss=not stack.strict)
        for part, start, size in zip(stack.parts, stack.starts, stack.sizes, strict=False):
            cells = columns[standard].slice(start, size)
            if not any(cell.as_py().strip() for cell in cells):  # ends at the first word
                should = f"`{name}` should have words in some rows, as an input."
                part.bad(should, "none", "Check which column holds the text.", 0)
    return pa.table(columns)


def _build_tokens(stack: StackedFiles, name: str) -> pa.ChunkedArray:
    cells = stack.column(name)
    should = f"`{name}` should be a list of words in every row."
    _, offsets = stack.items(cells, should, words=True)
    for row in np.flatnonzero(np.diff(offsets) == 0)[:1]:
        stack.bad(int(row), should, "an empty list", _REMEDY)
    return cells


def _build_table(stack: StackedFiles, names: tuple[str, ...]) -> pa.Table:
    columns = {}
    for name in names:
        if (dates := dates_of(stack, name)) is not None:
            columns[name] = dates.days
            continue
        cells = stack.column(name)
        kind = cell_family(cells.type)
        if kind == "text":
            stack.check_characters(name, cells)
            cells = normal_cells(cells)
        columns[name] = cells.cast(pa.int8()) if kind == "truth" else cells
    return pa.table(columns)


def remarks_on_cells(stack: StackedFiles, plan: InputPlan) -> tuple[str, ...]:
    """What was decided about cells of a table that are no numbers although most of a column are."""
    remarks = []
    for name in plan.columns if plan.kind == "table" else ():
        if dates_of(stack, name) is None and (odd := stack.odd(name)):
            several = "1 other cell" if odd.count == 1 else f"{odd.count} other cells"
            what = "counted as missing" if odd.are_missing else "so all were read as categories"
            remarks.append(
                f"the column `{name}` has {odd.numbers} numbers and {several}, {what}; the first is "
                f"{quoted(odd.value)} in {stack.where(odd.place)}"
            )
    return tuple(remarks)
