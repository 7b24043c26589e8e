"""What scores of a task's own sequences look like: each scored while it was held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.sequences._comparing._fitting import Fitting, fit_now
from taskmix.sequences._estimator import ScoreReference, SequenceMixture, Tasks
from taskmix.sequences._generator import Floats, check_whole
from taskmix.sequences._observed import number_tasks


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
