from __future__ import annotations

from typing import Any

import pytest

from taskmix.cli import _display
from taskmix.cli._display import counting_bar, many_runs_bar
from taskmix.engine import DigitsSource, Progress, Run
from taskmix.models import Perceptron

RUN = Run(label="x", source=DigitsSource(), architecture=Perceptron(), steps=10, seed=0)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """What a bar was told: steps and words."""
    found: list[tuple[int, str]] = []

    class Bar:
        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None: ...

        def add_task(self, *_: object, **__: object) -> int:
            return 0

        def update(self, job: int, *, completed: int, detail: str) -> None:
            found.append((completed, detail))

    monkeypatch.setattr(_display, "_bar", lambda quiet: Bar())
    return found


def test_a_bar_of_many_runs_has_the_steps_of_all(drawn: Any) -> None:
    with many_runs_bar([RUN] * 3, quiet=True, title="x") as tell:
        for run, step, done in [(0, 4, False), (2, 1, False), (0, 10, True), (2, 10, True)]:
            tell(Progress(run, step, done))
    assert [steps for steps, _ in drawn] == [4, 5, 11, 20]
    assert drawn[-1][1] == "2 of 3 runs"


def test_a_bar_that_counts_keeps_the_steps_of_an_earlier_batch(drawn: Any) -> None:
    with counting_bar("x", quiet=True) as tell:
        for run, step, done in [(0, 4, False), (0, 10, True), (0, 3, False), (1, 2, False)]:
            tell(Progress(run, step, done))
    assert [steps for steps, _ in drawn] == [4, 10, 13, 15]
