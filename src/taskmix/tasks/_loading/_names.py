"""Names that were said, as the files write them, and files whose headers differ in case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskmix.tasks._columns import folded_name, match_column
from taskmix.tasks._formats import Rows
from taskmix.tasks._loading._settings import TaskSettings

_ONE = ("text", "text2", "tokens", "answer", "task_column", "split_column", "sequence", "time")
_SEVERAL = ("label", "prompt", "features", "ignore", "values")


def as_written(settings: TaskSettings, names: Sequence[str]) -> TaskSettings:
    """The settings with the columns called as the files call them; unknown names stay."""
    said: dict[str, Any] = {}
    for key in (*_ONE, *_SEVERAL):
        value = getattr(settings, key)
        if isinstance(value, tuple):
            said[key] = tuple(match_column(names, name) or name for name in value)
        elif value is not None:
            said[key] = match_column(names, value) or value
    return replace(settings, **said)


def alike(parts: Mapping[str, Rows]) -> dict[str, Rows]:
    """The files with their columns called as the first one calls them."""
    first, *_ = parts.values()
    return {split: called(part, first.table.column_names) for split, part in parts.items()}


def called(part: Rows, wanted: Sequence[str]) -> Rows:
    """The file with those of its columns renamed that differ from the wanted ones in case alone."""
    known = {folded_name(name): name for name in wanted}
    names = part.table.column_names
    new: dict[str, str] = {}
    for name in names:
        meant = known.get(folded_name(name), name)
        # Two columns of one file that are alike but for case stay two.
        if meant not in names and meant not in new.values():
            new[name] = meant
    if not new:
        return part
    return replace(
        part,
        table=part.table.rename_columns([new.get(name, name) for name in names]),
        unusable={new.get(name, name): why for name, why in part.unusable.items()},
        mixed={new.get(name, name): why for name, why in part.mixed.items()},
        original={called: name for name, called in new.items()},
    )
