"""Metrics of rows that may have several labels, against scikit-learn and by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as sklearn_metrics
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    log_loss,
    roc_auc_score,
)

from taskmix.engine import FolderSource
from taskmix.errors import OptionError, ShapeError
from taskmix.tasks import (
    METRICS,
    MISSING,
    Task,
    WrittenText,
    evaluate_outputs,
    evaluate_written,
    find_metric,
    load_tasks,
    reading_lines,
    row_credits,
    tables_as_tasks,
    write_tasks,
)

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


# Metrics of rows that may have several labels, against scikit-learn and by hand.

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


# Scores of text that a model writes, worked out by hand.


def of_answer(metric: str, found: str, true: str) -> float:
    return evaluate_written(metric, WrittenText(rows=1, answers=((found, true),)))


def test_pieces_are_counted_over_all_rows_and_rows_only_where_every_piece_is_right() -> None:
    text = WrittenText(
        rows=4, right_rows=1, pieces=10, right_pieces=7, loss=8 * math.log(2), bytes=16
    )
    assert evaluate_written("exact_match", text) == 0.25
    assert evaluate_written("token_accuracy", text) == 0.7
    assert evaluate_written("bits_per_byte", text) == pytest.approx(0.5)
    assert not find_metric("bits_per_byte").higher_is_better
    twice = text + text
    assert twice.rows == 8
    assert evaluate_written("bits_per_byte", twice) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("found", "true", "value"),
    [
        ("The Eiffel Tower!", "eiffel tower", 1.0),
        ("in Paris", "Paris, France", 0.5),  # one of two words each
        ("a b b", "b b c", 0.8),  # the article goes: two of two, two of three
        ("no", "yes", 0.0),
        ("", "yes", 0.0),
        ("the", "", 1.0),  # nothing is left of either
    ],
)
def test_f1_of_words_leaves_out_case_punctuation_and_articles(
    found: str, true: str, value: float
) -> None:
    assert of_answer("word_f1", found, true) == pytest.approx(value)


@pytest.mark.parametrize(
    ("found", "true", "value"),
    [
        ("police killed the gunman", "police kill the gunman", 0.75),  # Lin's S2 and S1
        ("the gunman kill police", "police kill the gunman", 0.5),  # S3: `the gunman`
        ("the gunman police killed", "police killed the gunman", 0.5),  # S4
        ("one two", "one two three four", 2 * 1.0 * 0.5 / 1.5),
        ("", "one", 0.0),
        ("", "", 1.0),
    ],
)
def test_rouge_l_is_the_f_measure_of_the_longest_common_subsequence(
    found: str, true: str, value: float
) -> None:
    assert of_answer("rouge_l", found, true) == pytest.approx(value)


def subsequences(words: str) -> set[tuple[str, ...]]:
    return {some for size in range(len(words) + 1) for some in combinations(words, size)}


@given(st.text("abc", min_size=1, max_size=7), st.text("abc", min_size=1, max_size=7))
def test_the_longest_common_subsequence_is_that_of_every_subsequence(one: str, other: str) -> None:
    longest = max(len(each) for each in subsequences(one) & subsequences(other))
    value = of_answer("rouge_l", " ".join(one), " ".join(other))
    assert value == pytest.approx(2 * longest / (len(one) + len(other)))


def test_nothing_written_is_no_score_and_not_a_bad_one() -> None:
    for name in ("exact_match", "token_accuracy", "word_f1", "rouge_l", "bits_per_byte"):
        assert math.isnan(evaluate_written(name, WrittenText()))


# What each row adds to a metric: values whose mean is the metric and whose spread is its error.

OF_CLASSES = sorted(n for n, m in METRICS.items() if m.needs in ("classes", "scores"))
OF_VALUES = sorted(n for n, m in METRICS.items() if m.needs == "values")
TAGS = ("O", "B-A", "I-A", "B-B", "I-B")


def uneven(
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
    logits, targets = uneven(generator, rows, classes)
    targets[generator.random(rows) < 0.2] = MISSING
    found = must_be_of(metric, logits, targets, TAGS[:classes])
    assert np.isnan(found[targets == MISSING]).all()


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
    return (*uneven(generator, 300, 3), TAGS[:3])


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


# Which metric a task with classes has where nobody named one.


def table(counts: dict[str, int], seed: int = 0) -> pa.Table:
    labels = [label for label, count in counts.items() for _ in range(count)]
    values = np.random.default_rng(seed).normal(size=len(labels))
    return pa.table({"x": values, "label": labels})


def task_of(train: dict[str, int], dev: dict[str, int] | None = None) -> Task:
    splits = {"train": table(train), "dev": table(dev or train, seed=1)}
    return tables_as_tasks({"a": splits})["a"]


@pytest.mark.parametrize(
    ("train", "metric"),
    [
        ({"no": 81, "yes": 19}, "auc"),
        ({"no": 19, "yes": 81}, "auc"),
        ({"no": 80, "yes": 20}, "accuracy"),
        ({"no": 20, "yes": 4}, "accuracy"),  # too few rows to tell a share
        ({"a": 70, "b": 20, "c": 10}, "macro_f1"),  # 0.7 is more than two thirds
        ({"a": 60, "b": 20, "c": 20}, "accuracy"),
        ({"a": 15} | {f"b{n}": 4 for n in range(40)}, "accuracy"),  # 0.09 misleads nobody
        ({"a": 60} | {f"b{n}": 4 for n in range(40)}, "macro_f1"),
    ],
)
def test_the_metric_follows_the_shares_of_the_classes(train: dict[str, int], metric: str) -> None:
    assert task_of(train).metric == metric


def test_two_classes_without_an_area_on_dev_keep_accuracy() -> None:
    assert task_of({"no": 95, "yes": 5}, dev={"no": 10}).metric == "accuracy"


def test_a_metric_that_is_named_stays(tmp_path: Path) -> None:
    rare = {"train": table({"no": 95, "yes": 5}), "dev": table({"no": 9, "yes": 1}, 1)}
    named = tables_as_tasks({"a": rare}, metric="accuracy")
    assert named["a"].metric == "accuracy"
    assert not named["a"].reading.by_imbalance
    write_tasks(named, tmp_path / "named")
    assert load_tasks(tmp_path / "named")[0].metric == "accuracy"
    (tmp_path / "plain").mkdir()
    for split, rows in rare.items():
        lines = [f"{x},{label}" for x, label in zip(*rows.to_pydict().values(), strict=True)]
        (tmp_path / "plain" / f"{split}.csv").write_text("\n".join(["x,label", *lines]))
    assert FolderSource(path=str(tmp_path / "plain")).load()[0].metric == "auc"
    said = FolderSource(path=str(tmp_path / "plain"), metric="average_precision").load()[0]
    assert (said.metric, said.reading.by_imbalance) == ("average_precision", False)


def test_one_line_says_so_for_all_tasks_that_are_alike() -> None:
    tables = {
        f"t{rare}": {
            "train": table({"no": 100 - rare, "yes": rare}),
            "dev": table({"no": 9, "yes": 1}),
        }
        for rare in (5, 6, 7)
    }
    even = {"train": table({"no": 50, "yes": 50}), "dev": table({"no": 5, "yes": 5})}
    lines = reading_lines(tables_as_tasks({**tables, "even": even}))
    (said,) = (line for line in lines if "scored by" in line)
    assert said.startswith(
        "3 tasks have 5 to 7 % of their rows in the rarer class: scored by auc, since a constant "
        "answer has accuracy 0.94."
    )
    assert "--metric" in said
    many = reading_lines(tables_as_tasks({"a": {"train": table({"a": 70, "b": 20, "c": 10})}}))
    assert "`a` has 70 % of its rows in the commonest class: scored by macro_f1" in many[-1]
