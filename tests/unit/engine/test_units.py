from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from taskmix.engine import DigitsSource, Executed, Progress, Run, never
from taskmix.engine._units import Alone, _Done, _pooled
from taskmix.engine._workers import Died, Ended
from taskmix.errors import RecordError, RunError
from taskmix.models import Perceptron
from taskmix.records import Study

RUN = Run(label="x", source=DigitsSource(), architecture=Perceptron(hidden=(4,)), steps=1, seed=0)


def unheard(progress: Progress) -> None: ...


@dataclass
class Unit:
    number: int

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.number,)


class Workers:
    """Two that do a unit as soon as somebody listens."""

    count = 2

    def __init__(self) -> None:
        self.flying: list[Any] = []
        self.most = self.begun = self.closed = 0
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
        self.begun += 1
        self.most = max(self.most, len(self.flying))
        return True

    def hear(self, timeout: float) -> Iterator[Any]:
        unit = self.flying.pop(0)
        dies = self.deaths.pop() if self.deaths else False
        yield Died(unit) if dies else Ended(unit, [Executed(outcome="finished", summary=None)])

    def ask_to_stop(self) -> None: ...

    def close(self) -> None:
        self.closed += 1


def units_of(count: int) -> Any:
    return [Unit(number) for number in range(count)]


def test_units_are_given_out_as_they_are_needed(tmp_path: Path) -> None:
    workers: Any = Workers()
    done = _Done([RUN] * 100, unheard)
    _pooled(units_of(100), done, Study(tmp_path), workers, never, fresh=False)
    assert workers.most == 2
    assert workers.begun == 100
    assert {each.outcome for each in done.results(Study(tmp_path))} == {"finished"}


def test_no_unit_is_given_out_after_a_stop(tmp_path: Path) -> None:
    workers: Any = Workers()
    done = _Done([RUN] * 100, unheard)
    _pooled(units_of(100), done, Study(tmp_path), workers, lambda: True, fresh=False)
    assert workers.begun == 2
    outcomes = [each.outcome for each in done.results(Study(tmp_path))]
    assert outcomes == ["finished"] * 2 + ["stopped"] * 98


def test_the_unit_of_a_dead_worker_goes_on_and_does_not_start_over_again(tmp_path: Path) -> None:
    workers: Any = Workers()
    workers.deaths = [False, True]
    done = _Done([RUN] * 4, unheard)
    _pooled(units_of(4), done, Study(tmp_path), workers, never, fresh=True)
    assert {each.outcome for each in done.results(Study(tmp_path))} == {"finished"}
    assert workers.fresh == [True, True, False, True, True]


def test_three_dead_workers_are_too_many(tmp_path: Path) -> None:
    workers: Any = Workers()
    workers.deaths = [True] * 3
    with pytest.raises(RunError, match="3 of them were killed"):
        _pooled(
            units_of(9), _Done([RUN] * 9, unheard), Study(tmp_path), workers, never, fresh=False
        )
    assert workers.closed == 1


def test_a_run_that_the_disk_refuses_is_told_from_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise RecordError("There should be room on the disk.")

    monkeypatch.setattr("taskmix.engine._units.execute", full)
    (result,) = Alone(0, RUN).work(Study(tmp_path), unheard, never, fresh=False)
    assert (result.outcome, result.recorded) == ("failed", False)
    assert result.error == "There should be room on the disk."
