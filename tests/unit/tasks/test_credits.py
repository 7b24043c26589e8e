"""What each row adds to a metric: values whose mean is the metric and whose spread is its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from taskmix.tasks import (
    METRICS,
    MISSING,
    evaluate_outputs,
    row_credits,
)

OF_CLASSES = sorted(n for n, m in METRICS.items() if m.needs in ("classes", "scores"))
OF_VALUES = sorted(n for n, m in METRICS.items() if m.needs == "values")
TAGS = ("O", "B-A", "I-A", "B-B", "I-B")


def classified(
    generator: np.random.Generator, rows: int, classes: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Logits with ties, mostly right, and targets of which the first is the most frequent."""
    targets = generator.integers(0, classes, rows)
    targets[generator.random(rows) < 0.3] = 0
    logits = generator.normal(size=(rows, classes))
    logits[np.arange(rows), targets] += 1.0
    return logits.round(1), targets


def tagged(generator: np.random.Generator, rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sentences of 0 to 8 words."""
    targets = generator.choice(len(TAGS), p=[0.6, 0.15, 0.1, 0.1, 0.05], size=(rows, 8))
    logits = generator.normal(size=(rows, 8, len(TAGS))) + 2 * np.eye(len(TAGS))[targets]
    targets[np.arange(8) >= generator.integers(0, 9, size=(rows, 1))] = MISSING
    return logits, targets


def must_be_of(
    metric: str, outputs: NDArray[Any], targets: NDArray[Any], labels: tuple[str, ...] = ()
) -> NDArray[Any]:
    """The credits, whose mean is the metric."""
    found = row_credits(metric, outputs=outputs, targets=targets, labels=labels)
    value = evaluate_outputs(metric, outputs=outputs, targets=targets, labels=labels)
    assert len(found) == len(targets)
    if math.isnan(value):
        assert np.isnan(found).all()
    else:
        assert np.nanmean(found) == pytest.approx(value, rel=1e-9, abs=1e-9)
    return found


def test_credits_of_f1_are_those_of_a_ratio_of_sums() -> None:
    # One hit, one miss, one false alarm, one row that neither counts: F1 is 2 / (2 + 2).
    targets, predicted = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
    found = row_credits("f1", outputs=np.eye(2)[predicted], targets=targets, labels=("no", "yes"))
    assert found.tolist() == [1.5, 0.0, 0.0, 0.5]


def test_credits_of_the_area_are_delongs_placements() -> None:
    # Positive rows at 3 and 1, negative ones at 2 and 0: three of four pairs are in order.
    scores, targets = np.array([3.0, 1.0, 2.0, 0.0]), np.array([1, 1, 0, 0])
    logits = np.column_stack([np.zeros(4), scores])
    found = row_credits("auc", outputs=logits, targets=targets, labels=("no", "yes"))
    placements = np.array([1.0, 0.5, 0.5, 1.0])
    assert found == pytest.approx(0.75 + 2 * (placements - 0.75))
    # Their variance is DeLong's, without its correction for few rows.
    variance = placements[:2].var() / 2 + placements[2:].var() / 2
    assert found.var() / 4 == pytest.approx(variance)


@pytest.mark.parametrize("metric", [*OF_CLASSES, "f1+accuracy"])
@given(seed=st.integers(0, 1 << 30), rows=st.integers(1, 30), classes=st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_the_mean_of_credits_is_the_metric_of_classes(
    metric: str, seed: int, rows: int, classes: int
) -> None:
    generator = np.random.default_rng(seed)
    logits, targets = classified(generator, rows, classes)
    targets[generator.random(rows) < 0.2] = MISSING
    found = must_be_of(metric, logits, targets, TAGS[:classes])
    assert np.isnan(found[targets == MISSING]).all()


@pytest.mark.parametrize("metric", [*OF_VALUES, "pearson+spearman"])
@given(seed=st.integers(0, 1 << 30), rows=st.integers(1, 30), digits=st.sampled_from([0, 9]))
@settings(max_examples=25, deadline=None)
def test_the_mean_of_credits_is_the_metric_of_values(
    metric: str, seed: int, rows: int, digits: int
) -> None:
    generator = np.random.default_rng(seed)
    targets = generator.normal(size=rows)
    outputs = (targets + generator.normal(size=rows)).round(digits)
    targets = targets.round(digits)
    targets[generator.random(rows) < 0.2] = np.nan
    found = must_be_of(metric, outputs, targets)
    assert np.isnan(found[np.isnan(targets)]).all()


@pytest.mark.parametrize("metric", [*OF_CLASSES, "entity_f1"])
@given(seed=st.integers(0, 1 << 30), rows=st.integers(1, 20))
@settings(max_examples=25, deadline=None)
def test_of_tags_a_sentence_has_one_credit(metric: str, seed: int, rows: int) -> None:
    logits, targets = tagged(np.random.default_rng(seed), rows)
    found = must_be_of(metric, logits, targets, TAGS)
    empty = (targets == MISSING).all(axis=1)
    assert np.isnan(found[empty]).all()
    words = targets != MISSING
    flat = row_credits(
        metric,
        outputs=logits[words],
        targets=targets[words],
        labels=TAGS,
        sentences=np.concatenate([[0], np.cumsum(words.sum(axis=1))]),
    )
    np.testing.assert_array_equal(flat, found)


Rows = tuple[NDArray[Any], NDArray[Any], tuple[str, ...]]


def _of_classes(generator: np.random.Generator) -> Rows:
    return (*classified(generator, 300, 3), TAGS[:3])


def _of_values(generator: np.random.Generator) -> Rows:
    targets = generator.normal(size=300)
    return (targets + generator.normal(size=300)).round(1), targets.round(1), ()


def _of_tags(generator: np.random.Generator) -> Rows:
    return (*tagged(generator, 300), TAGS)


CASES: list[tuple[str, Callable[[np.random.Generator], Rows]]] = [
    *((name, _of_classes) for name in OF_CLASSES),
    *((name, _of_values) for name in OF_VALUES),
    *((name, _of_tags) for name in ("entity_f1", "accuracy", "macro_f1")),
]


@pytest.mark.parametrize(
    ("metric", "made"), CASES, ids=lambda each: getattr(each, "__name__", each)
)
def test_the_spread_of_credits_is_the_error_that_resampling_rows_finds(
    metric: str, made: Callable[[np.random.Generator], Rows]
) -> None:
    generator = np.random.default_rng(5)
    outputs, targets, labels = made(generator)
    found = row_credits(metric, outputs=outputs, targets=targets, labels=labels)
    known = np.flatnonzero(~np.isnan(found))
    error = found[known].std() / math.sqrt(len(known))

    def value(rows: NDArray[Any]) -> float:
        return evaluate_outputs(metric, outputs=outputs[rows], targets=targets[rows], labels=labels)

    without = np.array([value(np.delete(known, place)) for place in range(len(known))])
    jackknife = math.sqrt(((without - without.mean()) ** 2).sum() * (1 - 1 / len(known)))
    assert error == pytest.approx(jackknife, rel=0.05)  # average precision 0.037, others 0.03
    # Row by row, too: who is left out takes what it added.
    assert np.corrcoef(-without, found[known])[0, 1] > 0.99
    drawn = [value(generator.choice(known, len(known))) for _ in range(400)]
    assert error == pytest.approx(np.std(drawn), rel=0.15)  # 400 draws know it to 4 %


def test_a_metric_that_is_not_defined_has_no_credits() -> None:
    logits, targets = np.zeros((3, 2)), np.zeros(3, dtype=int)
    assert np.isnan(row_credits("auc", outputs=logits, targets=targets, labels=("a", "b"))).all()
    logits[1] = np.nan
    found = row_credits("accuracy", outputs=logits, targets=targets, labels=("a", "b"))
    assert np.isnan(found).all()
