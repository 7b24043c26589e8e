r"""Who will help a task that was never trained: from what tasks are like, before any run of it.

The gains between known tasks are regressed, by ridge, on three things that are also known of a new
target t: the mean gain that source s gave the other targets, and the cosine and the distance between
the features of t and s (`task_features`, or others), each feature in standard units.

What that is worth is measured by leaving every task out in turn, as target and as source, and predicting
its gains from the others. The rank correlation of predicted with measured gains, over the sources of a
left-out target, is averaged over targets; unless its one-sided 95 % interval lies above zero, the answer
is "cannot tell". Half the width of intervals is the quantile of the left-out errors (split conformal
prediction: Vovk, Gammerman and Shafer, 2005), with errors of one target not independent, so coverage is
approximate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, ShapeError
from taskmix.numerics import check_level
from taskmix.tasks import Task
from taskmix.transfer._document import TransferDocument
from taskmix.transfer._features import task_features


@dataclass(frozen=True)
class NewSource:
    """What a known task is predicted to do for a new one; above zero is help."""

    source: str
    gain: float
    low: float
    high: float
    answer: Literal["helps", "harms", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class NewTaskAnswer:
    """Who will help a task that was never trained, and what that is worth."""

    task: str
    sources: tuple[NewSource, ...]  # the best first
    correlation: float  # of ranks, of predicted with measured gains of known tasks left out
    coverage: float  # of their gains by the intervals
    tells: bool  # whether that correlation is significantly above zero (one-sided 95 %)


def answer_for_new_tasks(
    document: TransferDocument,
    known: Sequence[Task],
    new: Sequence[Task],
    *,
    model: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[NewTaskAnswer, ...]:
    """Predicts what each known task would do for each new one; trains nothing.

    `document` is of a study with all known tasks as targets, and `model` a pretrained one that reads
    texts, to compare them by; `on_progress` hears how many rows it has read, of how many.

    >>> import pyarrow as pa
    >>> from taskmix.tasks import tables_as_tasks
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> tasks = tables_as_tasks({name: rows for name in "abcdef"})
    >>> names = tasks.names[:5]
    >>> targets = [
    ...     TargetRow(
    ...         target=name, higher_is_better=False, alone=0.8, alone_runs=10, alone_deviation=0.02,
    ...         subsets=30, subset_runs=30, noise=0.03, chosen=(),
    ...         sources=tuple(
    ...             SourceRow(
    ...                 source=other, gain=0.1, low=0.0, high=0.2, p_value=0.1, verdict="cannot tell",
    ...                 relative_gain=0.0, relative_low=-0.1, relative_high=0.1)
    ...             for other in names if other != name))
    ...     for name in names]
    >>> document = TransferDocument(
    ...     command="taskmix transfer known/ --all", outcome="loss", measure="loss",
    ...     budget="per-task", steps=100, design=UsedDesign(), runs=60,
    ...     tasks=names, targets=tuple(targets), groups=())
    >>> answer = answer_for_new_tasks(document, tasks[:5], tasks[5:])[0]
    >>> answer.task, answer.sources[0].answer  # the known tasks are all alike
    ('f', 'cannot tell')
    """
    names = [task.name for task in known]
    if sorted(names) != sorted(document.tasks):
        raise InputError(
            f"The known tasks should be those of the study, {', '.join(document.tasks)}. Found "
            f"{', '.join(names)}. Name the folder that the study was made from, with the same options."
        )
    if both := [task.name for task in new if task.name in names]:
        raise InputError(
            f"A new task should not be one of the study. Found {', '.join(both)}, which "
            "it has measured. Leave it out, or rename it."
        )
    told = document.gains
    if len(told) < FEWEST_TASKS:
        raise InputError(
            f"The study should tell of {FEWEST_TASKS} targets or more. Found {len(told)}. Make one of "
            "all tasks as targets."
        )
    gains = np.array(
        [[told.get(target, {}).get(source, np.nan) for source in names] for target in names]
    )
    features, asked = task_features(known, new, model=model, on_progress=on_progress)
    answers = []
    for task, row in zip(new, asked, strict=True):
        found = predict_transfer(gains, features, row, tasks=names)
        rows = zip(found.sources, found.gains.tolist(), found.answers(), strict=True)
        sources = [
            NewSource(name, gain, gain - found.half_width, gain + found.half_width, answer)
            for name, gain, answer in rows
        ]
        answers.append(
            NewTaskAnswer(
                task=task.name,
                sources=tuple(sorted(sources, key=lambda each: -each.gain)),
                correlation=found.correlation,
                coverage=found.coverage,
                tells=found.tells,
            )
        )
    return tuple(answers)


RIDGE = 1.0  # of standardised regressors; without it few tasks give wild coefficients
FEWEST_TASKS = 5  # with fewer, a left-out target has too few sources for a rank correlation


@dataclass(frozen=True, kw_only=True)
class UnseenTransfer:
    """Predicted gains of a new task from known sources; above zero is help."""

    sources: tuple[str, ...]
    gains: NDArray[np.float64]  # [source]
    half_width: float  # of the interval of each gain
    correlations: NDArray[np.float64]  # [known task], Spearman's when it was left out
    coverage: float  # of left-out gains by intervals from the errors of the other tasks
    tells: bool  # whether left-out tasks were predicted better than by chance

    @property
    def correlation(self) -> float:
        """The mean over left-out tasks."""
        return float(np.nanmean(self.correlations))

    def answers(self) -> tuple[Literal["helps", "harms", "cannot tell"], ...]:
        """[source]: `helps`, `harms` or `cannot tell`."""
        return tuple(
            "cannot tell"
            if not self.tells or abs(gain) <= self.half_width
            else "helps"
            if gain > 0
            else "harms"
            for gain in self.gains.tolist()
        )


def predict_transfer(
    gains: ArrayLike,  # [target, source], measured between known tasks; the diagonal is not read
    features: ArrayLike,  # [task, feature], of the known tasks
    new: ArrayLike,  # [feature], of the new task
    *,
    tasks: Sequence[str],
    level: float = 0.95,
) -> UnseenTransfer:
    """Predicts which of the known tasks will help a new one.

    >>> where = np.array([0.0, 0.1, 0.2, 2.0, 2.1, 2.2])[:, None]  # two kinds of tasks
    >>> gains = 1 - np.abs(where - where.T)  # those of a kind help each other
    >>> found = predict_transfer(gains, where, [0.15], tasks=list("abcdef"))
    >>> bool(found.gains[:3].min() > found.gains[3:].max()), found.tells
    (True, True)
    """
    check_level(level)
    known, like = np.asarray(gains, dtype=np.float64), np.asarray(features, dtype=np.float64)
    asked = np.asarray(new, dtype=np.float64)
    count = len(tasks)
    if known.shape != (count, count) or like.ndim != 2 or len(like) != count:
        raise ShapeError(
            f"`gains` should be [task, task] and `features` [task, feature] with the {count} tasks. "
            f"Found shapes {known.shape} and {like.shape}."
        )
    if asked.shape != like.shape[1:]:
        raise ShapeError(
            f"`new` should have the {like.shape[1]} features of the known tasks. Found shape "
            f"{asked.shape}."
        )
    if count < FEWEST_TASKS:
        raise InputError(
            f"There should be {FEWEST_TASKS} known tasks or more. Found {count}. Measure more."
        )
    predicted = np.full((count, count), np.nan)
    for task in range(count):
        rest = np.arange(count) != task
        predicted[task, rest] = _predict(known[np.ix_(rest, rest)], like[rest], like[task])
    off = ~np.eye(count, dtype=np.bool_) & np.isfinite(known)
    errors = np.where(off, np.abs(predicted - known), np.nan)
    correlations = np.array(
        [_spearman(predicted[t][off[t]], known[t][off[t]]) for t in range(count)]
    )
    covered = [
        errors[task][off[task]] <= _quantile(errors[np.arange(count) != task], level)
        for task in range(count)
    ]
    return UnseenTransfer(
        sources=tuple(tasks),
        gains=_predict(known, like, asked),
        half_width=_quantile(errors, level),
        correlations=correlations,
        coverage=float(np.concatenate(covered).mean()),
        tells=_is_positive(correlations),
    )


def _predict(
    gains: NDArray[np.float64], features: NDArray[np.float64], new: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[source], of a target that is not among the tasks."""
    count = len(gains)
    spread = features.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    here = (features - features.mean(axis=0)) / scale
    there = (new - features.mean(axis=0)) / scale
    rows, wanted = [], []
    off = ~np.eye(count, dtype=np.bool_) & np.isfinite(gains)
    for target in range(count):
        # A source's mean over the other targets, as it will be for a new one.
        others = off & (np.arange(count) != target)[:, None]
        usual = _source_means(gains, others)
        places = np.flatnonzero(off[target])
        rows.append(_regressors(usual, here, here[target])[places])
        wanted.append(gains[target, places])
    design, values = np.concatenate(rows), np.concatenate(wanted)
    centre, width = design.mean(axis=0), design.std(axis=0)
    width = np.where(width > 0, width, 1.0)
    scaled = (design - centre) / width
    slope = np.linalg.solve(
        scaled.T @ scaled + RIDGE * np.eye(scaled.shape[1]), scaled.T @ (values - values.mean())
    )
    asked = (_regressors(_source_means(gains, off), here, there) - centre) / width
    return np.asarray(values.mean() + asked @ slope)


def _source_means(gains: NDArray[np.float64], used: NDArray[np.bool_]) -> NDArray[np.float64]:
    counts = used.sum(axis=0)
    return np.asarray(np.where(used, gains, 0.0).sum(axis=0) / np.maximum(counts, 1))


def _regressors(
    usual: NDArray[np.float64], sources: NDArray[np.float64], target: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[source, regressor]."""
    lengths = np.linalg.norm(sources, axis=1) * np.linalg.norm(target)
    cosine = sources @ target / np.where(lengths > 0, lengths, 1.0)
    distance = np.linalg.norm(sources - target, axis=1) / np.sqrt(sources.shape[1])
    return np.column_stack([usual, cosine, distance])


def _spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    from scipy.stats import spearmanr

    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return np.nan
    return float(spearmanr(one, other).statistic)


def _quantile(errors: NDArray[np.float64], level: float) -> float:
    known = np.sort(errors[np.isfinite(errors)])
    place = int(np.ceil((len(known) + 1) * level)) - 1
    return float(known[min(place, len(known) - 1)])


def _is_positive(values: NDArray[np.float64]) -> bool:
    """Whether the mean is significantly above zero, one-sided at 5 %."""
    from scipy.stats import ttest_1samp

    known = values[np.isfinite(values)]
    if len(known) < 3:
        return False
    if np.ptp(known) == 0:
        return bool(known[0] > 0)
    return bool(ttest_1samp(known, 0.0, alternative="greater").pvalue < 0.05)
