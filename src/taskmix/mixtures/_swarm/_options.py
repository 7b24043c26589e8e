"""What a swarm is: how many models of which size, how long each trains, and on which mixtures."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from taskmix.errors import OptionError
from taskmix.models import USUAL_RATES, Architecture, CausalTransformer, pretrained

# Of models of width 128 on batches of a thousand bytes; wider ones take smaller steps.
RATE_AT_128 = 1e-3
KNOWN = ("1M", "5M", "20M")
WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
DEEPEST = 12
OFF_AT_MOST = 1.35  # times what was asked for
SHAPE_COUNTS = 0.05  # a layer more or less than usual for a width, against a factor in size
HEAD_WIDTH = 32
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmM]?)")


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


def causal_of_size(
    parameters: str, *, layers: int | None = None, width: int | None = None, **options: Any
) -> CausalTransformer:
    """By a number of parameters that reads bytes, or by layers and width."""
    if layers is not None or width is not None:
        width = width or 128
        heads = max(1, width // HEAD_WIDTH)
        return CausalTransformer(
            layers=layers or usual_layers(width), width=width, attention_heads=heads, **options
        )
    if parameters in KNOWN:
        return CausalTransformer.of_size(parameters, **options)
    wanted = as_count(parameters)
    shapes = [(depth, wide) for wide in WIDTHS for depth in range(1, DEEPEST + 1)]

    def off(shape: tuple[int, int]) -> float:
        apart = abs(math.log(size_of_shape(*shape) / wanted))
        return apart + SHAPE_COUNTS * abs(shape[0] - usual_layers(shape[1]))

    found = min(shapes, key=off)
    if abs(math.log(size_of_shape(*found) / wanted)) > math.log(OFF_AT_MOST):
        raise OptionError(
            "`parameters` should be from about 10k to 100M. Found "
            f"{parameters!r}. Give `layers` and `width` for another size.",
            arguments=("layers", "width"),
        )
    return causal_of_size(parameters, layers=found[0], width=found[1], **options)


def usual_layers(width: int) -> int:
    """As many as the known sizes have for their widths."""
    return min(6, 1 + width // 32)


def size_of_shape(layers: int, width: int) -> int:
    """Of a model that reads bytes."""
    inner = CausalTransformer(width=width, attention_heads=1).inner
    return layers * (4 * width * width + 3 * width * inner) + 257 * width


def as_count(words: str, *, name: str = "parameters") -> int:
    """A number of parameters or tokens such as 300k or 1.5M.

    >>> as_count("50M"), as_count("300k"), as_count("1024")
    (50000000, 300000, 1024)
    """
    found = _NUMBER.fullmatch(words.strip())
    if found is None or float(found[1]) <= 0:
        raise OptionError(f"`{name}` should be a number such as 1M, 20M or 300k. Found {words!r}.")
    return round(float(found[1]) * {"": 1, "k": 10**3, "m": 10**6}[found[2].lower()])
