"""Metrics by name, from what a head gives to one number.

A classifier's outputs are logits [row, class], a regressor's are values [row]; of what a model writes
there are sums and texts (`_written.py`). Where rows have several labels, the targets are marks
[row, label] beside logits of the same shape (`_label_sets.py`). Rows whose target is
`MISSING` or NaN are left out. Every metric is a fraction or in the unit of the target, never a
percentage. Where a metric is not defined it is one of these, so that a run goes on:

| case                                                     | value |
|----------------------------------------------------------|-------|
| no row has a target, or an output is NaN                 | NaN   |
| `bits_per_byte`: a text without a byte                   | NaN   |
| `pearson`, `spearman`: predictions or targets constant   | 0     |
| `matthews`: predictions or targets of one class          | 0     |
| `f1`, `micro_f1`, `macro_f1`, `entity_f1`: nothing right | 0     |
| `auc`: no class has both positive and negative rows      | NaN   |
| `average_precision`: the same                            | NaN   |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError, ShapeError
from taskmix.tasks._scoring import _label_sets as sets
from taskmix.tasks._scoring._entities import entity_counts, keep_offsets
from taskmix.tasks._scoring._ranking import area_of_ranks, precision_of_ranks
from taskmix.tasks._scoring._written import (
    WrittenText,
    bits_per_byte,
    exact_match,
    rouge_l,
    token_accuracy,
    word_f1,
)
from taskmix.tasks._task import MISSING

Needs = Literal["classes", "scores", "sets", "values", "tags", "pieces", "answers"]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Outputs beside their targets; rows without a target are gone."""

    outputs: NDArray[np.float64]  # [row, class], logits, or [row], values or classes
    targets: NDArray[Any]  # [row], or marks [row, label] where a row has several labels
    labels: tuple[str, ...] = ()
    sentences: NDArray[np.int64] | None = None  # [sentence + 1], where rows are tokens

    @property
    def are_sets(self) -> bool:
        """Whether a row may have several labels."""
        return self.targets.ndim == 2

    @property
    def are_sound(self) -> bool:
        """Whether there is something to score, and no output is NaN."""
        return len(self.targets) > 0 and not np.isnan(self.outputs).any()

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """[row], the class with the largest logit; the first of equals."""
        found = self.outputs if self.outputs.ndim == 1 else self.outputs.argmax(axis=1)
        return np.asarray(found, dtype=np.int64)

    @cached_property
    def log_probabilities(self) -> NDArray[np.float64]:
        """[row, class]"""
        shifted = self.outputs - self.outputs.max(axis=1, keepdims=True)
        result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return result

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """[3, class], how many rows have a class, are taken for it, and both."""
        right = self.targets[self.classes == self.targets]
        sides = (self.targets, self.classes, right)
        return np.stack([np.bincount(rows, minlength=len(self.labels)) for rows in sides])


@dataclass(frozen=True)
class Metric:
    """A name, what it is computed from, and the direction in which it improves."""

    name: str
    higher_is_better: bool
    needs: Needs
    compute: Callable[[Any], float]  # of `ScoredRows`, or of `WrittenText`
    # Of logits and marks [row, label], where rows may have several labels; None: not defined for them.
    of_sets: Callable[[NDArray[Any], NDArray[Any]], float] | None = None

    @property
    def is_of_sets(self) -> bool:
        """Whether it can score tasks in which a row may have several labels."""
        return self.of_sets is not None

    @property
    def is_of_text(self) -> bool:
        """Whether it scores text that a model writes."""
        return self.needs in ("pieces", "answers")


def evaluate_outputs(
    metric: str,
    *,
    # Logits [row, class] or [row, word, class]; values [row] or [row, 1]. Of a metric that needs no more
    # also the classes themselves, [row].
    outputs: NDArray[Any],
    targets: NDArray[Any],  # [row], [row, word], or [row, class] beside logits of that shape
    labels: tuple[str, ...] = (),
    sentences: NDArray[Any] | None = None,  # [sentence + 1], where every token is a row
) -> float:
    """The metric of that name. Where `targets` is [row, word], each row is a sentence; where it has the
    shape of `outputs`, it marks which of the labels a row has.

    >>> logits, targets = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0]]), np.array([0, 1, 1])
    >>> round(evaluate_outputs("accuracy", outputs=logits, targets=targets, labels=("no", "yes")), 4)
    0.6667
    >>> evaluate_outputs("rmse", outputs=np.array([1.0, 5.0]), targets=np.array([3.0, 3.0]))
    2.0
    >>> marks = np.array([[1, 0], [0, 0], [0, 1]])  # the last row's label is not found
    >>> logits = np.array([[2.0, -1.0], [-3.0, -1.0], [-1.0, -0.5]])
    >>> round(evaluate_outputs("micro_f1", outputs=logits, targets=marks, labels=("a", "b")), 4)
    0.6667
    """
    rows, _ = scored_rows(metric, outputs, targets, labels, sentences)
    if not rows.are_sound:
        return float("nan")
    chosen = find_metric(metric)
    if rows.are_sets and chosen.of_sets is not None:
        return float(chosen.of_sets(rows.outputs, rows.targets))
    return float(chosen.compute(rows))


def scored_rows(
    metric: str,
    outputs: NDArray[Any],
    targets: NDArray[Any],
    labels: tuple[str, ...],
    sentences: NDArray[Any] | None,
) -> tuple[ScoredRows, NDArray[np.bool_]]:
    """The rows that a metric counts, words as rows of their own, and [row or word] which these are."""
    chosen = find_metric(metric)
    if labels and targets.ndim == 2 and outputs.shape == targets.shape:
        return _scored_sets(chosen, outputs, targets, labels)
    if (chosen.needs == "values") == bool(labels) or chosen.is_of_text or chosen.needs == "sets":
        has = f"{len(labels)} classes" if labels else "no classes"
        fitting = [
            m.name
            for m in METRICS.values()
            if (m.needs == "values") != bool(labels) and not m.is_of_text and m.needs != "sets"
        ]
        if chosen.needs == "sets":
            raise OptionError(
                f"`{metric}` should be asked of a task in which a row may have several labels. Found "
                f"one with {has}. Choose one of {', '.join(fitting)}."
            )
        if chosen.is_of_text:
            raise OptionError(
                f"`{metric}` should be asked of a task in which text is written. Found one with {has}. "
                f"Choose one of {', '.join(fitting)}."
            )
        raise OptionError(
            f"`{metric}` should be asked of a task {'without' if labels else 'with'} classes. "
            f"Found one with {has}. Choose one of {', '.join(fitting)}."
        )
    width = (len(labels),) if labels else ()
    if not labels and outputs.ndim == targets.ndim + 1 and outputs.shape[-1] == 1:
        outputs = outputs[..., 0]
    are_classes = chosen.needs == "classes" and outputs.shape == targets.shape == (len(targets),)
    if outputs.shape != (*targets.shape, *width) and not are_classes:
        raise ShapeError(
            f"`outputs` should have the shape {(*targets.shape, *width)}: one "
            f"{'logit for each class' if labels else 'value'} beside each target. "
            f"Found {outputs.shape}."
        )
    if targets.ndim == 2:
        rows, words = targets.shape
        sentences = np.arange(rows + 1) * words
        outputs, targets = outputs.reshape(rows * words, *width), targets.reshape(rows * words)
    kept = targets != MISSING if labels else ~np.isnan(targets)
    if sentences is not None:
        sentences = keep_offsets(np.asarray(sentences), kept)
    outputs, targets = outputs[kept].astype(np.float64), targets[kept]
    return ScoredRows(outputs, targets, labels, sentences), kept


def _scored_sets(
    chosen: Metric, outputs: NDArray[Any], targets: NDArray[Any], labels: tuple[str, ...]
) -> tuple[ScoredRows, NDArray[np.bool_]]:
    if not chosen.is_of_sets:
        fitting = [m.name for m in METRICS.values() if m.is_of_sets]
        raise OptionError(
            f"`{chosen.name}` should be asked of a task with one answer a row. Found one in which a row "
            f"may have several labels. Choose one of {', '.join(fitting)}."
        )
    kept: NDArray[np.bool_] = (targets != MISSING).any(axis=1)
    return ScoredRows(outputs[kept].astype(np.float64), targets[kept], labels), kept


def evaluate_written(metric: str, text: WrittenText) -> float:
    """The metric of that name for text that a model wrote, or was asked for piece by piece.

    >>> text = WrittenText(rows=1, answers=(("The old cat", "an old dog"),))
    >>> evaluate_written("word_f1", text)  # one of two words, without the articles
    0.5
    """
    chosen = find_metric(metric)
    if not chosen.is_of_text:
        fitting = [name for name, each in METRICS.items() if each.is_of_text]
        raise OptionError(
            f"`{metric}` should be asked of a task with classes or numbers. Found one in which text is "
            f"written. Choose one of {', '.join(fitting)}."
        )
    return float(chosen.compute(text))


def find_metric(name: str) -> Metric:
    """The metric of that name; `f1+accuracy` is the mean of the two, as GLUE scores some tasks.

    >>> find_metric("f1+accuracy").name
    'f1+accuracy'
    >>> find_metric("acuracy")
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `acuracy` should be the name of a metric. The ...
    """
    if "+" in name:
        parts = [find_metric(part) for part in name.split("+")]
        of_sets_only = any(p.needs == "sets" for p in parts)
        mixed = of_sets_only and not all(p.is_of_sets for p in parts)
        if (
            mixed
            or len({(p.higher_is_better, p.needs == "values", p.is_of_text) for p in parts}) > 1
        ):
            raise OptionError(
                f"The metrics of a mean should improve in the same direction and be asked of the "
                f"same kind of task. Found `{name}`."
            )
        needs = parts[0].needs
        for decisive in ("answers", "sets", "scores"):
            needs = next((part.needs for part in parts if part.needs == decisive), needs)
        of_sets = [part.of_sets for part in parts if part.of_sets is not None]
        return Metric(
            name,
            parts[0].higher_is_better,
            needs,
            lambda rows: float(np.mean([part.compute(rows) for part in parts])),
            (lambda outputs, marks: float(np.mean([each(outputs, marks) for each in of_sets])))
            if len(of_sets) == len(parts)
            else None,
        )
    if name not in METRICS:
        raise OptionError(
            f"`{name}` should be the name of a metric. The metrics are {', '.join(METRICS)}. "
            "Check the spelling."
        )
    return METRICS[name]


def _accuracy(rows: ScoredRows) -> float:
    return float((rows.classes == rows.targets).mean())


def _f1(rows: ScoredRows) -> float:
    # Of the second class, the one that is looked for.
    if len(rows.labels) < 2:
        return 0.0
    true, predicted, right = rows.counts[:, 1]
    return float(2 * right / (true + predicted)) if true + predicted else 0.0


def _macro_f1(rows: ScoredRows) -> float:
    # The mean over the classes that occur, in the targets or among the predictions.
    true, predicted, right = rows.counts
    sizes = true + predicted
    return float((2 * right[sizes > 0] / sizes[sizes > 0]).mean())


def _matthews(rows: ScoredRows) -> float:
    # For any number of classes: Gorodkin, Computational Biology and Chemistry 28 (2004), Eq. 8.
    true, predicted, right = rows.counts.astype(np.float64)
    total = true.sum()
    spread = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    if spread == 0:
        return 0.0
    return float((right.sum() * total - true @ predicted) / np.sqrt(spread))


def _correlation(first: NDArray[Any], second: NDArray[Any]) -> float:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    # Scaled by the largest deviation first: squares of tiny or huge values stay in range. Centred
    # twice: the mean of values that are large and close together is rounded.
    a, b = first - first.mean(), second - second.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def _pearson(rows: ScoredRows) -> float:
    return _correlation(rows.outputs, rows.targets.astype(np.float64))


def _spearman(rows: ScoredRows) -> float:
    from scipy.stats import rankdata

    return _correlation(rankdata(rows.outputs), rankdata(rows.targets))


def _entity_f1(rows: ScoredRows) -> float:
    return entity_counts(rows.classes, rows.targets, rows.labels, rows.sentences).f1


def _auc(rows: ScoredRows) -> float:
    return _ranked(rows, area_of_ranks)


def _average_precision(rows: ScoredRows) -> float:
    return _ranked(rows, precision_of_ranks)


def _ranked(rows: ScoredRows, area: Callable[[NDArray[Any], NDArray[np.bool_]], float]) -> float:
    # Two classes: the second against the first. More: the mean of each against the rest (macro
    # one-vs-rest), over the classes for which there is something to rank.
    if len(rows.labels) == 2:  # by the difference of logits, which does not saturate
        return area(rows.outputs[:, 1] - rows.outputs[:, 0], rows.targets == 1)
    areas = [
        area(rows.log_probabilities[:, label], rows.targets == label)
        for label in range(rows.outputs.shape[1])
    ]
    defined = [area for area in areas if not np.isnan(area)]
    return float(np.mean(defined)) if defined else float("nan")


def _rmse(rows: ScoredRows) -> float:
    return float(np.sqrt(np.mean((rows.outputs - rows.targets) ** 2)))


def _log_loss(rows: ScoredRows) -> float:
    return float(-rows.log_probabilities[np.arange(len(rows.targets)), rows.targets].mean())


def _not_one_label(rows: ScoredRows) -> float:
    raise AssertionError("of one label a row, micro F1 is accuracy")


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("accuracy", True, "classes", _accuracy, sets.subset_accuracy),
            Metric("f1", True, "classes", _f1),
            Metric("micro_f1", True, "sets", _not_one_label, sets.micro_f1),
            Metric("macro_f1", True, "classes", _macro_f1, sets.macro_f1),
            Metric("matthews", True, "classes", _matthews),
            Metric("pearson", True, "values", _pearson),
            Metric("spearman", True, "values", _spearman),
            Metric("entity_f1", True, "tags", _entity_f1),
            Metric("auc", True, "scores", _auc, sets.auc),
            Metric("average_precision", True, "scores", _average_precision, sets.average_precision),
            Metric("rmse", False, "values", _rmse),
            Metric("log_loss", False, "scores", _log_loss, sets.log_loss),
            Metric("exact_match", True, "pieces", exact_match),
            Metric("token_accuracy", True, "pieces", token_accuracy),
            Metric("word_f1", True, "answers", word_f1),
            Metric("rouge_l", True, "answers", rouge_l),
            Metric("bits_per_byte", False, "pieces", bits_per_byte),
        )
    }
)
