"""What a fitted peer says to the rows of one task, and what that costs where it is wrong.

Probabilities never leave a class out. How frequent a class is, each counted once more, is what a class
gets that was never seen; and of what is said of the others `1 / (rows + classes)` goes by that too. So
a row of such a class, or one that a sure model has wrong, costs a little and not everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.models._peer_features import Matrix
from taskmix.models._peer_linear import LinearScores, Values
from taskmix.models._peer_rows import PeerRows
from taskmix.models._peer_tags import TagChain
from taskmix.models._peer_trees import TreeScores
from taskmix.tasks import MISSING, Question


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskAnswer:
    """Scores of what was seen, and what is said of the rest.

    >>> answer = TaskAnswer(
    ...     kind="classification", scores=None, seen=(), prior=(0.75, 0.25), floor=0.1)
    >>> np.exp(answer.outputs(np.zeros((1, 3)))).round(2).tolist()  # it goes by the prior
    [[0.75, 0.25]]
    """

    kind: str
    scores: LinearScores | TreeScores | None  # None: there was nothing to learn from
    seen: tuple[int, ...]  # the classes, or labels, that the scores are of
    prior: tuple[float, ...]  # of each class or label; of a regression, the mean
    floor: float  # how much of the chance goes by the prior
    chain: TagChain | None = None

    def outputs(self, features: Matrix, lengths: Sequence[int] = ()) -> Values:
        """Logarithms of probabilities [row, class], values [row] or logits [row, label]."""
        rows, prior = features.shape[0], np.array(self.prior)
        if self.scores is None:
            shares = np.tile(prior, (rows, 1))
        elif self.kind == "regression":
            return self.scores(features)[:, 0]
        else:
            shares = self._shares(self.scores(features))
            shares = (1 - self.floor) * shares + self.floor * prior
        if self.kind == "regression":
            return shares[:, 0]
        if self.kind == "multilabel":
            return np.asarray(np.log(shares) - np.log1p(-shares))
        if self.chain is not None:
            shares = (1 - self.floor) * self.chain.marginals(shares, lengths) + self.floor * prior
        return np.asarray(np.log(shares / shares.sum(axis=1, keepdims=True)))

    def _shares(self, scores: Values) -> Values:
        """[row, class]; a class or label that was not seen has its prior, the others what is left."""
        if self.kind == "multilabel":
            shares = np.tile(np.array(self.prior), (len(scores), 1))
            shares[:, list(self.seen)] = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
            return shares
        if len(self.seen) == 2:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        shares = np.tile(np.array(self.prior), (len(scores), 1))
        left = shares[0, list(self.seen)].sum()
        found = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares[:, list(self.seen)] = left * found / found.sum(axis=1, keepdims=True)
        return shares


def task_answers(
    group: Sequence[PeerRows],
    scores: Sequence[LinearScores | TreeScores | None],
    seen: tuple[int, ...],
) -> list[TaskAnswer]:
    """Scores of tasks that learned together, with what is said of classes that were not seen."""
    question = group[0].question
    together = np.concatenate([each.targets[each.known] for each in group])
    learned = len(seen) > 0 or (question.kind == "regression" and len(together) > 0)
    cases = len(together) + (2 if question.kind == "multilabel" else len(question.labels))
    found = []
    for each, own in zip(group, scores, strict=True):
        targets = each.targets[each.known] if each.known.any() else together
        found.append(
            TaskAnswer(
                kind=question.kind,
                scores=own if learned else None,
                seen=seen,
                prior=_prior(question, targets),
                floor=1 / cases if question.labels else 0.0,
            )
        )
    return found


def _prior(question: Question, targets: NDArray[Any]) -> tuple[float, ...]:
    """How frequent each class or label is, each counted once more; of a regression, the mean."""
    if question.kind == "regression":
        return (float(targets.mean()) if len(targets) else 0.0,)
    if question.kind == "multilabel":
        marks = targets.reshape(-1, len(question.labels))
        with_label, without = (marks == 1).sum(axis=0), (marks == 0).sum(axis=0)
        return tuple(((with_label + 1) / (with_label + without + 2)).tolist())
    counts = np.bincount(targets.astype(np.int64), minlength=len(question.labels)) + 1
    return tuple((counts / counts.sum()).tolist())


def dev_loss(rows: Sequence[PeerRows], answers: Sequence[TaskAnswer]) -> float:
    """The mean over tasks of the log loss, or of the squared error in variances; 0 without dev rows."""
    losses = []
    for dev, answer in zip((each.dev for each in rows), answers, strict=True):
        if dev is None:
            continue
        found = answer.outputs(dev.features, dev.lengths)[dev.known]
        targets = dev.targets[dev.known]
        if answer.kind == "regression":
            losses.append(np.square(found - targets).mean() / (targets.var() or 1.0))
        elif answer.kind == "multilabel":
            signs = np.where(targets == 1, -1.0, 1.0)
            losses.append(np.logaddexp(0, signs * found)[targets != MISSING].mean())
        else:
            losses.append(-found[np.arange(len(targets)), targets.astype(np.int64)].mean())
    return float(np.mean(losses)) if losses else 0.0
