"""Which of PyTorch's optimisers and schedules a described run uses."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from taskmix.errors import OptionError
from taskmix.models import USUAL_RATES, Tuning
from taskmix.training import Scheduler


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """An optimiser with its learning rate, and how the rate changes over the run.

    >>> rising_and_falling = Optimization(schedule="linear", warmup=0.5)
    >>> [rising_and_falling.factor(step, steps=100) for step in (0, 25, 50, 75, 100)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    momentum: float = 0.9  # of SGD
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup: float = 0.0  # share of the steps in which the rate rises from 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise OptionError(
                f"`learning_rate` should be a number above 0. Found {self.learning_rate}. 1e-3 is "
                "usual for Adam, 5e-4 for adapters of a pretrained model, 2e-5 for all of its weights."
            )
        for name, value in (("weight_decay", self.weight_decay), ("momentum", self.momentum)):
            if not (math.isfinite(value) and value >= 0):
                raise OptionError(f"`{name}` should be a number of at least 0. Found {value}.")
        if not 0.0 <= self.warmup < 1.0:
            raise OptionError(
                f"`warmup` should be a share of the steps, from 0 to below 1. Found {self.warmup}."
            )

    @staticmethod
    def usual_rate(learning_rate: float | None, *, tuning: Tuning | None = None) -> float:
        """The learning rate that was given; where none was, the usual one of Adam."""
        if learning_rate is not None:
            return learning_rate
        return 1e-3 if tuning is None else USUAL_RATES[tuning]

    def build(
        self, parameters: Iterable[nn.Parameter], steps: int
    ) -> tuple[torch.optim.Optimizer, Scheduler | None]:
        """A fresh optimiser over the parameters that train, and its scheduler."""
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        optimizer: torch.optim.Optimizer
        # One kernel for all parameters: on small models the default spends longer on the
        # optimiser's Python than on the model. (SGD's fused form fails where some heads have had
        # a gradient and others not yet, which one task a step brings about.)
        match self.optimizer:
            case "adam":
                optimizer = torch.optim.Adam(
                    trained, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
                )
            case "adamw":
                optimizer = torch.optim.AdamW(
                    trained, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
                )
            case "sgd":
                optimizer = torch.optim.SGD(
                    trained,
                    lr=self.learning_rate,
                    weight_decay=self.weight_decay,
                    momentum=self.momentum,
                )
        if self.schedule == "constant" and not self.warmup:
            return optimizer, None
        return optimizer, torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: self.factor(step, steps)
        )

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied by at a step."""
        rising = self.warmup * steps
        if step < rising:
            return step / rising
        done = (step - rising) / max(steps - rising, 1)
        match self.schedule:
            case "constant":
                return 1.0
            case "linear":
                return max(0.0, 1.0 - done)
            case "cosine":
                return 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))
