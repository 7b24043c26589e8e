from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import torch

from taskmix.engine import DigitsSource, Progress, Run, Workers, run_all
from taskmix.engine._encodings import KeptEncodings
from taskmix.engine._run import encode
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.tasks import DenseInputs, EncodedSplit, EncodedTask, EncodedTasks, TaskSet

RUN = Run(label="x", source=DigitsSource(), architecture=Perceptron(hidden=(4,)), steps=5, seed=0)


def test_workers_stay_for_the_next_call_and_change_nothing(tmp_path: Path) -> None:
    runs = [replace(RUN, seed=seed) for seed in range(3)]
    alone = run_all(runs, Study(tmp_path / "alone"), workers=1)
    told: list[Progress] = []
    with Workers(2) as workers:
        study = Study(tmp_path / "kept")
        first = run_all(runs[:2], study, workers=workers, on_progress=told.append)
        processes = set(workers._pool._processes)  # type: ignore[union-attr]
        second = run_all(runs, study, workers=workers, on_progress=told.append)
        assert set(workers._pool._processes) == processes  # type: ignore[union-attr]
    assert [each.outcome for each in second] == ["already finished"] * 2 + ["finished"]
    assert len([each for each in told if each.done]) == 5
    for ours, theirs in zip([*first, second[2]], alone, strict=True):
        assert ours.summary is not None
        assert theirs.summary is not None
        assert ours.summary.scores == theirs.summary.scores


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with Workers(2) as workers:
        workers.begin()
        for process in _processes(workers):
            os.kill(process, signal.SIGKILL)
        results = run_all([RUN, replace(RUN, seed=1)], Study(tmp_path), workers=workers)
    assert [each.outcome for each in results] == ["finished", "finished"]


def _processes(workers: Workers) -> list[int]:
    future = workers._pool.submit(os.getpid)  # type: ignore[union-attr]
    return [future.result()]


def test_an_encoding_is_made_once_and_the_oldest_are_forgotten() -> None:
    assert encode(RUN) is encode(replace(RUN, seed=9))
    assert encode(RUN) is not encode(replace(RUN, tasks=("half",)))

    made: list[str] = []

    def make(name: str) -> EncodedTasks:
        made.append(name)
        split = EncodedSplit(DenseInputs(torch.zeros(10, 10)), torch.zeros(10))
        task = EncodedTask(
            name=name,
            kind="regression",
            labels=(),
            metric="rmse",
            source=name,
            splits={"train": split},
        )
        return EncodedTasks((task,))

    tasks = TaskSet(())
    kept = KeptEncodings(limit=900)  # two encodings of 400 bytes each
    for name in ("a", "b", "a", "c", "a", "b"):
        kept.get(tasks, name, lambda name=name: make(name))  # type: ignore[misc]
    assert made == ["a", "b", "c", "b"], "b was used least recently when c came"
