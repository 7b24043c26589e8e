"""Hard parameter sharing: one encoder for all tasks, one head for each.

    Caruana, "Multitask Learning", Machine Learning 28, 1997.

The encoder gives one vector a row (or a word, where a row is a sentence); a head turns it into class
scores or into a number. Heads come in the order of the tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from taskmix.tasks import EncodedTask, EncodedTasks


class Architecture(Protocol):
    """Frozen options that say how tasks are encoded and which model is built for them."""

    @property
    def encoding(self) -> Any:
        """The options of `taskmix.tasks` that turn rows into this model's inputs."""
        ...

    def build(self, tasks: EncodedTasks) -> HardSharing:
        """A model with fresh parameters, drawn from torch's current random state."""
        ...


def named_last_layer(encoder: nn.Module) -> nn.Module | Sequence[Tensor] | None:
    """The `last_layer` of an encoder that names one: what all tasks train last.

    GradNorm looks at it. An encoder whose last module with parameters is that layer need not name it.
    A name and not a protocol: a part of a module is no attribute that `isinstance` would find.

    >>> encoder = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
    >>> encoder.last_layer = encoder[0]
    >>> named_last_layer(encoder)
    Linear(in_features=2, out_features=3, bias=True)
    """
    found: nn.Module | Sequence[Tensor] | None = getattr(encoder, "last_layer", None)
    return found


class HardSharing(nn.Module):
    """`heads[i](encoder(batch))` are the outputs of task `names[i]`.

    >>> heads = [torch.nn.Linear(2, 4), torch.nn.Linear(2, 1)]
    >>> model = HardSharing(torch.nn.Linear(3, 2), heads, names=("a", "b"))
    >>> batch = torch.zeros(5, 3)
    >>> tuple(model(batch, task=0).shape), tuple(model(batch, task=1).shape)
    ((5, 4), (5, 1))
    """

    def __init__(
        self, encoder: nn.Module, heads: Sequence[nn.Module], names: Sequence[str]
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleList(heads)
        self.names = tuple(names)

    def forward(self, batch: Any, task: int) -> Tensor:
        return cast("Tensor", self.heads[task](self.encoder(batch)))


class Head(nn.Sequential):
    """Dropout, hidden layers and a linear output; for regression the output is in the target's unit.

    >>> Head(8, 3, hidden=(4,), dropout=0.5)
    Head(
      (0): Linear(in_features=8, out_features=4, bias=True)
      (1): ReLU()
      (2): Dropout(p=0.5, inplace=False)
      (3): Linear(in_features=4, out_features=3, bias=True)
    )
    """

    def __init__(
        self, features: int, outputs: int, *, hidden: Sequence[int] = (), dropout: float = 0.0
    ) -> None:
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.Linear(features, width), nn.ReLU()]
            features = width
        if dropout:
            layers.append(nn.Dropout(dropout))
        layers.append(nn.Linear(features, outputs))
        super().__init__(*layers)


class Rescale(nn.Module):
    """From standard units to those of a regression target, so that every task starts at its mean."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: float, deviation: float) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("deviation", torch.tensor(deviation))

    def forward(self, standard: Tensor) -> Tensor:
        return (standard * self.deviation + self.mean).squeeze(-1)


def make_head(
    tasks: EncodedTasks,
    task: EncodedTask,
    features: int,
    *,
    hidden: Sequence[int] = (),
    dropout: float = 0.0,
) -> nn.Module:
    """The head that suits the task's targets.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"parity": {"train": (np.zeros((2, 1)), ["even", "odd"])}})
    >>> encoded = encoding.encode(tasks)
    >>> make_head(encoded, encoded["parity"], features=64)
    Head(
      (0): Linear(in_features=64, out_features=2, bias=True)
    )
    """
    head = Head(features, task.outputs, hidden=hidden, dropout=dropout)
    if task.kind == "regression":
        mean, deviation = target_scale(tasks, task)
        return nn.Sequential(head, Rescale(mean, deviation))
    return head


def target_scale(tasks: EncodedTasks, task: EncodedTask) -> tuple[float, float]:
    """Mean and standard deviation of a regression task's training targets.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"height": {"train": (np.zeros((2, 1)), [1.25, 1.75])}})
    >>> encoded = encoding.encode(tasks)
    >>> target_scale(encoded, encoded["height"])
    (1.5, 0.25)
    """
    scales = cast("dict[str, tuple[float, float]]", tasks.extra.get("target_scale", {}))
    mean, deviation = scales.get(task.name, (0.0, 1.0))
    return float(mean), float(deviation) or 1.0
