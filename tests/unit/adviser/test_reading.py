"""How many rows a frozen encoder may read, with an encoder whose speed is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from taskmix.adviser._reading import READING_SHARE, largest_sizes, rows_to_read
from taskmix.engine import Run, SampledSource
from taskmix.models import Perceptron
from taskmix.tasks import FeatureEncoding, Split, Task, TaskSet


class Made:
    """A source of tasks with so many rows each."""

    def __init__(self, **sizes: int) -> None:
        def split(name: str, count: int) -> Split:
            texts = [f"{name} {place}" for place in range(count)]
            return Split(pa.table({"text": texts}), np.zeros(count, dtype=np.int64))

        self.tasks = TaskSet(
            tuple(
                Task(
                    name=name,
                    kind="classification",
                    inputs="text",
                    labels=("no", "yes"),
                    metric="accuracy",
                    source=name,
                    splits={
                        key: split(f"{name} {key}", n)
                        for key, n in (("train", count), ("dev", count // 5), ("test", count // 5))
                    },
                )
                for name, count in sizes.items()
            )
        )

    def load(self) -> TaskSet:
        return self.tasks


@pytest.fixture
def slow_encoder(monkeypatch: pytest.MonkeyPatch) -> FeatureEncoding:
    """One that would read ten texts of twenty pieces a second, and has read none."""

    class Reader:
        def speed(self, texts: Any) -> tuple[float, float]:
            return 200.0, 20.0

    monkeypatch.setattr(FeatureEncoding, "reader", lambda self: Reader())
    monkeypatch.setattr(
        FeatureEncoding,
        "unread",
        lambda self, tasks, cache=None: [s.inputs for t in tasks for s in t.splits.values()],
    )
    return FeatureEncoding(path="nowhere", pooling="mean")


def run_of(source: Made, encoding: FeatureEncoding) -> Run:
    return Run(label="x", source=source, architecture=Perceptron(reads=encoding), steps=1, seed=0)


def test_large_tasks_are_sampled_to_one_size_and_small_ones_stay_whole(
    slow_encoder: FeatureEncoding,
) -> None:
    source = Made(large=10_000, larger=20_000, small=100)
    run = run_of(source, slow_encoder)
    rows = rows_to_read(run, source.tasks, seconds=500.0)
    found = rows.apply(run).load()
    assert found["small"].sizes == source.tasks["small"].sizes
    assert found["large"].sizes == found["larger"].sizes
    read = sum(sum(task.sizes.values()) for task in found)
    affordable = READING_SHARE * 500.0 * 10
    assert 0.95 * affordable <= read <= affordable
    assert "about 10 texts a second" in rows.words
    assert f"at most {found['large'].sizes['test']:,} test" in rows.words


def test_all_rows_are_read_where_there_is_time_or_nothing_to_read(
    slow_encoder: FeatureEncoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Made(large=10_000)
    run = run_of(source, slow_encoder)
    assert rows_to_read(run, source.tasks, seconds=1e6).apply(run) is run
    monkeypatch.setattr(FeatureEncoding, "unread", lambda self, tasks, cache=None: [])
    assert rows_to_read(run, source.tasks, seconds=1.0).apply(run) is run


def test_what_the_other_splits_leave_over_goes_to_the_rows_to_train_on() -> None:
    tasks = Made(one=10_000).tasks
    few = TaskSet(
        tuple(
            Task(
                name=task.name,
                kind=task.kind,
                inputs=task.inputs,
                labels=task.labels,
                metric=task.metric,
                source=task.source,
                splits={
                    name: split if name == "train" else Split(split.inputs[:10], split.targets[:10])
                    for name, split in task.splits.items()
                },
            )
            for task in tasks
        )
    )
    assert largest_sizes(few, 1000)["train"] == 980


def test_a_sample_keeps_the_folder_of_the_cache(tmp_path: Path) -> None:
    source: Any = Made(one=10)
    source.cache = tmp_path
    assert SampledSource(source=source, most=(("train", 2),)).cache == tmp_path
