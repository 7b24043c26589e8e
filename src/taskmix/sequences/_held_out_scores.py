"""Held-out sequences by their scores: most and least like their task, whose they are taken for, and what
scores of a task's own sequences look like (`calibrate_scores`); and how alike tasks are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, ShapeError
from taskmix.sequences._choice import Fitting, fit_now
from taskmix.sequences._corpus import number_tasks
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._fitted import Tasks
from taskmix.sequences._generator import Floats, check_whole
from taskmix.sequences._scores import ScoreReference


@dataclass(frozen=True)
class ScoredExample:
    """A sequence with its scores against its task."""

    text: str
    log_ratio: float
    surprise: float  # negative log-likelihood of a symbol
    p_value: float | None  # of the ratio; None where the model is not calibrated
    likeliest: Hashable


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Sequences that were held out, scored against their tasks; see `score_held_out`."""

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


def calibrate_scores(
    model: SequenceMixture,
    sequences: Sequence[Any],
    tasks: Tasks,
    *,
    folds: int = 5,
    on_progress: Callable[[str], None] | None = None,
    fitting: Fitting = fit_now,
) -> ScoreReference:
    """Lets a fitted model give p-values: `sequences` and `tasks` are what it was fitted to.

    With `folds=0` they are others, which it has not seen, and are scored as they are. Otherwise the
    model is fitted again without each fold, and every sequence is scored by the model that has not
    seen it; a task's only sequence is left out. The scores are the model's `reference_` from then on.
    `fitting` is how: `RecordedFits` keeps what is done.

    >>> model = SequenceMixture(Markov(), 2, n_init=1, random_state=0)
    >>> sequences, tasks = ["aab", "aba"] * 10 + ["bbb", "bab"] * 10, ["x"] * 20 + ["y"] * 20
    >>> reference = calibrate_scores(model.fit(sequences, tasks), sequences, tasks)
    >>> bool(model.anomaly(["bbbbb"], ["x"])[0] < 0.1)
    True
    """
    names, codes = number_tasks(tasks)
    if folds == 0:
        ratio, surprise = _scores(model, sequences, tasks)
        model.reference_ = ScoreReference(names, codes, ratio, surprise)
        return model.reference_
    check_whole(2, folds=folds)
    fold = _hold_out(codes, folds, np.random.default_rng(0))
    scores = np.full((2, len(fold)), np.nan)
    for number in range(folds):
        name = f"calibration, fold {number + 1} of {folds}"
        if on_progress is not None:
            on_progress(name)
        inside = np.flatnonzero(fold != number).tolist()
        outside = np.flatnonzero(fold == number).tolist()
        if not outside:
            continue
        other = model.for_part()
        rest = [sequences[row] for row in outside]
        rest_tasks = [names[codes[row]] for row in outside]
        scores[:, outside] = fitting(
            name,
            other,
            [sequences[row] for row in inside],
            [names[codes[row]] for row in inside],
            partial(_scores, other, rest, rest_tasks),
        )
    kept = fold >= 0
    model.reference_ = ScoreReference(names, codes[kept], scores[0, kept], scores[1, kept])
    return model.reference_


def _hold_out(
    codes: NDArray[np.int64], folds: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """[sequence], so that every task has sequences left in every fold's rest; -1 for its only one."""
    fold = np.full(len(codes), -1)
    for task in np.unique(codes):
        rows = generator.permutation(np.flatnonzero(codes == task))
        if len(rows) > 1:
            fold[rows] = np.arange(len(rows)) % folds
    if (fold >= 0).sum() < folds:
        raise InputError(
            "Tasks should have at least two sequences to hold some out. Found almost none that do."
        )
    return fold


def _scores(model: SequenceMixture, sequences: Sequence[Any], tasks: Tasks) -> Floats:
    """[log-ratio and surprise, sequence]"""
    found = model.score_sequences(sequences, tasks)
    return np.array([found.log_ratio, found.surprise])


def task_similarity(theta: ArrayLike) -> Floats:
    r"""[task, task], the affinity $\sum_k \sqrt{\theta_{ik}\theta_{jk}}$ of Bhattacharyya (1943).

    One for equal shares, zero for tasks that have no generator in common; symmetric and positive
    semidefinite, so it serves as relatedness or as a kernel.

    >>> task_similarity([[1.0, 0.0], [0.36, 0.64]])
    array([[1. , 0.6],
           [0.6, 1. ]])
    """
    shares = np.asarray(theta, dtype=np.float64)
    if shares.ndim != 2 or (shares < 0).any() or not np.allclose(shares.sum(axis=1), 1.0):
        raise ShapeError(
            "`theta` should be [task, generator] with rows that sum to one. Found shape "
            f"{shares.shape}."
        )
    roots = np.sqrt(shares)
    return np.asarray(np.minimum(roots @ roots.T, 1.0))
