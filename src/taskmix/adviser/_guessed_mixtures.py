"""Guesses of what a mixture would give, from models that were trained alone.

The weighted mean of single-task models, with a mixture's shares as weights, is evaluated on dev: a
stand-in for the model that training on the mixture would give (after Ilharco et al., ICLR 2023, and
Wortsman et al., ICML 2022, who average such models). It is off by far in level, so guesses are corrected
by the mixtures that were really trained: their scores are regressed on their guesses, with a slope
that is shrunk as leaving one out says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.engine import Run, scores_of_mixtures
from taskmix.errors import ShapeError
from taskmix.records import Study
from taskmix.training import Score

Floats = NDArray[np.float64]
SLOPES = (
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
)  # parts of the fitted slope: with few mixtures it is mostly noise


@dataclass(frozen=True, kw_only=True)
class GuessedMixture:
    """Shares, and the mean dev score that is guessed for training with them.

    >>> GuessedMixture(shares=(0.5, 0.5), score=0.8, error=0.02).error
    0.02
    """

    shares: tuple[float, ...]  # in the order of the tasks
    score: float
    error: float  # root mean square over trained mixtures, each left out in turn; NaN with fewer than 3


def guess_mixtures(
    merged: Sequence[Run],  # a run a seed, with the runs of single tasks as its sources
    study: Study,
    mixtures: Floats,  # [mixture, task], shares in the order of the runs' tasks
    trained: Floats,  # [mixture, task], of those that were really trained
    scores: Floats,  # [mixture], that came of them
    *,
    mean: Callable[[Sequence[Score]], float],  # one number of the dev scores of a model
) -> list[GuessedMixture]:
    """What training on mixtures would give, the best first; nothing is trained for it.

    >>> guess_mixtures([run], study, mixtures, trained, scores, mean=mean)  # doctest: +SKIP
    """
    if mixtures.ndim != 2 or trained.ndim != 2 or len(trained) != len(scores):
        raise ShapeError(
            "Mixtures should be rows of shares, and those that were trained should have a score each. "
            f"Found the shapes {mixtures.shape}, {trained.shape} and {scores.shape}."
        )
    asked = np.concatenate([trained, mixtures])
    found = np.mean([_guess(run, study, asked, mean) for run in merged], axis=0)
    corrected, error = corrected_guesses(found[: len(trained)], scores, found[len(trained) :])
    order = np.argsort(-corrected, kind="stable")
    return [
        GuessedMixture(
            shares=tuple(mixtures[place].tolist()), score=float(corrected[place]), error=error
        )
        for place in order
    ]


def _guess(
    run: Run, study: Study, mixtures: Floats, mean: Callable[[Sequence[Score]], float]
) -> Floats:
    names = run.load().names
    columns = [names.index(source.load().names[0]) for source in run.sources]
    rows: list[list[float]] = mixtures[:, columns].tolist()
    return np.array([mean(some) for some in scores_of_mixtures(run, study, rows)])


def corrected_guesses(guesses: Floats, scores: Floats, asked: Floats) -> tuple[Floats, float]:
    """Guesses as scores, by a line through what is known; and the line's error, leaving one out.

    Of fewer than three the line has a slope of 1, and no error is known.
    """
    if len(guesses) < 3:
        shift = float(np.mean(scores - guesses)) if len(guesses) else 0.0
        return asked + shift, float("nan")
    errors = []
    for share in SLOPES:
        misses = []
        for place in range(len(guesses)):
            left = np.arange(len(guesses)) != place
            misses.append(_line(guesses[left], scores[left], share)(guesses[place]) - scores[place])
        errors.append(float(np.sqrt(np.mean(np.square(misses)))))
    best = int(np.argmin(errors))
    return _line(guesses, scores, SLOPES[best])(asked), errors[best]


def _line(guesses: Floats, scores: Floats, share: float) -> Callable[[Floats], Floats]:
    """Least squares with a part of the slope; a slope below 0 counts as 0."""
    center, spread = guesses.mean(), float(np.sum((guesses - guesses.mean()) ** 2))
    slope = float(np.sum((guesses - center) * (scores - scores.mean()))) / max(spread, 1e-12)
    slope = share * max(slope, 0.0)
    return lambda values: scores.mean() + slope * (values - center)
