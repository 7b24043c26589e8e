from __future__ import annotations

from typing import Any

import pytest

from taskmix.cli._printing import _display
from taskmix.cli._printing._display import runs_bar
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
    with runs_bar([RUN] * 3, quiet=True, title="x") as tell:
        for run, step, done in [(0, 4, False), (2, 1, False), (0, 10, True), (2, 10, True)]:
            tell(Progress(run, step, done))
    assert [steps for steps, _ in drawn] == [4, 5, 11, 20]
    assert drawn[-1][1] == "2 of 3 runs"


def test_a_bar_of_one_run_has_the_latest_losses_of_its_tasks(drawn: Any) -> None:
    with runs_bar([RUN], quiet=True, title="x") as tell:
        tell(Progress(0, 4, losses={1: 0.25, 0: 0.5}))
        tell(Progress(0, 10, done=True))
    assert drawn == [(4, "ten_digits 0.500  parity 0.250"), (10, "1 of 1 runs")]
