from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as sklearn_metrics

from taskmix.errors import OptionError, ShapeError
from taskmix.tasks import METRICS, MISSING, evaluate_outputs, find_metric

COLOURS = ("red", "green", "blue")
OF_OUTPUTS = sorted(
    name
    for name, metric in METRICS.items()
    if not metric.is_of_text and metric.needs != "sets"  # tests/unit/tasks/test_label_sets.py
)


def classified(
    generator: np.random.Generator, rows: int = 60, classes: int = 3
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Logits [row, class] that are right more often than not, and targets [row]."""
    targets = generator.integers(0, classes, rows)
    logits = generator.normal(size=(rows, classes))
    logits[np.arange(rows), targets] += 1.0
    return logits, targets


def probabilities(logits: NDArray[Any]) -> NDArray[Any]:
    odds = np.exp(logits)
    result: NDArray[Any] = odds / odds.sum(axis=1, keepdims=True)
    return result


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_metrics_of_classes_agree_with_scikit_learn(seed: int, classes: int) -> None:
    logits, targets = classified(np.random.default_rng(seed), classes=classes)
    predicted = logits.argmax(axis=1)
    labels = tuple(map(str, range(classes)))
    expected = {
        "accuracy": sklearn_metrics.accuracy_score(targets, predicted),
        "macro_f1": sklearn_metrics.f1_score(targets, predicted, average="macro"),
        "matthews": sklearn_metrics.matthews_corrcoef(targets, predicted),
        "log_loss": sklearn_metrics.log_loss(
            targets, probabilities(logits), labels=np.arange(classes)
        ),
    }
    for name, value in expected.items():
        ours = evaluate_outputs(name, outputs=logits, targets=targets, labels=labels)
        assert ours == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("seed", range(5))
def test_f1_of_two_classes_is_that_of_the_second(seed: int) -> None:
    logits, targets = classified(np.random.default_rng(seed), classes=2)
    ours = evaluate_outputs("f1", outputs=logits, targets=targets, labels=("no", "yes"))
    assert ours == pytest.approx(sklearn_metrics.f1_score(targets, logits.argmax(axis=1)))
    accuracy = evaluate_outputs("accuracy", outputs=logits, targets=targets, labels=("no", "yes"))
    both = evaluate_outputs("f1+accuracy", outputs=logits, targets=targets, labels=("no", "yes"))
    assert both == pytest.approx((ours + accuracy) / 2)


def test_f1_of_a_task_with_one_class_is_zero() -> None:
    outputs, targets = np.zeros((3, 1)), np.zeros(3, dtype=np.int64)
    assert evaluate_outputs("f1", outputs=outputs, targets=targets, labels=("a",)) == 0


def test_the_mean_of_metrics_that_improve_in_different_directions_is_refused() -> None:
    with pytest.raises(OptionError, match="should improve in the same direction"):
        find_metric("accuracy+log_loss")


@pytest.mark.parametrize("seed", range(10))
def test_average_precision_agrees_with_scikit_learn(seed: int) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=80).round(1)  # some tie, and are taken together
    outputs, targets = np.stack([0 * scores, scores], axis=1), generator.integers(0, 2, 80)
    labels = ("no", "yes")
    ours = evaluate_outputs("average_precision", outputs=outputs, targets=targets, labels=labels)
    assert ours == pytest.approx(sklearn_metrics.average_precision_score(targets, scores))
    one_class = evaluate_outputs(
        "average_precision", outputs=outputs, targets=targets * 0, labels=labels
    )
    assert math.isnan(one_class)

    logits, targets = classified(generator, rows=90)
    ours = evaluate_outputs("average_precision", outputs=logits, targets=targets, labels=COLOURS)
    theirs = sklearn_metrics.average_precision_score(np.eye(3)[targets], probabilities(logits))
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_auc_agrees_with_scikit_learn_for_two_classes_and_one_against_the_rest(seed: int) -> None:
    generator = np.random.default_rng(seed)
    logits, targets = classified(generator, classes=2)
    logits = logits.round(1)  # so that some scores tie
    ours = evaluate_outputs("auc", outputs=logits, targets=targets, labels=("no", "yes"))
    theirs = sklearn_metrics.roc_auc_score(targets, (logits[:, 1] - logits[:, 0]).round(6))
    assert ours == pytest.approx(theirs, abs=0.01)  # the difference rounds ties differently

    logits, targets = classified(generator, rows=90)
    ours = evaluate_outputs("auc", outputs=logits, targets=targets, labels=COLOURS)
    theirs = sklearn_metrics.roc_auc_score(targets, probabilities(logits), multi_class="ovr")
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_metrics_of_values_agree_with_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    targets = generator.normal(size=40).round(1)
    outputs = (targets + generator.normal(size=40)).round(1)
    expected = {
        "pearson": stats.pearsonr(outputs, targets).statistic,
        "spearman": stats.spearmanr(outputs, targets).statistic,
        "rmse": sklearn_metrics.root_mean_squared_error(targets, outputs),
    }
    for name, value in expected.items():
        ours = evaluate_outputs(name, outputs=outputs, targets=targets)
        assert ours == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("name", OF_OUTPUTS)
def test_rows_without_a_target_do_not_count(name: str) -> None:
    generator = np.random.default_rng(3)
    with_classes = METRICS[name].needs != "values"
    labels = ("O", "B-X", "I-X") if with_classes else ()
    if with_classes:
        outputs, targets = classified(generator)
        missing: Any = MISSING
    else:
        targets = generator.normal(size=60)
        outputs, missing = targets + generator.normal(size=60), np.nan
    alone = evaluate_outputs(name, outputs=outputs, targets=targets, labels=labels)
    padded = evaluate_outputs(
        name,
        outputs=np.concatenate([outputs, outputs]),
        targets=np.concatenate([targets, np.full(len(targets), missing)]),
        labels=labels,
    )
    assert padded == alone


@pytest.mark.parametrize("name", OF_OUTPUTS)
def test_no_target_at_all_and_outputs_that_are_nan_give_nan(name: str) -> None:
    with_classes = METRICS[name].needs != "values"
    labels = ("O", "B-X") if with_classes else ()
    outputs = np.zeros((3, 2)) if with_classes else np.zeros(3)
    none = np.full(3, MISSING) if with_classes else np.full(3, np.nan)
    some = np.array([0, 1, 0]) if with_classes else np.arange(3.0)
    assert math.isnan(evaluate_outputs(name, outputs=outputs, targets=none, labels=labels))
    assert math.isnan(evaluate_outputs(name, outputs=outputs * np.nan, targets=some, labels=labels))


def test_constant_predictions_have_no_correlation() -> None:
    targets, labels = np.array([0, 1, 1, 0]), ("a", "b")
    constant = np.tile([2.0, 1.0], (4, 1))
    assert evaluate_outputs("matthews", outputs=constant, targets=targets, labels=labels) == 0.0
    for name in ("pearson", "spearman"):
        values = np.full(7, np.float32(0.1))  # a value whose mean rounds
        assert evaluate_outputs(name, outputs=values, targets=np.arange(7.0)) == 0.0
        assert evaluate_outputs(name, outputs=np.arange(7.0), targets=values) == 0.0


def test_auc_of_one_class_is_not_a_number_and_classes_that_do_not_occur_are_left_out() -> None:
    logits, targets = classified(np.random.default_rng(0))
    alone = evaluate_outputs("auc", outputs=logits, targets=targets * 0, labels=COLOURS)
    assert math.isnan(alone)
    two = np.minimum(targets, 1)  # nothing is blue
    scores = probabilities(logits)
    by_hand = [sklearn_metrics.roc_auc_score(two == label, scores[:, label]) for label in (0, 1)]
    ours = evaluate_outputs("auc", outputs=logits, targets=two, labels=COLOURS)
    assert ours == pytest.approx(np.mean(by_hand), abs=1e-12)


def test_log_loss_stays_finite_for_logits_that_saturate_the_softmax() -> None:
    outputs = np.array([[1000.0, 0.0], [0.0, 1000.0]])
    loss = evaluate_outputs(
        "log_loss", outputs=outputs, targets=np.array([0, 0]), labels=("a", "b")
    )
    assert loss == pytest.approx(500.0)


def test_sentences_as_rows_score_like_tokens_as_rows() -> None:
    generator = np.random.default_rng(5)
    labels = ("O", "B-X", "I-X")
    lengths = [4, 1, 6]
    logits = generator.normal(size=(sum(lengths), 3))
    targets = generator.integers(0, 3, sum(lengths))
    offsets = np.cumsum([0, *lengths])
    wide_logits, wide_targets = np.zeros((3, 8, 3)), np.full((3, 8), MISSING)
    for row, (begin, end) in enumerate(pairwise(offsets)):
        wide_logits[row, : end - begin] = logits[begin:end]
        wide_targets[row, : end - begin] = targets[begin:end]
    for name in ("entity_f1", "accuracy"):
        flat = evaluate_outputs(
            name, outputs=logits, targets=targets, labels=labels, sentences=offsets
        )
        wide = evaluate_outputs(name, outputs=wide_logits, targets=wide_targets, labels=labels)
        assert wide == flat


def test_a_metric_of_the_wrong_kind_of_task_is_refused() -> None:
    with pytest.raises(OptionError, match=r"without classes. Found one with 2 classes"):
        evaluate_outputs("rmse", outputs=np.zeros((2, 2)), targets=np.zeros(2), labels=("a", "b"))
    with pytest.raises(OptionError, match=r"with classes. Found one with no classes"):
        evaluate_outputs("accuracy", outputs=np.zeros(2), targets=np.zeros(2))


def test_outputs_and_targets_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"should have the shape \(3, 2\).*Found \(2, 2\)"):
        evaluate_outputs(
            "accuracy", outputs=np.zeros((2, 2)), targets=np.zeros(3, dtype=int), labels=("a", "b")
        )
