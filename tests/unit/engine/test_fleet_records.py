"""Fleets and studies: claims, checkpoints that either engine goes on from, memory, progress."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fleet_toys import (
    SUBSETS,
    must_be_alike,
    must_meet_half_way,
    runs_of,
)

from taskmix.engine import (
    Fleet,
    Here,
    Observers,
    Optimization,
    Progress,
)
from taskmix.errors import RecordError
from taskmix.models import Perceptron
from taskmix.policies import Exp3, PredictionGain
from taskmix.records import RecordWriter, Study
from taskmix.weighting import MGDA, Equal


@pytest.mark.parametrize(
    ("optimizer", "weighting"), [("adam", Equal()), ("adamw", None), ("sgd", None)]
)
def test_either_engine_goes_on_with_what_the_other_began(
    tmp_path: Path, optimizer: Any, weighting: Any
) -> None:
    options = Optimization(optimizer=optimizer, learning_rate=1e-2, schedule="cosine", warmup=0.1)
    dropping = Perceptron(hidden=(16,), dropout=0.1)
    runs = [
        replace(run, optimization=options, architecture=dropping)
        for run in runs_of(weighting=weighting, checkpoint_every=10)
    ]
    whole = Study(tmp_path / "whole")
    Here(workers=1).run(runs, whole)
    must_meet_half_way(runs, whole, tmp_path)


def test_a_run_that_another_holds_is_busy_and_the_others_are_done(tmp_path: Path) -> None:
    study, runs = Study(tmp_path), runs_of()
    with study.run(runs[1].specification()).claim():
        results = Fleet(workers=1).run(runs, study)
    assert [result.outcome for result in results] == ["finished", "busy", "finished"]


def test_runs_that_no_fleet_can_take_are_done_alone_and_results_keep_their_order(
    tmp_path: Path,
) -> None:
    plain = runs_of(steps=4)
    others = [
        replace(plain[0], weighting=MGDA()),
        replace(plain[0], weighting=None, policy=Exp3(exploration=0.1), reward=PredictionGain()),
        replace(plain[0], steps=5),
    ]
    mixed = [others[0], plain[0], others[1], plain[1], plain[2], others[2]]
    results = Fleet(workers=1).run(mixed, Study(tmp_path))
    for run, result in zip(mixed, results, strict=True):
        assert result.outcome == "finished"
        assert result.summary is not None
        assert result.summary.seed == run.seed
        assert result.summary.task_names == run.tasks
        assert result.summary.steps == run.steps


def test_a_record_that_cannot_be_written_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, study = runs_of(checkpoint_every=10), Study(tmp_path)
    full = study.run(runs[1].specification()).path
    commit = RecordWriter.commit

    def refused(writer: RecordWriter, *arguments: Any, **options: Any) -> None:
        if writer._folder == full:
            raise RecordError("There should be room on the disk.")
        commit(writer, *arguments, **options)

    monkeypatch.setattr(RecordWriter, "commit", refused)
    results = Fleet(workers=1).run(runs, study)
    assert [result.outcome for result in results] == ["finished", "failed", "finished"]
    assert results[1].error == "There should be room on the disk."


def test_chunks_go_to_several_processes(tmp_path: Path) -> None:
    subsets = (*SUBSETS, *SUBSETS)
    runs = runs_of(subsets=subsets)
    told: list[Progress] = []
    results = Fleet(workers=2, observers=Observers.telling(told.append)).run(
        runs, Study(tmp_path / "pool")
    )
    assert [result.outcome for result in results] == ["finished"] * 6
    assert sorted(progress.run for progress in told if progress.done) == list(range(6))
    Fleet(workers=1, chunk=6).run(runs, Study(tmp_path / "here"))
    for run in runs:
        folders = (Study(tmp_path / name).run(run.specification()) for name in ("here", "pool"))
        must_be_alike(*folders)
