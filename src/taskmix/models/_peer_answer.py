"""What a fitted peer says to the rows of one task, and how it lies in a file.

Probabilities never leave a class out. How frequent a class is, each counted once more, is what a class
gets that was never seen; and of what is said of the others `1 / (rows + classes)` goes by that too. So
a row of such a class, or one that a sure model has wrong, costs a little and not everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taskmix.models._peer_features import Matrix
from taskmix.models._peer_linear import LinearScores, Values
from taskmix.models._peer_tags import TagChain
from taskmix.models._peer_trees import Forest, TreeScores


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


def pack_answers(answers: Sequence[TaskAnswer]) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """Answers as plain JSON, and their arrays by name; what several of them share is there once."""
    arrays: dict[str, Any] = {}
    places: dict[int, int] = {}
    described = []
    for number, answer in enumerate(answers):
        model: int | None = None
        own: Any = None
        if isinstance(answer.scores, LinearScores):
            own, shared = list(answer.scores.intercepts), answer.scores.weights
            model = places.setdefault(id(shared), len(places))
            arrays[f"models.{model}.weights"] = shared
        elif answer.scores is not None:
            own, forests = answer.scores.code, answer.scores.forests
            model = places.setdefault(id(forests), len(places))
            for place, forest in enumerate(forests):
                for each in fields(Forest):
                    arrays[f"models.{model}.{place}.{each.name}"] = getattr(forest, each.name)
        if answer.chain is not None:
            arrays[f"chains.{number}.first"] = answer.chain.first
            arrays[f"chains.{number}.ratios"] = answer.chain.ratios
            arrays[f"chains.{number}.allowed"] = answer.chain.allowed
        described.append(
            {
                "kind": answer.kind,
                "model": model,
                "own": own,
                "seen": list(answer.seen),
                "prior": list(answer.prior),
                "floor": answer.floor,
                "chain": None if answer.chain is None else answer.chain.weight,
            }
        )
    found = {name: torch.from_numpy(np.ascontiguousarray(each)) for name, each in arrays.items()}
    return described, found


def unpack_answers(
    described: Sequence[Mapping[str, Any]], state: Mapping[str, Tensor]
) -> tuple[TaskAnswer, ...]:
    """The answers that were packed."""
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    shared: dict[int, Any] = {}
    for model in {each["model"] for each in described} - {None}:
        begin = f"models.{int(model)}."
        if f"{begin}weights" in arrays:
            shared[model] = arrays[f"{begin}weights"]
            continue
        count = sum(name.startswith(begin) and name.endswith(".roots") for name in arrays)
        shared[model] = tuple(
            Forest(**{each.name: arrays[f"{begin}{place}.{each.name}"] for each in fields(Forest)})
            for place in range(count)
        )
        for forest in shared[model]:
            forest.check()
    found = []
    for number, each in enumerate(described):
        scores: LinearScores | TreeScores | None = None
        if each["model"] is not None:
            model = shared[each["model"]]
            is_linear = isinstance(model, np.ndarray)
            scores = (
                LinearScores(model, tuple(each["own"]))
                if is_linear
                else TreeScores(model, each["own"])
            )
        chain = None
        if each["chain"] is not None:
            begin = f"chains.{number}."
            chain = TagChain(
                first=arrays[f"{begin}first"],
                ratios=arrays[f"{begin}ratios"],
                allowed=arrays[f"{begin}allowed"],
                weight=float(each["chain"]),
            )
        found.append(
            TaskAnswer(
                kind=each["kind"],
                scores=scores,
                seen=tuple(each["seen"]),
                prior=tuple(each["prior"]),
                floor=float(each["floor"]),
                chain=chain,
            )
        )
    return tuple(found)
