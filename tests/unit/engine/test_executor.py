"""What every executor does, wherever it does it: one suite that all of them pass."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from taskmix.engine import (
    Auto,
    DigitsSource,
    Executor,
    Fleet,
    Here,
    Observers,
    Optimization,
    Progress,
    Ray,
    RestartingExecutor,
    Run,
    TorchrunExecutor,
    Until,
    Workers,
    finish,
    never,
)
from taskmix.errors import InputError, RunError
from taskmix.models import Perceptron
from taskmix.records import RunFolder, Study
from taskmix.training import CheckpointEvent, EndEvent, EvaluationEvent, Event, StepEvent

RUN = Run(
    label="one",
    source=DigitsSource(tasks=("parity", "half")),
    architecture=Perceptron(hidden=(4,)),
    optimization=Optimization(optimizer="sgd", learning_rate=0.1),
    steps=6,
    evaluate_every=3,
    checkpoint_every=3,
    seed=0,
)
RUNS = [replace(RUN, seed=seed) for seed in (2, 0, 1)]
DIVERGING = replace(RUN, optimization=Optimization(optimizer="sgd", learning_rate=1e30), seed=7)

Making = Callable[[Observers], Executor]
QUIET = Observers()


@pytest.fixture(scope="module")
def pool() -> Iterator[Workers]:
    """Processes that take seconds to start, and start when the first executor asks for them."""
    with Workers(2) as workers:
        yield workers


NAMES = (
    "here",
    "two processes",
    "fleet",
    "auto",
    "launched",
    "until",
    "starting over",
    "ray",
    "by post",
)


@pytest.fixture(params=NAMES)
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Making:
    match request.param:
        case "here":
            return lambda observers: Here(workers=1, observers=observers)
        case "two processes":
            pool = request.getfixturevalue("pool")
            return lambda observers: Here(workers=pool, observers=observers)
        case "fleet":
            return lambda observers: Fleet(workers=1, observers=observers)
        case "auto":
            return lambda observers: Auto(workers=1, observers=observers)
        case "launched":  # by a launcher of one process, which takes the same road as several
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            launcher = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "MASTER_PORT": port}
            for name, value in (launcher | {"MASTER_ADDR": "127.0.0.1"}).items():
                monkeypatch.setenv(name, str(value))
            return lambda observers: TorchrunExecutor(observers=observers)
        case "until":
            return lambda observers: Until(Here(workers=1, observers=observers), never)
        case "starting over":
            return lambda observers: RestartingExecutor(Here(workers=1, observers=observers))
        case _:
            request.getfixturevalue("ray_cluster")
            shared = None if request.param == "ray" else False
            return lambda observers: Ray(shared_disk=shared, observers=observers)


def bits(run: Run, study: Study) -> tuple[object, ...]:
    """All of a record but the time that it took."""
    folder = run.folder(study)
    best = folder.best()
    assert isinstance(best, dict)
    return (
        folder.steps().drop_columns(["seconds"]).to_pylist(),
        folder.scores().to_pylist(),
        {name: value.tolist() for name, value in best.items()},
    )


def test_nothing_to_do_is_no_result(make: Making, tmp_path: Path) -> None:
    assert make(QUIET).run([], Study(tmp_path / "study")) == []
    assert not (tmp_path / "study").exists()


def test_equal_runs_are_done_once_each_under_its_label(make: Making, tmp_path: Path) -> None:
    study, other = Study(tmp_path), replace(RUN, label="other")
    executor = make(QUIET)
    results = executor.run([RUN, other, RUN], study)
    assert all(result.is_done for result in results)
    assert [result.summary and result.summary.label for result in results] == [
        "one",
        "other",
        "one",
    ]
    (summary,) = study.summaries()
    assert set(summary.labels) == {"one", "other"}
    again = executor.run([replace(RUN, label="third"), RUN], study)
    assert [result.outcome for result in again] == ["already finished"] * 2
    assert [result.summary and result.summary.label for result in again] == ["third", "one"]
    (summary,) = study.summaries()
    assert set(summary.labels) == {"one", "other", "third"}


def test_equal_runs_start_over_once(make: Making, tmp_path: Path) -> None:
    runs = [RUN, replace(RUN, label="other")]
    results = make(QUIET).run(runs, Study(tmp_path), fresh=True)
    assert sorted(result.outcome for result in results) == ["already finished", "finished"]


def test_a_run_that_fails_is_told_in_its_result_and_the_others_go_on(
    make: Making, tmp_path: Path
) -> None:
    results = make(QUIET).run([RUNS[0], DIVERGING, RUNS[1]], Study(tmp_path))
    assert [result.outcome for result in results] == ["finished", "failed", "finished"]
    assert "should be finite" in (results[1].error or "")
    assert results[1].recorded
    with pytest.raises(RunError, match="should be finite"):
        finish(make(QUIET), [RUNS[0], DIVERGING], Study(tmp_path))


def test_a_stop_leaves_a_checkpoint_from_which_the_same_call_goes_on_to_the_same_bits(
    make: Making, tmp_path: Path
) -> None:
    # A run may end before the word to stop reaches its process: then longer ones are tried.
    for steps in (400, 4_000, 40_000):
        runs = [replace(RUN, steps=steps, checkpoint_every=None, seed=seed) for seed in (0, 1)]
        told: list[Progress] = []
        executor, study = make(Observers.telling(told.append)), Study(tmp_path / f"{steps}")
        results = executor.run(runs, study, stop=partial(is_midway, told, steps))
        reached = [result.summary for result in results if result.outcome == "stopped"]
        if any(summary is not None and 0 < summary.step < steps for summary in reached):
            break
    else:
        pytest.fail("no run was stopped in its middle")
    assert all(result.is_done for result in executor.run(runs, study))
    whole = Study(tmp_path / "whole")
    make(QUIET).run(runs, whole)
    assert [bits(run, study) for run in runs] == [bits(run, whole) for run in runs]


def is_midway(told: Sequence[Progress], steps: int) -> bool:
    return any(0 < each.step < steps and not each.done for each in told)


def test_fresh_starts_over_and_without_it_nothing_does(make: Making, tmp_path: Path) -> None:
    executor, study = make(QUIET), Study(tmp_path)
    executor.run(RUNS[:2], study)
    before = [file_times(run, study) for run in RUNS[:2]]
    again = executor.run(RUNS[:2], study)
    assert [result.outcome for result in again] == ["already finished"] * 2
    assert [file_times(run, study) for run in RUNS[:2]] == before
    over = executor.run(RUNS[:2], study, fresh=True)
    assert [result.outcome for result in over] == ["finished"] * 2
    assert all(file_times(run, study) != time for run, time in zip(RUNS[:2], before, strict=True))


def file_times(run: Run, study: Study) -> int:
    return (run.folder(study).path / "run.json").stat().st_mtime_ns


def test_the_progress_of_every_run_is_told_to_its_end_once(make: Making, tmp_path: Path) -> None:
    told: list[Progress] = []
    executor, study = make(Observers.telling(told.append)), Study(tmp_path)
    asked = [RUN, replace(RUN, seed=1), replace(RUN, label="other")]
    for _ in range(2):  # the second time all are done already
        executor.run(asked, study)
        ends = [progress for progress in told if progress.done]
        assert sorted(progress.run for progress in ends) == [0, 1, 2]
        assert {progress.step for progress in ends} == {RUN.steps}
        told.clear()


@dataclass
class Listener:
    events: list[Event] = field(default_factory=list)
    closed: int = 0

    def __call__(self, event: Event, /) -> None:
        assert not self.closed
        self.events.append(event)

    def close(self) -> None:
        self.closed += 1


@dataclass
class Heard:
    """Gives a listener whenever one is asked for, and keeps all of them."""

    by_run: dict[tuple[str, int], list[Listener]] = field(default_factory=dict)

    def observers(self) -> Observers:
        return Observers(listeners=self._listeners)

    def _listeners(self, run: Run, folder: RunFolder) -> Sequence[Listener]:
        listener = Listener()
        self.by_run.setdefault((run.label, run.seed), []).append(listener)
        return [listener]


def must_have_heard_all(heard: Heard, runs: Sequence[Run]) -> None:
    """Every event of every run once; only who listens live hears of checkpoints."""
    assert heard.by_run.keys() == {(run.label, run.seed) for run in runs}
    for run in runs:
        (listener,) = heard.by_run[(run.label, run.seed)]
        events = [each for each in listener.events if not isinstance(each, CheckpointEvent)]
        steps = [each.step for each in events if isinstance(each, StepEvent)]
        assert steps == list(range(1, run.steps + 1))
        assert [each.step for each in events if isinstance(each, EvaluationEvent)] == [3, 6]
        assert [isinstance(each, EndEvent) for each in events] == [False] * 8 + [True]
        assert listener.closed == 1


def test_results_come_in_order_and_listeners_hear_every_event_once(
    make: Making, tmp_path: Path
) -> None:
    asked, study = [*RUNS, replace(RUN, label="other"), RUN], Study(tmp_path)
    for _ in range(2):  # the second time all are done already
        heard = Heard()
        results = make(heard.observers()).run(asked, study)
        assert [result.summary and result.summary.seed for result in results] == [2, 0, 1, 0, 0]
        must_have_heard_all(heard, asked[:4])


def test_a_run_that_goes_on_is_heard_from_its_beginning(make: Making, tmp_path: Path) -> None:
    study, steps = Study(tmp_path), iter(range(100))
    (result,) = Here(workers=1).run([RUN], study, stop=lambda: next(steps) > 3)
    assert result.outcome == "stopped"
    heard = Heard()
    make(heard.observers()).run([RUN], study)
    must_have_heard_all(heard, [RUN])


def test_what_the_user_must_mend_stops_all(make: Making, tmp_path: Path) -> None:
    # The last of those with `make`: processes are ended by it, and would have to start again.
    with pytest.raises(InputError, match="batch_size"):
        make(QUIET).run([replace(RUN, batch_size=0), RUNS[0]], Study(tmp_path))


def test_starting_over_starts_a_run_over_the_first_time_only(tmp_path: Path) -> None:
    study = Study(tmp_path)
    Here(workers=1).run(RUNS, study)
    executor = RestartingExecutor(Here(workers=1))
    outcomes = [
        [result.outcome for result in executor.run(some, study)] for some in (RUNS[:2], RUNS, RUNS)
    ]
    assert outcomes == [
        ["finished"] * 2,
        ["already finished"] * 2 + ["finished"],
        ["already finished"] * 3,
    ]


def test_a_run_that_was_stopped_before_it_started_over_still_does(tmp_path: Path) -> None:
    study = Study(tmp_path)
    Here(workers=1).run([RUN], study)
    executor = RestartingExecutor(Here(workers=1))
    (stopped,) = executor.run([RUN], study, stop=lambda: True)
    assert stopped.outcome == "stopped"
    (result,) = executor.run([RUN], study)
    assert result.outcome == "finished"


def test_until_stops_runs_once_it_is_over(tmp_path: Path) -> None:
    asked = iter(range(100))
    executor = Until(Here(workers=1), lambda: next(asked) > 3)
    first, second = executor.run(RUNS[:2], Study(tmp_path))
    assert (first.outcome, second.outcome) == ("stopped", "stopped")
    assert first.summary is not None
    assert 0 < first.summary.step < RUN.steps
    assert second.summary is None


def test_a_record_that_cannot_be_read_is_told_in_its_result_with_listeners_too(
    tmp_path: Path,
) -> None:
    study = Study(tmp_path)
    Here(workers=1).run([RUN], study)
    (RUN.folder(study).path / "run.json").write_text("{")
    heard = Heard()
    result, other = Here(workers=1, observers=heard.observers()).run(RUNS[1:], study)
    assert (result.outcome, other.outcome) == ("failed", "finished")
    assert "should have a sound `run.json`" in (result.error or "")
    must_have_heard_all(heard, RUNS[2:])
