"""Fleets and studies: claims, checkpoints that either engine goes on from, memory, progress."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet_toys import (
    RUN,
    SUBSETS,
    after,
    alone_until,
    must_be_alike,
    runs_of,
    trees_must_be_alike,
)

from taskmix.engine import (
    Fleet,
    FolderSource,
    Here,
    Observers,
    Optimization,
    Progress,
    execute,
)
from taskmix.engine._fleet import _train
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.errors import InputError, RecordError
from taskmix.models import AdversarialSharing, Perceptron
from taskmix.policies import Exp3, PredictionGain
from taskmix.records import RecordWriter, Study
from taskmix.weighting import MGDA, Equal

DECISIONS: list[Any] = [Equal(), None]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_fleet_goes_on_with_what_solo_runs_began(
    tmp_path: Path, weighting: Any, optimizer: Any
) -> None:
    options = Optimization(optimizer=optimizer, learning_rate=1e-2, schedule="linear", warmup=0.1)
    runs = [replace(run, optimization=options) for run in runs_of(weighting=weighting)]
    whole, shared = Study(tmp_path / "whole"), Study(tmp_path / "shared")
    Here(workers=1).run(runs, whole)
    for number, run in enumerate(runs):
        alone_until(run, shared, 13 if number < 2 else 7)
    results = Fleet(workers=1).run(runs, shared)
    assert [result.outcome for result in results] == ["finished"] * 3
    for run in runs:
        must_be_alike(whole.run(run.specification()), shared.run(run.specification()))


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_solo_runs_go_on_with_what_a_fleet_began(
    tmp_path: Path, weighting: Any, optimizer: Any
) -> None:
    options = Optimization(optimizer=optimizer, learning_rate=1e-2, schedule="cosine", warmup=0.1)
    dropping = Perceptron(hidden=(16,), dropout=0.1)
    runs = [
        replace(run, optimization=options, architecture=dropping)
        for run in runs_of(weighting=weighting, checkpoint_every=10)
    ]
    whole, shared = Study(tmp_path / "whole"), Study(tmp_path / "shared")
    Here(workers=1).run(runs, whole)
    results = Fleet(workers=1).run(runs, shared, stop=after(2))
    assert [result.outcome for result in results] == ["stopped"] * 3
    assert {summary.status for summary in shared.summaries()} == {"stopped"}
    for run in runs:
        assert execute(run, shared).outcome == "finished"
        must_be_alike(whole.run(run.specification()), shared.run(run.specification()))


@pytest.mark.parametrize("weighting", DECISIONS, ids=["all", "drawn"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_members_checkpoint_is_the_tree_of_a_solo_run(
    tmp_path: Path, weighting: Any, optimizer: Any
) -> None:
    options = Optimization(optimizer=optimizer, learning_rate=1e-2, schedule="linear", warmup=0.1)
    runs = [replace(r, optimization=options) for r in runs_of(weighting=weighting, steps=2000)]
    alone, together = Study(tmp_path / "alone"), Study(tmp_path / "together")
    Fleet(workers=1).run(runs, together, stop=after(2))
    for run in runs:
        found = together.run(run.specification()).checkpoint()
        assert found is not None
        alone_until(run, alone, found.step)
        wanted = alone.run(run.specification()).checkpoint()
        assert wanted is not None
        trees_must_be_alike(found.state, wanted.state)
        trees_must_be_alike(found.best, wanted.best)


def test_asking_twice_costs_once_and_fresh_starts_over(tmp_path: Path) -> None:
    study, runs = Study(tmp_path), runs_of()
    first = Fleet(workers=1).run([*runs, runs[0]], study)
    assert [r.outcome for r in first] == ["finished"] * 4
    assert first[3] is first[0]  # the same run under the same label: one result
    again = Fleet(workers=1).run(runs, study)
    assert [r.outcome for r in again] == ["already finished"] * 3
    fresh = Fleet(workers=1).run(runs, study, fresh=True)
    assert [r.outcome for r in fresh] == ["finished"] * 3
    for one, other in zip(first, fresh, strict=False):
        assert one.summary is not None
        assert other.summary is not None
        assert one.summary.scores == other.summary.scores


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
        replace(plain[0], architecture=AdversarialSharing(architecture=Perceptron(hidden=(8,)))),
        replace(plain[0], steps=5),
    ]
    mixed = [others[0], plain[0], others[1], plain[1], others[2], plain[2], others[3]]
    results = Fleet(workers=1).run(mixed, Study(tmp_path))
    for run, result in zip(mixed, results, strict=True):
        assert result.outcome == "finished"
        assert result.summary is not None
        assert result.summary.seed == run.seed
        assert result.summary.task_names == run.tasks
        assert result.summary.steps == run.steps


def test_where_memory_does_not_suffice_the_fleet_is_halved_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    take = StackedModels.take

    def cramped(fleet: StackedModels, *arguments: Any) -> Any:
        if len(fleet.members) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        sizes.append(len(fleet.members))
        return take(fleet, *arguments)

    monkeypatch.setattr(StackedModels, "take", cramped)
    runs = runs_of(subsets=[*SUBSETS, *SUBSETS[:2]])
    results = Fleet(workers=1).run(runs, Study(tmp_path / "small"), fresh=True)
    assert [result.outcome for result in results] == ["finished"] * 5
    assert set(sizes) == {1, 2}
    monkeypatch.undo()
    Fleet(workers=1).run(runs, Study(tmp_path / "large"))
    for run in runs:
        folders = (Study(tmp_path / name).run(run.specification()) for name in ("large", "small"))
        must_be_alike(*folders)


def test_members_that_are_done_no_longer_cost_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    take = StackedModels.take

    def watched(fleet: StackedModels, *arguments: Any) -> Any:
        sizes.append(len(fleet.members))
        return take(fleet, *arguments)

    monkeypatch.setattr(StackedModels, "take", watched)
    subsets = (*SUBSETS, ("half",), ("shuffled_ten",))
    Fleet(workers=1).run(
        runs_of(subsets=subsets, steps=80, evaluate_every=4, patience=1), Study(tmp_path)
    )
    assert sizes[0] == 5
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < _train.DROPPED_BELOW * 5


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


def test_a_programs_own_error_is_told_in_every_record_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(fleet: StackedModels, *arguments: Any) -> Any:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(StackedModels, "take", broken)
    with pytest.raises(ZeroDivisionError):
        Fleet(workers=1).run(runs_of(), Study(tmp_path))
    errors = {summary.error for summary in Study(tmp_path).summaries()}
    assert errors == {"ZeroDivisionError: by zero"}


def test_what_the_user_must_mend_stops_all(tmp_path: Path) -> None:
    missing = replace(RUN, source=FolderSource(path=str(tmp_path / "nowhere")))
    with pytest.raises(InputError):
        Fleet(workers=1).run([missing, replace(missing, seed=1)], Study(tmp_path / "study"))
    unknown = [replace(run, tasks=("parity", "nothing")) for run in runs_of()]
    with pytest.raises(InputError, match="nothing"):
        Fleet(workers=1).run(unknown, Study(tmp_path / "study"))


def test_progress_is_told_of_every_run_and_its_end_once(tmp_path: Path) -> None:
    told: list[Progress] = []
    runs = runs_of(steps=30)
    Fleet(workers=1, observers=Observers.telling(told.append)).run(runs, Study(tmp_path))
    assert sorted(progress.run for progress in told if progress.done) == [0, 1, 2]
    for number in range(3):
        steps = [progress.step for progress in told if progress.run == number]
        assert steps == sorted(steps)
        assert steps[-1] == 30


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
