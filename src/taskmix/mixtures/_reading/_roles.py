"""Which column names a run, which gives its size, and which are neither shares nor metrics."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from taskmix.errors import InputError
from taskmix.mixtures._reading._sheet import Sheet, looks_like_sizes

RUN_NAMES = ("run", "run_id", "run_name", "name", "id", "index", "unnamed: 0", "")  # best first
SIZE_NAMES = ("size", "parameters", "params", "model_size", "n_params", "num_params")
# Words that say how a run was made; as a domain or a metric they would be nonsense.
_ABOUT_RUNS = frozenset(
    {*RUN_NAMES, "seed", "step", "steps", "date", "group", "experiment", "config"}
)


def run_column_of(sheets: Sequence[Sheet], given: str | None) -> str | None:
    """The column that joins the sheets; None where rows are runs in the same order."""
    if given is not None:
        for sheet in sheets:
            if given not in sheet.columns:
                raise InputError(
                    f"`run_column` should be a column of {sheet.name}. Found `{given}`, and the "
                    f"columns {', '.join(list(sheet.columns)[:12])}. Check the spelling.",
                    arguments=("run_column",),
                )
        return given
    shared = [name for name in sheets[0].columns if all(name in each.columns for each in sheets)]
    by_word = {name.strip().lower(): name for name in reversed(shared)}
    candidates = [by_word[word] for word in RUN_NAMES if word in by_word]
    for name in candidates:  # Olmix writes three: the first that tells all runs apart
        if all(len(set(map(str, each.columns[name]))) == len(each) for each in sheets):
            return name
    return candidates[0] if candidates else None


def size_column_of(sheets: Sequence[Sheet], given: str | None) -> str | None:
    """The column that says how large each model is."""
    if given is not None:
        if not any(given in sheet.columns for sheet in sheets):
            there = list(dict.fromkeys(name for sheet in sheets for name in sheet.columns))
            raise InputError(
                f"`size_column` should be a column of the files. Found `{given}`, and the columns "
                f"{', '.join(there[:12])}. Check the spelling.",
                arguments=("size_column",),
            )
        return given
    for sheet in sheets:
        for name, cells in sheet.columns.items():
            if name.strip().lower() in SIZE_NAMES or (
                name.strip().lower() == "model" and looks_like_sizes(cells)
            ):
                return name
    return None


def value_columns(
    sheet: Sheet, taken: Collection[str | None], what: str
) -> tuple[list[str], list[str]]:
    """The columns left for shares or metrics, and a note on those that are neither."""
    found: list[str] = []
    words: list[str] = []
    for name in sheet.columns:
        if name in taken:
            continue
        if name.strip().lower() in _ABOUT_RUNS or not sheet.holds_numbers(name):
            words.append(f"`{name}`")
        else:
            found.append(name)
    if not found:
        sheet.refuse(
            f"There should be a column for each of the {what}.",
            f"only {', '.join(list(sheet.columns)[:12])}",
            "Check which file is which.",
        )
    notes = [f"Left out of {sheet.name}, as no {what}: {', '.join(words)}."] if words else []
    return found, notes
