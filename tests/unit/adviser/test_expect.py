"""What rows and seeds let one say of scores: intervals, guesses, and whether anything was learned."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from taskmix.adviser import baselines
from taskmix.adviser._expect import expect_score, sampling_error
from taskmix.adviser._guess import guessed_score, positives_of, rows_of_metric
from taskmix.adviser._learned import Learned, bar_of_guesses, judge_learned
from taskmix.adviser._rows import row_noise
from taskmix.adviser._scores import Entry
from taskmix.engine import DigitsSource, Run
from taskmix.errors import InputError
from taskmix.models import Perceptron
from taskmix.numerics import student_quantile
from taskmix.tasks import MISSING, Split, Task, TaskSet, evaluate_outputs

TASKS = ("parity", "half")
TEMPLATE = Run(
    label="t", source=DigitsSource(), architecture=Perceptron(), steps=800, seed=0, tasks=TASKS
)
WAYS = {each.name: each for each in baselines(TEMPLATE.load(), TASKS)}


def entry_of(way: str, seed: int, value: float) -> Entry:
    """Both tasks have the same score."""
    plan = WAYS[way]
    return Entry(
        candidate=plan,
        seed=seed,
        runs=tuple(plan.runs(TEMPLATE, seeds=[seed], evaluations=8)),
        dev=dict.fromkeys(TASKS, value),
        test={},
        batches=800.0,
    )


def test_an_expectation_worked_out_by_hand() -> None:
    # Deviation 0.02 over 4 seeds; shares of 100 and of 400 rows are binomial.
    scores = [0.78, 0.8, 0.8, 0.82]
    spread = np.std(scores, ddof=1)
    found = expect_score(scores, "accuracy", dev_rows=100, test_rows=400)
    seeds = spread**2 * 1.25
    shares = [(0.8 * rows + 0.5) / (rows + 1) for rows in (100, 400)]  # half a row more, of one
    variance = seeds + sum(p * (1 - p) / n for p, n in zip(shares, (100, 400), strict=True))
    # Welch and Satterthwaite: the errors of rows are known, that of four seeds has three degrees.
    degrees = variance**2 / (seeds**2 / 3)
    assert degrees > 100
    assert found.mean == pytest.approx(0.8)
    assert found.high == pytest.approx(0.8 + student_quantile(0.9, degrees) * math.sqrt(variance))


def test_where_seeds_are_most_of_it_their_few_degrees_count() -> None:
    found = expect_score([-0.1, 0.0, 0.1], "pearson", dev_rows=10**9, test_rows=10**9)
    assert found.high == pytest.approx(student_quantile(0.9, 3) * 0.1 * math.sqrt(4 / 3), rel=1e-3)


def test_credits_of_rows_say_how_far_scores_scatter_over_rows() -> None:
    found = expect_score([0.5] * 4, "f1", dev_rows=100, test_rows=400, row_deviation=0.2)
    assert found.high == pytest.approx(0.5 + student_quantile(0.9, 1e6) * math.hypot(0.02, 0.01))
    alike = expect_score([1.0] * 4, "accuracy", dev_rows=50, test_rows=50, row_deviation=0.0)
    assert alike.low < 0.99, "the next row may be another"


@pytest.mark.parametrize("spread", [0.003, 0.01, 0.03])
@pytest.mark.parametrize("seeds", [4, 8])
def test_intervals_hold_as_many_new_scores_as_they_say(spread: float, seeds: int) -> None:
    generator = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        truth = generator.normal(
            0.7, spread, size=seeds + 1
        )  # those that were trained, and a new one
        # Dev rows are common to all seeds: what they favour, they favour in all.
        common = generator.normal(0, math.sqrt(0.7 * 0.3 / 300))
        dev = truth[:seeds] + common
        test = generator.binomial(500, truth[seeds]) / 500
        found = expect_score(dev.tolist(), "accuracy", dev_rows=300, test_rows=500)
        inside.append(found.low <= test <= found.high)
    assert 0.87 < np.mean(inside) < 0.93


@pytest.mark.parametrize(
    ("metric", "draw"),
    [
        ("accuracy", lambda g: float(g.binomial(200, 0.7)) / 200),
        ("rmse", lambda g: float(np.sqrt((g.normal(0, 2, size=200) ** 2).mean()))),
        ("pearson", lambda g: float(np.corrcoef(_pair(g, 0.6))[0, 1])),
    ],
)
def test_sampling_errors_are_those_of_repeated_samples(metric: str, draw: object) -> None:
    generator = np.random.default_rng(1)
    values = [draw(generator) for _ in range(4000)]  # type: ignore[operator]
    expected = float(np.std(values))
    assert sampling_error(metric, float(np.mean(values)), 200) == pytest.approx(expected, rel=0.06)


def _pair(generator: np.random.Generator, r: float) -> np.ndarray:  # type: ignore[type-arg]
    x = generator.normal(size=200)
    return np.stack([x, r * x + math.sqrt(1 - r * r) * generator.normal(size=200)])


def test_one_seed_rests_on_the_spread_known_from_others() -> None:
    alone = expect_score([0.7], "accuracy", dev_rows=100, test_rows=100)
    known = expect_score([0.7], "accuracy", dev_rows=100, test_rows=100, spread=0.1)
    assert known.half_width > alone.half_width


@pytest.mark.parametrize("deviation", [None, 0.0, 0.01])
def test_an_auc_of_two_positives_is_no_certainty(deviation: float | None) -> None:
    rows: dict[str, int] = {"dev_rows": 40, "test_rows": 40}
    few = {"dev_positives": 2, "test_positives": 2}
    found = expect_score([0.996, 1.0], "auc", **rows, **few, row_deviation=deviation)
    assert found.low < 0.75 < found.high


def test_scores_that_are_none_are_refused() -> None:
    for scores in ([], [float("nan")]):
        with pytest.raises(InputError):
            expect_score(scores, "accuracy", dev_rows=1, test_rows=1)
    with pytest.raises(InputError):
        sampling_error("accuracy", 0.5, 0)


@pytest.mark.parametrize(
    ("metric", "score", "least", "most"),
    [("accuracy", 0.98, 0.0, 1.0), ("matthews", -0.9, -1.0, 1.0), ("rmse", 0.01, 0.0, np.inf)],
)
def test_no_score_is_expected_that_the_metric_cannot_have(
    metric: str, score: float, least: float, most: float
) -> None:
    found = expect_score([score, score], metric, dev_rows=4, test_rows=4, spread=1.0)
    assert least <= found.low < score < found.high <= most
    assert found.low == least, "cut where the metric ends"
    assert found.high == (most if np.isfinite(most) else pytest.approx(2.892, abs=0.001))


@pytest.mark.parametrize("separation", [0.0, 1.0])
@pytest.mark.parametrize(("metric", "tolerance"), [("auc", 0.15), ("average_precision", None)])
def test_errors_of_rankings_rest_on_the_positives(
    metric: str, tolerance: float | None, separation: float
) -> None:
    """60 positives among 1000 rows; of average precision the error is never too small."""
    generator = np.random.default_rng(2)
    targets = (np.arange(1000) < 60).astype(np.int64)
    values = []
    for _ in range(600):
        scores = generator.normal(size=1000) + separation * targets
        outputs = np.stack([-scores, scores], axis=1)
        values.append(
            evaluate_outputs(metric, outputs=outputs, targets=targets, labels=("no", "yes"))
        )
    expected, mean = float(np.std(values)), float(np.mean(values))
    found = sampling_error(metric, mean, 1000, positives=60)
    if tolerance is None:
        assert expected < found < 4 * expected
    else:
        assert found == pytest.approx(expected, rel=tolerance)
        assert sampling_error(metric, mean, 1000) < 0.5 * found, "500 positives would do better"


# Guesses.


MARKS = np.array([[1, 0], [1, 0], [1, 1], [0, 0]], dtype=np.int8)  # a: 3 of 4 rows; b: 1 of 4


def classes(name: str, rows: int, share: float = 0.5, metric: str = "accuracy") -> Task:
    """Two classes, so many of the second."""
    targets = (np.arange(rows) < share * rows).astype(np.int64)
    split = Split(pa.table({"x": np.arange(float(rows))}), targets)
    return Task(
        name=name,
        kind="classification",
        inputs="table",
        labels=("no", "yes"),
        metric=metric,
        source=name,
        splits={"train": split, "dev": split},
    )


@pytest.mark.parametrize(
    ("metric", "guess"),
    [("auc", 0.5), ("average_precision", 0.06), ("accuracy", 0.94), ("macro_f1", 0.5)],
)
def test_the_guess_is_that_of_the_metric(metric: str, guess: float) -> None:
    assert guessed_score(classes("parity", 1000, 0.06, metric)) == pytest.approx(guess)


def marked(marks: NDArray[np.int8] = MARKS, metric: str = "micro_f1") -> Task:
    splits = {
        split: Split(pa.table({"text": [f"{split} {row}" for row in range(len(marks))]}), marks)
        for split in ("train", "dev")
    }
    return Task(
        name="t",
        kind="multilabel",
        inputs="text",
        labels=("a", "b"),
        metric=metric,
        source="t",
        splits=splits,
    )


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("micro_f1", 2 * 3 / (4 + 4)),  # `a` for every row: 3 right, 4 said, 4 true
        ("macro_f1", (2 * 3 / 7 + 2 * 1 / 5) / 2),  # both for every row
        ("accuracy", 2 / 4),  # `a` alone, the commonest set
        ("average_precision", (3 / 4 + 1 / 4) / 2),
        ("auc", 0.5),
    ],
)
def test_the_guess_is_the_best_set_of_labels_for_every_row(metric: str, expected: float) -> None:
    assert guessed_score(marked(metric=metric)) == pytest.approx(expected)


def test_the_guess_of_log_loss_is_that_of_the_shares() -> None:
    found = guessed_score(marked(metric="log_loss"))
    shares = np.array([3.5 / 5, 1.5 / 5])
    entropy = -(MARKS * np.log(shares) + (1 - MARKS) * np.log(1 - shares)).mean()
    assert found == pytest.approx(entropy)


def test_rows_and_positives_are_those_that_are_known() -> None:
    marks = MARKS.copy()
    marks[3] = MISSING
    some = marked(marks, "average_precision")
    assert rows_of_metric(some) == 3
    assert positives_of(some) == int(2 / (1 / 3 + 1 / 1))
    assert math.isnan(guessed_score(marked(np.ones_like(MARKS), "auc")))


ASK = Task(
    name="ask",
    kind="generation",
    inputs="prompt",
    labels=(),
    metric="exact_match",
    source="ask",
    splits={
        "train": Split(
            pa.table({"prompt": ["a", "b", "c"], "answer": ["red", "red", "blue"]}), np.empty(0)
        ),
        "dev": Split(
            pa.table({"prompt": ["d", "e", "f", "g"], "answer": ["red", "blue", "red hat", "x"]}),
            np.empty(0),
        ),
    },
)


def test_the_commonest_answer_is_the_guess() -> None:
    assert guessed_score(ASK) == 0.25
    # Of `red hat` one word of two is right: F1 2/3.
    assert guessed_score(replace(ASK, metric="word_f1")) == pytest.approx((1 + 2 / 3) / 4)
    assert math.isnan(guessed_score(replace(ASK, metric="token_accuracy")))


def test_a_text_is_guessed_by_how_often_each_byte_came() -> None:
    tables = {"train": ["aab"], "dev": ["ab"]}
    splits = {name: Split(pa.table({"text": rows}), np.empty(0)) for name, rows in tables.items()}
    books = Task(
        name="books",
        kind="language",
        inputs="passage",
        labels=(),
        metric="bits_per_byte",
        source="books",
        splits=splits,
    )
    # Half a byte more of each of 256: 2.5 and 1.5 of 131.
    bits = -(math.log2(2.5 / 131) + math.log2(1.5 / 131)) / 2
    assert guessed_score(books) == pytest.approx(bits)


# Whether anything was learned.


def judged(task: Task, scores: dict[str, Sequence[float]]) -> Learned:
    entries = {
        way: [entry_of(way, seed, value) for seed, value in enumerate(some)]
        for way, some in scores.items()
    }
    (found,) = judge_learned(entries, TaskSet((task,)), [task.name])
    return found


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_shuffled_tasks_pass_as_learned_in_less_than_one_case_of_twenty(
    seeds: int, correlation: float
) -> None:
    """Guesses on 200 rows that seeds share in part."""
    generator = np.random.default_rng([seeds, int(4 * correlation)])
    task, passed = classes("parity", 200), 0
    for _ in range(400):
        scores = {}
        for way in WAYS:
            common, own = generator.normal(), generator.normal(size=seeds)
            drawn = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
            scores[way] = (0.5 + 0.5 / np.sqrt(200) * drawn).tolist()
        passed += judged(task, scores).answer == "yes"
    assert passed <= 0.05 * 400 + 2 * np.sqrt(0.05 * 0.95 * 400)


def test_what_is_three_tenths_of_the_way_to_perfect_is_seen_in_four_of_five_cases() -> None:
    generator = np.random.default_rng(0)
    task = classes("parity", 145)
    seen = 0
    for _ in range(400):
        right = generator.binomial(145, 0.65) / 145
        seen += judged(task, {key: [right] for key in WAYS}).answer == "yes"
    assert judged(task, {key: [0.5] for key in WAYS}).answer == "no"
    assert seen >= 0.78 * 400


def test_more_candidates_raise_the_bar() -> None:
    assert bar_of_guesses(1) == pytest.approx(1.645, abs=0.001)  # the normal quantile of 95 %
    # The best of ten that are independent: the quantile of the tenth root of 0.95.
    best = np.random.default_rng(0).normal(size=(100_000, 10)).max(axis=1)
    assert bar_of_guesses(10) == pytest.approx(float(np.quantile(best, 0.95)), abs=0.02)


def test_the_mean_over_seeds_is_judged_and_not_the_luckiest_run() -> None:
    task = classes("parity", 200)
    lucky = judged(task, {"uniform": [0.62, 0.5, 0.5, 0.5]})
    steady = judged(task, {"uniform": [0.62, 0.62, 0.62, 0.62]})
    assert (lucky.answer, steady.answer) == ("no", "yes")


def test_a_score_that_is_not_defined_does_not_silence_the_others() -> None:
    task = classes("parity", 2000)
    assert judged(task, {"uniform": [float("nan"), 0.9], "size": [0.5]}).best == 0.9
    one_class = judged(classes("parity", 50, share=0.0, metric="auc"), {"uniform": [float("nan")]})
    assert one_class.answer == "cannot tell"
    assert one_class.rows_needed is None


def test_auc_of_few_positives_cannot_tell_what_accuracy_of_as_many_rows_could() -> None:
    few = judged(classes("parity", 300, 0.06, "auc"), {key: [0.55, 0.55] for key in WAYS})
    assert few.answer == "cannot tell"
    many = judged(classes("parity", 3000, 0.06, "auc"), {key: [0.52, 0.5] for key in WAYS})
    assert many.answer == "no"
    assert judged(classes("parity", 3000, 0.06, "auc"), {"size": [0.7]}).answer == "yes"


# What ways share because their dev rows are a sample.


Credits = Mapping[str, list[float]]  # of each task


@dataclass(frozen=True)
class CreditStudy:
    """Has the credits of each run."""

    known: Mapping[str, Credits]

    def run(self, specification: Mapping[str, Any]) -> Any:
        found = self.known.get(json.dumps(specification), {})
        kept = {name: np.array(some) for name, some in found.items()}
        return SimpleNamespace(credits=lambda: kept)


def entries_and_study(**ways: list[Credits]) -> tuple[dict[str, list[Entry]], Any]:
    """Of each way the credits of its runs, a seed each."""
    known, entries = {}, {}
    for way, seeds in ways.items():
        some = [entry_of(way, seed, 0.5) for seed in range(len(seeds))]
        for entry, found in zip(some, seeds, strict=True):
            known[json.dumps(entry.runs[0].specification())] = found
        entries[way] = some
    return entries, CreditStudy(known)


def tasks_of(inputs: Mapping[str, object], metric: str = "accuracy") -> Any:
    """Tasks with these inputs; two that have one object share their rows."""
    return {
        name: SimpleNamespace(
            metric=metric,
            splits={
                "dev": SimpleNamespace(inputs=found),
                "train": SimpleNamespace(targets=np.array([0.0, 4.0])),
            },
        )
        for name, found in inputs.items()
    }


SHARED = tasks_of(dict.fromkeys(TASKS, "the same"))
APART = tasks_of({"parity": [1], "half": [2]})
FIRST: Credits = {"parity": [0.0, 1.0, 1.0, 0.0], "half": [0.0, 1.0, 1.0, 1.0]}
SECOND: Credits = {"parity": [1.0, 1.0, 0.0, 0.0], "half": [0.0, 0.0, 1.0, 1.0]}


def matrix_of(rows: dict[str, Any] | None) -> Any:
    assert rows is not None
    return np.array([rows[way] for way in ("uniform", "size")])


def test_tasks_with_rows_of_their_own_add_up() -> None:
    entries, study = entries_and_study(uniform=[FIRST], size=[SECOND])
    # Halves of the credits: parity of uniform has variance 1/12 and half 1/16, over four rows each.
    found = matrix_of(row_noise(entries, APART, TASKS, study))
    assert found[0, 0] == pytest.approx((1 / 12 + 1 / 16) / 4)
    assert found[1, 1] == pytest.approx((1 / 12 + 1 / 12) / 4)
    parity = np.cov(FIRST["parity"], SECOND["parity"])[0, 1]
    half = np.cov(FIRST["half"], SECOND["half"])[0, 1]
    assert found[0, 1] == found[1, 0] == pytest.approx((parity + half) / 4 / 4)


def test_tasks_that_share_their_rows_are_right_and_wrong_together() -> None:
    entries, study = entries_and_study(uniform=[FIRST], size=[SECOND])
    # The means over tasks of uniform are 0, 1, 1, 1/2: variance 11/48. Of size 1/2, 1/2, 1/2, 1/2.
    found = matrix_of(row_noise(entries, SHARED, TASKS, study))
    assert found[0, 0] == pytest.approx(11 / 48 / 4)
    assert found[1, 1] == pytest.approx(0.0)
    assert found[0, 1] == pytest.approx(0.0)


def test_luck_of_seeds_is_averaged_before() -> None:
    other: Credits = {"parity": [1.0, 0.0, 0.0, 1.0], "half": [1.0, 0.0, 0.0, 0.0]}
    entries, study = entries_and_study(uniform=[FIRST, other], size=[SECOND, SECOND])
    found = matrix_of(row_noise(entries, SHARED, TASKS, study))
    assert found[0, 0] == pytest.approx(0.0), "every row is half right"


@pytest.mark.parametrize(
    "size", [[], [{}], [{"parity": [0.0, 1.0, 1.0, 0.0]}], [SECOND, {"parity": [1.0] * 4}]]
)
def test_nothing_is_known_where_a_record_lacks_credits(size: list[Credits]) -> None:
    entries, study = entries_and_study(uniform=[FIRST], size=size)
    assert row_noise(entries, APART, TASKS, study) is None
