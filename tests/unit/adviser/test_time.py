"""Budgets of seconds, by clocks that only runs and readers move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from made_up_world import TASKS, World

from taskmix.adviser import AdviseOptions, Budget, News
from taskmix.adviser._adviser import Adviser
from taskmix.adviser._budget import Timer
from taskmix.adviser._ledger import Ledger
from taskmix.adviser._members import BlendMember
from taskmix.adviser._reading import READING_SHARE, rows_to_read
from taskmix.adviser._spending import MEASURED_SHARE, PRIOR_SECONDS, Price, Spending
from taskmix.engine import (
    DigitsSource,
    Executed,
    Here,
    Observers,
    Run,
    Until,
    never,
    record_event,
)
from taskmix.errors import OptionError, RunError
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.tasks import FeatureEncoding, Split, Task, TaskSet
from taskmix.training import StepEvent


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks alone: shallow models are real, and take a time of their own."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr("taskmix.adviser._adviser.peer_members", lambda *a, **how: iter(()))


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
    start: float = 0.0  # seconds of a run, however long it is
    loading: float = 0.0  # of the first
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
        self.time += self.start
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


def spending(slow: Slow, seconds: float, folder: Path) -> Spending:
    timer = Timer(seconds=seconds, begin=0.0, now=slow.now)
    executor = Until(slow, timer.is_over)
    return Spending(Budget(seconds=seconds), timer, executor, Ledger(folder, {}), clock=slow.now)


def measure(slow: Slow, seconds: float, folder: Path) -> Price | None:
    return spending(slow, seconds, folder).price(
        "model", lambda steps: [replace(TEMPLATE, steps=steps)], 1
    )


@pytest.mark.parametrize("start", [0.0, 0.1])
@pytest.mark.parametrize("step", [0.001, 0.01, 0.1])
def test_a_price_is_what_a_start_and_a_step_take_and_measuring_it_takes_a_small_part(
    step: float, start: float, tmp_path: Path
) -> None:
    slow = Slow(step, start=start, loading=3.0)
    price = measure(slow, 300.0, tmp_path)
    assert price is not None
    assert price.batch == pytest.approx(step)
    assert price.start == pytest.approx(start, abs=1e-6)
    assert slow.time <= 3 + (4 * MEASURED_SHARE + 0.01) * 300


@pytest.mark.parametrize("step", [30.0, 50.0])
def test_where_a_step_takes_longer_than_measuring_should_few_are_made(
    step: float, tmp_path: Path
) -> None:
    slow = Slow(step)
    price = measure(slow, 180.0, tmp_path)
    assert price is not None
    assert step <= price.batch <= 2 * step
    assert slow.time <= 0.3 * 180 + 2 * step


def test_of_a_budget_that_is_over_before_a_price_is_known_nothing_is_paid(tmp_path: Path) -> None:
    slow = Slow(1.0, loading=25.0)
    spent = spending(slow, 20.0, tmp_path)
    assert spent.price("model", lambda steps: [replace(TEMPLATE, steps=steps)], 1) is None
    assert not spent.pays("model", 1, 1)
    assert spent.affordable("model", 1) == 0


def test_who_asks_for_a_stop_while_prices_are_measured_waits_for_one_step(tmp_path: Path) -> None:
    slow = Slow(1.0)
    slow.observers = Observers(stop=lambda: slow.time >= 1.0)
    with pytest.raises(RunError, match="Stopped before it was known"):
        measure(slow, 10_000.0, tmp_path)
    assert slow.steps == 1


def test_a_price_that_was_measured_is_kept(tmp_path: Path) -> None:
    first = measure(Slow(0.01, start=0.1), 300.0, tmp_path)
    slower = Slow(5.0)
    assert measure(slower, 300.0, tmp_path) == first
    assert slower.steps == 0


def test_the_pace_of_what_was_done_corrects_what_is_left(tmp_path: Path) -> None:
    slow = Slow(0.01)
    spent = spending(slow, 1000.0, tmp_path)
    spent.price("model", lambda steps: [replace(TEMPLATE, steps=steps)], 1)
    slow.time = 10.0
    left = spent.left
    assert spent.affordable("model", 100) == pytest.approx(left, abs=1)  # a second each
    # 98 seconds by prices took 198: with what was known before, twice as long.
    spent.spend("model", 100, 98, 198.0)
    assert spent.cost("model", 100) == pytest.approx((198 + PRIOR_SECONDS) / (98 + PRIOR_SECONDS))
    assert spent.affordable("model", 100) == pytest.approx(left / 2, abs=1)
    assert spent.pays("model", 100, 10, keep=left - 20)
    assert not spent.pays("model", 100, 11, keep=left - 20)
    assert spent.longest("model", 2.0) == pytest.approx(100, abs=1)


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The only one there is."""
    clock = Clock()
    made = partial(Spending, clock=lambda: clock.time)
    monkeypatch.setattr("taskmix.adviser._adviser.Spending", made)
    return clock


def timed(clock: Clock, world: World, study: Path, seconds: int, now: Any = None) -> Adviser:
    return Adviser(
        template=replace(TEMPLATE, source=DigitsSource(tasks=TASKS)),
        probe_of=None,
        study=Study(study),
        options=AdviseOptions(budget=Budget(seconds=float(seconds))),
        executor=SlowWorld(clock, world),
        timer=Timer(begin=clock.time, now=now or (lambda: clock.time)),
    )


@pytest.mark.parametrize(("batch", "seeds"), [(0.002, 5), (0.01, 3), (0.02, 3), (0.1, 2)])
def test_time_is_kept_and_used_and_what_it_decided_holds_when_asked_again(
    tmp_path: Path, clock: Clock, batch: float, seeds: int
) -> None:
    clock.batch, world = batch, World(noise=0.05)
    advice = timed(clock, world, tmp_path, 300).run()
    assert advice.race is not None
    assert clock.time <= 300
    assert advice.race.is_settled or clock.time >= 0.75 * 300, "the rest is for what is delivered"
    assert max(map(len, advice.entries.values())) >= seeds
    trained, now = len(world.done), clock.time
    again = timed(clock, world, tmp_path, 300).run()
    assert again.race == advice.race
    assert (len(world.done), clock.time) == (trained, now)


def test_data_that_take_long_to_look_at_are_looked_at_in_part_and_that_is_said(
    tmp_path: Path, clock: Clock
) -> None:
    def now() -> float:  # every look at the clock takes 5 s until the first run
        clock.time += 5.0 if clock.time < 100 else 0.0
        return clock.time

    advice = timed(clock, World(noise=0.05), tmp_path, 300, now).run()
    assert sum("no time to look at all rows" in note for note in advice.notes) == 1
    assert clock.time <= 300 * 1.03


def test_runs_that_take_five_times_as_long_as_foreseen_are_stopped(
    tmp_path: Path, clock: Clock
) -> None:
    world = World(noise=0.05)

    def slower(news: News) -> None:
        clock.batch = 0.05 if news.stage == "baselines" else clock.batch

    first = timed(clock, world, tmp_path, 300)
    first.tell = slower
    advice = first.run()
    assert clock.time <= 300 * 1.03 + 45, "a run at work in this world is not stopped inside"
    before = clock.time
    again = timed(clock, world, tmp_path, 300).run()
    assert clock.time == before, "what was stopped is not taken up again"
    assert again.race == advice.race


def test_no_shallow_model_is_begun_after_its_share_of_the_time(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_peers(
        *_: Any, groups: object, stop: Callable[[], bool], **how: Any
    ) -> Iterator[BlendMember]:
        for number in range(10 if groups is None else 0):
            if stop():
                return
            clock.time += 40.0
            yield BlendMember(name=f"peer {number}", words="", dev={}, test={})

    monkeypatch.setattr("taskmix.adviser._adviser.peer_members", slow_peers)
    monkeypatch.setattr(Adviser, "_deliver", lambda self, race: None)
    for _ in range(2):  # the second follows what the first decided
        advice = timed(clock, World(noise=0.05), tmp_path, 300).run()
        assert [each.name for each in advice.peers] == ["peer 0", "peer 1", "peer 2"]


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
        probe_of=None,
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
