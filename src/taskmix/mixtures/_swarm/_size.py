"""A causal transformer of about so many parameters."""

from __future__ import annotations

import math
import re
from typing import Any

from taskmix.errors import OptionError
from taskmix.models import CausalTransformer

KNOWN = ("1M", "5M", "20M")
WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
DEEPEST = 12
OFF_AT_MOST = 1.35  # times what was asked for
SHAPE_COUNTS = 0.05  # a layer more or less than usual for a width, against a factor in size
HEAD_WIDTH = 32
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmM]?)")


def causal_of_size(
    parameters: str, *, layers: int | None = None, width: int | None = None, **options: Any
) -> CausalTransformer:
    """By a number of parameters that reads bytes, or by layers and width.

    >>> causal_of_size("1M").width, causal_of_size("20k").layers, causal_of_size("1M", width=64).layers
    (128, 1, 5)
    >>> causal_of_size("huge")
    Traceback (most recent call last):
    taskmix.errors.OptionError: `parameters` should be a number such as 1M, 20M or 300k. ...
    """
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
