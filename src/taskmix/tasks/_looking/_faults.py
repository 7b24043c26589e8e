"""What is wrong with the rows of a task: doubles, contradictions, classes that are too rare to learn.

If the same input has different labels, no model can be right on all of its rows: with the commonest
label of each input it is right on some share of the rows, which is the accuracy that nothing exceeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._columns._dates import dates_of
from taskmix.tasks._columns._roles import count_values, role_of
from taskmix.tasks._columns._stack import StackedFiles, cell_family
from taskmix.tasks._loading._build import SeenFiles
from taskmix.tasks._looking._leaks import tells_labels
from taskmix.tasks._looking._look import Finding
from taskmix.tasks._row_keys import RowKeys, labelled
from taskmix.tasks._scoring._metrics import count_classes
from taskmix.tasks._task import Task, TaskSet

FEWEST_OF_CLASS = 3  # rows to train on: with fewer, one cannot be told from a slip
MANY_DOUBLES = 0.05  # of the rows: from here on they count as many rows and say as little as one
_NAMED = 3  # classes
Where = Callable[[str, str, int], str | None]  # of a task, a split and a row, where it stands
MOST_CATEGORIES = 64  # that `TableEncoding` gives a feature each
LONG_TEXT = 3000  # characters, about 500 words: pretrained models usually read no more
SOME_MISSING, MANY_MISSING = 0.05, 0.5  # of the cells: worth a word, and a warning
_SHOWN = 5  # columns in a sentence


def look_at_names(tasks: TaskSet) -> Iterator[Finding]:
    """Names of tasks that people, and some disks, take for one; classes that look like several."""
    alike: dict[str, list[str]] = {}
    for name in tasks.names:
        alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    for names in alike.values():
        if len(names) > 1 or names[0] != names[0].strip():
            shown = " and ".join(f"`{name}`" for name in names)
            words = (
                f"Names of tasks should differ by more than case and outer spaces. Found {shown}."
            )
            yield Finding(kind="like names", tasks=tuple(names), words=words)
    for task in tasks:
        joined = [label for label in task.labels if "|" in label or ";" in label]
        if joined and task.kind == "classification":
            words = (
                f"Task `{task.name}` has classes with `|` or `;` in them: {_some(joined)}. If these are "
                "several labels, name their `separator`."
            )
            yield Finding(kind="joined labels", tasks=(task.name,), words=words, is_warning=False)


def look_at_rows(task: Task, keys: RowKeys, where: Where) -> Iterator[Finding]:
    """What advice does not look for."""
    train = task.splits.get("train")
    if train is None or not len(train) or task.kind == "sequences":
        return
    yield from _doubles(task, keys, where)
    if task.kind == "classification":
        yield from _contradictions(task, keys, where)
        yield from _rare(task)


def _doubles(task: Task, keys: RowKeys, where: Where) -> Iterator[Finding]:
    for name, split in task.splits.items():
        rows = keys(split)
        more = len(rows) - len(keys.distinct(split))
        if not more:
            continue
        share = more / len(rows)
        order = np.argsort(rows, kind="stable")
        same = order[:-1][rows[order[1:]] == rows[order[:-1]]]
        first = int(same.min())
        second = int(np.flatnonzero(rows == rows[first])[1])
        words = (
            f"Task `{task.name}` has {more:,} of its {len(rows):,} {name} rows ({share:.1%}) more than "
            f"once{_named(where, task.name, name, first, second)}."
        )
        yield Finding(
            kind="duplicates",
            tasks=(task.name,),
            words=words,
            share=share,
            is_warning=share >= MANY_DOUBLES,
        )


def _named(where: Where, task: str, split: str, first: int, second: int) -> str:
    places = [where(task, split, row) for row in (first, second)]
    if None in places:
        return ""
    return f"; the first is {places[0]}, again in {places[1]}"


def _contradictions(task: Task, keys: RowKeys, where: Where) -> Iterator[Finding]:
    known = labelled(task, keys)
    against = int(known.contradicted.sum())
    if not against:
        return
    targets = np.asarray(task.splits["train"].targets).astype(np.int64)
    pairs, counts = np.unique(
        known.inputs.astype(np.int64) * len(task.labels) + targets[known.rows], return_counts=True
    )
    best = np.zeros(len(known.keys), dtype=np.int64)
    np.maximum.at(best, pairs // len(task.labels), counts)
    bound = np.floor(1000 * best.sum() / len(known.rows)) / 1000
    first = int(known.first[known.contradicted].min())
    same = known.inputs[np.flatnonzero(known.rows == first)[0]]
    others = known.rows[known.inputs == same]
    second = int(others[targets[others] != targets[first]][0])
    places = [where(task.name, "train", row) for row in (first, second)]
    shown = ""
    if None not in places:
        one, other = (task.labels[targets[row]] for row in (first, second))
        shown = f", as {one!r} in {places[0]} and {other!r} in {places[1]}"
    inputs = "1 input that occurs" if against == 1 else f"{against:,} inputs that occur"
    words = (
        f"Task `{task.name}` has {inputs} with different labels in training{shown}: accuracy on these "
        f"rows cannot exceed {bound:.3f}."
    )
    yield Finding(
        kind="contradiction", tasks=(task.name,), words=words, share=against / len(known.keys)
    )


def _rare(task: Task) -> Iterator[Finding]:
    train = count_classes(task.splits["train"].targets, len(task.labels))
    few = [label for label, n in zip(task.labels, train, strict=True) if n < FEWEST_OF_CLASS]
    if few:
        words = (
            f"Task `{task.name}` has {len(few)} of {len(task.labels)} classes with fewer than "
            f"{FEWEST_OF_CLASS} rows to train on: {_some(few)}."
        )
        yield Finding(kind="few of a class", tasks=(task.name,), words=words)
    if "dev" in task.splits and len(task.splits["dev"]):
        in_dev = count_classes(task.splits["dev"].targets, len(task.labels))
        absent = [
            label
            for label, n, have in zip(task.labels, train, in_dev, strict=True)
            if n and not have
        ]
        if absent:
            words = (
                f"Task `{task.name}` has {len(absent)} of {len(task.labels)} classes that no dev row "
                f"has, so ways of training are not compared on them: {_some(absent)}."
            )
            few_rows = len(absent) <= 0.1 * len(task.labels)
            yield Finding(
                kind="missing from dev", tasks=(task.name,), words=words, is_warning=not few_rows
            )


def _some(labels: list[str]) -> str:
    shown = ", ".join(
        label if len(label) <= 40 else f"{label[:37]}..." for label in labels[:_NAMED]
    )
    return shown + (f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else "")


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
