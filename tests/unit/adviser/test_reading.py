"""How many rows a frozen encoder may read, with an encoder whose speed is made up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from taskmix.adviser import AdviseOptions, Budget
from taskmix.adviser._adviser import Adviser
from taskmix.adviser._budget import Timer
from taskmix.adviser._reading import READING_SHARE, largest_sizes, rows_to_read
from taskmix.engine import Here, Observers, Run, SampledSource
from taskmix.errors import OptionError, RunError
from taskmix.models import Perceptron
from taskmix.records import Study
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


def test_a_large_encoder_s_speed_is_measured_on_a_few_texts(
    slow_encoder: FeatureEncoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    class Reader:
        def speed(self, texts: Any) -> tuple[float, float]:
            tried.append(len(texts))
            return 20.0, 20.0  # a text a second

    monkeypatch.setattr(FeatureEncoding, "reader", lambda self: Reader())
    source = Made(large=10_000)
    run = run_of(source, slow_encoder)
    rows_to_read(run, source.tasks, seconds=100.0)
    assert tried == [4], "64 texts would take longer than 3 s"
    rows_to_read(run, source.tasks, seconds=10_000.0)
    assert tried == [4, 4, 64]


@dataclass
class Reading:
    """Reads a text a second, for ever, and hears whether it should stop."""

    time: float = 0.0

    def read(self, tasks: TaskSet, *, cache: Path | None, on_progress: Any) -> None:
        for done in range(1, 10_001):
            self.time += 1.0
            on_progress(done, 10_000)


def reading_adviser(
    tmp_path: Path, source: Made, encoding: FeatureEncoding, clock: Reading, executor: Any
) -> Adviser:
    return Adviser(
        template=run_of(source, encoding),
        probe=None,
        study=Study(tmp_path),
        options=AdviseOptions(budget=Budget.parse("100s")),
        executor=executor,
        timer=Timer(begin=0.0, now=lambda: clock.time),
    )


def test_the_budget_stops_an_encoder_that_reads_more_slowly_than_it_was_measured_to(
    slow_encoder: FeatureEncoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Reading()
    monkeypatch.setattr(FeatureEncoding, "read", lambda self, *a, **how: clock.read(*a, **how))
    adviser = reading_adviser(tmp_path, Made(a=300), slow_encoder, clock, Here(workers=1))
    with pytest.raises(OptionError, match="until the encoder has read all texts"):
        adviser.run()
    assert clock.time <= 100


def test_who_asks_for_a_stop_while_the_encoder_reads_waits_for_one_batch(
    slow_encoder: FeatureEncoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Reading()
    monkeypatch.setattr(FeatureEncoding, "read", lambda self, *a, **how: clock.read(*a, **how))
    executor = Here(workers=1, observers=Observers(stop=lambda: clock.time >= 7))
    adviser = reading_adviser(tmp_path, Made(a=300), slow_encoder, clock, executor)
    with pytest.raises(RunError, match="What was read is kept"):
        adviser.run()
    assert clock.time == 7


def test_an_executor_that_is_stopped_while_texts_are_read_begins_no_run(
    slow_encoder: FeatureEncoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Reading()
    monkeypatch.setattr(FeatureEncoding, "read", lambda self, *a, **how: clock.read(*a, **how))
    run = run_of(Made(a=300), slow_encoder)
    (result,) = Here(workers=1).run([run], Study(tmp_path), stop=lambda: clock.time >= 3)
    assert result.outcome == "stopped"
    assert clock.time == 3
