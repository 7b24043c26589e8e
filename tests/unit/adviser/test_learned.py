"""Whether something was learned, by scores that are drawn and not trained for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from made_up_advice import MadeUpStudy, _entry, candidates

from taskmix.adviser._guess import guessed_score
from taskmix.adviser._learned import Learned, bar_of_guesses, judge_learned, unlearned
from taskmix.adviser._scores import Entry
from taskmix.adviser._still_rising import last_fall, still_rising
from taskmix.adviser._would_help import what_would_help
from taskmix.models import (
    Architecture,
    Perceptron,
    TextConvolution,
    Transformer,
    WindowBiLSTM,
    tuned,
)
from taskmix.tasks import Split, Task, TaskSet

WAYS = ("single", "uniform", "size", "equal")


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


def entries_of(scores: dict[str, Sequence[float]]) -> dict[str, list[Entry]]:
    """By way, a score of both tasks for each seed."""
    known = candidates()
    return {
        way: [_entry(known[way], seed, value, 800) for seed, value in enumerate(some)]
        for way, some in scores.items()
    }


def judged(task: Task, scores: dict[str, Sequence[float]]) -> Learned:
    (found,) = judge_learned(entries_of(scores), TaskSet((task,)), [task.name])
    return found


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_shuffled_tasks_pass_as_learned_in_less_than_one_case_of_twenty(
    seeds: int, correlation: float
) -> None:
    """Guesses on 200 rows that seeds and evaluations share in part; the best evaluation counts."""
    generator = np.random.default_rng([seeds, int(4 * correlation)])
    task, passed = classes("parity", 200), 0
    for _ in range(400):
        scores = {}
        for way in WAYS:
            evaluations = 8 if way == "single" else 1
            common = generator.normal()
            own = generator.normal(size=(seeds, evaluations))
            drawn = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
            scores[way] = (0.5 + 0.5 / np.sqrt(200) * drawn.max(axis=1)).tolist()
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


def test_with_too_few_dev_rows_nobody_can_tell_and_it_says_how_many_would_do() -> None:
    few = judged(classes("parity", 40), {key: [0.58, 0.54] for key in WAYS})
    assert few.answer == "cannot tell"
    assert few.rows_needed is not None
    assert f"about {few.rows_needed:,} dev rows would do" in few.words
    enough = judged(classes("parity", few.rows_needed + 5), {key: [0.52, 0.5] for key in WAYS})
    assert enough.answer == "no"
    assert "would have been seen with 80 % power" in enough.words
    assert unlearned([few, enough]) == ("parity",)


def test_more_ways_and_evaluations_raise_the_bar() -> None:
    # One way, one seed, one evaluation: the normal quantile of 95 %.
    assert bar_of_guesses(((1, 1),)) == pytest.approx(1.645, abs=0.08)
    # Independent ones: the n-th root of 0.95, here of ten.
    assert bar_of_guesses(((1, 1),) * 10) == pytest.approx(2.57, abs=0.12)
    assert bar_of_guesses(((1, 8),)) > bar_of_guesses(((1, 1),)) + 0.5


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


@pytest.mark.parametrize(
    ("metric", "guess"),
    [("auc", 0.5), ("average_precision", 0.06), ("accuracy", 0.94), ("macro_f1", 0.5)],
)
def test_the_guess_is_that_of_the_metric(metric: str, guess: float) -> None:
    assert guessed_score(classes("parity", 1000, 0.06, metric)) == pytest.approx(guess)


def test_no_way_of_guessing_has_a_macro_f1_above_one_over_the_classes() -> None:
    shares = np.array([0.8, 0.15, 0.05])
    for answers in np.random.default_rng(0).dirichlet(np.ones(3), size=200):
        assert (2 * shares * answers / (shares + answers)).mean() <= 1 / 3 + 1e-12


def test_auc_of_few_positives_cannot_tell_what_accuracy_of_as_many_rows_could() -> None:
    few = judged(classes("parity", 300, 0.06, "auc"), {key: [0.55, 0.55] for key in WAYS})
    assert few.answer == "cannot tell"
    many = judged(classes("parity", 3000, 0.06, "auc"), {key: [0.52, 0.5] for key in WAYS})
    assert many.answer == "no"
    assert judged(classes("parity", 3000, 0.06, "auc"), {"size": [0.7]}).answer == "yes"


def tags(name: str, sentences: int = 120) -> Task:
    tokens = pa.table({"tokens": [["in", "Bern", "we", "met"]] * sentences})
    split = Split(tokens, np.tile([0, 1, 0, 0], sentences))
    return Task(
        name=name,
        kind="tagging",
        inputs="tokens",
        labels=("O", "B-LOC"),
        metric="entity_f1",
        source=name,
        splits={"train": split, "dev": split},
    )


def test_an_entity_f1_of_zero_is_not_yet_where_the_loss_still_falls() -> None:
    """The scores of the study are its losses as well."""
    entries = entries_of({"uniform": [0.0, 0.0]})
    falling = MadeUpStudy(
        {key: {"parity": [(100 * n, 1 / n) for n in range(1, 9)]} for key in range(2)}
    )
    tasks = TaskSet((tags("parity"), classes("half", 100)))
    (found,) = judge_learned(entries, tasks, ["parity"], falling)  # type: ignore[arg-type]
    assert (found.answer, found.still_rising) == ("no", True)
    assert "Nothing was learned of `parity` yet" in found.words
    flat = MadeUpStudy({0: {"parity": [(100 * n, 1.0 + 0.01 * n) for n in range(1, 9)]}})
    assert not still_rising("parity", entries, flat)  # type: ignore[arg-type]


def test_a_fall_is_that_of_the_last_quarter() -> None:
    assert last_fall([4.0, 2.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.6]) == pytest.approx(1 / 3)
    assert last_fall([4.0, 2.0, 2.0]) == 0
    assert last_fall([4.0]) is None


def nothing(task: Task, *, rising: bool = False, needed: int | None = None) -> Learned:
    return Learned(
        task=task.name,
        answer="no" if needed is None else "cannot tell",
        metric=task.metric,
        best=0.0,
        guess=0.0,
        rows=100,
        rows_needed=needed,
        words="",
        still_rising=rising,
    )


def helping(tasks: list[Task], model: Architecture, batches: int, **how: object) -> str:
    learned = [nothing(task, **how) for task in tasks]  # type: ignore[arg-type]
    return what_would_help(learned, TaskSet(tuple(tasks)), architecture=model, batches=batches)


def test_sentences_at_f1_zero_need_a_pretrained_encoder_and_longer_runs() -> None:
    words = helping([tags("a"), tags("b")], WindowBiLSTM(), 250, rising=True)
    assert words.startswith("Nothing was learned yet of any of the 2 tasks after 250 batches")
    assert "a pretrained encoder (--model)" in words
    assert "runs of 1,000 batches or more (--steps" in words
    assert words.index("--model") < words.index("--steps")


def test_a_table_whose_labels_are_shuffled_needs_rows_or_other_inputs() -> None:
    words = helping([classes("a", 500)], Perceptron(), 4000)
    assert "Nothing was learned of `a` after 4,000 batches" in words
    assert "the inputs may say nothing of the labels" in words
    assert "more rows to train on" in words
    assert "--model" not in words
    assert "--steps" not in words


def test_texts_from_scratch_need_a_pretrained_model() -> None:
    task = replace(classes("a", 500), inputs="text")
    assert "a pretrained model (--model)" in helping([task], TextConvolution(), 4000)
    heads = tuned(Transformer(path="x"), "heads")
    assert "--tune adapters" in helping([task], heads, 4000)
    assert "--model" not in helping([task], heads, 4000)
    assert "about 320 a task" in helping([task], heads, 4000, needed=311)


@pytest.mark.parametrize("way", ["Train together", "alone", "uniform", "size"])
def test_what_would_help_is_never_a_way_of_training(way: str) -> None:
    for rising in (False, True):
        assert way not in helping([tags("a")], WindowBiLSTM(), 250, rising=rising)
