"""Tasks that are not files: rows given as tables, or inputs that only their owner can read.

Inputs of one's own (images, graphs) are held as they are, and a task knows each row by a digest of
it: that is enough to find rows that occur twice and to tell one data set from another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from taskmix.errors import InputError
from taskmix.tasks._columns._spelling import words_of
from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._encoding._assemble import encoded_tasks, source_split
from taskmix.tasks._encoding._inputs import DenseInputs, EncodedTasks, Inputs
from taskmix.tasks._formats._readers import Rows
from taskmix.tasks._formats._words import Notes
from taskmix.tasks._frames import Pairs, is_table, pairs_of
from taskmix.tasks._loading._build import Origin, make_tasks
from taskmix.tasks._loading._folder import load_tasks
from taskmix.tasks._loading._in_memory import find_shapes, split_pairs
from taskmix.tasks._loading._multilabel import mark_labels, read_label_sets
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._targets import Target, choose_metric, guess_kind
from taskmix.tasks._loading._wanted import Wanted
from taskmix.tasks._scoring._metrics import metric_of_imbalance
from taskmix.tasks._task import Split, Task, TaskSet

Collate = Callable[[list[Any]], Any]


def tables_as_tasks(
    tables: Mapping[str, Mapping[str, Any]],  # [task][split], Arrow tables as in files
    *,
    metric: str | None = None,  # of every task; None: the usual one of its kind
) -> TaskSet:
    """Tables with the columns of a task folder as tasks.

    >>> import pyarrow as pa
    >>> table = pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})
    >>> tasks = tables_as_tasks({"a": {"train": table, "dev": table}})
    >>> tasks["a"].labels, tasks["a"].splits["train"].targets.tolist()
    (('no', 'yes'), [0, 1, 1])
    """
    notes = Notes()
    tasks: list[Task] = []
    for name, splits in tables.items():
        parts = {s: Rows(table, Path(f"{name} {s}"), "parquet") for s, table in splits.items()}
        wanted = [Wanted(label=None, settings=TaskSettings(metric=metric))]
        tasks += make_tasks(Origin(name=name, parts=parts), wanted, notes)
    return TaskSet(tuple(tasks), notes.sentences([task.name for task in tasks]))


@dataclass(frozen=True, eq=False)
class CollatedInputs:
    """Items of any kind, put together by a function when a batch is asked for."""

    items: Sequence[Any]
    collate: Collate
    device: torch.device | str = "cpu"

    def __len__(self) -> int:
        return len(self.items)

    def batch(self, rows: Tensor) -> Any:
        return _moved(self.collate([self.items[row] for row in rows.tolist()]), self.device)

    def to(self, device: torch.device) -> CollatedInputs:
        return CollatedInputs(self.items, self.collate, device)


def _moved(value: Any, device: torch.device | str) -> Any:
    if isinstance(value, Mapping):
        return {key: _moved(each, device) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_moved(each, device) for each in value)
    return value.to(device) if isinstance(value, Tensor) else value


@dataclass(frozen=True, kw_only=True)
class HeldEncoding:
    """Gives the inputs that are held, whatever they are; `content` tells them from others.

    >>> tasks, encoding = held_tasks({"cats": {"train": (np.eye(2), ["no", "yes"])}})
    >>> encoding.content == tasks.content
    True
    >>> encoding.encode(tasks)["cats"].splits["train"].inputs.values.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    content: str
    _inputs: Mapping[tuple[str, str], Inputs] = field(compare=False, repr=False)

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks over their inputs; nothing is computed, so nothing is cached."""
        inputs = {
            source_split(task, split): self._inputs[task.source, split]
            for task in tasks
            for split in task.splits
        }
        return encoded_tasks(tasks, inputs)


def held_tasks(
    items: Mapping[str, Mapping[str, tuple[Any, Any]]],
    collate: Collate | None = None,  # PyTorch's where items are not all tensors of one shape
    *,
    metric: str | None = None,  # of every task; None: the usual one of its kind
) -> tuple[TaskSet, HeldEncoding]:
    """Tasks over inputs of one's own: `items[task][split]` are inputs and targets, row by row.

    >>> images = np.zeros((3, 8, 8))
    >>> tasks, encoding = held_tasks({"cats": {"train": (images, ["no", "yes", "no"])}})
    >>> encoding.encode(tasks)["cats"].splits["train"].targets.tolist()
    [0, 1, 0]
    """
    inputs: dict[tuple[str, str], Inputs] = {}
    tasks = []
    for name, splits in items.items():
        for split, (rows, targets) in splits.items():
            if len(rows) != len(targets):
                raise InputError(
                    f"Task `{name}`, split `{split}`, should have a target for each row. Found "
                    f"{len(rows)} rows and {len(targets)} targets."
                )
            inputs[name, split] = held_inputs(rows, collate)
        tasks.append(_task(name, splits, metric))
    found = TaskSet(tuple(tasks))
    return found, HeldEncoding(content=found.content, _inputs=inputs)


def held_inputs(rows: Any, collate: Collate | None = None) -> Inputs:
    """Tensors or arrays of one shape as one tensor; anything else is put together batch by batch.

    >>> tuple(held_inputs(np.zeros((3, 8, 8))).batch(torch.tensor([0, 2])).shape)
    (2, 8, 8)
    >>> held_inputs(["a", "bb"], collate=lambda rows: "+".join(rows)).batch(torch.tensor([1, 0]))
    'bb+a'
    """
    if collate is None:
        if isinstance(rows, np.ndarray | Tensor):
            return DenseInputs(_floats(torch.as_tensor(rows)))
        plain = all(isinstance(row, np.ndarray | Tensor) for row in rows)
        if plain and len({tuple(row.shape) for row in rows}) == 1:
            return DenseInputs(_floats(torch.stack([torch.as_tensor(row) for row in rows])))
    return CollatedInputs(list(rows), collate or torch.utils.data.default_collate)


def _floats(values: Tensor) -> Tensor:
    return values.float() if values.dtype == torch.float64 else values


def _task(name: str, splits: Mapping[str, tuple[Any, Any]], metric: str | None) -> Task:
    values = {split: [_plain(each) for each in targets] for split, (_, targets) in splits.items()}
    try:
        whole = pa.chunked_array([pa.array(each) for each in values.values()])
    except (pa.ArrowException, TypeError) as error:
        raise InputError(
            f"The targets of `{name}` should all be numbers or all be words. Found a mixture "
            f"({error})."
        ) from error
    kind = guess_kind(whole)
    labels: tuple[str, ...] = ()
    if kind == "regression":
        targets = whole.cast(pa.float64(), safe=False).to_numpy()
    elif kind == "classification":
        words = words_of(whole)
        labels, targets = words.words, words.codes
    else:  # lists: several labels a row, or a mark for each label
        rows = Rows(pa.table({"target": whole}), Path(f"the targets of {name}"), "parquet")
        sets = read_label_sets(StackedFiles({"rows": rows}), "target", None)
        labels, targets = sets.words.words, mark_labels(sets, len(sets.words.words))
    ends = np.cumsum([len(each) for each in values.values()])
    parts = np.split(targets, ends[:-1])
    asked_for = None
    if metric is None and kind == "classification":
        asked_for = metric_of_imbalance(labels, dict(zip(values, parts, strict=True)))
    task = Task(
        name=name,
        kind=kind,
        inputs="table",
        labels=labels,
        metric=asked_for or choose_metric(Target("target", kind), labels, metric),
        source=name,
        splits={
            split: Split(pa.table({"digest": [_digest(row) for row in rows]}), part)
            for (split, (rows, _)), part in zip(splits.items(), parts, strict=True)
        },
    )
    return replace(task, reading=replace(task.reading, by_imbalance=asked_for is not None))


def _plain(value: Any) -> Any:
    """A number, a word, or a list of them."""
    if not isinstance(value, np.generic | np.ndarray | Tensor):
        return value
    count = value.numel() if isinstance(value, Tensor) else value.size
    return value.item() if count == 1 else value.tolist()


def _digest(row: Any) -> str:
    """Eight bytes that are the same for equal rows."""
    digest = hashlib.blake2b(digest_size=8)

    def add(value: Any) -> None:
        if isinstance(value, Mapping):
            for key in sorted(value):
                digest.update(repr(key).encode())
                add(value[key])
        elif isinstance(value, list | tuple):
            for each in value:
                add(each)
        elif isinstance(value, np.ndarray | Tensor):
            array = np.ascontiguousarray(value)
            digest.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
        else:
            digest.update(repr(value).encode())

    add(row)
    return digest.hexdigest()


def gather_tasks(
    given: Any,
    *,
    hold: bool,
    collate: Any = None,
    metric: str | None = None,  # of every task; None: the usual one of its kind
    read: Callable[[Any], TaskSet] | None = None,  # what has columns; None: without any options
) -> tuple[TaskSet, HeldEncoding | None]:
    """Tasks of whatever `load_tasks` takes; with `hold`, pairs of input and target stay as they are.

    >>> train = (np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1]))
    >>> tasks, _ = gather_tasks({"first": (train, train)}, hold=False)
    >>> tasks["first"].sizes, tasks["first"].labels
    ({'train': 3, 'dev': 3}, ('0', '1'))
    """
    shapes = find_shapes(given)
    tables = {is_table(part): shape.name for shape in shapes for part in shape.parts.values()}
    if len(tables) > 1:
        raise InputError(
            f"All tasks should be given alike. Found columns for `{tables[True]}` and pairs of input "
            f"and target for `{tables[False]}`."
        )
    if True in tables or not hold:
        return (load_tasks(given, metric=metric) if read is None else read(given)), None
    pairs: dict[str, Mapping[str, Pairs]] = {}
    notes: list[str] = []
    for shape in shapes:
        name = shape.name or "task"
        parts = {split: pairs_of(name, part) for split, part in shape.parts.items()}
        pairs[name], note = split_pairs(parts)
        notes += [] if note is None else [f"`{name}`: {note}."]
    tasks, encoding = held_tasks(pairs, collate, metric=metric)
    return replace(tasks, notes=tuple(notes)), encoding
