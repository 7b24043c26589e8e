"""Rows that come after training: read like those of the folder, encoded by what was learned there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from taskmix.errors import InputError
from taskmix.tasks._columns._spelling import spell
from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._encoding._assemble import Encoding
from taskmix.tasks._encoding._inputs import EncodedTasks
from taskmix.tasks._encoding._ngrams import NgramEncoding
from taskmix.tasks._encoding._passages import PassageEncoding
from taskmix.tasks._encoding._subwords import SubwordEncoding
from taskmix.tasks._encoding._tables import TableEncoding, families_of
from taskmix.tasks._encoding._words import WindowEncoding, WordEncoding
from taskmix.tasks._formats._readers import Rows, read_rows
from taskmix.tasks._formats._words import show_path
from taskmix.tasks._frames import columns_of_pairs, is_saved, is_table, rows_of, saved_rows
from taskmix.tasks._loading._inputs import InputPlan, build_inputs, remarks_on_cells
from taskmix.tasks._loading._layout import empty_texts
from taskmix.tasks._loading._wanted import called
from taskmix.tasks._reading import InputKind, Reading, TaskKind
from taskmix.tasks._task import MISSING, Split, Task, TaskSet

ROWS = "rows"  # the one split of rows without targets
STANDARD = {
    "text": ("text",),
    "pair": ("text", "text2"),
    "tokens": ("tokens",),
    "prompt": ("prompt",),
    "passage": ("text",),
}
NewRows: TypeAlias = Any  # a Path, a frame, a mapping of columns or a list of mappings
GIVEN = "the rows given"  # what sentences call rows that are not in a file


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a task asks of a row, without any rows.

    >>> import pyarrow as pa
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> question = Question.of(tables_as_tasks({"a": rows})["a"])
    >>> question.columns, question.labels
    (('x',), ('no', 'yes'))
    >>> question.read([{"x": 2.0, "note": "new"}])[0].to_pydict()
    {'x': [2.0]}
    """

    name: str
    kind: TaskKind
    inputs: InputKind
    labels: tuple[str, ...]
    metric: str
    columns: tuple[str, ...]  # of the inputs, as the file called them

    @classmethod
    def of(cls, task: Task) -> Question:
        columns = task.columns or STANDARD.get(task.inputs, ())
        if task.inputs == "table":  # some of the file's columns may not have been usable
            columns = tuple(next(iter(task.splits.values())).inputs.column_names)
        return cls(
            name=task.name,
            kind=task.kind,
            inputs=task.inputs,
            labels=task.labels,
            metric=task.metric,
            columns=columns,
        )

    @property
    def reading(self) -> Reading:
        """What is read of new rows."""
        return Reading(
            inputs=self.inputs,
            columns=self.columns,
            label=None,
            kind=self.kind,
            classes=len(self.labels),
            metric=self.metric,
        )

    def read(
        self, rows: NewRows, learned: Mapping[str, Any] | None = None, *, strict: bool = False
    ) -> tuple[pa.Table, tuple[str, ...]]:
        """The inputs of rows: of a file, a frame, a mapping of columns or a list of mappings.

        `learned` says which columns were numbers in training: they are so in these rows too, and cells
        that are none count as missing, or are refused where it is `strict`. Also what is to be noted.
        """
        found = called(_rows(rows), self.columns)
        stack = StackedFiles({ROWS: found}, strict=strict, wanted=families_of(learned or {}))
        if not len(stack):
            raise InputError("There should be rows to predict for. Found none.")
        plan = InputPlan(self.inputs, self._named(stack))
        inputs = build_inputs(stack, plan)
        of_file = [f"the file {show_path(Path(found.path.name))} {each}" for each in found.remarks]
        every = np.ones(len(stack), dtype=np.bool_)
        return inputs, (
            *of_file,
            *remarks_on_cells(stack, plan),
            *empty_texts(stack, inputs, every),
        )

    def _named(self, stack: StackedFiles) -> tuple[str, ...]:
        """The columns as this file calls them: as the folder did, or by their usual names."""
        if self.inputs == "tokens" and stack.parts[0].format == "conll":
            return (stack.names[0],)
        for columns in (self.columns, STANDARD.get(self.inputs, self.columns)):
            missing = [name for name in columns if name not in stack.names]
            if not missing:
                return columns
        missing = [name for name in self.columns if name not in stack.names]
        raise InputError(
            f"Rows for `{self.name}` should have the columns {_listed(self.columns)}. Found "
            f"{_listed(stack.names)}, without `{missing[0]}`. Rename or add it."
        )

    def unanswered(self, inputs: pa.Table) -> Task:
        """Rows as a task whose targets are not known."""
        count = len(inputs)
        shape: tuple[int, ...] = (count,)
        if self.kind == "multilabel":
            shape = (count, len(self.labels))
        if self.kind == "tagging":
            lists = inputs.column("tokens").combine_chunks()
            shape = (int(lists.offsets[-1].as_py() - lists.offsets[0].as_py()) if count else 0,)
        missing = np.nan if self.kind == "regression" else MISSING
        return Task(
            name=self.name,
            kind=self.kind,
            inputs=self.inputs,
            labels=self.labels,
            metric=self.metric,
            source=self.name,
            splits={ROWS: Split(inputs, np.full(shape, missing))},
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:8]) + (" ..." if len(names) > 8 else "")


def frame_table(given: Any) -> pa.Table:
    """Whatever has columns (a frame of pandas or polars, a mapping, ...) as an Arrow table.

    >>> frame_table([{"x": 1.5, "y": "a"}, {"x": float("nan"), "y": "b"}]).to_pydict()
    {'x': [1.5, None], 'y': ['a', 'b']}
    """
    return _rows(given).table


def is_frame(given: Any) -> bool:
    """Whether something has columns with names.

    >>> is_frame({"x": [1, 2]}), is_frame([[1, 2]])
    (True, False)
    """
    return is_table(given)


def rows_by_task(rows: NewRows, column: str) -> dict[str, tuple[list[int], Rows]]:
    """The rows of each task that a column names, and their places among all.

    >>> parts = rows_by_task({"about": ["film", "book", "film"], "x": [1, 2, 3]}, "about")
    >>> {name: (places, part.table["x"].to_pylist()) for name, (places, part) in parts.items()}
    {'film': ([0, 2], [1, 3]), 'book': ([1], [2])}
    """
    found = _rows(rows)
    stack = StackedFiles({ROWS: found})
    words = spell(stack, column)
    for place in np.flatnonzero(words.codes < 0)[:1]:
        should = f"`{column}` should name the task of every row."
        stack.bad(int(place), should, "nothing", "Correct that row or take it out.")
    parts = {}
    for code in dict.fromkeys(words.codes.tolist()):
        kept = words.codes == code
        parts[words.words[code]] = (np.flatnonzero(kept).tolist(), found.keep(kept))
    return parts


def _rows(given: Any) -> Rows:
    """A file, a saved data set, or what has columns; vectors and texts are named as in pairs."""
    if isinstance(given, Rows):
        return given
    if isinstance(given, Path):
        return saved_rows(given).rows if is_saved(given) else read_rows(given)
    if hasattr(given, "__len__") and not len(given):
        raise InputError("There should be rows to predict for. Found none.")
    found = rows_of(given, GIVEN)
    if found is None and hasattr(given, "__len__") and not isinstance(given, str | Mapping):
        found = rows_of(columns_of_pairs("rows", given), GIVEN)
    if found is None:
        raise InputError(
            "Rows should be a file, a frame, columns of equal lengths or a list of mappings from names "
            f"to values. Found {type(given).__name__}."
        )
    return found.rows


def learned_by(encoding: Encoding, tasks: TaskSet, encoded: EncodedTasks) -> dict[str, Any]:
    """What an encoding learned from the `train` rows, as plain values and tensors.

    >>> import pyarrow as pa
    >>> texts = pa.table({"text": ["good film", "bad film"], "label": ["yes", "no"]})
    >>> tasks = tables_as_tasks({"a": {"train": texts, "dev": texts}})
    >>> encoding = WordEncoding(min_count=1)
    >>> learned_by(encoding, tasks, encoding.encode(tasks))
    {'vocabulary': ['<padding>', '<unknown>', 'film', 'bad', 'good']}
    """
    if isinstance(encoding, TableEncoding | NgramEncoding):
        return dict(encoding.learned(tasks))
    if isinstance(encoding, WordEncoding | WindowEncoding):
        return {"vocabulary": list(encoded.vocabulary)}
    answers = encoded.extra.get("longest_answer")  # all that those of pretrained models learn
    return {} if answers is None else {"longest_answer": dict(answers)}


def encode_with(encoding: Encoding, learned: Mapping[str, Any], tasks: TaskSet) -> EncodedTasks:
    """Tasks as tensors, by what was learned before.

    >>> import pyarrow as pa
    >>> texts = pa.table({"text": ["film good", "new film"], "label": ["yes", "no"]})
    >>> tasks = tables_as_tasks({"a": {"train": texts, "dev": texts}})
    >>> learned = {"vocabulary": ["<padding>", "<unknown>", "film", "good"]}
    >>> encoded = encode_with(WordEncoding(), learned, tasks)
    >>> encoded["a"].splits["train"].inputs.batch(torch.tensor([0, 1]))[:, :2].tolist()
    [[2, 3], [1, 2]]
    """
    if isinstance(
        encoding,
        TableEncoding
        | NgramEncoding
        | WordEncoding
        | WindowEncoding
        | SubwordEncoding
        | PassageEncoding,
    ):
        return encoding.encode_with(learned, tasks)
    return encoding.encode(tasks)
