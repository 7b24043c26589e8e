"""Where a run's tasks come from: small frozen descriptions that any process can load.

Tasks, and the tensors they become, are kept for the next run of the same process that reads the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from torch import Tensor

from taskmix.engine._apart import StoredTasks, store
from taskmix.tasks import (
    EncodedTasks,
    TaskKind,
    TaskSet,
    digits_tasks,
    load_tasks,
    sample_rows,
    train_on_dev,
)


class TaskSource(Hashable, Protocol):
    """Gives the same tasks in every process that asks."""

    def load(self) -> TaskSet: ...


@dataclass(frozen=True, kw_only=True)
class DigitsSource:
    """The embedded tasks of the demo, or some of them.

    >>> DigitsSource(tasks=("parity", "half")).load().names
    ('parity', 'half')
    """

    tasks: tuple[str, ...] | None = None

    def load(self) -> TaskSet:
        return digits_tasks() if self.tasks is None else digits_tasks().select(self.tasks)


@dataclass(frozen=True, kw_only=True)
class FolderSource:
    """A task folder, a table with a task column, or `hf:NAME`; the options are `load_tasks`'s.

    >>> from pathlib import Path
    >>> rows = "task,text,label\\nmood,fine,good\\nmood,awful,bad\\nsize,huge,big\\nsize,tiny,small\\n"
    >>> _ = Path("tasks.csv").write_text(rows)
    >>> FolderSource(path="tasks.csv").load().names
    ('mood', 'size')
    """

    path: str
    tasks: tuple[str, ...] | None = None
    settings: Path | None = None
    task_column: str | None = None
    split_column: str | None = None
    label: tuple[str, ...] | None = None
    text: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    kind: TaskKind | None = None
    separator: str | None = None
    metric: str | None = None
    strict: bool = False
    cache: Path | None = None

    def load(self) -> TaskSet:
        return self.read(self.path)

    def read(self, source: Any) -> TaskSet:
        """Another source, such as a frame, by the same options."""
        return load_tasks(
            source,
            tasks=self.tasks,
            settings=self.settings,
            task_column=self.task_column,
            split_column=self.split_column,
            label=self.label,
            text=self.text,
            features=self.features,
            ignore=self.ignore,
            kind=self.kind,
            separator=self.separator,
            metric=self.metric,
            strict=self.strict,
            cache=self.cache,
        )


@dataclass(frozen=True)
class GivenTasks:
    """Tasks in memory as a source; equal where their content is. Other processes read them from files.

    >>> tasks = DigitsSource(tasks=("parity", "half")).load()
    >>> GivenTasks.of(tasks).load() is tasks, GivenTasks.of(tasks) == GivenTasks.of(tasks)
    (True, True)
    """

    content: str
    tasks: TaskSet | StoredTasks = field(compare=False, repr=False)

    @classmethod
    def of(cls, tasks: TaskSet) -> GivenTasks:
        return cls(tasks.content, tasks)

    def load(self) -> TaskSet:
        return self.tasks if isinstance(self.tasks, TaskSet) else self.tasks.load()

    def __reduce__(self) -> tuple[Any, ...]:
        """What travels to another process: where the rows are, once they are written."""
        tasks = store(self.tasks) if isinstance(self.tasks, TaskSet) else self.tasks
        return GivenTasks, (self.content, tasks)


@dataclass(frozen=True, kw_only=True)
class SampledSource:
    """Another source's tasks with at most so many rows of each split, drawn evenly.

    >>> few = SampledSource(source=DigitsSource(), most=(("train", 100), ("dev", 50)))
    >>> few.load()["parity"].sizes
    {'train': 100, 'dev': 50, 'test': 497}
    """

    source: TaskSource
    most: tuple[tuple[str, int], ...]  # the names of splits, and rows
    seed: int = 0

    def load(self) -> TaskSet:
        return sample_rows(load_once(self.source), dict(self.most), seed=self.seed)

    @property
    def cache(self) -> Path | None:
        """Where the other source keeps encoded tasks."""
        return getattr(self.source, "cache", None)


@dataclass(frozen=True, kw_only=True)
class RefitSource:
    """Another source's tasks with their dev rows among those to train on: for the last training.

    >>> RefitSource(source=DigitsSource()).load()["parity"].sizes
    {'train': 700, 'test': 497}
    """

    source: TaskSource

    def load(self) -> TaskSet:
        return train_on_dev(load_once(self.source))

    @property
    def cache(self) -> Path | None:
        """Where the other source keeps encoded tasks."""
        return getattr(self.source, "cache", None)


_MOST_KEPT = 4  # sources in memory; with fewer, a plan over some folders reads them again and again
_loaded: OrderedDict[TaskSource, TaskSet] = OrderedDict()


def load_once(source: TaskSource) -> TaskSet:
    """The tasks of a source, read once in each process."""
    if isinstance(source, GivenTasks) and isinstance(source.tasks, TaskSet):
        return source.tasks  # tasks of equal content may call their columns otherwise
    if source not in _loaded:
        keep_tasks(source, source.load())
    _loaded.move_to_end(source)
    return _loaded[source]


def keep_tasks(source: TaskSource, tasks: TaskSet) -> None:
    """Makes these what the source gives in this process, where another one has read them."""
    _loaded[source] = tasks
    _loaded.move_to_end(source)
    while len(_loaded) > _MOST_KEPT:
        _loaded.popitem(last=False)


def has_tasks(source: TaskSource) -> bool:
    """Whether the source has been read in this process."""
    return source in _loaded


_selected: WeakKeyDictionary[TaskSet, dict[tuple[str, ...], TaskSet]] = WeakKeyDictionary()


def select_once(source: TaskSource, names: tuple[str, ...]) -> TaskSet:
    """Some of a source's tasks, the same object for the same names: its content is hashed once."""
    tasks = load_once(source)
    known = _selected.setdefault(tasks, {})  # forgotten with the source
    if names not in known:
        known[names] = tasks.select(names)
    return known[names]


LIMIT = 1 << 29  # bytes of all that is kept; the latest is kept whatever its size


class KeptEncodings:
    """The encodings that were used last, up to a number of bytes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[TaskSet, Hashable], tuple[EncodedTasks, int]] = OrderedDict()

    def get(
        self, tasks: TaskSet, options: Hashable, make: Callable[[], EncodedTasks]
    ) -> EncodedTasks:
        """What `make` gave for these tasks, as an object, and these options."""
        key = (tasks, options)
        if key not in self._kept:
            found = make()
            self._kept[key] = (found, _bytes(found))
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self._limit:
            self._kept.popitem(last=False)
        return self._kept[key][0]


def _bytes(tasks: EncodedTasks) -> int:
    inputs = {id(split.inputs): split.inputs for task in tasks for split in task.splits.values()}
    tensors = [tensor for each in inputs.values() for tensor in tensors_of(each)]
    if tasks.vectors is not None:
        tensors.append(tasks.vectors)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def tensors_of(inputs: Any) -> list[Tensor]:
    """All tensors that some inputs hold."""
    found: list[Tensor] = []
    for value in vars(inputs).values():
        if isinstance(value, Tensor):
            found.append(value)
        elif hasattr(value, "ids"):
            found += tensors_of(value)
    return found
