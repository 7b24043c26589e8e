"""Tasks as tensors: what a model reads, made once from the rows and then only indexed.

`Inputs.batch(rows)` gives what the encoder's `forward` takes. Tasks that share their inputs hold the
same `Inputs` object, so that a step can encode them once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import InputError
from taskmix.tasks._encoding._inputs import Inputs
from taskmix.tasks._reading import TaskKind
from taskmix.tasks._task import MISSING


@dataclass(frozen=True, eq=False)
class EncodedSplit:
    """Rows as tensors.

    `targets` is [row], or [row, word] padded with `MISSING` where a row is a whole sentence, or
    [row, label] where a row has several labels: 1, 0 or `MISSING`, in eight bits.
    `sentences` marks where sentences begin when every token is a row of its own, and where texts begin
    that are several rows each. Where text is to be written, `targets` [row, place] are its pieces,
    and `target_bytes` the length of what they spell.

    >>> split = EncodedSplit(DenseInputs(torch.eye(2)), targets=torch.tensor([0, 1]))
    >>> len(split), split.inputs.batch(torch.tensor([1])).tolist()
    (2, [[0.0, 1.0]])
    """

    inputs: Inputs
    targets: Tensor
    sentences: Tensor | None = None  # [sentence + 1], row numbers
    target_bytes: Tensor | None = None  # [row], of the targets as UTF-8, the end piece not counted

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def is_complete(self) -> bool:
        """Whether no target is missing; looked up once for all models that read the split."""
        return bool(self._known.all())

    @cached_property
    def has_target(self) -> Tensor:
        """[row], whether it has a target, or any of its words, places or labels has."""
        known = self._known
        return known.flatten(1).any(dim=1) if known.dim() > 1 else known

    @cached_property
    def places(self) -> Tensor:
        """[row], on the CPU: the numbers of the rows that have a target."""
        return self.has_target.nonzero().flatten().cpu()

    @property
    def _known(self) -> Tensor:
        floating = self.targets.is_floating_point()
        return ~self.targets.isnan() if floating else self.targets != MISSING

    def to(self, device: torch.device) -> EncodedSplit:
        return replace(self, inputs=self.inputs.to(device), targets=self.targets.to(device))


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedTask:
    """One task, ready for a model."""

    name: str
    kind: TaskKind
    labels: tuple[str, ...]
    metric: str
    source: str
    splits: Mapping[str, EncodedSplit]
    pieces: int = 0  # in the vocabulary that answers and texts are written in

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", MappingProxyType(dict(self.splits)))

    @property
    def outputs(self) -> int:
        """How many numbers a head gives for a row."""
        return self.pieces or len(self.labels) or 1

    @property
    def size(self) -> int:
        """Rows to train on."""
        return len(self.splits["train"]) if "train" in self.splits else 0


@dataclass(frozen=True, eq=False)
class EncodedTasks(Sequence[EncodedTask]):
    """Tasks ready for one model, and what the model must know of the encoding.

    >>> tasks, encoding = held_tasks({name: {"train": (np.eye(2), ["no", "yes"])} for name in "ab"})
    >>> encoded = encoding.encode(tasks)
    >>> encoded.names, encoded.select(["b"]).names, encoded.sizes.tolist()
    (('a', 'b'), ('b',), [2, 2])
    """

    tasks: tuple[EncodedTask, ...]
    features: int = 0  # width of a dense row
    vocabulary: tuple[str, ...] = ()  # word of each id; 0 is padding, 1 any unknown word
    vectors: Tensor | None = None  # [id, dimension], where word vectors were given
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(task.name for task in self.tasks)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([task.size for task in self.tasks], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.tasks)

    @overload
    def __getitem__(self, key: int | str) -> EncodedTask: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[EncodedTask, ...]: ...
    def __getitem__(self, key: int | str | slice) -> EncodedTask | tuple[EncodedTask, ...]:
        if isinstance(key, str):
            if key not in self.names:
                raise InputError(
                    f"`{key}` should be one of the tasks. Found {', '.join(self.names)}. "
                    "Check the spelling."
                )
            return self.tasks[self.names.index(key)]
        return self.tasks[key]

    def __iter__(self) -> Iterator[EncodedTask]:
        return iter(self.tasks)

    def select(self, names: Sequence[str]) -> EncodedTasks:
        """The tasks of these names, in the order given."""
        return replace(self, tasks=tuple(self[name] for name in names))

    def to(self, device: torch.device) -> EncodedTasks:
        """Everything on one device; inputs that are shared stay shared."""
        moved: dict[int, Inputs] = {}

        def move(split: EncodedSplit) -> EncodedSplit:
            key = id(split.inputs)
            if key not in moved:
                moved[key] = split.inputs.to(device)
            return replace(split, inputs=moved[key], targets=split.targets.to(device))

        tasks = tuple(
            replace(task, splits={name: move(split) for name, split in task.splits.items()})
            for task in self.tasks
        )
        return replace(self, tasks=tasks)
