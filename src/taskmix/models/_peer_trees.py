"""Boosted trees for tables, kept as arrays of nodes.

    Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", 2001.

Scikit-learn's `HistGradientBoosting` grows them; what a row gets is found here, by going down all trees
at once. Trees for several tasks together have the task as a further column: its place among the tasks
by the mean of its targets, so that one split parts tasks that are alike from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taskmix.models._peer_rows import PeerRows
from taskmix.tasks import MISSING

ITERATIONS = (10, 20, 40, 80, 160)  # to choose from
USUAL_ITERATIONS = 40  # where there are no dev rows to choose by
FEW_ROWS = 30  # of a task on average; below, trees have nothing to part
MOST_CLASSES = 20  # a tree each and iteration
Values: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees one after another: row `node` goes to `left` or `right`, a leaf to itself."""

    feature: NDArray[np.int32]  # [node]
    threshold: Values  # [node]
    left: NDArray[np.int32]  # [node]
    right: NDArray[np.int32]  # [node]
    value: Values  # [node], of leaves
    roots: NDArray[np.int32]  # [iteration, output]
    start: Values  # [output], what every row has before any tree

    @classmethod
    def of(cls, model: Any) -> Forest:
        """The trees of scikit-learn's model."""
        grown = [tree for round_ in model._predictors for tree in round_]
        sizes = [len(tree.nodes) for tree in grown]
        roots = np.cumsum([0, *sizes])[:-1].astype(np.int32)
        nodes = np.concatenate([tree.nodes for tree in grown])
        begin, own = np.repeat(roots, sizes), np.arange(sum(sizes), dtype=np.int32)
        leaf = nodes["is_leaf"].astype(bool)
        return cls(
            feature=np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32),
            threshold=np.where(leaf, 0.0, nodes["num_threshold"]).astype(np.float64),
            left=np.where(leaf, own, nodes["left"] + begin).astype(np.int32),
            right=np.where(leaf, own, nodes["right"] + begin).astype(np.int32),
            value=nodes["value"].astype(np.float64),
            roots=roots.reshape(len(model._predictors), -1),
            start=np.asarray(model._baseline_prediction, np.float64).reshape(-1),
        )

    def scores(self, features: NDArray[np.float32]) -> Values:
        """[row, output], of rows without missing values."""
        found = np.empty((len(features), len(self.start)))
        for output, start in enumerate(self.start):
            nodes = np.broadcast_to(self.roots[:, output], (len(features), len(self.roots)))
            while True:
                values = np.take_along_axis(features, self.feature[nodes], axis=1)
                below = np.where(
                    values <= self.threshold[nodes], self.left[nodes], self.right[nodes]
                )
                if np.array_equal(below, nodes):
                    break
                nodes = below
            found[:, output] = start + self.value[nodes].sum(axis=1)
        return found

    def __post_init__(self) -> None:
        """Raises where a way down would never end, or leave the trees: they may be a file's."""
        own = np.arange(len(self.value))
        ends = [self.left, self.right]
        inside = all(len(each) == len(own) and (each >= own).all() for each in ends)
        both = (self.left == own) == (self.right == own)  # a leaf, or two ways down
        if not inside or not both.all() or max(int(each.max()) for each in ends) >= len(own):
            raise ValueError("trees whose ways down do not end")

    def first(self, iterations: int) -> Forest:
        """The forest as it was after so many iterations."""
        rest = self.roots[iterations:].ravel()
        end = rest[0] if len(rest) else len(self.value)
        return Forest(
            feature=self.feature[:end],
            threshold=self.threshold[:end],
            left=self.left[:end],
            right=self.right[:end],
            value=self.value[:end],
            roots=self.roots[:iterations],
            start=self.start,
        )


@dataclass(frozen=True, eq=False)
class TreeScores:
    """Logits or values by trees: of a class that was seen each; of two classes only the second's."""

    forests: tuple[Forest, ...]  # one, or of several labels one each
    code: float | None  # of the task, in the column behind the others

    def __call__(self, features: Any) -> Values:
        """[row, output]"""
        if self.code is not None:
            code = np.full((len(features), 1), self.code, np.float32)
            features = np.concatenate([features, code], axis=1)
        return np.concatenate([forest.scores(features) for forest in self.forests], axis=1)


class TreeGroup:
    """Tasks whose rows grow trees together, one of them or several with the same answers."""

    def __init__(self, rows: Sequence[PeerRows], iterations: int) -> None:
        kind = rows[0].question.kind
        self._codes = _task_codes(rows)
        targets = np.concatenate([each.targets[each.known] for each in rows])
        parts = []
        for each, code in zip(rows, self._codes, strict=True):
            part = np.asarray(each.features)[each.known]
            column = np.full((len(part), 0 if code is None else 1), code or 0.0, np.float32)
            parts.append(np.concatenate([part, column], axis=1))
        features = np.concatenate(parts)
        self._seen: tuple[int, ...] = ()  # classes, or labels
        self._forests: list[Forest] = []
        if kind == "multilabel":
            for label, marks in enumerate(targets.T):
                used = marks != MISSING
                if len(np.unique(marks[used])) == 2:
                    self._seen += (label,)
                    self._forests.append(_grow(features[used], marks[used], iterations, False))
        elif kind == "regression":
            if len(targets):
                self._forests.append(_grow(features, targets, iterations, True))
        elif len(classes := np.unique(targets)) > 1:
            self._seen = tuple(classes.tolist())
            self._forests.append(_grow(features, targets, iterations, False))

    def fit(self, iterations: int) -> tuple[list[TreeScores | None], tuple[int, ...]]:
        """For each task what its first trees say, and the classes that were seen."""
        forests = tuple(forest.first(iterations) for forest in self._forests)
        return [TreeScores(forests, code) if forests else None for code in self._codes], self._seen


def _grow(
    features: NDArray[np.float32], targets: NDArray[Any], iterations: int, regression: bool
) -> Forest:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    model = kind(
        max_iter=iterations,
        max_leaf_nodes=8,
        min_samples_leaf=int(np.clip(len(targets) // 20, 5, 20)),
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    )
    return Forest.of(model.fit(features, targets))


def _task_codes(rows: Sequence[PeerRows]) -> list[float | None]:
    """What stands for each task in the column of tasks: its place by the mean of its targets."""
    if len(rows) == 1:
        return [None]
    known = [each.targets[each.known].astype(np.float64) for each in rows]
    means = [float(found[found != MISSING].mean()) if found.size else 0.0 for found in known]
    return [float(place) for place in np.argsort(np.argsort(means, kind="stable"))]
