"""Logistic and ridge regression of several tasks: each alone, pooled, or with features of both kinds.

    Daumé, "Frustratingly Easy Domain Adaptation", ACL 2007: every feature once for all tasks together
    and once for each of them, under one penalty; ridge regression on it is the regularised multi-task
    learning of Evgeniou and Pontil, KDD 2004.

The penalty's strength is chosen along a path from strong to weak, each fit beginning where the one
before ended, until the dev rows of all tasks are foretold worse again. With fewer rows than columns the
rows' inner products say all: the triangular root of their matrix stands for the rows, and a fit of a
hundred rows takes milliseconds, whatever the vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taskmix.models._peer_features import Matrix, stacked
from taskmix.models._peer_rows import PeerRows
from taskmix.tasks import MISSING

Sharing = Literal["alone", "pooled", "partly"]
STRENGTHS = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)  # of the penalty, where rows have a length of 1
USUAL_STRENGTH = 0.1  # where there are no dev rows to choose by
MOST_DUAL = 1000  # rows; with more of them their inner products cost more than they save
PASSES = 200  # of the optimiser at most
ALIKE = 4.0  # times: regressions whose targets spread more differently are in other units
Values: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Logits or values: of a class that was seen each; of two classes only the second's."""

    weights: NDArray[np.float32]  # [output, feature]
    intercepts: tuple[float, ...]  # [output]

    def __call__(self, features: Matrix) -> Values:
        """[row, output]"""
        found: Values = np.asarray(features @ self.weights.T, np.float64)
        return np.asarray(found + np.array(self.intercepts))


@dataclass(eq=False)
class LinearGroup:
    """Tasks that are fitted together, one of them or several with the same answers."""

    rows: Sequence[PeerRows]
    sharing: Sharing
    _fits: dict[int, Any] = field(default_factory=dict)  # by output, for the next one to begin with

    def __post_init__(self) -> None:
        from scipy import sparse

        self.kind = self.rows[0].question.kind
        parts = [each.features[np.flatnonzero(each.known)] for each in self.rows]
        features = stacked(parts)
        targets = np.concatenate([each.targets[each.known] for each in self.rows])
        self._width = features.shape[1]
        self._task = np.repeat(np.arange(len(parts)), [part.shape[0] for part in parts])
        if len(self.rows) > 1:
            marks = sparse.csr_matrix(np.eye(len(parts), dtype=np.float32)[self._task])
            blocks = [sparse.csr_matrix(features), marks]
            if self.sharing == "partly":
                blocks.append(sparse.block_diag(parts, format="csr"))
            features = sparse.hstack(blocks, format="csr")
        self._columns = features.astype(np.float64)
        self._coordinates, self._root = self._columns, None
        if len(targets) < min(self._columns.shape[1], MOST_DUAL) and len(targets):
            self._coordinates = self._root = _triangular_root(self._columns)
        self._scale_targets(targets)

    def _scale_targets(self, targets: NDArray[Any]) -> None:
        self._targets, self._levels, self._spread = targets, np.zeros(len(self.rows)), 1.0
        if self.kind != "regression" or not len(targets):
            return
        counts = np.maximum(np.bincount(self._task, minlength=len(self.rows)), 1)
        mean = targets.mean()
        sums = np.bincount(self._task, targets - mean, minlength=len(self.rows))
        self._levels = mean + sums / counts
        centred = targets - self._levels[self._task]
        self._spread = float(centred.std()) or 1.0
        self._targets = centred / self._spread

    @property
    def size(self) -> int:
        """Rows to learn from."""
        return len(self._targets)

    def fit(self, strength: float) -> tuple[list[LinearScores], tuple[int, ...]]:
        """For each task what scores its rows, and the classes that were seen."""
        if self.kind == "regression":
            return self._split(*self._ridge(strength)), ()
        if self.kind != "multilabel":
            seen = tuple(np.unique(self._targets).tolist())
            every = np.ones(self.size, np.bool_)
            return self._split(*self._logistic(0, self._targets, every, strength)), seen
        found, seen = [], ()
        for label in range(self._targets.shape[1]):
            marks = self._targets[:, label]
            if (marks == 0).any() and (marks == 1).any():
                seen += (label,)
                found.append(self._logistic(label, marks, marks != MISSING, strength))
        if not found:
            return self._split(np.zeros((0, self._coordinates.shape[1])), np.zeros(0)), ()
        weights, intercepts = zip(*found, strict=True)
        return self._split(np.concatenate(weights), np.concatenate(intercepts)), seen

    def _logistic(
        self, output: int, targets: NDArray[Any], used: NDArray[np.bool_], strength: float
    ) -> tuple[Values, Values]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        classes = np.unique(targets[used])
        if len(classes) < 2:
            return np.zeros((len(classes), self._coordinates.shape[1])), np.zeros(len(classes))
        model = self._fits.setdefault(output, LogisticRegression(max_iter=PASSES, warm_start=True))
        model.set_params(C=1 / strength)
        rows = self._coordinates if used.all() else self._coordinates[np.flatnonzero(used)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what it has by then will do
            model.fit(rows, targets[used])
        return model.coef_, model.intercept_

    def _ridge(self, strength: float) -> tuple[Values, Values]:
        from sklearn.linear_model import Ridge

        if not self.size:
            return np.zeros((1, self._columns.shape[1])), np.zeros(1)
        model = Ridge(alpha=strength).fit(self._coordinates, self._targets)
        return model.coef_[None] * self._spread, np.array([model.intercept_ * self._spread])

    def _split(self, weights: Values, intercepts: Values) -> list[LinearScores]:
        """The weights of each task: the shared ones, and its own where it has some."""
        from scipy.linalg import solve_triangular

        if self._root is not None and len(weights):
            solved = solve_triangular(self._root, weights.T, trans="T", lower=True)
            weights = np.asarray(self._columns.T @ solved).T
        width, count = self._width, len(self.rows)
        shared = weights[:, :width].astype(np.float32)
        found = []
        for task, level in enumerate(self._levels):
            own, begin = intercepts + level, width + count + task * width
            if count > 1:
                own = own + weights[:, width + task]
            mine = shared
            if count > 1 and self.sharing == "partly":
                mine = (weights[:, :width] + weights[:, begin : begin + width]).astype(np.float32)
            found.append(LinearScores(mine, tuple(own.tolist())))
        return found


def _triangular_root(columns: Matrix) -> Values:
    """[row, row], rows of as many numbers with the inner products that the rows have."""
    from scipy.linalg import cholesky

    products = columns @ columns.T
    products = np.asarray(products.todense() if hasattr(products, "todense") else products)
    # Equal rows make it singular; so little as this changes no fit.
    np.fill_diagonal(products, products.diagonal() + 1e-8 * (1 + products.diagonal().max()))
    return np.asarray(cholesky(products, lower=True))


def shared_groups(
    rows: Sequence[PeerRows], sharing: str, groups: Sequence[Sequence[str]] | None
) -> list[list[int]]:
    """The places of tasks that are fitted together: the same answers to the same kind of input."""
    found: dict[Any, list[int]] = {}
    for place, each in enumerate(rows):
        question = each.question
        key: Any = (question.kind, question.inputs, question.labels)
        if sharing == "alone":
            key = place
        elif groups is not None:
            named = [number for number, group in enumerate(groups) if question.name in group]
            key = (*key, named[0] if named else question.name)
        found.setdefault(key, []).append(place)
    return [part for places in found.values() for part in _of_one_unit(rows, places)]


def _of_one_unit(rows: Sequence[PeerRows], places: list[int]) -> list[list[int]]:
    """Regressions together whose targets spread alike; everything else as it is."""
    if rows[places[0]].question.kind != "regression":
        return [places]
    known = {place: rows[place].targets[rows[place].known] for place in places}
    spreads = {place: float(found.std()) if len(found) else 0.0 for place, found in known.items()}
    parts: list[list[int]] = []
    for place in sorted(places, key=spreads.__getitem__):
        if parts and spreads[place] <= ALIKE * spreads[parts[-1][0]]:
            parts[-1].append(place)
        else:
            parts.append([place])
    return [sorted(part) for part in parts]
