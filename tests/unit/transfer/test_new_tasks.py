"""Who will help tasks that were never trained: features of rows, and what follows from a study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from taskmix.errors import InputError
from taskmix.tasks import TaskSet, tables_as_tasks
from taskmix.transfer import (
    SourceRow,
    TargetRow,
    TransferDocument,
    UsedDesign,
    answer_for_new_tasks,
    predict_transfer,
    task_features,
)

WORDS = ("film actor scene", "engine wheel road", "soup salt oven")
NAMES = tuple("abcdefgh")
PLACES = np.array([0.0, 0.1, 0.2, 0.3, 3.0, 3.1, 3.2, 3.3])  # two kinds of tasks


def texts(names: str, seed: int = 0) -> TaskSet:
    """A task for each letter, about films, cars or food, by its place in the alphabet."""
    tables = {}
    for name in names:
        generator = np.random.default_rng([seed, ord(name)])
        words = WORDS[(ord(name) - ord("a")) % 3].split()
        rows = [" ".join(generator.choice(words, size=5)) for _ in range(30)]
        labels = ["yes" if generator.random() < 0.5 else "no" for _ in rows]
        tables[name] = {"train": pa.table({"text": rows, "label": [*labels[:-2], "yes", "no"]})}
    return tables_as_tasks(tables)


def numbers(places: dict[str, float]) -> TaskSet:
    tables = {}
    for name, place in places.items():
        generator = np.random.default_rng(ord(name))
        values = place + 0.1 * generator.normal(size=40)
        tables[name] = {"train": pa.table({"x": values, "label": ["yes", "no"] * 20})}
    return tables_as_tasks(tables)


def document(gains: np.ndarray, names: tuple[str, ...] = NAMES) -> TransferDocument:
    def row(source: str, gain: float) -> SourceRow:
        return SourceRow(
            source=source, gain=gain, low=gain, high=gain, p_value=0.5, verdict="cannot tell",
            relative_gain=gain, relative_low=gain, relative_high=gain,
        )  # fmt: skip

    targets = tuple(
        TargetRow(
            target=target, higher_is_better=False, alone=1.0, alone_runs=3, alone_deviation=0.1,
            subsets=9, subset_runs=9, noise=0.1, chosen=(),
            sources=tuple(row(s, float(gains[i, j])) for j, s in enumerate(names) if i != j),
        )
        for i, target in enumerate(names)
    )  # fmt: skip
    return TransferDocument(
        command="x", outcome="loss", measure="loss", budget="per-task", steps=1,
        design=UsedDesign(), runs=9, tasks=names, targets=targets, groups=(),
    )  # fmt: skip


def test_tasks_about_the_same_things_are_near_each_other() -> None:
    known, new = task_features(texts("abcdef"), texts("g", seed=1))
    away = np.linalg.norm(known - new[0], axis=1)
    assert set(np.argsort(away)[:2]) == {0, 3}  # films, as g


def test_a_task_like_some_of_the_known_ones_is_helped_by_those() -> None:
    gains = 1.0 - np.abs(PLACES[:, None] - PLACES)
    known = numbers(dict(zip(NAMES, PLACES.tolist(), strict=True)))
    (answer,) = answer_for_new_tasks(document(gains), known, numbers({"z": 0.15}))
    assert answer.tells
    assert {row.source for row in answer.sources[:4]} == set("abcd")
    answers = {row.source: row.answer for row in answer.sources}
    assert answers["a"] == "helps"
    assert answers["h"] == "harms"
    assert all(row.low < row.gain < row.high for row in answer.sources)


def test_tasks_that_do_not_fit_the_study_are_refused() -> None:
    known = numbers(dict(zip(NAMES, PLACES.tolist(), strict=True)))
    found = document(np.zeros((8, 8)))
    with pytest.raises(InputError, match="should be those of the study"):
        answer_for_new_tasks(found, known.select(NAMES[:6]), numbers({"z": 0.0}))
    with pytest.raises(InputError, match="should not be one of the study"):
        answer_for_new_tasks(found, known, numbers({"a": 0.0}))
    with pytest.raises(InputError, match="5 targets or more"):
        answer_for_new_tasks(replace(found, targets=found.targets[:1]), known, numbers({"z": 0.0}))
    rows = pa.table({"x": [1.0, 2.0], "label": ["yes", "no"]})
    with pytest.raises(InputError, match="rows to train on"):
        answer_for_new_tasks(found, known, tables_as_tasks({"z": {"test": rows}}))


def test_near_tasks_are_predicted_to_help_and_intervals_cover_left_out_gains() -> None:
    generator = np.random.default_rng(0)
    where = generator.normal(size=(14, 2))
    gains = (
        1 - np.linalg.norm(where[:, None] - where, axis=2) + 0.1 * generator.normal(size=(14, 14))
    )
    np.fill_diagonal(gains, np.nan)
    found = predict_transfer(
        gains[:13, :13], where[:13], where[13], tasks=[str(n) for n in range(13)]
    )
    assert found.tells
    assert np.corrcoef(found.gains, gains[13, :13])[0, 1] > 0.8
    assert found.coverage > 0.85


def test_nothing_is_told_where_features_say_nothing() -> None:
    told = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        gains, where = generator.normal(size=(9, 9)), generator.normal(size=(9, 3))
        found = predict_transfer(gains, where, where[0], tasks=list("abcdefghi"))
        told += found.tells
        if not found.tells:
            assert set(found.answers()) == {"cannot tell"}
    assert told <= 4  # one of twenty is expected by chance


def test_too_few_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="5 known tasks"):
        predict_transfer(np.zeros((3, 3)), np.zeros((3, 1)), [0.0], tasks=list("abc"))
