"""What a swarm is: how many models of which size, how long each trains, and on which mixtures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Literal

from taskmix.errors import OptionError
from taskmix.mixtures._swarm._size import causal_of_size
from taskmix.models import USUAL_RATES, Architecture, CausalTransformer, pretrained

# Of models of width 128 on batches of a thousand bytes; wider ones take smaller steps.
RATE_AT_128 = 1e-3


@dataclass(frozen=True, kw_only=True)
class SwarmOptions:
    """Everything that determines a swarm but its texts and its device.

    A token is a byte, or a piece of the tokenizer. Members read rows of `context` tokens, `batch_size`
    rows of one domain in a step, which is drawn by the member's shares.

    >>> options = SwarmOptions(members=64, parameters="1M", tokens=2_000_000)
    >>> options.steps, options.replicates, options.rate
    (1953, 4, 0.001)
    >>> SwarmOptions(tokens=1000)
    Traceback (most recent call last):
    taskmix.errors.OptionError: `tokens` should be enough for one step, 8 rows of 128. Found 1000. ...
    """

    members: int = 512
    parameters: str = "1M"  # 1M, 5M, 20M or another number such as 300k, about
    layers: int | None = None  # with `width`: a size of one's own in place of `parameters`
    width: int | None = None
    tokens: int = 20_000_000  # that each member reads
    context: int = 128
    batch_size: int = 8
    learning_rate: float | None = None  # None: by the size
    schedule: Literal["constant", "linear", "cosine"] = "linear"
    warmup: float = 0.05
    weight_decay: float = 0.1
    tokenizer: str | None = None  # a folder; None: bytes
    model: str | None = (
        None  # a pretrained causal one, whose adapters are trained; None: from scratch
    )
    rank: int | None = None  # of adapters
    dev_bytes: int = 32_768  # of each domain, on which members are scored
    replicates: int | None = None  # members that repeat another's mixture; None: one in 16
    prior: Literal["natural", "uniform"] = "natural"  # around which shares mixtures are drawn
    bounds: tuple[tuple[str, float, float], ...] = ()  # a domain, its smallest and largest share
    checkpoints: int = field(default=4)  # while training, from which an interrupted swarm goes on
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"members": 2, "context": 2, "batch_size": 1, "dev_bytes": 1, "checkpoints": 0}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise OptionError(
                    f"`{name}` should be {smallest} or more. Found {getattr(self, name)}."
                )
        if self.replicates is None:
            object.__setattr__(self, "replicates", self.members // 16)
        if not 0 <= (self.replicates or 0) < self.members:
            raise OptionError(
                "`replicates` should be from 0 to below the number of members. Found "
                f"{self.replicates} of {self.members}."
            )
        if self.steps < 1:
            raise OptionError(
                f"`tokens` should be enough for one step, {self.batch_size} rows of {self.context}. "
                f"Found {self.tokens}. Give at least {self.batch_size * self.context}, or a smaller "
                "batch."
            )
        for name, low, high in self.bounds:
            if not (math.isfinite(low) and math.isfinite(high) and 0 <= low <= high <= 1):
                raise OptionError(
                    "`bounds` should be a smallest and a largest share from 0 to 1. Found "
                    f"{low:g} and {high:g} for `{name}`."
                )
        self.architecture()

    @property
    def steps(self) -> int:
        """Of a member."""
        return self.tokens // (self.batch_size * self.context)

    @property
    def rate(self) -> float:
        """The learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        architecture = self.architecture()
        if not isinstance(architecture, CausalTransformer):
            return USUAL_RATES["adapters"]
        return float(f"{RATE_AT_128 * math.sqrt(128 / architecture.width):.2g}")

    def architecture(self) -> Architecture:
        """Of every member."""
        if self.model is not None:
            return pretrained(self.model, "adapters", max_length=self.context, rank=self.rank)
        return causal_of_size(
            self.parameters,
            layers=self.layers,
            width=self.width,
            context=self.context,
            tokenizer=self.tokenizer,
        )

    def changed(self, earlier: SwarmOptions) -> str | None:
        """The first option that is another one than earlier."""
        names = (each.name for each in fields(self))
        return next((n for n in names if getattr(self, n) != getattr(earlier, n)), None)
