"""A multilayer perceptron for tables, one linear head for each task."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from taskmix.errors import OptionError
from taskmix.models._sharing import HardSharing, make_head
from taskmix.tasks import EncodedTasks, TableEncoding


@dataclass(frozen=True, kw_only=True)
class Perceptron:
    """Shared hidden layers with ReLU; `dropout` follows each of them."""

    hidden: tuple[int, ...] = (64, 64)
    dropout: float = 0.0
    head_dropout: float = 0.0

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise OptionError(
                f"`hidden` should name at least one width, each 1 or more. Found {self.hidden}. "
                "Give for instance (64, 64)."
            )

    @property
    def encoding(self) -> TableEncoding:
        return TableEncoding()

    def build(self, tasks: EncodedTasks) -> HardSharing:
        layers: list[nn.Module] = []
        width = tasks.features
        for next_width in self.hidden:
            layers += [nn.Linear(width, next_width), nn.ReLU()]
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            width = next_width
        heads = [make_head(tasks, task, width, dropout=self.head_dropout) for task in tasks]
        return HardSharing(nn.Sequential(*layers), heads, tasks.names)
