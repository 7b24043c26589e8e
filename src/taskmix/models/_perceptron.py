"""A multilayer perceptron for vectors, with one linear head for each task or one for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import nn

from taskmix.errors import InputError, OptionError
from taskmix.models._sharing import HardSharing, make_head
from taskmix.tasks import EncodedTask, EncodedTasks, Encoding, TableEncoding


@dataclass(frozen=True, kw_only=True)
class Perceptron:
    """Shared hidden layers with ReLU; `dropout` follows each of them.

    With `one_head` all tasks, which must then have the same labels, answer by the same output layer:
    they are the same question put to different rows, as in pooled training, or with different
    labels, as in weak supervision. The output layer is then the last of the encoder.

    >>> import pyarrow as pa
    >>> from taskmix.tasks import tables_as_tasks
    >>> rows = pa.table({"x": [0.0, 1.0, 2.0], "y": [1.0, 1.0, 5.0], "label": ["no", "yes", "yes"]})
    >>> tasks = Perceptron().encoding.encode(tables_as_tasks({"a": {"train": rows, "dev": rows}}))
    >>> Perceptron(hidden=(16,)).build(tasks).encoder[0]
    Linear(in_features=2, out_features=16, bias=True)
    """

    hidden: tuple[int, ...] = (64, 64)
    dropout: float = 0.0
    head_dropout: float = 0.0
    one_head: bool = False
    reads: Encoding = field(default_factory=TableEncoding)  # how rows become vectors

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise OptionError(
                f"`hidden` should name at least one width, each 1 or more. Found {self.hidden}. "
                "Give for instance (64, 64)."
            )
        if self.one_head and self.head_dropout:
            raise OptionError(
                "`head_dropout` should be 0 where all tasks have one head. Found "
                f"{self.head_dropout}. Use `dropout`."
            )

    @property
    def encoding(self) -> Encoding:
        return self.reads

    def build(self, tasks: EncodedTasks) -> HardSharing:
        layers: list[nn.Module] = []
        width = tasks.features
        for next_width in self.hidden:
            layers += [nn.Linear(width, next_width), nn.ReLU()]
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            width = next_width
        if self.one_head:
            layers.append(nn.Linear(width, _common_outputs(tasks)))
            heads: Sequence[nn.Module] = [nn.Identity() for _ in tasks]
        else:
            heads = [make_head(tasks, task, width, dropout=self.head_dropout) for task in tasks]
        return HardSharing(nn.Sequential(*layers), heads, tasks.names)


def _common_outputs(tasks: EncodedTasks) -> int:
    def answers(task: EncodedTask) -> tuple[str, tuple[str, ...]]:
        return task.kind, task.labels

    first = tasks[0]
    for task in tasks:
        if not task.labels or answers(task) != answers(first):
            raise InputError(
                "Tasks that share one head should have the same classes. Found "
                f"{', '.join(task.labels) or 'none'} in `{task.name}` and "
                f"{', '.join(first.labels) or 'none'} in `{first.name}`. Give them heads of their own."
            )
    return first.outputs
