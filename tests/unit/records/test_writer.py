from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from toys import NAMES, SPECIFICATION, add_steps, begin

from taskmix.errors import OptionError, RecordError, ShapeError
from taskmix.records import RecordWriter, RunFolder, Study, _parts, _writer, specification_hash


def run_in(study: Path) -> RunFolder:
    return Study(study).run(SPECIFICATION)


@contextmanager
def started(study: Path, **options: Any) -> Iterator[RecordWriter]:
    with run_in(study).claim() as claim:
        yield begin(claim.writer, **options)


def commit(writer: RecordWriter, step: int, best_step: int | None = None) -> None:
    best = None if best_step is None else {"weight": torch.full((2,), float(best_step))}
    writer.commit(step, {"step": step}, best=best, best_step=best_step)


def files(folder: RunFolder) -> set[str]:
    return {str(p.relative_to(folder.path)) for p in folder.path.rglob("*") if p.is_file()}


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    with started(tmp_path) as writer:
        add_steps(writer, [1, 2, 3], probabilities=np.array([0.5, 0.5]))
        writer.add_scores(3, [("news", "dev", "accuracy", 0.5), ("digits", "dev", "rmse", 2.0)])
        commit(writer, 3, best_step=3)
        add_steps(writer, [4])
        writer.finish(scores=[("news", "test", "accuracy", 0.75)], best_step=3)
    folder = run_in(tmp_path)
    summary = folder.summary()
    assert summary is not None
    assert (summary.status, summary.label, summary.seed) == ("finished", "toy", 1)
    assert (summary.step, summary.steps, summary.best_step) == (4, 4, 3)
    assert summary.specification == SPECIFICATION
    assert summary.task_names == NAMES
    assert summary.scores[0].value == 0.75
    assert {"python", "taskmix", "torch", "numpy"} <= set(summary.versions)
    steps = folder.steps()
    assert steps["step"].to_pylist() == [1, 2, 3, 4]
    assert steps["task"].to_pylist() == ["digits", "news", "digits", "news"]
    assert steps["task"].chunk(0).indices.to_pylist() == [1, 0, 1, 0]
    assert folder.probabilities().tolist() == [[0.5, 0.5]] * 4
    assert folder.scores()["value"].to_pylist() == [0.5, 2.0]
    assert folder.steps(["loss", "step"]).column_names == ["loss", "step"]
    best = folder.best()
    assert best is not None
    assert best["weight"].tolist() == [3.0, 3.0]


def test_run_json_is_strict_json_that_names_what_the_run_is(tmp_path: Path) -> None:
    with started(tmp_path) as writer:
        undefined = [("news", "test", "matthews", math.nan), ("news", "test", "loss", math.inf)]
        writer.finish(scores=undefined, best_step=None)
    text = (run_in(tmp_path).path / "run.json").read_text()

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(text, parse_constant=refuse)
    assert document["name"] == specification_hash(SPECIFICATION)
    assert [row["value"] for row in document["scores"]] == [None, "inf"]
    summary = run_in(tmp_path).summary()
    assert summary is not None
    assert math.isnan(summary.scores[0].value)
    assert summary.scores[1].value == math.inf


def test_a_commit_keeps_two_checkpoints_and_the_best_states_they_need(tmp_path: Path) -> None:
    folder = run_in(tmp_path)
    with started(tmp_path) as writer:
        for step, best_step in [(1, 1), (2, 2), (3, 2), (4, 2), (5, 5)]:
            add_steps(writer, [step])
            commit(writer, step, best_step=best_step)
    checkpoints = {name for name in files(folder) if name.startswith("checkpoint")}
    assert checkpoints == {
        "checkpoint/latest.json",
        "checkpoint/state-4.safetensors",
        "checkpoint/state-5.safetensors",
        "checkpoint/best-2.safetensors",
        "checkpoint/best-5.safetensors",
    }
    checkpoint = folder.checkpoint()
    assert checkpoint is not None
    assert (checkpoint.step, checkpoint.best_step, checkpoint.state) == (5, 5, {"step": 5})
    assert checkpoint.best["weight"].tolist() == [5.0, 5.0]


def test_commits_at_the_same_step_keep_all_rows_and_both_states(tmp_path: Path) -> None:
    with started(tmp_path) as writer:
        add_steps(writer, [1, 2])
        writer.add_scores(2, [("news", "dev", "accuracy", 0.1)])
        commit(writer, 2)
        writer.add_scores(2, [("news", "dev", "accuracy", 0.2)])
        commit(writer, 2)
        writer.add_scores(2, [("news", "dev", "accuracy", 0.3)])
    folder = run_in(tmp_path)
    assert folder.scores()["value"].to_pylist() == [0.1, 0.2]
    with started(tmp_path) as writer:
        assert writer.resumed is not None
        writer.add_scores(2, [("news", "dev", "accuracy", 0.3)])
        writer.finish(scores=[], best_step=None)
    assert folder.scores()["value"].to_pylist() == [0.1, 0.2, 0.3]


def test_a_run_that_was_stopped_goes_on_and_keeps_its_age(tmp_path: Path) -> None:
    with started(tmp_path) as writer:
        add_steps(writer, [1, 2])
        commit(writer, 2)
        add_steps(writer, [3])  # never committed
        writer.stop()
    first = run_in(tmp_path).summary()
    assert first is not None
    assert first.status == "stopped"
    with started(tmp_path) as writer:
        assert writer.resumed is not None
        assert writer.resumed.step == 2
        assert writer.notes == []
        time.sleep(first.seconds)  # what came after the commit is no part of its age
        add_steps(writer, [3])
        commit(writer, 3)
        writer.finish(scores=[], best_step=None)
    second = run_in(tmp_path).summary()
    assert second is not None
    assert second.created == first.created
    assert second.seconds > first.seconds > 0
    assert run_in(tmp_path).steps()["step"].to_pylist() == [1, 2, 3]


def test_a_failed_run_shows_its_last_rows_until_it_is_tried_again(tmp_path: Path) -> None:
    folder = run_in(tmp_path)
    with started(tmp_path) as writer:
        add_steps(writer, [1, 2])
        commit(writer, 2)
        add_steps(writer, [3])
        writer.fail("The loss became NaN.")
        writer.fail("And again.")
    summary = folder.summary()
    assert summary is not None
    assert (summary.status, summary.error, summary.step) == ("failed", "The loss became NaN.", 2)
    assert folder.steps()["step"].to_pylist() == [1, 2, 3]
    with started(tmp_path):
        assert folder.steps()["step"].to_pylist() == [1, 2]


def test_a_run_without_a_best_state_keeps_its_last(tmp_path: Path) -> None:
    with started(tmp_path) as writer:
        commit(writer, 1)
        commit(writer, 2)
        writer.finish(scores=[], best_step=None)
    folder = run_in(tmp_path)
    assert files(folder) == {".lock", "run.json", "checkpoint/state-2.safetensors"}
    checkpoint = folder.checkpoint()
    assert checkpoint is not None
    assert checkpoint.state == {"step": 2}
    assert folder.best() is None


@pytest.mark.parametrize("count", [3, 200], ids=["few", "many"])
def test_columns_of_any_length_are_the_rows_one_by_one(tmp_path: Path, count: int) -> None:
    generator = np.random.default_rng(0)
    tasks, losses = generator.integers(0, 2, count), generator.random(count)
    vectors = generator.dirichlet(np.ones(2), count)
    rewards = [None if row % 3 else 0.5 for row in range(count)]
    with started(tmp_path / "one") as writer:
        for row in range(count):
            writer.add_step(
                row // 2,
                int(tasks[row]),
                probability=0.25,
                probabilities=vectors[row],
                loss=float(losses[row]),
                reward=rewards[row],
                weight=None,
                seconds=0.1,
                examples=7,
            )
        commit(writer, count)
    with started(tmp_path / "many") as writer:
        writer.add_steps(
            np.arange(count) // 2,
            tasks,
            probability=0.25,
            probabilities=vectors,
            loss=losses,
            reward=rewards,
            seconds=0.1,
            examples=7,
        )
        commit(writer, count)
        if count > 100:
            with pytest.raises(ShapeError, match="each of the 200 rows"):
                writer.add_steps(9, tasks, loss=losses[1:], seconds=0.1, examples=7)
            with pytest.raises(OptionError, match="from 0 to 1"):
                writer.add_steps(9, tasks + 1, loss=losses, seconds=0.1, examples=7)
    one, many = (run_in(tmp_path / name).steps() for name in ("one", "many"))
    assert one.equals(many)


def test_the_vector_is_copied_when_it_is_given(tmp_path: Path) -> None:
    vector = np.array([0.5, 0.5])
    with started(tmp_path) as writer:
        for step in (1, 2):
            add_steps(writer, [step], probabilities=vector)
            vector += 0.25
        commit(writer, 2)
        with pytest.raises(ShapeError, match="each of the 2 tasks"):
            writer.add_steps(3, [0], loss=0.0, seconds=0.0, examples=1, probabilities=np.ones(3))
    assert run_in(tmp_path).probabilities().tolist() == [[0.5, 0.5], [0.75, 0.75]]


def test_a_commit_that_failed_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise RecordError("There should be room.")

    folder = run_in(tmp_path)
    with started(tmp_path) as writer:
        add_steps(writer, [1, 2])
        commit(writer, 2)
        for name in ("save_state", "write_entries", "write_summary", "forget_files"):
            add_steps(writer, [3])
            with monkeypatch.context() as patch, pytest.raises(RecordError):
                patch.setattr(_writer, name, full)
                commit(writer, 3)
        commit(writer, 4)
        add_steps(writer, [5])
        commit(writer, 5)
        assert folder.steps()["step"].to_pylist() == [1, 2, 3, 3, 3, 3, 5]
        writer.finish(scores=[], best_step=None)
    assert folder.steps()["step"].to_pylist() == [1, 2, 3, 3, 3, 3, 5]


def test_parts_are_checked_for_bombs_where_another_process_wrote_them_and_not_at_the_end_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Any] = []

    def check(parquet: Any, *more: Any, **options: Any) -> None:
        checked.append(parquet)

    monkeypatch.setattr(_parts, "check_parquet", check)
    with started(tmp_path) as writer:
        for step in (1, 2, 3):
            add_steps(writer, [step])
            commit(writer, step)
        writer.stop()
    assert not checked
    with started(tmp_path) as writer:  # goes on with the parts of the first
        assert checked
        checked.clear()
        add_steps(writer, [4])
        writer.finish(scores=[], best_step=None)
    assert not checked
    assert run_in(tmp_path).steps()["step"].to_pylist() == [1, 2, 3, 4]
    assert checked


def test_other_versions_on_the_way_are_noted(tmp_path: Path) -> None:
    with started(tmp_path, versions={"torch": "2.6"}) as writer:
        commit(writer, 1)
    with started(tmp_path, versions={"torch": "2.7"}) as writer:
        assert "torch from 2.6 to 2.7" in writer.notes[0]


def test_what_does_not_fit_the_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="the one that names the run"):
        started(tmp_path, specification={"seed": 4}).__enter__()
    with pytest.raises(OptionError, match="of its own"):
        started(tmp_path, tasks=[{"name": "a"}, {"name": "a"}]).__enter__()
    with started(tmp_path) as writer:
        commit(writer, 5)
        with pytest.raises(OptionError, match="last commit's, 5"):
            commit(writer, 4)
    with pytest.raises(RecordError, match="should be running"):
        commit(writer, 6)  # the claim is over


def test_any_parquet_reader_reads_the_folder(tmp_path: Path) -> None:
    with started(tmp_path) as writer:
        add_steps(writer, [1, 2])
        commit(writer, 2)
    table = pq.read_table(run_in(tmp_path).path / "steps")
    assert table["task"].to_pylist() == ["digits", "news"]
