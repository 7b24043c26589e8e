"""From tasks to a plan, inside a budget.

The budget is spent in this order: baselines under two seeds; a study of transfer with a small, fast
model; candidates that these suggest, under the same two seeds; and what is left on a race, in which
every candidate that may still be the best gets one more seed at a time. Everything is decided from
records, and everything random is a function of the seed, so an adviser that was stopped does the same
again, at no cost for what is done, and goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from taskmix.adviser._budget import (
    END_SECONDS,
    END_SHARE,
    Budget,
    PricedBudget,
    Prices,
    Timer,
    makespan,
)
from taskmix.adviser._candidates import (
    EVALUATIONS,
    baselines,
    cheap_evaluations,
    distinct,
    evaluated_rows,
)
from taskmix.adviser._curves import from_curves
from taskmix.adviser._ledger import Ledger
from taskmix.adviser._look import Finding, look_at
from taskmix.adviser._prices import measure_prices
from taskmix.adviser._probe import Probes
from taskmix.adviser._propose import (
    apart,
    from_logs,
    from_transfer,
    tempered,
    weightings,
    without,
)
from taskmix.adviser._race import Race, run_race
from taskmix.adviser._scores import Entry, entry_of, mean_comparable, unlearned_tasks
from taskmix.adviser._spending import Spending
from taskmix.engine import Executed, Executor, Run, Until
from taskmix.errors import InputError, OptionError, RunError, TaskmixError
from taskmix.plans import Plan
from taskmix.policies import HardProgress
from taskmix.records import Study
from taskmix.tasks import TaskSet
from taskmix.transfer import LearningOptions, TransferLessons, learn, train_trials

RUNS_PER_BUDGET = range(36, 23, -2)  # where runs would be too short, fewer of them are planned
FIRST_SEEDS = 2
MOST_SEEDS = 10
PASSES = (3, 20)  # over all rows: runs should have so many, and none has more
FEWEST_BATCHES = 24  # of each task in a run


@dataclass(frozen=True, kw_only=True)
class AdviseOptions:
    """What is asked of the adviser."""

    budget: Budget
    target: str | None = None  # one task to help; None: all of them
    batches: int | None = None  # of a run; None: what the budget allows
    level: float = 0.9  # of all intervals
    seed: int = 0

    def __post_init__(self) -> None:
        if self.batches is not None and self.batches < 1:
            raise OptionError(f"A run should have at least one batch. Found {self.batches}.")
        if not 0 < self.level < 1:
            raise OptionError(f"`level` should lie between 0 and 1. Found {self.level}.")


@dataclass(frozen=True, kw_only=True)
class News:
    """What the adviser is at."""

    stage: str
    words: str
    spent: float = 0.0  # share of the budget
    left: float | None = None  # seconds of it, where it is a time


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Everything that was found out."""

    options: AdviseOptions
    tasks: TaskSet
    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    budget: PricedBudget
    batches: int  # of a run of a candidate
    batch_size: int
    spent: float  # batches, probes at their price
    entries: dict[str, list[Entry]]
    race: Race
    lessons: TransferLessons | None
    unlearned: tuple[str, ...]  # tasks of which nothing was learned, by any baseline
    notes: tuple[str, ...] = ()

    @property
    def judged(self) -> tuple[str, ...]:
        """The targets whose scores count: of the others there is only noise."""
        return tuple(name for name in self.targets if name not in self.unlearned) or self.targets


@dataclass
class Adviser:
    """Spends the budget; `advice` is what is known so far."""

    template: Run  # source, model and optimisation of every run
    probe: Run | None  # of the study of transfer: a small model of the same tasks; None: no study
    study: Study
    options: AdviseOptions
    executor: Executor
    timer: Timer = field(default_factory=Timer)  # runs stop when it is over
    measure: Callable[[], Prices] | None = None  # None: by short runs of the executor
    tell: Callable[[News], None] = lambda news: None
    keep: Callable[[Advice], None] = lambda advice: None  # of what is known after each stage
    _entries: dict[str, list[Entry]] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _spending: Spending | None = None
    _evaluations: int = EVALUATIONS[0]  # of a run

    def run(self) -> Advice:
        """Does everything, or goes on with it."""
        self.timer.seconds = self.options.budget.seconds
        self.executor = Until(self.executor, self.timer.is_over)
        tasks = self.template.load()
        targets = self._targets(tasks)
        self._say("look", f"Looking at {len(tasks)} tasks.")
        findings = look_at(tasks)
        spending = self._spending = self._open()
        batches = self._batches(tasks, targets)
        spending.begin()
        known: dict[str, Any] = {
            "tasks": tasks,
            "targets": targets,
            "findings": findings,
            "budget": spending.budget,
            "batches": batches,
            "batch_size": self.template.batch_size,
        }
        try:
            return self._spend(known)
        finally:
            spending.ledger.take_time(self.timer.used())

    def _spend(self, known: dict[str, Any]) -> Advice:
        tasks, targets, batches = known["tasks"], known["targets"], known["batches"]
        first = distinct(baselines(tasks, targets))
        self._say("baselines", f"{len(first)} ways anyone would try, {batches} batches each.")
        self._take("baselines", first, batches, least=min(len(first), 2))
        unlearned = unlearned_tasks(self._entries, tasks, targets)
        known["unlearned"] = unlearned
        advice = self._advice(known, None)

        lessons = self._transfer(tasks, targets)
        advice = self._advice(known, lessons)

        usable = [name for name in targets if name not in unlearned]
        more = distinct(self._candidates(tasks, usable, batches, advice), first)
        if more:
            self._say("candidates", f"{len(more)} more that the first runs suggest.")
            self._take("candidates", more, batches)
            advice = self._advice(known, lessons)
        while self._another_round(advice, batches):
            advice = self._advice(known, lessons)
        return advice

    def _say(self, stage: str, words: str) -> None:
        left = None if self.timer.seconds is None else max(self.timer.left(), 0.0)
        share = 0.0 if self._spending is None else self._spending.share
        self.tell(News(stage=stage, words=words, spent=share, left=left))

    def _targets(self, tasks: TaskSet) -> tuple[str, ...]:
        if not len(tasks):
            raise InputError("There should be at least one task to advise on. Found none.")
        wanted = tasks.names if self.options.target is None else (self.options.target,)
        for name in wanted:
            if not tasks[name].sizes.get("dev"):
                raise InputError(
                    "Every target should have dev rows, by which ways of training are compared. Found "
                    f"none for `{name}`. Give it a dev file, or name another `target`.",
                    arguments=("target",),
                )
        return wanted

    # The budget.

    def _open(self) -> Spending:
        """What the study says of it, or else what is measured now."""
        ledger = Ledger(self.study.path, asdict(self.options))

        def measure() -> Prices:
            self._say("prices", "Measuring how long a batch takes.")
            if self.measure is not None:
                return self.measure()
            return measure_prices(
                self.template,
                self.probe,
                self.options.budget.seconds or 0.0,
                executor=self.executor,
            )

        return Spending.open(ledger, self.timer, self.options.budget, measure)

    def _batches(self, tasks: TaskSet, targets: Sequence[str]) -> int:
        """Of a run: what the budget allows, and no more than some passes over all rows."""
        budget = self._money.budget
        wanted, enough = (p * int(tasks.sizes.sum()) // self.template.batch_size for p in PASSES)
        fewest = FEWEST_BATCHES * len(tasks)
        found = self.options.batches or 0
        for number in EVALUATIONS:  # the longer a run, the more evaluations it affords
            self._evaluations = number
            rows = evaluated_rows(tasks, number)
            lengths = [budget.affordable(budget.share(runs), rows) for runs in RUNS_PER_BUDGET]
            longest = next((length for length in lengths if length >= wanted), lengths[-1])
            found = self.options.batches or max(min(longest, enough), fewest)
            if cheap_evaluations(tasks, found, self.template.batch_size) >= number:
                break
        ways = baselines(tasks, targets)[:2]
        costs = [self._costs(way, found) for way in ways]
        if not self._money.is_settled and not self._money.can_pay(costs):
            words = _too_small(self.options.budget, budget, self.timer, found, costs)
            raise OptionError(words, arguments=("budget", "steps"))
        return found

    @property
    def _money(self) -> Spending:
        assert self._spending is not None
        return self._spending

    def _costs(self, candidate: Plan, batches: int) -> list[float]:
        """Of each of its runs; a budget of steps counts the candidate as one."""
        budget, tasks = self._money.budget, self.template.load()
        if budget.prices is None:
            return [float(batches)]
        return [
            budget.cost(
                batches * part.share, evaluated_rows(tasks.select(part.tasks), self._evaluations)
            )
            for part in candidate.parts
        ]

    def _runs(self, candidate: Plan, batches: int, seed: int) -> list[Run]:
        # What a draw was worth costs nothing to log, and another policy can be learned from it.
        template = replace(self.template, steps=batches, reward=HardProgress())
        return candidate.runs(template, seeds=[seed], evaluations=self._evaluations)

    # Runs.

    def _take(
        self, stage: str, candidates: Sequence[Plan], batches: int, *, least: int = 0
    ) -> None:
        """Brings candidates to two seeds, as far as the budget goes; `least` in any case."""
        asked = [
            (candidate, self.options.seed + number)
            for number in range(FIRST_SEEDS)
            for candidate in candidates
        ]
        costs = [self._costs(candidate, batches) for candidate, _ in asked]
        count = _whole(self._money.affordable(stage, costs, least=least), len(candidates))
        found = self._perform(asked[:count], batches)
        done = next((place for place, each in enumerate(found) if each is None), count)
        done = _whole(done, len(candidates))
        if done < count:  # the time is over
            self._money.settle(stage, done)
        if done < least:
            raise OptionError(
                f"The budget should pay for {least} ways of training. The time was over after {done}. "
                "Give a larger `budget`, or shorter runs with `steps`.",
                arguments=("budget", "steps"),
            )
        self._enter(asked[:done], [each for each in found[:done] if each is not None], batches)
        self._say("runs", f"{done} candidates trained.")

    def _perform(
        self, asked: Sequence[tuple[Plan, int]], batches: int
    ) -> list[list[Executed] | None]:
        """What came of the runs of each candidate; None where the time was over before its end."""
        runs = [self._runs(candidate, batches, seed) for candidate, seed in asked]
        flat = [run for some in runs for run in some]
        # Seed by seed, in case the time is over before the last, and the longest run first, so that
        # no process waits long for the others.
        order = sorted(range(len(flat)), key=lambda at: (flat[at].seed, -_length(flat[at])))
        begin = self.timer.used()
        done = self.executor.run([flat[place] for place in order], self.study)
        took = self.timer.used() - begin
        results: list[Executed | None] = [None] * len(flat)
        for place, each in zip(order, done, strict=True):
            results[place] = each
        if self._money.by_clock:
            costs = [cost for each, _ in asked for cost in self._costs(each, batches)]
            paid = zip(costs, results, strict=True)
            self._money.learn([cost for cost, r in paid if r and r.outcome == "finished"], took)
        late = self.timer.is_over()
        found: list[list[Executed] | None] = []
        rest = iter(results)
        for some in runs:
            here = [result for _ in some if (result := next(rest)) is not None]
            stopped = [each for each in here if each.outcome in ("stopped", "busy")]
            if stopped and not late:
                if stopped[0].outcome == "busy":
                    raise RunError(
                        "The runs should be this command's alone. Found one that another process is "
                        "at. Wait for it, or choose another `out`.",
                        arguments=("out",),
                    )
                raise RunError(self._stopped())
            found.append(None if stopped else here)
        return found

    def _stopped(self) -> str:
        known = f" The best plan so far is in {self.study.path}." if self._entries else ""
        return f"Stopped. What is done is kept.{known} Run the same command again to continue."

    def _enter(
        self,
        asked: Sequence[tuple[Plan, int]],
        found: Sequence[list[Executed]],
        batches: int,
    ) -> None:
        for (candidate, seed), results in zip(asked, found, strict=True):
            entry = entry_of(candidate, seed, self._runs(candidate, batches, seed), results)
            self._money.batches += batches
            if entry is None:
                reason = next((each.error for each in results if each.error), "it failed")
                self._notes.append(f"`{candidate.name}` with seed {seed} has no score: {reason}")
            else:
                self._entries.setdefault(candidate.name, []).append(entry)

    # Transfer.

    def _transfer(self, tasks: TaskSet, targets: Sequence[str]) -> TransferLessons | None:
        design = None if self.probe is None else Probes.of(self.probe, tasks, targets)
        if design is None:
            return None
        budget = self._money.budget
        count, runs = design.affordable(budget)
        each = design.price(budget) * (1.0 if budget.prices is None else budget.prices.batch)
        enough = count >= design.fewest
        if not enough or not self._money.affords("transfer", [[each] * runs]):
            self._notes.append(
                "The budget was too small to study which tasks help which: it would have paid for "
                f"{max(count, 0)} subsets a task, and {design.fewest} are the fewest that tell."
                if not enough
                else "There was no time to study which tasks help which."
            )
            return None
        small = design.probe.architecture != self.template.architecture
        which = "with a small model" if small else "with the model itself"
        self._say("transfer", f"{count} subsets of each task's sources, {which}.")
        description = design.study(count, self.options.seed)
        try:
            measured = train_trials(description, self.study, executor=self.executor)
            lessons = learn(measured, self.study, options=LearningOptions(prefixes=0))
        except RunError as error:
            if not self.timer.is_over():
                raise RunError(self._stopped()) from error
            self._money.settle("transfer", False)
            self._notes.append("The time was over before it was known which tasks help which.")
            return None
        except TaskmixError as error:
            self._notes.append(f"Which tasks help which could not be learned: {error}")
            return None
        self._money.batches += len(measured.trials) * design.price(budget)
        return lessons

    def _candidates(
        self,
        tasks: TaskSet,
        usable: Sequence[str],
        batches: int,
        advice: Advice,
    ) -> list[Plan]:
        """What the first runs suggest, without the tasks of which nothing was learned."""
        if len(tasks) < 2 or not usable:
            return []
        found: list[Plan | None] = []
        sources: Sequence[str] = tasks.names
        if self.options.target is None:
            sources = usable
            if 1 < len(usable) < len(tasks):
                found.append(without(tasks.names, usable))
            if len(usable) > 1:
                found.append(tempered(tasks, usable))
                found.append(from_curves(self._entries, tasks, usable, batches, self.study))
            found.append(from_logs(self._entries, self.study, usable))
            found.append(apart(self._entries, tasks, usable))
        if advice.lessons is not None:
            found += from_transfer(advice.lessons, usable)
        if len(sources) > 1 and "equal" in advice.race.open:
            found += weightings(sources, usable)  # of all tasks every step, as `equal` is
        return [candidate for candidate in found if candidate is not None]

    # The race.

    def _advice(self, known: dict[str, Any], lessons: TransferLessons | None) -> Advice:
        tasks, unlearned = known["tasks"], known["unlearned"]
        judged = [name for name in known["targets"] if name not in unlearned] or known["targets"]
        scores = {
            name: [mean_comparable(tasks, entry.dev, judged) for entry in some]
            for name, some in self._entries.items()
        }
        if not scores:
            raise RunError(
                "At least one way of training should have a score. Found none. "
                + " ".join(self._notes[:2])
            )
        advice = Advice(
            options=self.options,
            spent=self._money.batches,
            entries={name: list(some) for name, some in self._entries.items()},
            race=run_race(scores, self.options.level),
            lessons=lessons,
            notes=tuple(self._notes),
            **known,
        )
        self.keep(advice)
        return advice

    def _another_round(self, advice: Advice, batches: int) -> bool:
        """Gives every open candidate one more seed; False where nothing is open or left to spend."""
        race = advice.race
        seeds = race.leader.seeds
        contenders = [
            name for name in race.open if race.standing(name).seeds == seeds and seeds < MOST_SEEDS
        ]
        candidates = [self._entries[name][0].candidate for name in contenders]
        costs = [self._costs(candidate, batches) for candidate in candidates]
        name = f"seed {seeds + 1}"
        if len(contenders) < 2 or not self._money.affords(name, costs):
            return False
        self._say(
            "race", f"{len(contenders)} of {len(race.standings)} may be the best: one more seed."
        )
        asked = [(candidate, self.options.seed + seeds) for candidate in candidates]
        found = self._perform(asked, batches)
        done = [each for each in found if each is not None]
        if len(done) < len(found):  # the time is over: a round that some have run is none
            self._money.settle(name, False)
            return False
        before = {name: len(self._entries[name]) for name in contenders}
        self._enter(asked, done, batches)
        return any(len(self._entries[name]) > count for name, count in before.items())


def _whole(count: int, candidates: int) -> int:
    """Without a last seed that only some have: who has it would lead for that alone."""
    return count if count < candidates else count - count % candidates


def _length(run: Run) -> int:
    return run.steps * run.batches_a_step


def _too_small(
    asked: Budget,
    budget: PricedBudget,
    timer: Timer,
    batches: int,
    costs: Sequence[Sequence[float]],
) -> str:
    should = f"The budget should pay for {len(costs)} ways of training of {batches:,} batches each"
    if asked.seconds is None:
        total = round(sum(map(sum, costs)))
        return (
            f"{should}. Found {budget.batches:,} steps. Give at least {total:,}-steps, or shorter runs "
            "with `steps`."
        )
    work = makespan([cost for group in costs for cost in group], budget.workers)
    needed = (timer.used() + work + END_SECONDS) / (1 - END_SHARE)
    return (
        f"{should}, which takes about {math.ceil(needed)} s here. Found {asked.seconds:g} s. Give a "
        "larger `budget`, or shorter runs with `steps`."
    )
