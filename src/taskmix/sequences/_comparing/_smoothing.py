"""How strongly a generator is held to its prior: pseudo-counts by the logarithm, in halved steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from taskmix.sequences._generator import Generator

_FACTOR, _FINEST = 10.0, 1.5  # the first step up or down, and the last


def narrow_smoothing(
    generator: Generator, score: Callable[[Generator], float], *, known: float | None = None
) -> Generator:
    """The generator with the pseudo-counts of the highest score, up or down by a factor of ten for as
    long as it pays and then by its root. Each is asked for once; `known` is the score of the generator
    as it is. One without pseudo-counts comes back as it came.

    >>> from taskmix.sequences import Gaussian
    >>> narrow_smoothing(Gaussian(smoothing=1.0), lambda each: -abs(each.smoothing - 30)).smoothing
    31.6
    """
    kind: Any = generator
    start = getattr(kind, "smoothing", None)
    if not start:
        return generator
    scores = {} if known is None else {0.0: known}  # by the logarithm of the factor

    def changed(place: float) -> Any:
        return replace(kind, smoothing=float(f"{start * np.exp(place):.3g}")) if place else kind

    def level(place: float) -> float:
        if place not in scores:
            scores[place] = score(changed(place))
        return scores[place]

    best: Generator = changed(
        _highest(level, first=float(np.log(_FACTOR)), finest=float(np.log(_FINEST)))
    )
    return best


def _highest(level: Callable[[float], float], *, first: float, finest: float) -> float:
    """Where a function with one peak is highest, from 0 on: steps are halved where none of the two
    leads up."""
    at, step = 0.0, first
    while step >= finest:
        beside = max((at - step, at + step), key=level)
        if level(beside) > level(at):
            at = beside
        else:
            step /= 2
    return at
