"""What surrogates of transfer promise, against tables whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _common import report, row
from taskmix.transfer import (
    GroupLimits,
    SubsetOutcomes,
    all_size_subsets,
    balanced_subsets,
    compare_surrogates,
    contrast_error,
    fit_kernel_surrogate,
    fit_linear_surrogate,
    fit_pair_surrogate,
    fixed_size_subsets,
    gather_outcomes,
    group_exactly,
    group_greedily,
    group_spectrally,
    hold_out_sizes,
    judge_sources,
)

Loss = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
SOURCES, SIZE = 12, 4
EFFECTS = np.linspace(-0.3, 0.3, SOURCES)


def straight(subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.asarray(1 + subsets @ EFFECTS)


def curved(subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Help that saturates."""
    return np.asarray(1 + np.tanh(2 * (subsets @ EFFECTS)) / 2)


def paired(subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Three pairs of sources that only harm together."""
    together = subsets[:, [0, 1, 2]] & subsets[:, [9, 10, 11]]
    return np.asarray(1 + subsets @ EFFECTS + 0.8 * together.sum(axis=1))


def table(
    subsets: NDArray[np.bool_],
    loss: Loss,
    generator: np.random.Generator,
    *,
    noise: float = 0.1,
    unequal: float = 0.0,
    alone: int = 8,
) -> SubsetOutcomes:
    """Noisy losses of subsets and of the target alone."""
    whole = np.concatenate([subsets, np.zeros((alone, subsets.shape[1]), dtype=np.bool_)])
    deviation = noise * (1 + unequal * whole[:, 0])
    return gather_outcomes(
        whole,
        loss(whole) + deviation * generator.normal(size=len(whole)),
        target="target",
        sources=[f"source {number}" for number in range(subsets.shape[1])],
    )


def designs(quick: bool) -> list[dict[str, Any]]:
    """The error of a coefficient less their mean in drawn designs, against the formula."""
    generator, rows = np.random.default_rng(0), []
    for sources, size in ((25, 3), (25, 12), (40, 4)):
        centre = np.eye(sources) - 1 / sources
        for name, draw in (("random", fixed_size_subsets), ("balanced", balanced_subsets)):
            for times in (2, 4, 16):
                errors = []
                for _ in range(3 if quick else 30):
                    drawn = draw(sources, size, times * sources, generator=generator)
                    if np.linalg.matrix_rank(drawn) < sources:
                        continue  # a small random design may leave a source out
                    inverse = np.linalg.inv(drawn.T.astype(float) @ drawn)
                    errors.append(np.sqrt(np.diag(centre @ inverse @ centre)).mean())
                case = f"error/{name}/{size}_of_{sources}/{times * sources}_subsets"
                formula = contrast_error(1.0, sources=sources, size=size, count=times * sources)
                rows.append(row(case, float(np.mean(errors)), formula, "formula", "of the noise"))
    return rows


def coverage(quick: bool) -> list[dict[str, Any]]:
    """How often a 95 % interval holds the effect of the best linear surrogate."""
    rows = []
    every = np.array(
        [[i in some for i in range(SOURCES)] for some in combinations(range(SOURCES), SIZE)]
    )
    cases: tuple[tuple[str, Loss, float], ...] = (
        ("equal noise", straight, 0.0),
        ("unequal noise", straight, 4.0),
        ("curved truth", curved, 0.0),
    )
    for name, loss, unequal in cases:
        best, *_ = np.linalg.lstsq(every.astype(float), loss(every) - 1, rcond=None)
        held = {"robust": 0.0, "equal": 0.0}
        repeats = 100 if quick else 2000
        for seed in range(repeats):
            generator = np.random.default_rng(seed)
            drawn = fixed_size_subsets(SOURCES, SIZE, 40, generator=generator)
            given = table(drawn, loss, generator, unequal=unequal)
            for errors in held:
                low, high = fit_linear_surrogate(given, errors=errors).intervals()  # type: ignore[arg-type]
                # The first source is the one whose subsets are noisier.
                held[errors] += float((low[0] <= best[0]) & (high[0] >= best[0])) / repeats
        rows.append(row(f"coverage/{name}", held["robust"], held["equal"], "equal errors", "share"))
    return rows


def extrapolation(quick: bool) -> list[dict[str, Any]]:
    """R² on sizes 5 and 6 of surrogates fitted to sizes 1 to 4."""
    rows = []
    for name, loss in (("straight", straight), ("curved", curved), ("paired", paired)):
        found: dict[str, list[float]] = {"linear": [], "pairs": [], "kernel": []}
        for seed in range(3 if quick else 20):
            generator = np.random.default_rng(seed)
            drawn = all_size_subsets(SOURCES, 240, generator=generator, largest=6)
            given = table(drawn, loss, generator)
            compared = compare_surrogates(
                given,
                {
                    "linear": fit_linear_surrogate,
                    "pairs": partial(fit_pair_surrogate, generator=generator),
                    "kernel": fit_kernel_surrogate,
                },
                hold_out_sizes(given, [5, 6]),
                generator=generator,
                resamples=10,
            )
            for kind, result in compared.results.items():
                found[kind].append(result.r_squared.mean)
        linear = float(np.mean(found.pop("linear")))
        for kind, values in found.items():
            case = f"r_squared/{name}/{kind}"
            rows.append(row(case, float(np.mean(values)), linear, "linear", "R²"))
    return rows


def asked(quick: bool) -> list[dict[str, Any]]:
    """How often the further subsets asked for tell an effect of just the size that matters."""
    told = []
    for seed in range(50 if quick else 500):
        generator = np.random.default_rng(seed)
        few = table(fixed_size_subsets(SOURCES, SIZE, 30, generator=generator), straight, generator)
        first = judge_sources(fit_linear_surrogate(few), smallest=0.0273)
        for place in (5, 6):  # effects of -0.027 and 0.027
            more = first[place].further_subsets
            if more is None or abs(first[place].effect) > 0.0273:
                continue
            alone = 8 + (first[place].further_single_runs or 0)
            drawn = fixed_size_subsets(SOURCES, SIZE, 30 + more, generator=generator)
            again = fit_linear_surrogate(table(drawn, straight, generator, alone=alone))
            right = "helps" if place == 5 else "harms"
            told.append(judge_sources(again)[place].answer == right)
    return [row("told by the subsets asked for", float(np.mean(told)), 0.8, "power", "share")]


def groups(quick: bool) -> list[dict[str, Any]]:
    """The worth of the quick groupings as a share of the best."""
    shares: dict[str, list[float]] = {"greedy": [], "spectral": []}
    for seed in range(5 if quick else 50):
        generator = np.random.default_rng(seed)
        gains, limits = generator.normal(size=(12, 12)), GroupLimits(largest=4)
        best = group_exactly(gains, limits).value
        shares["greedy"].append(group_greedily(gains, limits).value / best)
        shares["spectral"].append(group_spectrally(gains, limits, generator=generator).value / best)
    return [
        row(f"groups/{name}", float(np.mean(values)), 1.0, "exact", "of the best worth")
        for name, values in shares.items()
    ]


def measure(quick: bool) -> list[dict[str, Any]]:
    parts = (designs, coverage, extrapolation, asked, groups)
    return [each for part in parts for each in part(quick)]


if __name__ == "__main__":
    report("transfer", measure, __doc__ or "")
