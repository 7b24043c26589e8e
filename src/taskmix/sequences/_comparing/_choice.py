"""How many generators: chosen by the likelihood of sequences that were held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from taskmix.errors import InputError
from taskmix.numerics import Interval, mean_interval, paired_interval
from taskmix.sequences._comparing._fitting import Fitting, fit_now
from taskmix.sequences._estimator import SequenceMixture, Tasks
from taskmix.sequences._generator import Floats
from taskmix.sequences._observed import learn_alphabet, number_tasks


@dataclass(frozen=True, eq=False)
class GeneratorChoice:
    """Held-out log-likelihoods for each number of generators.

    >>> GeneratorChoice((1, 2), best=2, smallest=1, scores=np.zeros((2, 9)), intervals=()).best
    2
    """

    counts: tuple[int, ...]
    best: int  # the number with the highest mean
    smallest: int  # the smallest number that the best cannot be told from
    scores: Floats  # [count, held-out sequence]
    intervals: tuple[Interval, ...]  # of the mean


def choose_generators(
    model: SequenceMixture,
    sequences: Sequence[Any],
    tasks: Tasks,
    counts: Sequence[int],
    *,
    folds: int = 3,
    on_progress: Callable[[str], None] | None = None,
    fitting: Fitting = fit_now,
) -> GeneratorChoice:
    """Fits the model with each number and scores every sequence once while it is held out.

    `fitting` is how: `RecordedFits` keeps what is done.

    >>> model = SequenceMixture(Markov(smoothing=0.1), alpha=0.1, n_init=1, random_state=0)
    >>> tasks = ["x"] * 4 + ["y"] * 4
    >>> choose_generators(model, ["aaaa"] * 4 + ["bbbb"] * 4, tasks, (1, 2), folds=2).best
    2
    """
    if not counts or min(counts) < 1:
        raise InputError(f"`counts` should be numbers of generators, from 1. Found {list(counts)}.")
    fold = hold_out(tasks, folds, np.random.default_rng(0))
    names, symbols = list(tasks), find_symbols(sequences, model)
    scores = np.full((len(counts), len(fold)), np.nan)
    for place, count in enumerate(counts):
        for number in range(folds):
            name = f"{count} generators, fold {number + 1} of {folds}"
            if on_progress is not None:
                on_progress(name)
            inside = np.flatnonzero(fold != number).tolist()
            outside = np.flatnonzero(fold == number).tolist()
            fitted = clone(model).set_params(n_generators=int(count), symbols=symbols)
            rest, rest_tasks = [sequences[row] for row in outside], [names[row] for row in outside]
            scores[place, outside] = fitting(
                name,
                fitted,
                [sequences[row] for row in inside],
                [names[row] for row in inside],
                partial(fitted.score_samples, rest, rest_tasks),
            )
    scores = scores[:, fold >= 0]  # a task's only sequence is never held out
    best = int(scores.mean(axis=1).argmax())
    told = [paired_interval(scores[best], row).low > 0 for row in scores]
    smallest = min(count for count, worse in zip(counts, told, strict=True) if not worse)
    intervals = tuple(mean_interval(row) for row in scores)
    return GeneratorChoice(tuple(counts), int(counts[best]), int(smallest), scores, intervals)


def find_symbols(sequences: Sequence[Any], model: SequenceMixture) -> Any:
    """All symbols that occur, so that a part of the sequences is not taken for the whole alphabet."""
    if model.symbols is not None or model.observes == "vectors":
        return model.symbols
    alphabet = learn_alphabet(sequences)
    if alphabet is not None:
        return alphabet.symbols
    return max((int(np.nanmax(np.asarray(each, np.float64))) for each in sequences), default=0) + 1


def hold_out(tasks: Tasks, folds: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """[sequence], so that every task has sequences left in every fold's rest."""
    _, codes = number_tasks(tasks)
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
