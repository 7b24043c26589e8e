"""Budgets of seconds, by clocks that only runs and readers move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from made_up_world import TASKS, World

from taskmix.adviser import AdviseOptions, Budget
from taskmix.adviser._adviser import Adviser
from taskmix.adviser._budget import Prices, Timer
from taskmix.adviser._prices import Meter, NoTimeError
from taskmix.adviser._reading import READING_SHARE, rows_to_read
from taskmix.engine import (
    DigitsSource,
    Executed,
    GivenTasks,
    Here,
    Observers,
    Run,
    Until,
    never,
    record_event,
)
from taskmix.errors import OptionError, RunError
from taskmix.models import Perceptron, TextConvolution
from taskmix.records import Study
from taskmix.tasks import FeatureEncoding, Split, Task, TaskSet, tables_as_tasks
from taskmix.training import StepEvent


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr("taskmix.adviser._estimate.DRAWS", 200)
    monkeypatch.setattr("taskmix.adviser._estimate.WARM_UP", 50)


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
    row: float = 0.0  # seconds that evaluating one takes
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
            tasks = run.load()
            self.time += self.row * sum(
                rows for task in tasks for split, rows in task.sizes.items() if split != "train"
            )
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


def test_measuring_a_price_evaluates_few_rows_since_nothing_stops_a_run_in_the_middle_of_that() -> (
    None
):
    rows = pa.table({"text": ["good", "bad"] * 5000, "label": ["yes", "no"] * 5000})
    tasks = tables_as_tasks({"a": {"train": rows[:100], "dev": rows, "test": rows}})
    run = replace(TEMPLATE, source=GivenTasks.of(tasks), architecture=TextConvolution())
    slow = Slow(0.01, row=0.01)  # 300 s for all rows, of which a run evaluates dev twice
    prices = meter(slow, 60.0)[0].measure(run, together=False)
    assert slow.time <= 0.1 * 60
    assert prices.batch == pytest.approx(0.01)


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


@dataclass
class Clock:
    """A time in which a batch takes a while."""

    batch: float = 0.01  # seconds
    time: float = 0.0


@dataclass
class SlowWorld:
    """A world by the clock, which stops when it is asked to."""

    clock: Clock
    world: World
    at_once = 1

    def run(
        self, runs: Sequence[Run], study: Study, *, stop: Callable[[], bool], **how: object
    ) -> list[Executed]:
        found = []
        for run in runs:
            summary = run.folder(study).summary()
            if stop() and (summary is None or summary.status != "finished"):
                found.append(Executed(outcome="stopped", summary=None))
                continue
            before = len(self.world.done)
            found += self.world.run([run], study)
            if len(self.world.done) > before:
                self.clock.time += run.cost_of(run.steps) * self.clock.batch
        return found


def timed(clock: Clock, world: World, study: Path, seconds: int, now: Any = None) -> Adviser:
    return Adviser(
        template=replace(TEMPLATE, source=DigitsSource(tasks=TASKS)),
        probe=None,
        study=Study(study),
        options=AdviseOptions(budget=Budget(seconds=float(seconds))),
        executor=SlowWorld(clock, world),
        measure=lambda: Prices(batch=0.01, probe=0.001),
        timer=Timer(begin=clock.time, now=now or (lambda: clock.time)),
    )


@pytest.mark.parametrize(
    ("batch", "used", "seeds"),
    [(0.002, 90, 8), (0.01, 200, 3), (0.02, 200, 2)],  # the prices say 0.01 s a batch
)
def test_time_is_kept_and_used_where_the_machine_is_not_as_fast_as_it_was(
    tmp_path: Path, batch: float, used: float, seeds: int
) -> None:
    clock, world = Clock(batch=batch), World(noise=0.05)
    advice = timed(clock, world, tmp_path, 300).run()
    assert used <= clock.time <= 300
    assert max(len(advice.entries[name]) for name in advice.race.open) >= seeds
    trained, now = len(world.done), clock.time
    again = timed(clock, world, tmp_path, 300).run()
    assert again.race == advice.race
    assert (len(world.done), clock.time) == (trained, now), "what the clock decided holds"


def test_data_that_take_long_to_look_at_are_looked_at_in_part_and_that_is_said(
    tmp_path: Path,
) -> None:
    clock = Clock()

    def now() -> float:  # every look at the clock takes 5 s until the first run
        clock.time += 5.0 if clock.time < 100 else 0.0
        return clock.time

    advice = timed(clock, World(noise=0.05), tmp_path, 300, now).run()
    assert sum("no time to look at all rows" in note for note in advice.notes) == 1
    assert clock.time <= 300


def test_runs_that_take_five_times_as_long_as_foreseen_are_stopped(tmp_path: Path) -> None:
    clock, world = Clock(batch=0.05), World(noise=0.05)
    timed(clock, world, tmp_path, 300).run()
    assert clock.time <= 300 * 1.03 + 100, "a run at work in this world is not stopped inside"
    before = clock.time
    timed(clock, world, tmp_path, 300).run()
    assert clock.time == before, "what was stopped is not taken up again"


class Made:
    """A source of tasks with so many rows each."""

    def __init__(self, **sizes: int) -> None:
        def split(name: str, count: int) -> Split:
            texts = [f"{name} {place}" for place in range(count)]
            return Split(pa.table({"text": texts}), np.zeros(count, dtype=np.int64))

        self.tasks = TaskSet(
            tuple(
                Task(
                    name=name,
                    kind="classification",
                    inputs="text",
                    labels=("no", "yes"),
                    metric="accuracy",
                    source=name,
                    splits={
                        key: split(f"{name} {key}", n)
                        for key, n in (("train", count), ("dev", count // 5), ("test", count // 5))
                    },
                )
                for name, count in sizes.items()
            )
        )

    def load(self) -> TaskSet:
        return self.tasks


@pytest.fixture
def slow_encoder(monkeypatch: pytest.MonkeyPatch) -> FeatureEncoding:
    """One that would read ten texts of twenty pieces a second, and has read none."""

    class Reader:
        def speed(self, texts: Any) -> tuple[float, float]:
            return 200.0, 20.0

    monkeypatch.setattr(FeatureEncoding, "reader", lambda self: Reader())
    monkeypatch.setattr(
        FeatureEncoding,
        "unread",
        lambda self, tasks, cache=None: [s.inputs for t in tasks for s in t.splits.values()],
    )
    return FeatureEncoding(path="nowhere", pooling="mean")


def run_of(source: Made, encoding: FeatureEncoding) -> Run:
    return Run(label="x", source=source, architecture=Perceptron(reads=encoding), steps=1, seed=0)


def test_large_tasks_are_sampled_to_one_size_and_small_ones_stay_whole(
    slow_encoder: FeatureEncoding,
) -> None:
    source = Made(large=10_000, larger=20_000, small=100)
    run = run_of(source, slow_encoder)
    rows = rows_to_read(run, source.tasks, seconds=500.0)
    found = rows.apply(run).load()
    assert found["small"].sizes == source.tasks["small"].sizes
    assert found["large"].sizes == found["larger"].sizes
    read = sum(sum(task.sizes.values()) for task in found)
    affordable = READING_SHARE * 500.0 * 10
    assert 0.95 * affordable <= read <= affordable
    assert "about 10 texts a second" in rows.words
    assert f"at most {found['large'].sizes['test']:,} test" in rows.words


def test_all_rows_are_read_where_there_is_time_or_nothing_to_read(
    slow_encoder: FeatureEncoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Made(large=10_000)
    run = run_of(source, slow_encoder)
    assert rows_to_read(run, source.tasks, seconds=1e6).apply(run) is run
    monkeypatch.setattr(FeatureEncoding, "unread", lambda self, tasks, cache=None: [])
    assert rows_to_read(run, source.tasks, seconds=1.0).apply(run) is run


@dataclass
class Reading:
    """Reads a text a second, for ever, and hears whether it should stop."""

    time: float = 0.0

    def read(self, tasks: TaskSet, *, cache: Path | None, on_progress: Any) -> None:
        for done in range(1, 10_001):
            self.time += 1.0
            on_progress(done, 10_000)


def reading_adviser(
    tmp_path: Path, source: Made, encoding: FeatureEncoding, clock: Reading, executor: Any
) -> Adviser:
    return Adviser(
        template=run_of(source, encoding),
        probe=None,
        study=Study(tmp_path),
        options=AdviseOptions(budget=Budget.parse("100s")),
        executor=executor,
        timer=Timer(begin=0.0, now=lambda: clock.time),
    )


def test_the_budget_stops_an_encoder_that_reads_more_slowly_than_it_was_measured_to(
    slow_encoder: FeatureEncoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Reading()
    monkeypatch.setattr(FeatureEncoding, "read", lambda self, *a, **how: clock.read(*a, **how))
    adviser = reading_adviser(tmp_path, Made(a=300), slow_encoder, clock, Here(workers=1))
    with pytest.raises(OptionError, match="until the encoder has read all texts"):
        adviser.run()
    assert clock.time <= 100


def test_who_asks_for_a_stop_while_the_encoder_reads_waits_for_one_batch(
    slow_encoder: FeatureEncoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Reading()
    monkeypatch.setattr(FeatureEncoding, "read", lambda self, *a, **how: clock.read(*a, **how))
    executor = Here(workers=1, observers=Observers(stop=lambda: clock.time >= 7))
    adviser = reading_adviser(tmp_path, Made(a=300), slow_encoder, clock, executor)
    with pytest.raises(RunError, match="What was read is kept"):
        adviser.run()
    assert clock.time == 7
