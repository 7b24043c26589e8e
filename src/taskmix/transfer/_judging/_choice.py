r"""Which surrogate to believe: by how well each predicts subsets that it was not fitted to.

Subsets are dealt into folds, and where they have several sizes every size is also left out by
itself, because selections are mostly of a size that was not trained. The squared errors of all
left-out subsets are compared in pairs. Of the surrogates, given from simple to complex, the first is
taken whose mean error lies within one standard error (of the paired difference) of the least: the
rule of Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, 3.4.3. A
surrogate that cannot be fitted to a part of the subsets is not a candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError
from taskmix.transfer._surrogates import Fit, SubsetOutcomes, Surrogate


@dataclass(frozen=True, kw_only=True)
class SurrogateChoice:
    """The surrogate that predicts left-out subsets best, or nearly so and more simply."""

    name: str
    surrogate: Surrogate  # fitted to all subsets
    errors: Mapping[str, float]  # by surrogate, the root mean square of left-out errors


def choose_surrogate(
    outcomes: SubsetOutcomes,
    fits: Mapping[str, Fit],  # from simple to complex
    *,
    generator: np.random.Generator,
    folds: int = 5,
) -> SurrogateChoice:
    """The simplest surrogate within one standard error of the best.

    >>> runs = np.arange(16)[:, None] >> np.arange(4) & 1  # every subset of four sources
    >>> losses = 1 + runs @ [-0.2, -0.1, 0.1, 0.3] - 0.5 * runs.any(axis=1)
    >>> sources = ["news", "tweets", "code", "forums"]
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=sources)
    >>> fits = {"linear": fit_linear_surrogate, "company": fit_company_surrogate}
    >>> choose_surrogate(table, fits, generator=np.random.default_rng(0)).name
    'company'
    """
    if not fits or folds < 2:
        raise OptionError(
            f"There should be a surrogate to choose and 2 folds or more. Found {len(fits)} and {folds}."
        )
    parts = _left_out(outcomes, folds, generator)
    squares = {}
    for name, fit in fits.items():
        try:
            squares[name] = _squared_errors(outcomes, fit, parts)
        except InputError:  # too few subsets for it
            continue
    if not squares:
        raise InputError(
            f"Some surrogate of target `{outcomes.target}` should be fitted to a part of its "
            f"{len(outcomes.losses)} subsets. Found none that can be. Train more subsets."
        )
    means = {name: float(each.mean()) for name, each in squares.items()}
    best = min(means, key=lambda name: means[name])

    def is_close(name: str) -> bool:
        apart = squares[name] - squares[best]
        return bool(means[name] - means[best] <= apart.std(ddof=1) / np.sqrt(len(apart)))

    chosen = next(name for name in squares if name == best or is_close(name))
    return SurrogateChoice(
        name=chosen,
        surrogate=fits[chosen](outcomes),
        errors={name: float(np.sqrt(mean)) for name, mean in means.items()},
    )


def _left_out(
    outcomes: SubsetOutcomes, folds: int, generator: np.random.Generator
) -> list[NDArray[np.bool_]]:
    """[subset] of each part that is left out: the folds, then the sizes."""
    place = generator.permutation(np.arange(len(outcomes.losses)) % folds)
    parts = [place == fold for fold in range(folds) if (place == fold).any()]
    sizes = np.unique(outcomes.sizes)
    return parts + ([outcomes.sizes == size for size in sizes] if len(sizes) > 2 else [])


def _squared_errors(
    outcomes: SubsetOutcomes, fit: Fit, parts: list[NDArray[np.bool_]]
) -> NDArray[np.float64]:
    found = []
    for part in parts:
        held = outcomes.take(part)
        found.append((fit(outcomes.take(~part)).predict(held.subsets) - held.losses) ** 2)
    return np.concatenate(found)
