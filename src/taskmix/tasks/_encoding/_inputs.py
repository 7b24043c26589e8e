"""Rows as tensors: what `batch(rows)` gives is what an encoder's `forward` takes.

Tasks as tensors are made once from the rows and then only indexed. Those that share their inputs hold
the same object, so that a step can encode them once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from taskmix.tasks._reading import WRITTEN, TaskKind
from taskmix.tasks._task import MISSING, NamedTasks, Task


class Inputs(Protocol):
    """Rows that can be gathered into a batch for an encoder."""

    def __len__(self) -> int: ...

    def batch(self, rows: Tensor) -> Any:
        """What the encoder takes for these rows (a 1-d tensor of row numbers)."""
        ...

    def to(self, device: torch.device) -> Self: ...


@runtime_checkable
class PaddedInputs(Protocol):
    """Inputs whose rows differ in length: a batch is as wide as its longest, so like go with like."""

    @property
    def lengths(self) -> Tensor:
        """Places that each row takes [row]."""
        ...


def widened(values: Tensor) -> Tensor:
    """Halves as float32, which layers compute in; all else as it is."""
    return values.float() if values.dtype == torch.float16 else values


@dataclass(frozen=True, eq=False)
class DenseInputs:
    """One vector a row; the encoder takes a matrix, of float32 where the rows are kept as halves.

    >>> DenseInputs(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).batch(torch.tensor([1])).tolist()
    [[3.0, 4.0]]
    """

    values: Tensor  # [row, feature]

    def __len__(self) -> int:
        return len(self.values)

    def batch(self, rows: Tensor) -> Tensor:
        return widened(self.values[rows])

    def to(self, device: torch.device) -> DenseInputs:
        return DenseInputs(self.values.to(device))


@dataclass(frozen=True, eq=False)
class RaggedInputs:
    """One list of token ids a row; the encoder takes a matrix padded to the longest of the batch.

    `minimum` columns are always there, because a convolution needs as many as its widest kernel.

    >>> inputs = RaggedInputs(torch.tensor([5, 6, 7]), offsets=torch.tensor([0, 2, 3]))
    >>> inputs.batch(torch.tensor([0, 1])).tolist(), inputs.lengths.tolist()
    ([[5, 6], [7, 0]], [2, 1])
    """

    ids: Tensor  # [token], of all rows one after another, never 0
    offsets: Tensor  # [row + 1]
    minimum: int = 1

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def batch(self, rows: Tensor) -> Tensor:
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        width = max(int(lengths.max()), self.minimum)
        columns = torch.arange(width, device=starts.device)
        inside = columns < lengths[:, None]
        places = (starts[:, None] + columns).clamp_(max=max(len(self.ids) - 1, 0))
        if len(self.ids) == 0:  # every row is empty
            return torch.zeros_like(places)
        return self.ids[places] * inside  # 0 is padding

    @property
    def lengths(self) -> Tensor:
        """[row], places that a row takes in a batch of its own."""
        return self.offsets.diff()

    def to(self, device: torch.device) -> RaggedInputs:
        return RaggedInputs(self.ids.to(device), self.offsets.to(device), self.minimum)


@dataclass(frozen=True, eq=False)
class PairInputs:
    """Two texts a row; the encoder takes a tuple of two batches.

    >>> first = RaggedInputs(torch.tensor([5, 6]), offsets=torch.tensor([0, 2]))
    >>> second = RaggedInputs(torch.tensor([7]), offsets=torch.tensor([0, 1]))
    >>> [part.tolist() for part in PairInputs(first, second).batch(torch.tensor([0]))]
    [[[5, 6]], [[7]]]
    """

    first: RaggedInputs
    second: RaggedInputs

    def __len__(self) -> int:
        return len(self.first)

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.first.batch(rows), self.second.batch(rows)

    @property
    def lengths(self) -> Tensor:
        """[row], places that both texts of a row take in a batch of its own."""
        return self.first.lengths + self.second.lengths

    def to(self, device: torch.device) -> PairInputs:
        return PairInputs(self.first.to(device), self.second.to(device))


@dataclass(frozen=True, eq=False)
class WindowInputs:
    """One row a token: the token with `width` neighbours on each side, padded at sentence ends.

    The sentences are stored once, `width` zeros between them, and windows are cut on demand.

    >>> sentence = torch.tensor([0, 5, 6, 0])  # two words, a zero on each side
    >>> inputs = WindowInputs(sentence, centres=torch.tensor([1, 2]), width=1)
    >>> inputs.batch(torch.tensor([0, 1])).tolist()
    [[0, 5, 6], [5, 6, 0]]
    """

    padded: Tensor  # [place], the ids of all sentences with `width` zeros around each
    centres: Tensor  # [row], the place of each token
    width: int

    def __len__(self) -> int:
        return len(self.centres)

    def batch(self, rows: Tensor) -> Tensor:
        around = torch.arange(-self.width, self.width + 1, device=rows.device)
        return self.padded[self.centres[rows][:, None] + around]

    def to(self, device: torch.device) -> WindowInputs:
        return WindowInputs(self.padded.to(device), self.centres.to(device), self.width)


@dataclass(frozen=True, eq=False)
class SubwordInputs:
    """One list of pieces a row, for a transformer; the encoder takes a dictionary.

    `input_ids` and `attention_mask` are padded to the longest row of the batch, and so is
    `token_type_ids` where the tokenizer gives types. Where rows are lists of words, `word_starts`
    [row, word] says at which piece each word begins, as wide as the targets and 0 beyond the last;
    in a batch only as wide as its rows need, where `places` says how many of them a row has.

    >>> inputs = SubwordInputs(torch.tensor([101, 7, 102, 101, 102]), offsets=torch.tensor([0, 3, 5]))
    >>> batch = inputs.batch(torch.tensor([0, 1]))
    >>> batch["input_ids"].tolist(), batch["attention_mask"].tolist()
    ([[101, 7, 102], [101, 102, 0]], [[1, 1, 1], [1, 1, 0]])
    """

    ids: Tensor  # [piece], of all rows one after another
    offsets: Tensor  # [row + 1]
    padding: int = 0
    types: Tensor | None = None  # [piece]
    word_starts: Tensor | None = None  # [row, word]
    places: Tensor | None = None  # [row], of `word_starts` that mean something

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def batch(self, rows: Tensor) -> dict[str, Tensor]:
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        columns = torch.arange(int(lengths.max()), device=starts.device)
        inside = columns < lengths[:, None]
        places = (starts[:, None] + columns).clamp_(max=len(self.ids) - 1)
        result = {
            "input_ids": self.ids[places].masked_fill_(~inside, self.padding),
            "attention_mask": inside.long(),
        }
        if self.types is not None:
            result["token_type_ids"] = self.types[places] * inside
        if self.word_starts is not None:
            width = None if self.places is None else int(self.places[rows].max())
            result["word_starts"] = self.word_starts[rows, :width]
        return result

    @property
    def lengths(self) -> Tensor:
        """[row], places that a row takes in a batch of its own."""
        return self.offsets.diff()

    def to(self, device: torch.device) -> SubwordInputs:
        return SubwordInputs(
            self.ids.to(device),
            self.offsets.to(device),
            self.padding,
            None if self.types is None else self.types.to(device),
            None if self.word_starts is None else self.word_starts.to(device),
            None if self.places is None else self.places.to(device),
        )


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

    @classmethod
    def of(cls, task: Task, splits: Mapping[str, EncodedSplit], pieces: int = 0) -> EncodedTask:
        """A task over rows as tensors; `pieces` count where it is one of text to be written."""
        return cls(
            name=task.name,
            kind=task.kind,
            labels=task.labels,
            metric=task.metric,
            source=task.source,
            splits=splits,
            pieces=pieces if task.kind in WRITTEN else 0,
        )

    @property
    def outputs(self) -> int:
        """How many numbers a head gives for a row."""
        return self.pieces or len(self.labels) or 1

    @property
    def size(self) -> int:
        """Rows to train on."""
        return len(self.splits["train"]) if "train" in self.splits else 0


@dataclass(frozen=True, eq=False)
class EncodedTasks(NamedTasks[EncodedTask]):
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
