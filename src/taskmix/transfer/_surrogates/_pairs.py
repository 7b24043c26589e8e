r"""A linear surrogate with a few pairs of sources that matter together.

$$g(S) = f(\emptyset) + \sum_{i \in S} \theta_i + \sum_{i < j \in S} J_{ij}$$

It goes beyond Li, Nguyen and Zhang (2023), whose surrogate has the first sum only. There are
k(k−1)/2 pairs and mostly fewer runs, so J is sparse: the lasso (Tibshirani, 1996) on pairs, while
the effects of single sources are not penalised. What the effects explain is taken out of losses and
pairs first (the theorem of Frisch and Waugh), which makes the two steps one. The penalty is the
largest whose cross-validated error lies within one standard error of the least; so where pairs do
not lower it by more than that, none are taken, and the surrogate is the linear one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, OptionError
from taskmix.transfer._surrogates._contract import as_indicators
from taskmix.transfer._surrogates._outcomes import SubsetOutcomes

MAIN_RIDGE = 1e-8  # times the rows: decides between equals; a larger one shrinks single effects
SMALLEST_SPREAD = 1e-6  # of a pair beside single effects; below it is their sum up to rounding
PENALTIES = 60  # that are tried, from the one that takes no pair down; fewer miss the best one
SMALLEST_PENALTY = 1e-3  # of the largest; far smaller ones take all pairs and converge slowly


@dataclass(frozen=True, kw_only=True)
class PairSurrogate:
    """Effects of single sources and of pairs; below zero is help.

    >>> together = np.array([[0, -0.5, 0], [-0.5, 0, 0], [0, 0, 0]])
    >>> effects = {"anchor": 1.0, "effects": np.array([0.1, 0.1, 0.0]), "interactions": together}
    >>> names = {"target": "reviews", "sources": ("news", "tweets", "code")}
    >>> surrogate = PairSurrogate(**names, **effects, penalty=0.01)
    >>> surrogate.predict([[1, 0, 0], [1, 1, 0]]).round(6)  # 1 + 0.1, and 1 + 0.1 + 0.1 − 0.5
    array([1.1, 0.7])
    """

    target: str
    sources: tuple[str, ...]
    anchor: float  # f(∅)
    effects: NDArray[np.float64]  # [source]
    interactions: NDArray[np.float64]  # [source, source], symmetric, zero on the diagonal
    penalty: float  # of the lasso

    @property
    def pairs(self) -> tuple[tuple[str, str, float], ...]:
        """The pairs that were taken, strongest first."""
        rows, columns = np.nonzero(np.triu(self.interactions))
        found = [
            (self.sources[i], self.sources[j], float(self.interactions[i, j]))
            for i, j in zip(rows, columns, strict=True)
        ]
        return tuple(sorted(found, key=lambda pair: -abs(pair[2])))

    def predict(self, subsets: ArrayLike) -> NDArray[np.float64]:
        """The loss of each subset [..., source]."""
        members = as_indicators(subsets, len(self.effects))
        together = ((members @ self.interactions) * members).sum(axis=-1) / 2
        return np.asarray(self.anchor + members @ self.effects + together)


def fit_pair_surrogate(
    outcomes: SubsetOutcomes,
    *,
    generator: np.random.Generator,
    folds: int = 5,
) -> PairSurrogate:
    """The lasso over pairs with its penalty by cross-validation; the generator deals the folds.

    >>> runs = np.arange(16)[:, None] >> np.arange(4) & 1  # every subset of four sources
    >>> losses = 1 - 0.4 * (runs[:, 0] & runs[:, 1])  # the first two help, but only together
    >>> sources = ["news", "tweets", "code", "forums"]
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=sources)
    >>> fit_pair_surrogate(table, generator=np.random.default_rng(0)).pairs[0][:2]
    ('news', 'tweets')
    """
    rows, count = outcomes.subsets.shape
    if folds < 2:
        raise OptionError(f"`folds` should be at least 2. Found {folds}.")
    if rows < max(2 * folds, count + 2):
        raise InputError(
            f"Pairs of {count} sources should have at least {max(2 * folds, count + 2)} subsets. Found "
            f"{rows}. Train more, or fit the linear surrogate."
        )
    members = outcomes.subsets.astype(np.float64)
    root = np.sqrt(outcomes.weights / outcomes.weights.mean())[:, None]
    first, second = np.triu_indices(count, k=1)
    singles, pairs = root * members, root * (members[:, first] * members[:, second])
    wanted = root[:, 0] * (outcomes.losses - outcomes.anchor)
    explain = np.linalg.solve(singles.T @ singles + MAIN_RIDGE * rows * np.eye(count), singles.T)
    rest = wanted - singles @ (explain @ wanted)
    spread = pairs - singles @ (explain @ pairs)
    scale = np.sqrt((spread * spread).mean(axis=0))
    usable = scale > SMALLEST_SPREAD
    found = np.zeros(len(first))
    penalty = 0.0
    # In subsets of size one no pair occurs, and then none can be taken.
    if usable.any() and float(rest @ rest) > 1e-24 * float(wanted @ wanted):
        strengths, penalty = _lasso(spread[:, usable] / scale[usable], rest, folds, generator)
        found[usable] = strengths / scale[usable]
    interactions = np.zeros((count, count))
    interactions[first, second] = interactions[second, first] = found
    return PairSurrogate(
        target=outcomes.target,
        sources=outcomes.sources,
        anchor=outcomes.anchor,
        effects=explain @ (wanted - pairs @ found),
        interactions=interactions,
        penalty=penalty,
    )


def _lasso(
    design: NDArray[np.float64],
    wanted: NDArray[np.float64],
    folds: int,
    generator: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso, lasso_path

    highest = float(np.abs(design.T @ wanted).max()) / len(wanted)
    penalties = np.geomspace(highest, SMALLEST_PENALTY * highest, PENALTIES)
    part = generator.permutation(np.arange(len(wanted)) % folds)
    errors = np.empty((folds, len(penalties)))
    with warnings.catch_warnings():
        # The weakest penalties converge slowly and are never chosen where that matters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fold in range(folds):
            inside = part != fold
            _, path, _ = lasso_path(design[inside], wanted[inside], alphas=penalties)
            apart = wanted[~inside, None] - design[~inside] @ path
            errors[fold] = (apart * apart).mean(axis=0)
        means = errors.mean(axis=0)
        best = int(means.argmin())
        limit = means[best] + errors[:, best].std(ddof=1) / np.sqrt(folds)
        chosen = float(penalties[int(np.argmax(means <= limit))])
        model = Lasso(alpha=chosen, fit_intercept=False, max_iter=20_000, tol=1e-9).fit(
            design, wanted
        )
    return np.asarray(model.coef_, dtype=np.float64), chosen
