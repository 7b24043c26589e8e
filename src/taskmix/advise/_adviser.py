"""From tasks to a plan, inside a budget.

The budget is spent in this order: baselines under two seeds; a study of transfer with a small, fast
model; candidates that these suggest, under the same two seeds; and what is left on a race, in which
every candidate that may still be the best gets one more seed at a time. Everything is decided from
records, and everything random is a function of the seed, so an adviser that was stopped does the same
again, at no cost for what is done, and goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from taskmix.advise._budget import Budget, Prices, Purse
from taskmix.advise._candidates import Candidate, baselines
from taskmix.advise._expect import sampling_error
from taskmix.advise._look import Finding, look_at
from taskmix.advise._propose import apart, from_logs, from_transfer, weightings, without
from taskmix.advise._race import Race, run_race
from taskmix.advise._scores import Entry, comparable, entry_of, guessed_score, mean_comparable
from taskmix.engine import Run
from taskmix.errors import InputError, OptionError, RecordError, RunError, TaskmixError
from taskmix.records import Study, write_bytes
from taskmix.tasks import TaskSet, find_metric
from taskmix.transfer import (
    LearningOptions,
    Perform,
    SubsetDesign,
    TransferLessons,
    TransferStudy,
    carry_out,
    learn,
)
from taskmix.weighting import Equal

UNITS = 36  # runs of a candidate that a budget should pay for
FIRST_SEEDS = 2
MOST_SEEDS = 10
TRANSFER_SHARE = 0.2  # of the budget
PASSES = 20  # over all rows: a run of more batches is not asked for
FEWEST_BATCHES = 24  # of each task in a run
PROBE_ALONE = 4  # runs of each task alone in the study of transfer
NOTHING = 2.0  # sampling errors above a guess: below that, nothing was learned


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


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Everything that was found out."""

    options: AdviseOptions
    tasks: TaskSet
    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    purse: Purse
    batches: int  # of a run of a candidate
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
    probe: Run  # of the study of transfer: a small model of the same tasks
    study: Study
    options: AdviseOptions
    perform: Perform
    measure_prices: Callable[[], Prices]  # called once, where the budget is a time
    tell: Callable[[News], None] = lambda news: None
    keep: Callable[[Advice], None] = lambda advice: None  # of what is known after each stage
    _entries: dict[str, list[Entry]] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _spent: float = 0.0
    _begin: float = field(default_factory=time.monotonic)

    def run(self) -> Advice:
        """Does everything, or goes on with it."""
        tasks = self.template.load()
        targets = self._targets(tasks)
        self._say("look", f"Looking at {len(tasks)} tasks.")
        findings = look_at(tasks)
        purse = self._purse()
        batches = self._batches(tasks, purse)
        known: dict[str, Any] = {
            "tasks": tasks,
            "targets": targets,
            "findings": findings,
            "purse": purse,
            "batches": batches,
        }

        first = baselines(tasks.names, targets)
        self._say("baselines", f"{len(first)} ways anyone would try, {batches} batches each.")
        self._take(first, FIRST_SEEDS, purse, batches)
        unlearned = self._unlearned(tasks, targets)
        known["unlearned"] = unlearned
        advice = self._advice(known, None)

        lessons = self._transfer(tasks, targets, purse)
        advice = self._advice(known, lessons)

        more = self._candidates(tasks, [n for n in targets if n not in unlearned], lessons)
        if more:
            self._say("candidates", f"{len(more)} more that the first runs suggest.")
            self._take(more, FIRST_SEEDS, purse, batches)
            advice = self._advice(known, lessons)
        while self._another_round(advice, purse, batches):
            advice = self._advice(known, lessons)
        return advice

    def _say(self, stage: str, words: str, purse: Purse | None = None) -> None:
        share = self._spent / purse.batches if purse is not None else 0.0
        self.tell(News(stage=stage, words=words, spent=min(share, 1.0)))

    def _targets(self, tasks: TaskSet) -> tuple[str, ...]:
        if not len(tasks):
            raise InputError("There should be at least one task to advise on. Found none.")
        wanted = tasks.names if self.options.target is None else (self.options.target,)
        for name in wanted:
            if not tasks[name].sizes.get("dev"):
                raise InputError(
                    "Every target should have dev rows, by which ways of training are compared. Found "
                    f"none for `{name}`. Give it a dev file, or name another --target."
                )
        return wanted

    # The budget.

    def _purse(self) -> Purse:
        """What the study says of it, or else what is measured now and kept there."""
        path = self.study.path / "advise.json"
        asked = asdict(self.options)
        if path.exists():
            kept = _read_state(path.read_bytes())
            if kept["asked"] == asked:
                return Purse(**kept["purse"])
        self._say("prices", "Measuring how long a batch takes.")
        budget = self.options.budget
        prices = None if budget.seconds is None else self.measure_prices()
        purse = Purse.of(budget, prices)
        state = {"version": 1, "asked": asked, "purse": asdict(purse)}
        self.study.path.mkdir(parents=True, exist_ok=True)
        write_bytes(path, (json.dumps(state, indent=2) + "\n").encode())
        return purse

    def _batches(self, tasks: TaskSet, purse: Purse) -> int:
        """Of a run: what the budget allows, and no more than some passes over all rows."""
        if self.options.batches is not None:
            return self.options.batches
        enough = PASSES * int(tasks.sizes.sum()) // self.template.batch_size
        fewest = FEWEST_BATCHES * len(tasks)
        return max(min(purse.batches // UNITS, enough), fewest)

    def _can_pay(self, purse: Purse, batches: float) -> bool:
        """Whether batches are left, and time, where a machine is slower than it was at first."""
        seconds = self.options.budget.seconds
        in_time = seconds is None or time.monotonic() - self._begin < seconds
        return in_time and self._spent + batches <= purse.batches

    # Runs.

    def _take(
        self, candidates: Sequence[Candidate], seeds: int, purse: Purse, batches: int
    ) -> None:
        """Brings candidates to so many seeds, as far as the budget goes; the first seed always."""
        asked: list[tuple[Candidate, int]] = []
        cost = self._spent
        for number in range(seeds):
            for candidate in candidates:
                have = len(self._entries.get(candidate.name, ()))
                if have > number:
                    continue
                first = number == 0 and candidate.name in ("single", "uniform")
                if first or cost + batches <= purse.batches:
                    asked.append((candidate, self.options.seed + number))
                    cost += batches
        self._perform(asked, batches)
        self._say("runs", f"{len(asked)} candidates trained.", purse)

    def _perform(self, asked: Sequence[tuple[Candidate, int]], batches: int) -> None:
        runs = [candidate.runs(self.template, batches, seed) for candidate, seed in asked]
        flat = [run for some in runs for run in some]
        results = iter(self.perform(flat))
        for (candidate, seed), some in zip(asked, runs, strict=True):
            found = [next(results) for _ in some]
            stopped = [each for each in found if each.outcome in ("stopped", "busy")]
            if stopped:
                raise RunError(
                    f"All runs should have ended. Found one {stopped[0].outcome}. Run the same command "
                    "again to continue."
                )
            entry = entry_of(candidate, seed, some, found)
            self._spent += batches
            if entry is None:
                reason = next((each.error for each in found if each.error), "it failed")
                self._notes.append(f"`{candidate.name}` with seed {seed} has no score: {reason}")
            else:
                self._entries.setdefault(candidate.name, []).append(entry)

    def _unlearned(self, tasks: TaskSet, targets: Sequence[str]) -> tuple[str, ...]:
        """Targets on which no baseline is surely better than always giving one answer."""
        found = []
        for name in targets:
            task = tasks[name]
            guess = guessed_score(task)
            scores = [
                entry.dev[name]
                for some in self._entries.values()
                for entry in some
                if name in entry.dev
            ]
            if not scores or guess != guess:
                continue
            better = max if find_metric(task.metric).higher_is_better else min
            best = better(scores)
            rows = len(task.splits["dev"])
            margin = NOTHING * sampling_error(task.metric, guess, rows)
            gain = comparable(task, best) - comparable(task, guess)
            if gain <= abs(comparable(task, guess + margin) - comparable(task, guess)):
                found.append(name)
        return tuple(found)

    # Transfer.

    def _transfer(
        self, tasks: TaskSet, targets: Sequence[str], purse: Purse
    ) -> TransferLessons | None:
        if len(tasks) < 4:
            return None  # a surrogate wants three sources
        size = SubsetDesign().source_size(len(tasks) - 1)
        run = self.probe.steps * (size + 1) * purse.probe_price
        affordable = TRANSFER_SHARE * purse.batches / run
        single = PROBE_ALONE * len(targets) * self.probe.steps * purse.probe_price
        shared = len(targets) == len(tasks)
        # Each run on a subset is a row of every member where all tasks are targets.
        rows = affordable * ((size + 1) / len(tasks) if shared else 1 / len(targets))
        count = int(rows * 0.8)
        if count < len(tasks) + 2 or not self._can_pay(purse, affordable * run + single):
            self._notes.append(
                "The budget was too small to study which tasks help which: it would have paid for "
                f"{max(count, 0)} subsets a task, and {len(tasks) + 2} are the fewest that tell."
            )
            return None
        held_out = max(count // 4, 3)
        self._say("transfer", f"{count} subsets of each task's sources, with a small model.", purse)
        description = TransferStudy(
            template=replace(self.probe, weighting=Equal()),
            targets=tuple(targets),
            design=SubsetDesign(
                count=min(count, 400),
                held_out=held_out,
                alone=PROBE_ALONE,
                seed=self.options.seed,
            ),
        )
        try:
            carried = carry_out(description, self.study, perform=self.perform)
            lessons = learn(carried, self.study, options=LearningOptions(prefixes=0))
        except RunError:
            raise
        except TaskmixError as error:
            self._notes.append(f"Which tasks help which could not be learned: {error}")
            return None
        self._spent += len(carried.trials) * run
        return lessons

    def _candidates(
        self, tasks: TaskSet, usable: Sequence[str], lessons: TransferLessons | None
    ) -> list[Candidate]:
        """What the first runs suggest, without the tasks of which nothing was learned."""
        if len(tasks) < 2 or not usable:
            return []
        found: list[Candidate | None] = []
        sources: Sequence[str] = tasks.names
        if self.options.target is None:
            sources = usable
            if 1 < len(usable) < len(tasks):
                found.append(without(tasks.names, usable))
            found.append(from_logs(self._entries, self.study, usable))
            found.append(apart(self._entries, tasks, usable))
        if lessons is not None:
            found += from_transfer(lessons, usable)
        if len(sources) > 1:
            found += weightings(sources, usable)
        seen: set[tuple[Any, ...]] = set()
        kept = []
        for candidate in found:
            if candidate is not None and candidate.parts not in seen:
                seen.add(candidate.parts)
                kept.append(candidate)
        return kept

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
            spent=self._spent,
            entries={name: list(some) for name, some in self._entries.items()},
            race=run_race(scores, self.options.level),
            lessons=lessons,
            notes=tuple(self._notes),
            **known,
        )
        self.keep(advice)
        return advice

    def _another_round(self, advice: Advice, purse: Purse, batches: int) -> bool:
        """Gives every open candidate one more seed; False where nothing is open or left to spend."""
        race = advice.race
        contenders = [
            name
            for name in race.open
            if race.standing(name).seeds == race.leader.seeds and race.leader.seeds < MOST_SEEDS
        ]
        cost = len(contenders) * batches
        if len(contenders) < 2 or not self._can_pay(purse, cost):
            return False
        self._say(
            "race",
            f"{len(contenders)} of {len(race.standings)} may be the best: one more seed.",
            purse,
        )
        candidates = [self._entries[name][0].candidate for name in contenders]
        seed = self.options.seed + race.leader.seeds
        before = {name: len(self._entries[name]) for name in contenders}
        self._perform([(candidate, seed) for candidate in candidates], batches)
        return any(len(self._entries[name]) > count for name, count in before.items())


def _read_state(data: bytes) -> dict[str, Any]:
    try:
        state = json.loads(data)
        if not (state["version"] == 1 and {"batches", "probe_price"} == set(state["purse"])):
            raise KeyError("version")
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(
            "`advise.json` should say what the adviser was asked for and what it may spend. Found "
            "something else. Choose another --out, or remove the file."
        ) from error
    return dict(state)
