"""Held-out sequences by their scores: most and least like their task, and whose they are taken for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._estimator import SequenceMixture, Tasks


@dataclass(frozen=True)
class ScoredExample:
    """A sequence with its scores against its task.

    >>> ScoredExample("mac", log_ratio=2.5, surprise=1.5, p_value=None, likeliest="x").text
    'mac'
    """

    text: str
    log_ratio: float
    surprise: float  # negative log-likelihood of a symbol
    p_value: float | None  # of the ratio; None where the model is not calibrated
    likeliest: Hashable


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Sequences that were held out, scored against their tasks; see `score_held_out`.

    >>> model = SequenceMixture(Markov(smoothing=0.1), 2, alpha=0.1, random_state=0)
    >>> _ = model.fit(["aab", "aba", "bbb", "bb"], ["x", "x", "y", "y"])
    >>> found = score_held_out(model, ["aaa", "bbb", "bb"], ["x", "x", "y"])
    >>> found.typical["x"][0].text, found.surprising["x"][0].text, found.confusion.tolist()
    ('aaa', 'bbb', [[1, 1], [0, 1]])
    """

    tasks: tuple[Hashable, ...]
    typical: dict[
        Hashable, tuple[ScoredExample, ...]
    ]  # most like the task and like nobody else first
    surprising: dict[Hashable, tuple[ScoredExample, ...]]  # least like it first
    confusion: NDArray[np.int64]  # [task, likeliest task], under a uniform prior
    odd: (
        float | None
    )  # the share with a p-value of at most 0.05, as 0.05 should have; None: no p-values

    @property
    def accuracy(self) -> float:
        """The share of sequences whose likeliest task is their own."""
        return float(np.trace(self.confusion) / max(self.confusion.sum(), 1))


def score_held_out(
    model: SequenceMixture, sequences: Sequence[Any], tasks: Tasks, *, most: int = 3
) -> HeldOutScores:
    """Scores sequences of known tasks that the model was not fitted to.

    >>> model = SequenceMixture(Markov(), 1, own=False, random_state=0)
    >>> score_held_out(model.fit(["ab", "ba"], ["x", "y"]), ["ab"], ["x"]).tasks
    ('x', 'y')
    """
    found = model.score_sequences(sequences, tasks, prior="uniform")
    places = {name: place for place, name in enumerate(model.tasks_)}
    size = len(places)
    pairs = [
        places[a] * size + places[b] for a, b in zip(found.tasks, found.likeliest, strict=True)
    ]
    confusion = np.bincount(pairs, minlength=size * size).reshape(size, size)
    typical: dict[Hashable, tuple[ScoredExample, ...]] = {}
    surprising: dict[Hashable, tuple[ScoredExample, ...]] = {}
    owner, surprise = np.array([places[name] for name in found.tasks]), found.surprise

    def example(row: int) -> ScoredExample:
        p_value = None if found.p_ratio is None else float(found.p_ratio[row])
        return ScoredExample(
            text=_text(sequences[row]),
            log_ratio=float(found.log_ratio[row]),
            surprise=float(surprise[row]),
            p_value=p_value,
            likeliest=found.likeliest[row],
        )

    for name, place in places.items():
        rows = np.flatnonzero(owner == place)
        order = rows[np.argsort(found.log_ratio[rows], kind="stable")]
        few = min(most, (len(order) + 1) // 2)
        surprising[name] = tuple(example(int(row)) for row in order[: min(few, len(order) // 2)])
        typical[name] = tuple(example(int(row)) for row in order[::-1][:few])
    odd = None if found.p_ratio is None else float((found.p_ratio <= 0.05).mean())
    return HeldOutScores(tuple(model.tasks_), typical, surprising, confusion, odd)


def _text(sequence: Any, longest: int = 80) -> str:
    """Letters together, words apart; of vectors, how many there are."""
    if isinstance(sequence, np.ndarray) and sequence.ndim > 1:
        return f"{len(sequence)} vectors"
    words = [str(each) for each in sequence]
    text = ("" if all(len(word) == 1 for word in words) else " ").join(words)
    return text if len(text) <= longest else text[: longest - 1] + "…"
