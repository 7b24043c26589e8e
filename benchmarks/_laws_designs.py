"""Tables made after the designs of published scaling-law studies that are not at hand.

Designs, constants and the rows left out follow what the papers say; values, noise and what rows of one
training have in common are drawn, so that the law that made a table is known, and not quite enough:

    vocabulary  Tao et al., "Scaling Laws with Vocabulary", NeurIPS 2024: parameters, vocabulary and
                characters, twenty points of each training with an offset of its own; the largest model
                is left out
    rate        Li et al., "Step Law", 2025: learning rate, batch size, data and parameters, with the
                best rate and batch size moving with both; the largest data are left out
    streams     Chen et al., "Parallel Scaling Law", 2025: parameters and parallel streams, two corpora
                (groups); eight streams are left out
    tuning      Lin et al., "Rectified Scaling Law", ICML 2024: rows of fine-tuning, 42 pairs of model
                and task (groups); the largest size is left out
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Made:
    """Columns, what was measured, which rows are left out, and the groups of rows, if there are any."""

    columns: dict[str, Floats]
    target: Floats
    beyond: NDArray[np.bool_]
    groups: NDArray[np.str_] | None = None


def vocabulary(generator: Generator) -> Made:
    rows = []
    for n in (33e6, 85e6, 151e6, 302e6, 679e6, 1.13e9):
        for v in np.geomspace(4096, 98304, 10).round():
            offset = 0.015 * generator.normal()
            for c in np.geomspace(2e8 * (n / 33e6) ** 0.3, 1.5e10 * (n / 33e6) ** 0.9, 20):
                loss = 60 / n**0.2 + 1600 / c**0.38 + 1.6 / v**0.1
                loss += 0.015 * np.log(v / 25000) ** 2 - 5.4
                rows.append((n, v, c, loss + offset + 0.01 * generator.normal()))
    return _made(rows, ("parameters", "vocabulary", "characters"), "parameters")


def rate(generator: Generator) -> Made:
    rows = []
    for n in (60e6, 120e6, 215e6, 429e6, 537e6, 1.07e9):
        for d in (2e9, 4e9, 8e9, 14.2e9, 20e9, 50e9, 100e9):
            best_rate, best_batch = 1.79 * n**-0.713 * d**0.307, 0.58 * d**0.571
            for lr in np.geomspace(2e-4, 8e-3, 11) if 3 * n <= d <= 4.5e19 / n else ():
                for batch in (16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0):
                    if generator.uniform() < 0.35:
                        continue
                    loss = 1.6 + 205 / n**0.34 + 420 / d**0.28
                    loss += 0.02 * np.log(lr / best_rate) ** 2
                    loss += 0.012 * np.log(2048 * batch / best_batch) ** 2
                    rows.append((lr, batch, d, n, loss + 0.003 * generator.normal()))
    return _made(rows, ("rate", "batch", "data", "parameters"), "data")


def streams(generator: Generator) -> Made:
    rows, corpora = [], []
    for corpus, a, power, gain, floor in (
        ("code", 1.13e7, 0.189, 0.39, 0.67),
        ("pile", 1.98e8, 0.1965, 0.33, 1.29),
    ):
        for n in (5.36e8, 6.94e8, 1.09e9, 1.57e9, 2.77e9, 4.35e9):
            for p in (1.0, 2.0, 4.0, 8.0):
                loss = (a / (n * (gain * np.log(p) + 1))) ** power + floor
                rows.append((n, p, loss * (1 + 0.001 * generator.normal())))
                corpora.append(corpus)
    return _made(rows, ("parameters", "streams"), "streams", corpora)


def tuning(generator: Generator) -> Made:
    rows, pairs = [], []
    for model in range(14):
        for task in range(3):
            floor, power = 1 + 0.6 * generator.uniform() + 0.3 * task, generator.uniform(0.15, 0.4)
            size, learned = 10 ** generator.uniform(0.5, 1.3), 10 ** generator.uniform(0.3, 1.5)
            for d in 200 * 2.0 ** np.arange(14):
                loss = size / (learned + d**power) + floor
                rows.append((d, loss * (1 + 0.004 * generator.normal())))
                pairs.append(f"{model} on {task}")
    return _made(rows, ("rows",), "rows", pairs)


def _made(
    rows: list[tuple[float, ...]],
    names: tuple[str, ...],
    largest: str,
    groups: list[str] | None = None,
) -> Made:
    table = np.array(rows)
    columns = {name: table[:, place] for place, name in enumerate(names)}
    beyond = columns[largest] == columns[largest].max()
    return Made(columns, table[:, -1], beyond, None if groups is None else np.array(groups))


DESIGNS: dict[str, Callable[[Generator], Made]] = {
    each.__name__: each for each in (vocabulary, rate, streams, tuning)
}
