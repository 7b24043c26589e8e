from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from simulated_logs import Simulated, simulate

from taskmix.counterfactual import Log, LogStatistics, log_from_arrays, log_from_batches
from taskmix.errors import InputError, OptionError, ShapeError

NAMES = ["a", "b", "c", "d", "e"]


def same(one: LogStatistics | None, other: LogStatistics | None) -> None:
    assert one is not None
    assert other is not None
    for item in fields(LogStatistics):
        np.testing.assert_allclose(
            getattr(one, item.name), getattr(other, item.name), rtol=1e-12, err_msg=item.name
        )


def whole(log: Simulated, losses: np.ndarray) -> Log:
    return log_from_arrays(log.tasks, log.rewards, log.probabilities, losses, names=NAMES)


def batches(log: Simulated, losses: np.ndarray, kind: str, rows: int) -> list[pa.RecordBatch]:
    tasks: Any = pa.array(log.tasks)
    if kind != "numbers":
        # Another order of the names than the log's own, as another writer may have.
        reversed_names = pa.array(NAMES[::-1])
        codes = pa.array((4 - log.tasks).astype(np.int32))
        tasks = pa.DictionaryArray.from_arrays(codes, reversed_names)
        tasks = tasks.cast(pa.string()) if kind == "strings" else tasks
    table = pa.table(
        {
            "step": np.arange(len(log.tasks)),
            "task": tasks,
            "reward": pa.array(log.rewards, mask=np.isnan(log.rewards)),
            "probability": log.probabilities,
            "loss": losses.astype(np.float32),
        }
    )
    return table.to_batches(max_chunksize=rows)


@pytest.mark.parametrize("kind", ["numbers", "dictionary", "strings"])
@pytest.mark.parametrize("rows", [7, 1000, 100_000])
def test_a_streamed_log_is_the_log_in_memory(kind: str, rows: int) -> None:
    log = simulate(np.random.default_rng(0), rows=5000)
    log.rewards[::9] = math.nan
    losses = np.random.default_rng(1).exponential(size=5000).astype(np.float32).astype(np.float64)
    streamed = log_from_batches(batches(log, losses, kind, rows), names=NAMES)
    expected = whole(log, losses)
    same(streamed.stages, expected.stages)
    same(streamed.performance, expected.performance)
    assert streamed.rows == expected.rows == 5000
    assert streamed.tasks == tuple(NAMES)


def test_performance_counts_rows_without_a_reward_too() -> None:
    log = simulate(np.random.default_rng(0), rows=500)
    log.rewards[:250] = math.nan
    found = whole(log, np.full(500, math.log(2)))
    assert found.total.rows == 250
    assert found.performance is not None
    assert found.performance.pooled().rows == 500
    np.testing.assert_allclose(found.performance.pooled().means, 0.5)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("probability", [None, 0.5], "Found none in row 0"),
        ("task", [None, "a"], "should name its task"),
        ("task", ["a", "z"], "Found `z`"),
        ("reward", None, "no `reward`"),
    ],
)
def test_batches_that_are_no_log_are_refused_in_words(
    column: str, value: list[Any] | None, words: str
) -> None:
    columns = {"task": ["a", "b"], "probability": [0.5, 0.5], "reward": [1.0, 0.0]}
    if value is None:
        del columns[column]
    else:
        columns[column] = value
    with pytest.raises(InputError, match=words):
        log_from_batches(pa.table(columns).to_batches(), names=NAMES)


def test_an_empty_log_and_impossible_stages_are_refused() -> None:
    with pytest.raises(InputError, match="rows"):
        log_from_batches([], names=NAMES)
    with pytest.raises(OptionError, match="stages"):
        log_from_arrays([0], [1.0], [0.5], names=NAMES, stages=0)
    with pytest.raises(ShapeError, match="one value per row"):
        log_from_arrays([0, 1], [1.0, 1.0], [0.5, 0.5], [1.0], names=NAMES)


def test_recorded_runs_are_read_as_they_were_written(tmp_path: Any) -> None:
    from taskmix.counterfactual import log_of_runs
    from taskmix.records import Study

    log = simulate(np.random.default_rng(2), rows=300)
    run = Study(tmp_path).run({"name": "x"})
    with run.claim() as claim:
        assert claim.writer is not None
        start_and_fill(claim.writer, log)
    (found,) = log_of_runs([run])
    same(found.stages, whole(log, np.ones(300)).stages)
    assert found.tasks == tuple(NAMES)


def start_and_fill(writer: Any, log: Simulated) -> None:
    tasks = [{"name": name} for name in NAMES]
    writer.start(specification={"name": "x"}, seed=0, label="x", tasks=tasks, steps=len(log.tasks))
    writer.add_steps(
        np.arange(1, len(log.tasks) + 1),
        log.tasks,
        loss=1.0,
        seconds=0.1,
        examples=1,
        probability=log.probabilities,
        reward=log.rewards,
    )
    writer.finish(scores=(), best_step=None)
