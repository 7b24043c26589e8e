"""What is wrong with the columns of files, whatever tasks are made of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._columns import StackedFiles, cell_family, count_values, dates_of, role_of
from taskmix.tasks._loading import SeenFiles
from taskmix.tasks._looking import Finding, tells_labels

MOST_CATEGORIES = 64  # that `TableEncoding` gives a feature each
LONG_TEXT = 3000  # characters, about 500 words: pretrained models usually read no more
SOME_MISSING, MANY_MISSING = 0.05, 0.5  # of the cells: worth a word, and a warning
_SHOWN = 5  # columns in a sentence


def look_at_columns(files: SeenFiles) -> Iterator[Finding]:
    """Constant, empty, mostly missing and telling columns."""
    stack, tasks = files.stack, files.tasks
    features = [name for plan in files.plans[:1] if plan.kind == "table" for name in plan.columns]
    kinds = {name: role_of(stack, name).kind for name in stack.names if name.strip()}
    constant = [name for name in features if kinds[name] == "constant"]
    if constant:
        words = f"{_listed(constant)} the same value in every row, and so says nothing."
        yield Finding(kind="constant column", tasks=tasks, words=words, is_warning=False)
    empty = [name for name, kind in kinds.items() if kind == "empty"]
    if empty:
        words = f"{_listed(empty)} no values, and was left out."
        yield Finding(kind="empty column", tasks=tasks, words=words, is_warning=False)
    for name in features:
        if kinds[name] == "category":
            count = count_values(stack, role_of(stack, name))
            if count > MOST_CATEGORIES:
                words = (
                    f"The column `{name}` has {count:,} categories: the {MOST_CATEGORIES} commonest get "
                    "a feature each, and all others share one."
                )
                yield Finding(kind="many categories", tasks=tasks, words=words, is_warning=False)
    yield from _missing(stack, features, tasks)
    yield from _telling_ids(files)


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    if len(names) > _SHOWN:
        shown += f" and {len(names) - _SHOWN} more"
    return f"The column {shown} has" if len(names) == 1 else f"Each of the columns {shown} has"


def _missing(stack: StackedFiles, features: list[str], tasks: tuple[str, ...]) -> Iterator[Finding]:
    shares = {}
    for name in features:
        dates = dates_of(stack, name)
        cells = stack.column(name) if dates is None else dates.days
        shares[name] = _nothing(cells) / max(len(cells), 1)
    found = {name: share for name, share in shares.items() if share >= SOME_MISSING}
    if found:
        worst = sorted(found, key=lambda name: -found[name])
        shown = ", ".join(f"`{name}` ({found[name]:.0%})" for name in worst[:_SHOWN])
        if len(worst) > _SHOWN:
            shown += f" and {len(worst) - _SHOWN} more columns"
        share = found[worst[0]]
        words = f"Cells are missing in {shown}; missing numbers become the mean, with a mark."
        yield Finding(
            kind="missing cells",
            tasks=tasks,
            words=words,
            share=share,
            is_warning=share >= MANY_MISSING,
        )


def _nothing(cells: pa.ChunkedArray) -> int:
    """Cells without a value; of text, also those that are empty."""
    if cell_family(cells.type) != "text":
        return int(cells.null_count)
    blank = pc.sum(pc.equal(pc.utf8_trim_whitespace(cells), "")).as_py() or 0
    return int(cells.null_count + blank)


def _telling_ids(files: SeenFiles) -> Iterator[Finding]:
    """Names of rows are left out; where they tell the label, they have to stay so."""
    if files.classes is None:
        return
    stack, rows = files.stack, files.rows_of("train")
    if not len(rows):
        return
    for name, why in files.plans[0].left_out:
        if role_of(stack, name).kind != "id":
            continue
        cells = stack.column(name)
        if cell_family(cells.type) != "number":
            continue
        share = tells_labels(cells.take(pa.array(rows)), files.classes[rows])
        if share is not None:
            words = (
                f"The column `{name}`, which {why}, tells {share:.0%} of the labels: the rows are "
                "sorted by label. It was left out, and should stay so."
            )
            yield Finding(
                kind="telling id", tasks=files.tasks, words=words, share=share, is_warning=False
            )


def look_at_texts(seen: Sequence[SeenFiles]) -> Iterator[Finding]:
    """Texts that are empty, or longer than most models read, over all files."""
    counted: dict[str, _Texts] = {}
    for files in seen:
        for plan in files.plans[:1]:
            if plan.kind in ("text", "pair", "passage"):
                for name in plan.columns:
                    counted.setdefault(name, _Texts()).add(files, name)
    for name, found in counted.items():
        tasks = tuple(found.tasks)
        if found.blank:
            share = found.blank / found.rows
            words = (
                f"The text `{name}` is empty in {found.blank:,} of {found.rows:,} rows; the first is "
                f"{found.first_blank}."
            )
            yield Finding(
                kind="empty texts",
                tasks=tasks,
                words=words,
                share=share,
                is_warning=share >= SOME_MISSING,
            )
        if found.long:
            share = found.long / found.rows
            words = (
                f"The text `{name}` has over {LONG_TEXT:,} characters in {found.long:,} of "
                f"{found.rows:,} rows (the longest has {found.longest:,}); a pretrained model reads "
                "about the first 500 words."
            )
            yield Finding(
                kind="long texts", tasks=tasks, words=words, share=share, is_warning=False
            )


@dataclass
class _Texts:
    """What was counted in texts of one name."""

    tasks: list[str] = field(default_factory=list)
    rows: int = 0
    blank: int = 0
    first_blank: str = ""
    long: int = 0
    longest: int = 0

    def add(self, files: SeenFiles, name: str) -> None:
        cells = files.stack.column(name)
        if cell_family(cells.type) != "text" or not len(cells):
            return
        self.tasks += files.tasks
        self.rows += len(cells)
        blank = _nothing(cells)
        if blank and not self.blank:
            place = int(pc.index(_is_blank(cells), pa.scalar(True)).as_py())
            self.first_blank = f"{files.stack.where(place)} of `{files.tasks[0]}`"
        self.blank += blank
        lengths = np.asarray(pc.fill_null(pc.utf8_length(cells), 0).to_numpy())
        self.long += int((lengths > LONG_TEXT).sum())
        self.longest = max(self.longest, int(lengths.max()))


def _is_blank(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(pc.utf8_trim_whitespace(cells), ""), fill_value=True)
