r"""A linear surrogate with a company term: any other task changes the loss by c, whichever it is.

$$g(S) = f(\emptyset) + c\,[S \neq \emptyset] + \sum_{i \in S} \theta_i$$

It goes beyond Li, Nguyen and Zhang (2023), whose surrogate has the sum only. A small target often gains
from any company, because sharing keeps it from overfitting; without c that gain is divided over the
effects, and nearly all sources seem to help. With c, an effect says what a source changes for a target
that is in company already, and `effects` below zero are worth adding.

Subsets of one size α cannot tell c from α times the mean effect. There, effects are relative to the
average source (they sum to zero), c has all the rest, and `identified` is False. With `effects` held at
zero g is a constant for all subsets: `fit_constant_surrogate`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError
from taskmix.transfer._surrogates._contract import as_indicators
from taskmix.transfer._surrogates._outcomes import SubsetOutcomes


@dataclass(frozen=True, kw_only=True)
class CompanySurrogate:
    """Effects of sources on a target in company; below zero is help.

    >>> names = {"target": "reviews", "sources": ("news", "tweets"), "anchor": 1.0}
    >>> effects = np.array([-0.1, 0.2])
    >>> surrogate = CompanySurrogate(**names, company=-0.3, effects=effects, identified=True)
    >>> surrogate.predict([[0, 0], [1, 0], [1, 1]]).round(6)  # 1; 1 − 0.3 − 0.1; and 0.2 more
    array([1. , 0.6, 0.8])
    """

    target: str
    sources: tuple[str, ...]
    anchor: float  # f(∅)
    company: float  # c; below zero, any company helps
    effects: NDArray[np.float64]  # [source]
    identified: bool  # whether c and the mean effect could be told apart

    def predict(self, subsets: ArrayLike) -> NDArray[np.float64]:
        """The loss of each subset [..., source]."""
        members = as_indicators(subsets, len(self.effects))
        return np.asarray(
            self.anchor + self.company * members.any(axis=-1) + members @ self.effects
        )


def fit_company_surrogate(outcomes: SubsetOutcomes) -> CompanySurrogate:
    """Least squares, with the target alone as it was measured.

    >>> runs = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    >>> losses = [1.0, 0.4, 0.5, 0.7, 0.6]  # company −0.5; effects −0.1, 0 and 0.2
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=["news", "tweets", "code"])
    >>> found = fit_company_surrogate(table)
    >>> round(found.company, 6), found.effects.round(6) + 0.0
    (-0.5, array([-0.1,  0. ,  0.2]))
    """
    members = outcomes.subsets.astype(np.float64)
    rows, count = members.shape
    root = np.sqrt(outcomes.weights / outcomes.weights.mean())[:, None]
    identified = len(np.unique(outcomes.sizes)) > 1
    design = root * np.column_stack([np.ones(rows), members])
    changes = root[:, 0] * (outcomes.losses - outcomes.anchor)
    if not identified:
        # Effects that sum to zero: the one more equation that subsets of one size need.
        design = np.concatenate([design, [[0.0, *np.ones(count)]]])
        changes = np.append(changes, 0.0)
    if (rank := int(np.linalg.matrix_rank(design))) < count + 1:
        raise InputError(
            f"The subsets should tell {count} sources and company apart. Found {rows} subsets of rank "
            f"{rank}. Train more subsets, of several sizes."
        )
    company, *effects = np.linalg.lstsq(design, changes, rcond=None)[0].tolist()
    return CompanySurrogate(
        target=outcomes.target,
        sources=outcomes.sources,
        anchor=outcomes.anchor,
        company=company,
        effects=np.array(effects),
        identified=identified,
    )


def fit_constant_surrogate(outcomes: SubsetOutcomes) -> CompanySurrogate:
    """The mean loss of all subsets, whichever sources they have: what any surrogate has to beat.

    >>> runs = [[0, 0, 0], [1, 0, 0], [0, 1, 1]]
    >>> sources = ["news", "tweets", "code"]
    >>> table = gather_outcomes(runs, [1.0, 0.4, 0.6], target="reviews", sources=sources)
    >>> round(fit_constant_surrogate(table).company, 6)
    -0.5
    """
    mean = float(np.average(outcomes.losses, weights=outcomes.weights))
    return CompanySurrogate(
        target=outcomes.target,
        sources=outcomes.sources,
        anchor=outcomes.anchor,
        company=mean - outcomes.anchor,
        effects=np.zeros(len(outcomes.sources)),
        identified=True,
    )
