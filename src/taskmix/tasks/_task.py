"""What is learned: a task is named rows with targets, as read from files and not yet encoded.

Rows are Arrow tables, so that a set of tasks costs little more than its files, slices are free and a
content hash is one pass. The columns of `Split.inputs` depend on the kind of input:

| kind        | columns                                                                     |
|-------------|-----------------------------------------------------------------------------|
| `text`      | `text`                                                                      |
| `pair`      | `text`, `text2`                                                             |
| `table`     | the feature columns, numbers or strings                                     |
| `tokens`    | `tokens`, a list of strings for each sentence                               |
| `sequences` | `symbols`, a list of strings, or `values`, a list of equally long vectors   |
| `prompt`    | `prompt`, a string or a list of messages with `role` and `content`, and     |
|             | `answer`, a string; rows to be answered have no `answer`                    |
| `passage`   | `text`                                                                      |

Runs on different subsets of the same tasks hold the same tables, so what is made of a table row by
row is kept for as long as the table lives: it is made once in a process, and runs that train together
find that they share it.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import InputError, ShapeError
from taskmix.tasks._reading import WITHOUT_TARGETS, InputKind, Reading, TaskKind

Made = TypeVar("Made")


class KeptByTable(Generic[Made]):
    """A value for each pair of a table, as an object, and the options it was made with.

    >>> import pyarrow as pa
    >>> kept, table = KeptByTable(), pa.table({"text": ["good"]})
    >>> kept.put(table, "lengths", [4])
    [4]
    >>> kept.get(table, "lengths"), kept.get(table, "words")
    ([4], None)
    """

    def __init__(self) -> None:
        self._values: dict[int, dict[Hashable, Made]] = {}

    def get(self, table: pa.Table, options: Hashable) -> Made | None:
        return self._values.get(id(table), {}).get(options)

    def put(self, table: pa.Table, options: Hashable, value: Made) -> Made:
        if id(table) not in self._values:
            # A table cannot be a key of a dictionary, and its number is given away after its end.
            weakref.finalize(table, self._values.pop, id(table), None)
        self._values.setdefault(id(table), {})[options] = value
        return value

    def __len__(self) -> int:
        return len(self._values)


MISSING = -100  # the class index of a row without a label; PyTorch's `ignore_index`
_HASHED_ROWS = 65_536  # copied at a time
_NOT_READ = Reading(
    inputs="table", columns=(), label=None, kind="classification", classes=0, metric=""
)


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of one split of one task.

    `targets` is one class index a row (`MISSING` where there is none), one number a row (NaN where
    there is none), for tagging one class index a token in sentence order, or, for several labels a
    row, [row, label]: 1 where the row has the label, 0 where not, `MISSING` where nobody knows.
    Sequences, prompts with their answers and passages have none: what is learned of them is in the
    inputs.
    """

    inputs: pa.Table
    targets: NDArray[Any]

    def __len__(self) -> int:
        return int(self.inputs.num_rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """One task. Tasks with the same `source` share their inputs, row by row."""

    name: str
    kind: TaskKind
    inputs: InputKind
    labels: tuple[str, ...]  # in the order of the class indices; empty unless classes are predicted
    metric: str  # a name of `taskmix.tasks.METRICS`
    source: str
    splits: Mapping[str, Split]  # `train`, `dev`, `test` and whatever else the folder has
    columns: tuple[str, ...] = ()  # what the file calls the inputs, where that is known
    reading: Reading = _NOT_READ  # what it was taken for; found from the rest unless given

    def __post_init__(self) -> None:
        if self.reading is _NOT_READ:
            object.__setattr__(self, "reading", self._own_reading())
        for split_name, split in self.splits.items():
            wanted = len(split)
            if self.kind == "tagging":
                lists = split.inputs.column("tokens").combine_chunks()
                wanted = int(lists.offsets[-1].as_py() - lists.offsets[0].as_py())
            if self.kind not in WITHOUT_TARGETS and len(split.targets) != wanted:
                raise ShapeError(
                    f"Task `{self.name}`, split `{split_name}`, should have one target for each of "
                    f"its {wanted} {'tokens' if self.kind == 'tagging' else 'rows'}. "
                    f"Found {len(split.targets)} targets. Leave the others out of the inputs too."
                )
            marks = (wanted, len(self.labels))
            if self.kind == "multilabel" and split.targets.shape != marks:
                raise ShapeError(
                    f"Task `{self.name}`, split `{split_name}`, should have 0 or 1 for each of its "
                    f"{marks[0]} rows and {marks[1]} labels. Found targets of the shape "
                    f"{split.targets.shape}. Give one column for each label."
                )
        object.__setattr__(self, "splits", MappingProxyType(dict(self.splits)))

    def _own_reading(self) -> Reading:
        """What can be told of a task that no loader has read."""
        columns = self.columns
        if not columns and self.inputs == "table" and self.splits:
            columns = tuple(next(iter(self.splits.values())).inputs.column_names)
        return Reading(
            inputs=self.inputs,
            columns=columns,
            label=None,
            kind=self.kind,
            classes=len(self.labels),
            metric=self.metric,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Rows in each split."""
        return {name: len(split) for name, split in self.splits.items()}

    @property
    def size(self) -> int:
        """Rows to train on."""
        return len(self.splits["train"]) if "train" in self.splits else 0


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...


Named = TypeVar("Named", bound=_Named)


class NamedTasks(Sequence[Named]):
    """Tasks in a fixed order, by place or by name."""

    tasks: tuple[Named, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(task.name for task in self.tasks)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows to train on, one number a task."""
        return np.array([task.size for task in self.tasks], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.tasks)

    @overload
    def __getitem__(self, key: int | str) -> Named: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Named, ...]: ...
    def __getitem__(self, key: int | str | slice) -> Named | tuple[Named, ...]:
        if isinstance(key, str):
            return self.tasks[self.position(key)]
        return self.tasks[key]

    def __iter__(self) -> Iterator[Named]:
        return iter(self.tasks)

    def position(self, name: str) -> int:
        """Where the task of that name stands in the order."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(
                f"`{name}` should be one of the tasks. Found the tasks {', '.join(self.names)}. "
                "Check the spelling."
            ) from None


@dataclass(frozen=True, eq=False)
class TaskSet(NamedTasks[Task]):
    """Tasks in a fixed order, with distinct names.

    >>> import pyarrow as pa
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> tasks = tables_as_tasks({"a": rows, "b": rows})
    >>> tasks.names, tasks["b"].labels, tasks.select(["b"]).names
    (('a', 'b'), ('no', 'yes'), ('b',))
    >>> tasks.contents["a"] == tasks.contents["a"] != tasks.contents["b"]  # the name is part of it
    True
    """

    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()  # what the loader decided by itself, one sentence each
    _content: list[str] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for task in self.tasks:
            if task.name in seen:
                raise InputError(
                    f"Task names should differ. Found `{task.name}` twice. Rename one of the two."
                )
            seen.add(task.name)

    @property
    def content(self) -> str:
        """A hash of all rows, targets and labels: equal for equal tasks, wherever they lie."""
        if not self._content:
            self._content.append(_content_hash(self.tasks))
        return self._content[0]

    @property
    def contents(self) -> dict[str, str]:
        """By name, a hash of each task's own rows, targets and labels."""
        return {task.name: _content_hash([task]) for task in self.tasks}

    def readings(self) -> dict[Reading, tuple[str, ...]]:
        """How the tasks were read, and the names of those that were read alike."""
        found: dict[Reading, list[str]] = {}
        for task in self.tasks:
            found.setdefault(task.reading, []).append(task.name)
        return {reading: tuple(names) for reading, names in found.items()}

    def select(self, names: Iterable[str]) -> TaskSet:
        """The tasks of these names, in the order given."""
        return TaskSet(tuple(self.tasks[self.position(name)] for name in names), self.notes)


_hashes: KeptByTable[bytes] = KeptByTable()


def _content_hash(tasks: Iterable[Task]) -> str:
    digest = hashlib.sha256()
    for task in tasks:
        header = (task.name, task.kind, task.inputs, task.labels, task.metric, tuple(task.splits))
        digest.update(repr(header).encode())
        for split in task.splits.values():
            known = _hashes.get(split.inputs, None)  # of shared inputs, and of other selections
            digest.update(known or _hashes.put(split.inputs, None, _table_hash(split.inputs)))
            digest.update(np.ascontiguousarray(split.targets).tobytes())
    return digest.hexdigest()


def _table_hash(table: pa.Table) -> bytes:
    digest = hashlib.sha256(repr(table.schema.remove_metadata()).encode())

    class Sink:
        """Takes the bytes of an Arrow stream and keeps only their hash."""

        closed = False

        def write(self, data: Any) -> int:
            digest.update(data)
            return len(data)

        def flush(self) -> None: ...
        def close(self) -> None: ...

    plain = table.replace_schema_metadata(None)
    with pa.ipc.new_stream(pa.PythonFile(Sink(), mode="w"), plain.schema) as stream:
        for start in range(0, plain.num_rows, _HASHED_ROWS):
            rows = plain.slice(start, _HASHED_ROWS)
            # A copy, so that a slice and a table made afresh give the same bytes.
            stream.write_table(rows.take(pa.array(range(len(rows)))).combine_chunks())
    return digest.digest()


def sample_rows(
    tasks: TaskSet,
    most: Mapping[str, int],  # rows by the name of a split; a split without a number stays whole
    *,
    seed: int = 0,
) -> TaskSet:
    """At most so many rows of each task's splits, drawn evenly, in their order.

    Tasks of one source get the same rows of it.

    >>> from taskmix.tasks import digits_tasks
    >>> few = sample_rows(digits_tasks(), {"train": 100})
    >>> few["parity"].sizes
    {'train': 100, 'dev': 400, 'test': 497}
    """
    taken: dict[int, pa.Table] = {}

    def sampled(task: Task, name: str, split: Split) -> Split:
        if name not in most or len(split) <= most[name]:
            return split
        word = repr((seed, task.source, name)).encode()
        generator = np.random.default_rng(
            int.from_bytes(hashlib.sha256(word).digest()[:8], "little")
        )
        rows = np.sort(generator.permutation(len(split))[: most[name]])
        key = id(split.inputs)
        if key not in taken:
            taken[key] = split.inputs.take(pa.array(rows))
        return replace(split, inputs=taken[key], targets=_targets(task, split, rows))

    return replace(
        tasks,
        tasks=tuple(
            replace(task, splits={name: sampled(task, name, s) for name, s in task.splits.items()})
            for task in tasks
        ),
        _content=[],
    )


def _targets(task: Task, split: Split, rows: NDArray[np.int64]) -> NDArray[np.generic]:
    if len(split.targets) == 0:  # the answer is in the inputs
        return split.targets
    if task.kind != "tagging":
        return split.targets[rows]
    lengths = np.array([len(words) for words in split.inputs.column("tokens").to_pylist()])
    kept = np.zeros(len(lengths), dtype=np.bool_)
    kept[rows] = True
    return split.targets[np.repeat(kept, lengths)]


JOINED: KeptByTable[tuple[pa.Table, ...]] = KeptByTable()  # the tables that one was joined from


def train_on_dev(tasks: TaskSet) -> TaskSet:
    """The tasks with their dev rows among those to train on, and no dev rows left to choose by.

    Tasks that shared their rows still do.

    >>> train_on_dev(digits_tasks())["parity"].sizes
    {'train': 700, 'test': 497}
    """
    tables: dict[tuple[int, int], pa.Table] = {}

    def joined(train: Split, dev: Split) -> Split:
        parts = (train.inputs, dev.inputs)
        key = (id(parts[0]), id(parts[1]))
        if key not in tables:
            tables[key] = pa.concat_tables(parts, promote_options="default")
            JOINED.put(tables[key], None, parts)
        return Split(tables[key], np.concatenate([train.targets, dev.targets]))

    def of(task: Task) -> Task:
        splits = {name: split for name, split in task.splits.items() if name != "dev"}
        if "dev" in task.splits and "train" in splits:
            splits["train"] = joined(splits["train"], task.splits["dev"])
        return replace(task, splits=splits)

    return TaskSet(tuple(of(task) for task in tasks), tasks.notes)
