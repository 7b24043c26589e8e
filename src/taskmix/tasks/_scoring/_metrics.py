"""Metrics by name, from what a head gives to one number, and what each row adds to it.

Two models that are scored on the same rows share what is easy and what is hard in these rows, so the
error of their difference is found row by row: it is that of the mean of the differences of credits,
which are the value plus the influence of each row on it (`_influence.py`).

A classifier's outputs are logits [row, class], a regressor's are values [row]; of what a model writes
there are sums and texts (`_written.py`). Where rows have several labels, the targets are marks
[row, label] beside logits of the same shape. Rows whose target is
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

The metric of classes where nobody has named one: accuracy, unless a constant answer is nearly right.

Of two classes with one in twenty rows, "no" to everything has accuracy 0.95, and all that is learned
shows in the digits after it. The area under the ROC curve asks whether the rare rows rank above the
others, whatever their share. Of many classes macro-F1 counts each of them alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError, ShapeError
from taskmix.tasks._scoring._entities import keep_offsets, sentence_chunks
from taskmix.tasks._scoring._influence import OF_ROWS, OF_SETS, Moves, ScoredRows, Values, ratio_of
from taskmix.tasks._scoring._written import OF_TEXT, WrittenText
from taskmix.tasks._task import MISSING

Needs = Literal["classes", "scores", "sets", "values", "tags", "pieces", "answers"]


@dataclass(frozen=True)
class Metric:
    """A name, what it is computed from, and the direction in which it improves."""

    name: str
    higher_is_better: bool
    needs: Needs
    is_of_sets: bool  # whether it can score tasks in which a row may have several labels

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
    rows, _ = _scored_rows(metric, outputs, targets, labels, sentences)
    if not rows.are_sound:
        return float("nan")
    return float(np.mean([_moves(name, rows)[0] for name in metric.split("+")]))


def _scored_rows(
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


def row_credits(
    metric: str,
    *,
    outputs: NDArray[Any],  # logits [row, class] or [row, word, class]; values [row] or [row, 1]
    targets: NDArray[Any],  # [row] or [row, word]
    labels: tuple[str, ...] = (),
    sentences: NDArray[Any] | None = None,  # [sentence + 1], where every token is a row
) -> Values:
    """What each row, or each sentence, adds to `evaluate_outputs`: values whose mean is the metric.

    A row without a target has NaN, so that the places of two models' rows are the same; all of them
    have where the metric itself is NaN.

    >>> logits, targets = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0]]), np.array([0, 1, 1])
    >>> row_credits("accuracy", outputs=logits, targets=targets, labels=("no", "yes")).tolist()
    [1.0, 1.0, 0.0]
    >>> row_credits("rmse", outputs=np.array([1.0, 4.0]), targets=np.array([3.0, 4.0])).round(3).tolist()
    [2.121, 0.707]
    """
    rows, kept = _scored_rows(metric, outputs, targets, labels, sentences)
    units = kept if rows.sentences is None else np.diff(rows.sentences) > 0
    found = np.full(len(units), np.nan)
    if rows.are_sound:
        found[units] = np.mean([_credits(each, rows, units) for each in metric.split("+")], axis=0)
    return found


def _moves(metric: str, rows: ScoredRows) -> Moves:
    """The value, and the influence of each row, or of entities of each sentence."""
    if rows.are_sets:
        return OF_SETS[metric](rows.outputs, rows.targets)
    if metric == "entity_f1":
        right, chunks = sentence_chunks(rows.classes, rows.targets, rows.labels, rows.sentences)
        return ratio_of(2 * right, chunks)
    return OF_ROWS[metric](rows)


def _credits(metric: str, rows: ScoredRows, units: NDArray[np.bool_]) -> Values:
    """Of each row, or of each sentence that has words to score."""
    value, influence = _moves(metric, rows)
    if metric == "entity_f1" and rows.sentences is None:
        # All of it is one sentence: no row has a share of its own.
        influence = np.zeros(len(rows.targets))
    elif metric == "entity_f1":  # an empty sentence has no part in it
        influence = influence[units] * (units.sum() / len(units))
    elif rows.sentences is not None:
        # The influence of a sentence is the sum of those of its words.
        sums = np.add.reduceat(influence, rows.sentences[:-1][units])
        influence = sums * (units.sum() / len(influence))
    return value + influence


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
    return float(np.mean([OF_TEXT[name](text) for name in metric.split("+")]))


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
        is_of_sets = all(part.is_of_sets for part in parts)
        return Metric(name, parts[0].higher_is_better, needs, is_of_sets)
    if name not in METRICS:
        raise OptionError(
            f"`{name}` should be the name of a metric. The metrics are {', '.join(METRICS)}. "
            "Check the spelling."
        )
    return METRICS[name]


_KNOWN: tuple[tuple[str, bool, Needs], ...] = (
    ("accuracy", True, "classes"),
    ("f1", True, "classes"),
    ("micro_f1", True, "sets"),  # of one label a row it is accuracy
    ("macro_f1", True, "classes"),
    ("matthews", True, "classes"),
    ("pearson", True, "values"),
    ("spearman", True, "values"),
    ("entity_f1", True, "tags"),
    ("auc", True, "scores"),
    ("average_precision", True, "scores"),
    ("rmse", False, "values"),
    ("log_loss", False, "scores"),
    ("exact_match", True, "pieces"),
    ("token_accuracy", True, "pieces"),
    ("word_f1", True, "answers"),
    ("rouge_l", True, "answers"),
    ("bits_per_byte", False, "pieces"),
)
METRICS: Mapping[str, Metric] = MappingProxyType(
    {name: Metric(name, higher, needs, name in OF_SETS) for name, higher, needs in _KNOWN}
)


def written_credits(
    metric: str,
    *,
    loss: NDArray[Any],  # [row], minus the logarithm of the probability of its pieces
    right: NDArray[Any],  # [row], pieces that were the first choice
    pieces: NDArray[Any],  # [row]
    sizes: NDArray[Any] | None = None,  # [row], the bytes that its pieces spell
    answers: Sequence[tuple[str, str]] = (),  # [row], the model's and the true one
) -> NDArray[np.float64]:
    """What each row adds to `evaluate_written`: values whose mean is the metric; NaN without pieces.

    >>> loss, right, pieces = np.array([0.1, 2.0]), np.array([2, 1]), np.array([2, 2])
    >>> written_credits("exact_match", loss=loss, right=right, pieces=pieces).tolist()
    [1.0, 0.0]
    """
    known = pieces > 0
    found = np.full(len(pieces), np.nan)
    if np.isnan(loss).any():
        return found

    def of_metric(name: str) -> NDArray[np.float64]:
        if name == "exact_match":
            return np.asarray((right == pieces)[known], dtype=np.float64)
        if name == "bits_per_byte" and (sizes is None or sizes[known].sum() == 0):
            return np.full(known.sum(), np.nan)
        ratios = {"token_accuracy": (right, pieces), "loss": (loss, pieces)}
        ratios["bits_per_byte"] = (loss / math.log(2), pieces if sizes is None else sizes)
        if name in ratios:
            value, influence = ratio_of(*(each[known] for each in ratios[name]))
            return value + influence
        alone = (
            WrittenText(answers=(pair,))
            for pair, is_known in zip(answers, known, strict=True)
            if is_known
        )
        return np.array([evaluate_written(name, text) for text in alone])

    found[known] = np.mean([of_metric(name) for name in metric.split("+")], axis=0)
    return found


RARE = 0.2  # of the rows, of two classes: below it a constant answer has four fifths of the scale
TIMES_EVEN = 2.0  # even shares, of many classes: from here on the commonest class decides accuracy
CONSTANT = 0.2  # accuracy of a constant answer: one that has less misleads nobody
FEWEST_ROWS = 30  # with a label: the shares of fewer are chance


def metric_of_imbalance(labels: tuple[str, ...], targets: Mapping[str, NDArray[Any]]) -> str | None:
    """The metric that the shares of the classes ask for; None where accuracy will do.

    `targets` are those of each split. Two classes that are not both in every split have no area.

    >>> metric_of_imbalance(("no", "yes"), {"train": np.arange(100) < 6})
    'auc'
    """
    if "train" not in targets or len(labels) < 2:
        return None
    counts = {split: count_classes(values, len(labels)) for split, values in targets.items()}
    train = counts["train"]
    if train.sum() < FEWEST_ROWS:
        return None
    if len(labels) == 2:
        both = all(each.min() > 0 for split, each in counts.items() if each.sum())
        return "auc" if both and train.min() < RARE * train.sum() else None
    constant = train.max() / train.sum()
    return "macro_f1" if constant >= max(TIMES_EVEN / (train > 0).sum(), CONSTANT) else None


def class_shares(labels: tuple[str, ...], targets: NDArray[Any]) -> NDArray[np.float64]:
    """Of the rows with a label, the share of each class.

    >>> class_shares(("no", "yes"), np.array([0, 0, 0, 1, MISSING])).tolist()
    [0.75, 0.25]
    """
    counts = count_classes(targets, len(labels)).astype(np.float64)
    return np.asarray(counts / max(counts.sum(), 1.0), dtype=np.float64)


def count_classes(targets: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """How many rows have each class; those without one are left out."""
    known = np.asarray(targets)
    known = known[known != MISSING].astype(np.int64)
    return np.asarray(np.bincount(known, minlength=classes), dtype=np.int64)
