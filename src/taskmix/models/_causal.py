"""A small causal transformer, trained from scratch: what comes next, from what came before.

Blocks of attention and of a feed-forward network, each after a norm and beside a residual path, as in
Touvron et al., "LLaMA", 2023: RMS norm (Zhang and Sennrich, 2019), rotary positions (Su et al., 2021)
and SwiGLU (Shazeer, 2020), without biases. The norms have no gains of their own, as in Groeneveld et
al., "OLMo", 2024: a matrix follows each, which has them. Weights begin as in Radford et al., "GPT-2",
2019: normal with deviation 0.02, those that write to the residual path smaller by the root of the
number of such matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from taskmix.errors import OptionError
from taskmix.models._sharing import HardSharing
from taskmix.tasks import EncodedTasks, PassageEncoding

NORM_EPSILON = 1e-6
ROTARY_BASE = 10_000.0
FEED_FORWARD_UNIT = 64  # its width is a multiple of this, which matrix units want
DEVIATION = 0.02  # of first weights


def rotary_table(places: int, width: int, device: torch.device | str | None = None) -> Tensor:
    """Cosines and sines [2, place, width / 2] by which heads of that width are turned.

    >>> rotary_table(3, 4)[:, 0].tolist()  # nothing is turned at the first place
    [[1.0, 1.0], [0.0, 0.0]]
    """
    powers = torch.arange(0, width, 2, device=device, dtype=torch.float32) / width
    angles = torch.outer(
        torch.arange(places, device=device, dtype=torch.float32), ROTARY_BASE**-powers
    )
    return torch.stack([angles.cos(), angles.sin()])


def attend(projected: Tensor, table: Tensor) -> Tensor:
    """Causal attention of [row, place, 3 * head, width], queries, keys, then values, turned by place.

    >>> heads = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 4.0]])  # a query, a key and a value
    >>> attend(heads.view(1, 1, 3, 2), rotary_table(1, 2)).tolist()  # nothing else to attend to
    [[[[3.0, 4.0]]]]
    """
    heads = projected.shape[2] // 3
    turned = _turn(projected[:, :, : 2 * heads], table).transpose(1, 2)
    return functional.scaled_dot_product_attention(
        turned[:, :heads],
        turned[:, heads:],
        projected[:, :, 2 * heads :].transpose(1, 2),
        is_causal=True,
    ).transpose(1, 2)


def _turn(vectors: Tensor, table: Tensor) -> Tensor:
    """Vectors [..., place, head, width] turned by their places; halves are the two axes."""
    cosine, sine = (part.to(vectors.dtype).unsqueeze(-2) for part in table)
    first, second = vectors.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class CausalBlock(nn.Module):
    """Attention to the places before, then a feed-forward network."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self._heads = heads
        self.attention_in = nn.Linear(width, 3 * width, bias=False)  # queries, keys, values
        self.attention_out = nn.Linear(width, width, bias=False)
        self.forward_in = nn.Linear(
            width, 2 * inner, bias=False
        )  # gates, then what they let through
        self.forward_out = nn.Linear(inner, width, bias=False)

    def forward(self, states: Tensor, table: Tensor) -> Tensor:
        rows, places, width = states.shape
        projected = self.attention_in(rms_normed(states))
        attended = attend(projected.view(rows, places, 3 * self._heads, -1), table)
        states = states + self.attention_out(attended.reshape(rows, places, width))
        gates, passed = self.forward_in(rms_normed(states)).chunk(2, dim=-1)
        return states + cast("Tensor", self.forward_out(functional.silu(gates) * passed))


def rms_normed(states: Tensor) -> Tensor:
    """States [..., feature] of mean square 1.

    >>> rms_normed(torch.tensor([[3.0, -3.0]])).round(decimals=4).tolist()
    [[1.0, -1.0]]
    """
    return functional.rms_norm(states, states.shape[-1:], eps=NORM_EPSILON)


class CausalEncoder(nn.Module):
    """Ids [row, place] to scores of the next id [row, place, output].

    >>> encoder = CausalEncoder(CausalTransformer(layers=1, width=8, attention_heads=2), 257, 256)
    >>> tuple(encoder(torch.tensor([[256, 72, 105]])).shape)
    (1, 3, 256)
    """

    table: Tensor

    def __init__(self, options: CausalTransformer, ids: int, outputs: int) -> None:
        super().__init__()
        self._outputs = outputs
        width = options.width
        self.ids = nn.Embedding(ids, width)
        self.blocks = nn.ModuleList(
            CausalBlock(width, options.attention_heads, options.inner)
            for _ in range(options.layers)
        )
        self.output = None if options.tied else nn.Linear(width, outputs, bias=False)
        table = rotary_table(options.context, width // options.attention_heads)
        self.register_buffer("table", table, persistent=False)
        for name, parameter in self.named_parameters():
            closing = name.endswith("_out.weight")
            scale = 1 / math.sqrt(2 * options.layers) if closing else 1.0
            nn.init.normal_(parameter, std=DEVIATION * scale)

    @property
    def last_layer(self) -> nn.Module:
        """The layer that all tasks train last."""
        return self.ids if self.output is None else self.output

    def forward(self, ids: Tensor) -> Tensor:
        states = self.ids(ids)
        table = self.table[:, : ids.shape[1]]
        for block in self.blocks:
            states = block(states, table)
        weight = self.ids.weight[: self._outputs] if self.output is None else self.output.weight
        return functional.linear(rms_normed(states), weight)


SIZES: dict[str, dict[str, Any]] = {  # parameters, about, that read bytes
    "1M": {"layers": 5, "width": 128, "attention_heads": 4},
    "5M": {"layers": 6, "width": 256, "attention_heads": 4},
    "20M": {"layers": 6, "width": 512, "attention_heads": 8},
}


@dataclass(frozen=True, kw_only=True)
class CausalTransformer:
    """Options of a causal transformer from scratch; it learns to continue passages.

    All tasks have one output layer: they are the same question put to different texts.

    >>> CausalTransformer.of_size("5M", context=256)
    CausalTransformer(layers=6, width=256, attention_heads=4, context=256, ...)
    >>> CausalTransformer(width=30)
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `width` should be a multiple of twice the `attention_heads`. ...
    """

    layers: int = 5
    width: int = 128
    attention_heads: int = 4
    context: int = 128  # places of a row
    feed_forward: float = 8 / 3  # the inner width over `width`, rounded to a multiple of 64
    tied: bool = True  # whether the output layer is the table of the ids
    tokenizer: str | None = None  # a folder or a name on the hub; None: bytes

    def __post_init__(self) -> None:
        if min(self.layers, self.width, self.attention_heads) < 1 or not self.feed_forward > 0:
            raise OptionError(
                "`layers`, `width` and `attention_heads` should be 1 or more and `feed_forward` above "
                f"0. Found {self.layers}, {self.width}, {self.attention_heads} and "
                f"{self.feed_forward}."
            )
        if self.width % (2 * self.attention_heads):
            raise OptionError(
                "`width` should be a multiple of twice the `attention_heads`. Found "
                f"{self.width} and {self.attention_heads}. Give for instance 128 and 4."
            )

    @classmethod
    def of_size(cls, size: str, **options: Any) -> CausalTransformer:
        """One of about that many parameters; other options as usual."""
        if size not in SIZES:
            raise OptionError(f"`size` should be one of {', '.join(SIZES)}. Found `{size}`.")
        return cls(**{**SIZES[size], **options})

    @property
    def inner(self) -> int:
        """The width of the feed-forward network."""
        units = round(self.feed_forward * self.width / FEED_FORWARD_UNIT)
        return FEED_FORWARD_UNIT * units or max(1, round(self.feed_forward * self.width))

    def operations(self, rows: int, *, outputs: int = 256) -> float:
        """Floating-point operations of the products in a step on so many rows, forward and back."""
        layer = 4 * self.width * self.width + 3 * self.width * self.inner
        attention = self.context * self.width  # of scores and of values, for the half that is seen
        each = self.layers * (layer + attention) + outputs * self.width
        return 6.0 * rows * self.context * each

    @property
    def encoding(self) -> PassageEncoding:
        return PassageEncoding(context=self.context, tokenizer=self.tokenizer)

    def build(self, tasks: EncodedTasks) -> HardSharing:
        encoder = CausalEncoder(self, tasks.extra["ids"], tasks[0].outputs)
        return HardSharing(encoder, [nn.Identity() for _ in tasks], tasks.names)
