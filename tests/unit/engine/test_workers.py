from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from taskmix.engine import (
    DigitsSource,
    Executed,
    Here,
    Observers,
    Progress,
    Run,
    Workers,
    cluster,
    never,
)
from taskmix.engine._run import encode
from taskmix.engine._source import KeptEncodings
from taskmix.engine._units import _Done, _pooled, run_units
from taskmix.engine._workers import Died, Ended
from taskmix.errors import InputError, MissingExtraError, RunError
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.tasks import DenseInputs, EncodedSplit, EncodedTask, EncodedTasks, TaskSet

RUN = Run(label="x", source=DigitsSource(), architecture=Perceptron(hidden=(4,)), steps=5, seed=0)


def test_workers_stay_for_the_next_call_and_change_nothing(tmp_path: Path) -> None:
    runs = [replace(RUN, seed=seed) for seed in range(3)]
    alone = Here(workers=1).run(runs, Study(tmp_path / "alone"))
    told: list[Progress] = []
    with Workers(2) as workers:
        study = Study(tmp_path / "kept")
        first = Here(workers=workers, observers=Observers.telling(told.append)).run(runs[:2], study)
        processes = process_ids(workers)
        second = Here(workers=workers, observers=Observers.telling(told.append)).run(runs, study)
        assert process_ids(workers) == processes
    assert [each.outcome for each in second] == ["already finished"] * 2 + ["finished"]
    assert len([each for each in told if each.done]) == 5
    for ours, theirs in zip([*first, second[2]], alone, strict=True):
        assert ours.summary is not None
        assert theirs.summary is not None
        assert ours.summary.scores == theirs.summary.scores


def process_ids(workers: Workers) -> set[int | None]:
    return {each._process.pid for each in workers._processes}


def test_workers_that_are_killed_again_and_again_are_told_in_a_sentence(tmp_path: Path) -> None:
    runs = [replace(RUN, seed=seed) for seed in range(4)]
    with Workers(3) as workers:
        workers.start(3)
        for process in process_ids(workers):
            os.kill(process or 0, signal.SIGKILL)
        with pytest.raises(RunError, match="3 of them were killed"):
            Here(workers=workers).run(runs, Study(tmp_path))
        assert not process_ids(workers)


@dataclass(frozen=True)
class Stubborn:
    """A unit that does not stop, or fails in a way that cannot be pickled."""

    numbers: tuple[int, ...] = (0,)
    error: bool = False

    def work(self, *given: Any, **options: Any) -> list[Executed]:
        if self.error:
            raise MissingExtraError("nothing", "no", "This")
        time.sleep(100_000)
        return []


def test_a_unit_that_does_not_stop_is_ended(tmp_path: Path) -> None:
    workers = Workers(1)
    workers.start(1)
    while not workers.give(Stubborn(), Study(tmp_path), fresh=False):
        list(workers.hear(timeout=1.0))
    (process,) = process_ids(workers)
    workers.close()
    assert not workers.at_work
    assert not Path(f"/proc/{process}").exists()


def test_an_error_that_cannot_travel_is_told_in_its_words(tmp_path: Path) -> None:
    with Workers(2) as workers, pytest.raises(InputError, match="This needs the package"):
        units = [Stubborn(error=True)]
        run_units(
            units,
            [RUN],
            Study(tmp_path),
            workers=workers,
            tell=lambda progress: None,
            listening=lambda run: nullcontext(),
            stop=never,
            fresh=False,
        )


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


def unheard(progress: Progress) -> None: ...


@dataclass
class NumberedUnit:
    number: int

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.number,)


class InstantWorkers:
    """Two that do a unit as soon as somebody listens."""

    count = 2

    def __init__(self) -> None:
        self.flying: list[Any] = []
        self.deaths: list[bool] = []  # of the units to come
        self.fresh: list[bool] = []

    @property
    def at_work(self) -> int:
        return len(self.flying)

    def start(self, wanted: int) -> None: ...

    def give(self, unit: Any, study: Study, *, fresh: bool) -> bool:
        if len(self.flying) == self.count:
            return False
        self.flying.append(unit)
        self.fresh.append(fresh)
        return True

    def hear(self, timeout: float) -> Iterator[Any]:
        unit = self.flying.pop(0)
        dies = self.deaths.pop() if self.deaths else False
        yield Died(unit) if dies else Ended(unit, [Executed(outcome="finished", summary=None)])

    def ask_to_stop(self) -> None: ...

    def close(self) -> None: ...


def units_of(count: int) -> Any:
    return [NumberedUnit(number) for number in range(count)]


def test_the_unit_of_a_dead_worker_goes_on_and_does_not_start_over_again(tmp_path: Path) -> None:
    workers: Any = InstantWorkers()
    workers.deaths = [False, True]
    done = _Done([RUN] * 4, unheard)
    _pooled(units_of(4), done, Study(tmp_path), workers, never, fresh=True)
    assert {each.outcome for each in done.results(Study(tmp_path))} == {"finished"}
    assert workers.fresh == [True, True, False, True, True]


def test_an_address_where_nobody_listens_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # who is in one already stays there
    with socket.socket() as kept:  # the address stays taken, so that nobody else listens there
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        words = rf"should answer at 127.0.0.1:{port}"
        with pytest.raises(InputError, match=words), cluster(f"127.0.0.1:{port}"):
            pass
