"""Metrics of rows that may have several labels, against scikit-learn and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    log_loss,
    roc_auc_score,
)

from taskmix.errors import OptionError
from taskmix.tasks import METRICS, MISSING, evaluate_outputs

LABELS = ("a", "b", "c")
OF_SETS = [name for name, metric in METRICS.items() if metric.is_of_sets]


def marked(
    seed: int, rows: int = 200, labels: int = 3
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Logits that know something of the marks; logits repeat, so that ranks have ties."""
    generator = np.random.default_rng(seed)
    marks = (generator.random((rows, labels)) < [0.5, 0.2, 0.05][:labels]).astype(np.int8)
    outputs = np.round(2 * marks - 1 + generator.normal(size=marks.shape), 1)
    return outputs, marks


def score(name: str, outputs: NDArray[np.float64], marks: NDArray[np.int8]) -> float:
    labels = LABELS[: marks.shape[1]]
    return evaluate_outputs(name, outputs=outputs, targets=marks, labels=labels)


@pytest.mark.parametrize("seed", range(3))
def test_every_metric_of_label_sets_is_that_of_scikit_learn(seed: int) -> None:
    outputs, marks = marked(seed)
    chosen, shares = outputs > 0, 1 / (1 + np.exp(-outputs))
    expected = {
        "micro_f1": f1_score(marks, chosen, average="micro", zero_division=0),
        "macro_f1": f1_score(marks, chosen, average="macro", zero_division=0),
        "average_precision": average_precision_score(marks, outputs, average="macro"),
        "auc": roc_auc_score(marks, outputs, average="macro"),
        "accuracy": accuracy_score(marks, chosen),
        "log_loss": log_loss(marks.ravel(), shares.ravel()),
    }
    assert set(expected) == set(OF_SETS)
    for name, value in expected.items():
        assert score(name, outputs, marks) == pytest.approx(value, abs=1e-12), name
    mean = score("micro_f1+macro_f1", outputs, marks)
    assert mean == pytest.approx((expected["micro_f1"] + expected["macro_f1"]) / 2)


def test_a_label_that_no_row_has_counts_only_where_it_is_predicted() -> None:
    marks = np.array([[1, 0], [0, 0]], dtype=np.int8)
    right = np.array([[1.0, -1.0], [-1.0, -1.0]])
    assert score("macro_f1", right, marks) == 1.0
    assert score("macro_f1", np.array([[1.0, 1.0], [-1.0, -1.0]]), marks) == 0.5
    assert score("average_precision", right, marks) == score("auc", right, marks) == 1.0
    nothing = np.zeros_like(marks)
    assert score("micro_f1", -np.ones((2, 2)), nothing) == 0.0
    assert math.isnan(score("average_precision", right, nothing))


@pytest.mark.parametrize("name", OF_SETS)
def test_cells_that_nobody_knows_do_not_count(name: str) -> None:
    outputs, marks = marked(4)
    alone = score(name, outputs, marks)
    unknown = np.full_like(marks, MISSING)
    whole = (np.concatenate([outputs, -outputs]), np.concatenate([marks, unknown]))
    assert score(name, *whole) == alone
    assert math.isnan(score(name, outputs, unknown))
    assert math.isnan(score(name, outputs * np.nan, marks))
    # Two rows that know one label each say what one row says that knows both, but for whole rows.
    if name != "accuracy":
        marks = marks[:, :2]
        first, second = marks.copy(), marks.copy()
        first[:, 1], second[:, 0] = MISSING, MISSING
        parted = (np.concatenate([outputs[:, :2]] * 2), np.concatenate([first, second]))
        assert score(name, *parted) == pytest.approx(score(name, outputs[:, :2], marks), abs=1e-12)


def test_metrics_that_do_not_fit_are_refused_in_words() -> None:
    outputs, marks = marked(7)
    with pytest.raises(OptionError, match=r"one answer a row.*several labels.*micro_f1"):
        score("matthews", outputs, marks)
    with pytest.raises(OptionError, match=r"several labels.*Found one with 3 classes"):
        evaluate_outputs("micro_f1", outputs=outputs, targets=marks[:, 0], labels=LABELS)
    with pytest.raises(OptionError, match="same kind of task"):
        score("micro_f1+f1", outputs, marks)
