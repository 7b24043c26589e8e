r"""A kernel surrogate: subsets that share most of their sources have nearly the same loss.

Kernel ridge regression with a Gaussian kernel on the indicators of the subsets; it goes beyond Li,
Nguyen and Zhang (2023), whose surrogate is linear. With d(S, T) the number of sources in just one
of the two,

$$k(S, T) = \exp(-\text{rate} \cdot d(S, T)),$$

and to anchor g in the target alone, what ∅ already says of both is taken out: $k_0(S, T) = k(S, T)
- k(S, \emptyset)\,k(\emptyset, T)$, of which every function is zero at ∅. Then $g(S) = f(\emptyset)
+ \sum_j c_j k_0(S, S_j)$ with $(K_0 + \rho W^{-1}) c = f - f(\emptyset)$. A small rate with a small
ρ makes g nearly linear; a large rate lets it forget what it has not seen, and g then returns to the
target alone. Rate and ρ are those of least leave-one-out error, which needs no refit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import OptionError
from taskmix.transfer._surrogates._contract import as_indicators
from taskmix.transfer._surrogates._outcomes import SubsetOutcomes

# What is tried. Without the small rates g cannot be nearly linear, without the large ridges it follows
# the noise of single runs.
RATES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # over the mean distance of two subsets
RIDGES = tuple(float(10.0**power) for power in range(-6, 3))  # times the mean of k0(S, S)


@dataclass(frozen=True, kw_only=True)
class KernelSurrogate:
    """A function of subsets that passes through f(∅).

    >>> names = {"target": "reviews", "sources": ("news", "tweets", "code"), "anchor": 1.0}
    >>> fitted = {"centres": np.array([[True, False, False]]), "strengths": np.array([-1.0])}
    >>> surrogate = KernelSurrogate(**names, **fitted, rate=np.log(2), ridge=1.0, left_out_error=0.0)
    >>> surrogate.predict([[0, 0, 0], [1, 0, 0]])  # a distance of one halves k: 1 − (1 − 1/2 · 1/2)
    array([1.  , 0.25])
    """

    target: str
    sources: tuple[str, ...]
    anchor: float  # f(∅)
    centres: NDArray[np.bool_]  # [subset, source]
    strengths: NDArray[np.float64]  # [subset], c
    rate: float
    ridge: float
    left_out_error: float  # root mean square of the leave-one-out residuals

    def predict(self, subsets: ArrayLike) -> NDArray[np.float64]:
        """The loss of each subset [..., source]."""
        members = as_indicators(subsets, len(self.sources))
        kernel = anchored_kernel(members, self.centres.astype(np.float64), self.rate)
        return np.asarray(self.anchor + kernel @ self.strengths)


def fit_kernel_surrogate(
    outcomes: SubsetOutcomes,
    *,
    rates: Sequence[float] = RATES,
    ridges: Sequence[float] = RIDGES,
) -> KernelSurrogate:
    """The rate and the ridge of least leave-one-out error among those given.

    >>> runs = np.arange(16)[:, None] >> np.arange(4) & 1  # every subset of four sources
    >>> sources = ["news", "tweets", "code", "forums"]
    >>> table = gather_outcomes(runs, 1 - 0.1 * runs[:, 0], target="reviews", sources=sources)
    >>> fit_kernel_surrogate(table).predict([[0, 0, 0, 0], [1, 0, 0, 0]]).round(2)
    array([1. , 0.9])
    """
    for name, values in (("rates", rates), ("ridges", ridges)):
        if len(values) == 0 or min(values) <= 0:
            raise OptionError(f"`{name}` should be numbers above zero. Found {list(values)}.")
    members = outcomes.subsets.astype(np.float64)
    wanted = outcomes.losses - outcomes.anchor
    looseness = outcomes.weights.mean() / outcomes.weights  # of each row, 1 on average
    typical = max(float(subset_distances(members, members).mean()), 1.0)
    best: tuple[float, float, float, NDArray[np.float64]] | None = None
    for rate in (value / typical for value in rates):
        kernel = anchored_kernel(members, members, rate)
        # With D = diag(looseness), K0 + ρ D = √D (M + ρ) √D: one decomposition serves every ρ.
        root = np.sqrt(looseness)
        eigenvalues, vectors = np.linalg.eigh(kernel / np.outer(root, root))
        turned = vectors.T @ (wanted / root)
        for ridge in (value * float(np.trace(kernel)) / len(kernel) for value in ridges):
            inverse = 1 / (np.maximum(eigenvalues, 0.0) + ridge)
            strengths = (vectors @ (inverse * turned)) / root
            diagonal = ((vectors * vectors) @ inverse) / looseness
            apart = strengths / diagonal  # the residual of each row from a fit without it
            error = float(np.sqrt(np.average(apart * apart, weights=outcomes.weights)))
            if best is None or error < best[0]:
                best = error, rate, ridge, strengths
    assert best is not None
    error, rate, ridge, strengths = best
    return KernelSurrogate(
        target=outcomes.target,
        sources=outcomes.sources,
        anchor=outcomes.anchor,
        centres=outcomes.subsets,
        strengths=strengths,
        rate=rate,
        ridge=ridge,
        left_out_error=error,
    )


def anchored_kernel(
    ones: NDArray[np.float64],  # [..., source]
    others: NDArray[np.float64],  # [subset, source]
    rate: float,
) -> NDArray[np.float64]:
    """k0 between subsets, [..., subset]."""
    near = np.exp(-rate * subset_distances(ones, others))
    to_empty = np.exp(-rate * ones.sum(axis=-1))
    return np.asarray(near - to_empty[..., None] * np.exp(-rate * others.sum(axis=-1)))


def subset_distances(ones: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes = ones.sum(axis=-1)[..., None] + others.sum(axis=-1)
    return np.asarray(sizes - 2 * ones @ others.T)
