from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from taskmix.engine import DigitsSource, Executed, Run
from taskmix.engine._units import Alone, _Done, _pooled
from taskmix.errors import RecordError
from taskmix.models import Perceptron
from taskmix.records import Study

RUN = Run(label="x", source=DigitsSource(), architecture=Perceptron(hidden=(4,)), steps=1, seed=0)


@dataclass
class Unit:
    number: int

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.number,)


class Workers:
    """Does a unit as soon as somebody waits for the next one."""

    count = 2

    def __init__(self) -> None:
        self.flying: list[Future[list[Executed]]] = []
        self.most = self.begun = 0

    def begin(self) -> None: ...

    def submit(self, unit: Any, study: Study, *, fresh: bool) -> Future[list[Executed]]:
        future: Future[list[Executed]] = Future()
        self.flying.append(future)
        self.begun += 1
        self.most = max(self.most, len(self.flying))
        if len(self.flying) == 8:
            self.land()
        return future

    def land(self) -> None:
        self.flying.pop(0).set_result([Executed(outcome="finished", summary=None)])

    def told(self) -> Sequence[Any]:
        while self.flying:
            self.land()
        return ()

    def ask_to_stop(self) -> None: ...

    def close(self) -> None: ...


def test_units_are_given_out_as_they_are_needed(tmp_path: Path) -> None:
    workers, done = Workers(), _Done([RUN] * 100, None)
    units: Any = [Unit(number) for number in range(100)]
    _pooled(units, done, Study(tmp_path), workers, None, fresh=False)  # type: ignore[arg-type]
    assert workers.most <= 8
    assert workers.begun == 100
    assert not done.missing(units)


def test_no_unit_is_given_out_after_a_stop(tmp_path: Path) -> None:
    workers, done = Workers(), _Done([RUN] * 100, None)
    units: Any = [Unit(number) for number in range(100)]
    _pooled(
        units,
        done,
        Study(tmp_path),
        workers,  # type: ignore[arg-type]
        lambda: True,
        fresh=False,
    )
    assert workers.begun == 8
    assert len(done.missing(units)) == 92


def test_a_run_that_the_disk_refuses_is_told_from_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise RecordError("There should be room on the disk.")

    monkeypatch.setattr("taskmix.engine._units.execute", full)
    (result,) = Alone(0, RUN).work(Study(tmp_path), None, None, fresh=False)
    assert (result.outcome, result.recorded) == ("failed", False)
    assert result.error == "There should be room on the disk."
