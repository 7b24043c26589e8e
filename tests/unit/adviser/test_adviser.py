"""The adviser with runs that are made up: what a way of training scores is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_advice import MadeUpStudy

from taskmix.adviser import AdviseOptions, Budget, News, _estimate
from taskmix.adviser._advice import Advice
from taskmix.adviser._adviser import Adviser
from taskmix.adviser._answer import Answer, answer, plan_of
from taskmix.adviser._budget import Prices, Timer
from taskmix.engine import DigitsSource, Executed, Run
from taskmix.errors import InputError, OptionError, RecordError, RunError
from taskmix.models import Perceptron
from taskmix.records import FinalScore, RunSummary, Study

REAL = ("ten_digits", "parity", "half", "prime", "loop", "remainder")
SHUFFLED = ("shuffled_parity", "shuffled_ten")
Scorer = Callable[[Run, str], float]


def sound(run: Run, task: str) -> float:
    """Real tasks are learned, best by `size`; the shuffled ones are not."""
    if task in SHUFFLED:
        return 0.5 if task == "shuffled_parity" else 0.1
    return {"size": 0.95, "uniform": 0.9, "single": 0.85}.get(run.label, 0.88)


@dataclass
class World:
    """Executes runs by making up their scores; can be told to stop after so many."""

    scorer: Scorer = sound
    noise: float = 0.002
    left: int | None = None
    done: list[Run] = field(default_factory=list)
    known: dict[str, Executed] = field(default_factory=dict)

    at_once = 1

    def run(self, runs: Sequence[Run], study: Study, **how: object) -> list[Executed]:
        return [self._execute(run) for run in runs]

    def key(self, run: Run) -> str:
        return f"{run.label} {run.tasks} {run.seed} {run.steps} {run.policy} {run.weighting}"

    def _execute(self, run: Run) -> Executed:
        key = self.key(run)
        if key in self.known:
            return self.known[key]
        if self.left is not None:
            if self.left == 0:
                return Executed(outcome="stopped", summary=None)
            self.left -= 1
        self.done.append(run)
        luck = np.random.default_rng([run.seed, sum(map(ord, key))]).normal(0, self.noise)
        scores = [
            FinalScore(task, split, "accuracy", self.scorer(run, task) + luck)
            for task in run.tasks or ()
            for split in ("dev", "test")
        ]
        self.known[key] = Executed(outcome="finished", summary=summary(run, scores))
        return self.known[key]


def summary(run: Run, scores: Sequence[FinalScore]) -> RunSummary:
    return RunSummary(
        name="x",
        status="finished",
        label=run.label,
        seed=run.seed,
        step=run.steps,
        steps=run.steps,
        seconds=1.0,
        best_step=run.steps,
        error=None,
        created="",
        updated="",
        scores=tuple(scores),
        tasks=[],
        versions={},
        specification={},
        kept=None,
    )


def adviser(
    world: World, study: Path, budget: str = "60000-steps", **options: object
) -> tuple[Adviser, list[Advice]]:
    kept: list[Advice] = []
    run = Run(label="t", source=DigitsSource(), architecture=Perceptron(), steps=1, seed=0)
    made = Adviser(
        template=run,
        probe=None,  # transfer has tests of its own
        study=Study(study),
        options=AdviseOptions(budget=Budget.parse(budget), **options),  # type: ignore[arg-type]
        executor=world,
        measure=lambda: Prices(batch=0.01, probe=0.001),
        keep=kept.append,
    )
    return made, kept


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Races here are decided by far, or not at all."""
    monkeypatch.setattr(_estimate, "DRAWS", 200)
    monkeypatch.setattr(_estimate, "WARM_UP", 50)


def answered(advice: Advice) -> Answer:
    """Of runs without records, but for a world that has some."""
    no_runs: Any = MadeUpStudy()
    return answer(advice, no_runs)


def test_the_best_way_of_training_is_chosen_and_the_others_are_out(tmp_path: Path) -> None:
    made, _ = adviser(World(), tmp_path)
    advice = made.run()
    found = answered(advice)
    assert found.chosen.name == "size"
    assert advice.race.open == ("size",)
    assert found.gains["uniform"].mean == pytest.approx(0.05, abs=0.005)
    assert found.gains["uniform"].low > 0
    assert found.confirmed["uniform"].low > 0
    assert found.settling is None
    assert found.lines[0].endswith("(90 %: every other way that was tried is worse).")
    assert any("significantly worse (90 %): uniform" in line for line in found.lines)


def test_tasks_that_nothing_is_learned_from_are_named_and_do_not_count(tmp_path: Path) -> None:
    made, _ = adviser(World(), tmp_path)
    advice = made.run()
    assert advice.unlearned == SHUFFLED
    assert advice.judged == REAL
    assert any(
        "nothing was learned from shuffled_parity, shuffled_ten" in line
        for line in answered(advice).lines
    )


def test_leaving_them_out_wins_where_the_rest_gains_by_it(tmp_path: Path) -> None:
    def scorer(run: Run, task: str) -> float:
        clean = not set(SHUFFLED) & set(run.tasks or ())
        return (
            sound(run, task)
            if task in SHUFFLED
            else 0.97
            if clean and len(run.tasks or ()) > 1
            else 0.9
        )

    made, _ = adviser(World(scorer), tmp_path)
    advice = made.run()
    found = answered(advice)
    plan = plan_of(advice, found)
    assert set(plan.tasks) == set(REAL)
    assert sum(plan.overall.values()) == pytest.approx(1)
    assert plan.length is not None
    assert plan.length.batches == advice.batches
    assert {each.task for each in plan.expected} == set(REAL)


def test_of_ways_that_are_all_alike_a_simple_one_is_kept(tmp_path: Path) -> None:
    made, _ = adviser(World(lambda run, task: 0.9, noise=0.0), tmp_path)
    found = answered(made.run())
    assert found.chosen.name in ("uniform", "size", "equal", "single")
    assert found.lines[0].startswith("Cannot tell yet")


def test_ties_are_told_as_such(tmp_path: Path) -> None:
    made, _ = adviser(World(lambda run, task: 0.9, noise=0.02), tmp_path)
    advice = made.run()
    assert len(advice.race.open) > 1
    assert any(line.startswith("Cannot tell") for line in answered(advice).lines)


def test_the_budget_is_kept(tmp_path: Path) -> None:
    world = World(noise=0.05)
    made, _ = adviser(world, tmp_path, "40000-steps")
    advice = made.run()
    batches = sum(
        run.steps * (len(run.tasks or ()) if run.weighting is not None else 1) for run in world.done
    )
    assert batches <= 40_000
    assert advice.spent <= 40_000


def test_a_budget_for_two_runs_still_gives_a_plan(tmp_path: Path) -> None:
    world = World()
    made, kept = adviser(world, tmp_path, "384-steps")
    advice = made.run()
    assert set(advice.entries) == {"single", "uniform"}
    assert len(plan_of(advice, answered(advice)).tasks) == 8
    assert kept


@pytest.mark.parametrize(
    ("budget", "said"), [("383-steps", "Give at least 384-steps"), ("3s", "takes about")]
)
def test_a_budget_for_less_is_refused_with_what_would_do(
    tmp_path: Path, budget: str, said: str
) -> None:
    made, _ = adviser(World(), tmp_path / "study", budget)
    with pytest.raises(OptionError, match=said):
        made.run()
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("seed", range(10))
def test_stopping_anywhere_and_going_on_gives_the_same_plan(tmp_path: Path, seed: int) -> None:
    whole, _ = adviser(World(noise=0.02), tmp_path / "whole")
    advice = whole.run()
    expected = plan_of(advice, answered(advice))

    world = World(noise=0.02)
    generator = np.random.default_rng(seed)
    for _ in range(100):
        world.left = int(generator.integers(1, 40))
        made, _ = adviser(world, tmp_path / "parts")
        try:
            advice = made.run()
            break
        except RunError:
            continue  # stopped, as a user would; the same command goes on
    assert plan_of(advice, answered(advice)) == expected


def test_there_is_a_plan_after_every_stage(tmp_path: Path) -> None:
    made, kept = adviser(World(), tmp_path)
    made.run()
    assert len(kept) >= 3
    for advice in kept:
        plan = plan_of(advice, answered(advice))
        assert set(plan.targets) <= set(advice.targets)
        assert {each.task for each in plan.expected} == set(plan.targets)


def test_prices_are_measured_once_and_kept(tmp_path: Path) -> None:
    asked = []

    def measure() -> Prices:
        asked.append(1)
        return Prices(batch=0.01, probe=0.001)

    for _ in range(2):
        made, _ = adviser(World(), tmp_path, "300s")
        made.measure = measure
        made.timer = Timer(begin=0.0, now=lambda: 0.0)
        advice = made.run()
        assert advice.budget.batches == 29_000, "less what is kept for the end"
    assert asked == [1]


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
            if stop() and self.world.key(run) not in self.world.known:
                found.append(Executed(outcome="stopped", summary=None))
                continue
            before = len(self.world.done)
            executed = self.world._execute(run)
            found.append(executed)
            if len(self.world.done) > before:
                factor = len(run.tasks or ()) if run.weighting is not None else 1
                self.clock.time += run.steps * factor * self.clock.batch
            else:
                found[-1] = replace(executed, outcome="already finished")
        return found


def timed(clock: Clock, world: World, study: Path, seconds: int) -> Adviser:
    made, _ = adviser(world, study, f"{seconds}s")
    made.timer = Timer(begin=clock.time, now=lambda: clock.time)
    made.executor = SlowWorld(clock, world)
    return made


@pytest.mark.parametrize(
    ("batch", "used", "seeds"),
    [(0.002, 90, 8), (0.01, 200, 4), (0.02, 200, 2)],  # the prices say 0.01 s a batch
)
def test_time_is_kept_and_used_where_the_machine_is_not_as_fast_as_it_was(
    tmp_path: Path, batch: float, used: float, seeds: int
) -> None:
    clock = Clock(batch=batch)
    advice = timed(clock, World(noise=0.05), tmp_path, 300).run()
    assert used <= clock.time <= 300
    assert max(len(advice.entries[name]) for name in advice.race.open) >= seeds


def test_runs_that_take_five_times_as_long_as_foreseen_are_stopped(tmp_path: Path) -> None:
    clock, world = Clock(batch=0.05), World(noise=0.05)
    advice = timed(clock, world, tmp_path, 300).run()
    assert clock.time <= 300 * 1.03 + 100, "a run at work in this world is not stopped inside"
    plan = plan_of(advice, answered(advice))
    before = clock.time
    again = timed(clock, world, tmp_path, 300).run()
    assert plan_of(again, answered(again)) == plan
    assert clock.time == before, "what was stopped is not taken up again"


def test_what_the_clock_decided_holds_when_the_adviser_goes_on(tmp_path: Path) -> None:
    clock, world = Clock(), World(noise=0.05)
    advice = timed(clock, world, tmp_path, 300).run()
    plan, trained, now = plan_of(advice, answered(advice)), len(world.done), clock.time
    again = timed(clock, world, tmp_path, 300).run()
    assert plan_of(again, answered(again)) == plan
    assert (len(world.done), clock.time) == (trained, now), "nothing more is trained"


def test_failed_runs_are_left_out_and_said(tmp_path: Path) -> None:
    class Failing(World):
        def _execute(self, run: Run) -> Executed:
            if run.label == "equal":
                return Executed(outcome="failed", summary=None, error="the loss was not finite")
            return super()._execute(run)

    made, _ = adviser(Failing(), tmp_path)
    advice = made.run()
    assert "equal" not in advice.entries
    assert any("the loss was not finite" in note for note in advice.notes)


def test_a_way_that_failed_with_its_first_seed_is_not_compared_by_its_second(
    tmp_path: Path,
) -> None:
    class FailingOnce(World):
        def _execute(self, run: Run) -> Executed:
            if run.label == "equal" and run.seed == 0:
                return Executed(outcome="failed", summary=None, error="the loss was not finite")
            return super()._execute(run)

    made, _ = adviser(FailingOnce(), tmp_path)
    advice = made.run()
    assert "equal" not in advice.entries
    for some in advice.entries.values():
        assert [entry.seed for entry in some] == list(range(len(some)))


def test_a_way_that_fails_later_does_not_end_the_race_of_the_others(tmp_path: Path) -> None:
    class FailingLater(World):
        def _execute(self, run: Run) -> Executed:
            if run.label == "without" and run.seed == 1:
                return Executed(outcome="failed", summary=None, error="the loss was not finite")
            return super()._execute(run)

    def alike(run: Run, task: str) -> float:
        return sound(run, task) if task in SHUFFLED else 0.9

    made, _ = adviser(FailingLater(alike, noise=0.05), tmp_path)
    advice = made.run()
    assert len(advice.entries["without"]) == 1
    assert len(advice.entries[advice.race.leader.name]) > 2
    assert advice.spent > 45_000, "the budget is used by those that can"


def test_progress_is_told(tmp_path: Path) -> None:
    made, _ = adviser(World(), tmp_path)
    news: list[News] = []
    made.tell = news.append
    made.run()
    assert [each.stage for each in news][:3] == ["look", "baselines", "runs"]
    assert all(0 <= each.spent <= 1 for each in news)


def test_the_end_says_why_it_came(tmp_path: Path) -> None:
    settled, _ = adviser(World(), tmp_path / "settled")
    assert any("The race is settled: size leads." in note for note in settled.run().notes)
    alike, _ = adviser(World(lambda run, task: 0.9, noise=0.02), tmp_path / "alike", "600000-steps")
    notes = alike.run().notes
    assert any("after 10 seeds" in note and "of the budget is left" in note for note in notes)
    short, _ = adviser(World(noise=0.05), tmp_path / "short", "2000-steps")
    assert any("does not pay for one more seed" in note for note in short.run().notes)


def test_one_target_is_advised_on_alone(tmp_path: Path) -> None:
    made, _ = adviser(World(), tmp_path, target="half")
    advice = made.run()
    assert advice.targets == ("half",)
    assert {each.task for each in answered(advice).expected} == {"half"}


def test_bad_input_is_told_in_words(tmp_path: Path) -> None:
    made, _ = adviser(World(), tmp_path, target="nonsense")
    with pytest.raises(InputError, match="should be one of the tasks"):
        made.run()
    with pytest.raises(OptionError):
        AdviseOptions(budget=Budget(batches=5), level=1.5)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "ledger.json").write_text("[1]")
    made, _ = adviser(World(), tmp_path / "bad")
    with pytest.raises(RecordError, match=r"`ledger\.json`"):
        made.run()


def test_a_second_seed_that_only_some_can_have_is_left_out(tmp_path: Path) -> None:
    made, _ = adviser(World(), tmp_path, "1000-steps")  # 192 batches a run: five of them
    advice = made.run()
    assert {name: len(some) for name, some in advice.entries.items()} == {
        "single": 1,
        "uniform": 1,
        "size": 1,
        "equal": 1,
        "without": 1,
    }
    found = answered(advice)
    assert "may be the best after one seed each" in found.lines[0]
    assert any("A second seed of each would take a budget of" in line for line in found.lines)
