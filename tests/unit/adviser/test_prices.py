"""Measuring what runs cost, by a clock that only runs move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from taskmix.adviser._budget import Timer
from taskmix.adviser._prices import Kind, Meter, NoTimeError
from taskmix.engine import DigitsSource, Executed, Observers, Run, Until, never, record_event
from taskmix.errors import RunError
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.training import StepEvent

TEMPLATE = Run(
    label="t",
    source=DigitsSource(tasks=("parity", "half")),
    architecture=Perceptron(hidden=(8,)),
    steps=1,
    seed=0,
)


@dataclass
class Slow:
    """An executor whose steps take a while, and which stops after a step when it is asked to."""

    step: float  # seconds
    loading: float = 0.0
    observers: Observers = field(default_factory=Observers)
    time: float = 0.0
    steps: int = 0
    at_once = 1

    def now(self) -> float:
        return self.time

    def run(
        self,
        runs: Sequence[Run],
        study: Study,
        *,
        stop: Callable[[], bool] = never,
        fresh: bool = False,
    ) -> list[Executed]:
        self.time += self.loading
        self.loading = 0.0
        return [self._train(run, study, self.observers.either(stop)) for run in runs]

    def _train(self, run: Run, study: Study, stop: Callable[[], bool]) -> Executed:
        folder = run.folder(study)
        with folder.claim() as claim:
            writer = claim.writer
            assert writer is not None
            names = [{"name": name} for name in run.load().names]
            writer.start(
                specification=run.specification(), seed=0, label="x", steps=run.steps, tasks=names
            )
            for number in range(1, run.steps + 1):
                self.time += self.step
                self.steps += 1
                event = StepEvent(
                    step=number, tasks=(0,), losses=(0.5,), examples=(32,), seconds=self.step
                )
                record_event(writer, event)
                if stop() and number < run.steps:
                    writer.commit(number, {"x": torch.zeros(1)}, best=None, best_step=None)
                    writer.stop()
                    return Executed(outcome="stopped", summary=folder.summary())
            writer.finish(scores=[], best_step=None, step=run.steps)
        return Executed(outcome="finished", summary=folder.summary())


def meter(slow: Slow, seconds: float) -> tuple[Meter, list[str]]:
    told: list[str] = []
    timer = Timer(seconds=seconds, begin=0.0, now=slow.now)
    return Meter(Until(slow, timer.is_over), timer, told.append, slow.now), told


@pytest.mark.parametrize("step", [0.001, 0.01, 0.1])
def test_a_price_is_what_a_step_takes_and_measuring_it_takes_a_small_part_of_the_budget(
    step: float,
) -> None:
    slow = Slow(step)
    prices = meter(slow, 300.0)[0].measure(TEMPLATE, together=False)
    assert prices.batch == pytest.approx(step)
    assert slow.time <= 0.06 * 300


@pytest.mark.parametrize("step", [30.0, 100.0])
def test_where_one_step_takes_longer_than_measuring_should_it_is_the_only_one_and_is_told(
    step: float,
) -> None:
    slow = Slow(step)
    measuring, told = meter(slow, 180.0)
    prices = measuring.measure(TEMPLATE, together=False)
    assert prices.batch == pytest.approx(step)
    assert prices.row == pytest.approx(step / 96), "three evaluated rows for one trained on"
    assert slow.time <= 0.2 * 180 + step, "one step late at most"
    assert any(f"One step takes {step:.1f} s here" in words for words in told)


def test_who_asks_for_a_stop_while_prices_are_measured_waits_for_one_step() -> None:
    slow = Slow(1.0)
    slow.observers = Observers(stop=lambda: slow.time >= 1.0)
    with pytest.raises(RunError, match="Stopped before it was known"):
        meter(slow, 10_000.0)[0].measure(TEMPLATE, together=False)
    assert slow.steps == 1


def test_a_budget_that_is_over_before_the_first_price_is_told_with_one_that_would_do() -> None:
    slow = Slow(1.0, loading=25.0)
    with pytest.raises(NoTimeError, match=r"Found 20s, .* Give at least 62s"):
        meter(slow, 20.0)[0].measure(TEMPLATE, together=False)


def test_runs_that_differ_in_their_methods_and_lengths_are_of_one_kind() -> None:
    longer = Run(**{**vars(TEMPLATE), "steps": 100, "seed": 3})
    wider = Run(**{**vars(TEMPLATE), "architecture": Perceptron(hidden=(16,))})
    kinds = [Kind.of(run, together=False).key for run in (TEMPLATE, longer, wider)]
    assert kinds[0] == kinds[1] != kinds[2]
    assert Kind.of(TEMPLATE, together=True).key != kinds[0]
    assert np.unique(kinds).size == 2
