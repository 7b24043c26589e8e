"""From tasks to a plan, inside a budget.

The budget is spent in this order: baselines under two seeds; a study of transfer with a small, fast
model; candidates that these suggest, under the same two seeds; and what is left on a race, in which
every candidate that may still be the best gets one more seed at a time. Everything is decided from
records, and everything random is a function of the seed, so an adviser that was stopped does the same
again, at no cost for what is done, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from taskmix.adviser._budget import Budget, PricedBudget, Prices, Timer
from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._candidates import baselines, distinct
from taskmix.adviser._ledger import Ledger
from taskmix.adviser._look import Finding, look_at
from taskmix.adviser._prices import Meter
from taskmix.adviser._propose import propose_candidates
from taskmix.adviser._race import Race, run_race
from taskmix.adviser._reading import RowsToRead, rows_to_read
from taskmix.adviser._run_length import choose_length, words_of_end, words_of_too_small_budget
from taskmix.adviser._scores import Entry, judged_targets, mean_comparable, unlearned_tasks
from taskmix.adviser._spending import Spending
from taskmix.adviser._transfer_stage import learn_which_help
from taskmix.engine import Executor, Run, Until, is_stop_asked, read_ahead
from taskmix.errors import InputError, OptionError, RunError
from taskmix.models import tuning_of
from taskmix.records import Study, to_plain
from taskmix.tasks import TaskSet
from taskmix.transfer import TransferLessons

FIRST_WAYS = 2  # of training, trained whatever they cost: with one there is nothing to compare
_ROWS = "rows"  # the decision in the ledger
MOST_SEEDS = 10  # of a candidate: what ten cannot tell apart is alike for all that matters


Reading = Callable[[], AbstractContextManager[Callable[[int, int], None] | None]]


@dataclass(frozen=True, kw_only=True)
class AdviseOptions:
    """What is asked of the adviser.

    >>> AdviseOptions(budget=Budget.parse("10m"), target="parity").level  # of all its intervals
    0.9
    """

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
    """What the adviser is at.

    >>> news = News(stage="race", words="3 of 9 may be the best: one more seed.", spent=0.625)
    >>> f"[{news.spent:.1%} spent] {news.words}"
    '[62.5% spent] 3 of 9 may be the best: one more seed.'
    """

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
        return judged_targets(self.targets, self.unlearned)


@dataclass(frozen=True)
class _Known:
    """What is known before the first lessons, and does not change after them."""

    tasks: TaskSet
    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    unlearned: tuple[str, ...]


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
    reading: Reading = nullcontext  # hears how many texts the encoder has read
    _spending: Spending | None = None

    def run(self) -> Advice:
        """Does everything, or goes on with it."""
        self.timer.seconds = self.options.budget.seconds
        self.executor = Until(self.executor, self.timer.is_over)
        tasks = self.template.load()
        targets = self._targets(tasks)
        self._tell_stage("look", f"Looking at {len(tasks)} tasks.")
        findings = look_at(tasks)
        ledger = Ledger(self.study.path, asdict(self.options))
        words = self._read_texts(ledger, tasks)
        tasks = self.template.load()
        spending = self._spending = self._open_spending(ledger)
        runs = self._candidate_runs(spending, tasks, targets)
        runs.notes += words
        spending.begin()
        try:
            return self._spend(runs, tasks, targets, findings)
        finally:
            spending.ledger.take_time(self.timer.used())

    def _spend(
        self,
        runs: CandidateRuns,
        tasks: TaskSet,
        targets: tuple[str, ...],
        findings: tuple[Finding, ...],
    ) -> Advice:
        batches = runs.length.batches
        first = distinct(baselines(tasks, targets))
        words = f"{len(first)} ways anyone would try, {batches} batches each."
        self._tell_stage("baselines", words)
        done = runs.train_first_seeds("baselines", first, least=min(len(first), FIRST_WAYS))
        self._tell_stage("runs", f"{done} candidates trained.")
        unlearned = unlearned_tasks(runs.entries, tasks, targets)
        known = _Known(tasks, targets, findings, unlearned)
        self._advice(runs, known, None)

        lessons = learn_which_help(runs, self.probe, tasks, targets, self._tell_stage)
        advice = self._advice(runs, known, lessons)

        suggested = propose_candidates(
            runs.entries,
            self.study,
            tasks,
            [name for name in targets if name not in unlearned],
            batches=batches,
            lessons=lessons,
            for_all=self.options.target is None,
            with_weightings="equal" in advice.race.open,
        )
        more = distinct(suggested, first)
        if more:
            self._tell_stage("candidates", f"{len(more)} more that the first runs suggest.")
            done = runs.train_first_seeds("candidates", more)
            self._tell_stage("runs", f"{done} candidates trained.")
            advice = self._advice(runs, known, lessons)
        while self._race_on(runs, advice.race):
            advice = self._advice(runs, known, lessons)
        words = words_of_end(advice.race, runs.spending, most_seeds=MOST_SEEDS)
        self._tell_stage("end", words)
        return replace(advice, notes=(*advice.notes, words))

    def _tell_stage(self, stage: str, words: str) -> None:
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

    def _read_texts(self, ledger: Ledger, tasks: TaskSet) -> list[str]:
        """Has a frozen encoder read what the time allows; the words for rows that are left out."""
        if tuning_of(self.template.architecture) != "heads":
            return []
        rows = RowsToRead(most={})
        if self.timer.seconds is not None:
            self.timer.before = ledger.seconds

            def decide() -> Any:
                self._tell_stage("reading", "Measuring how fast the encoder reads.")
                # What it took to get here, imports and the folder, it takes every process again.
                seconds = self.timer.left() - (self.timer.used() - self.timer.before)
                return to_plain(rows_to_read(self.template, tasks, max(seconds, 0.0)))

            decided = ledger.decide(_ROWS, decide, seconds=self.timer.used())
            rows = RowsToRead(most=decided["most"], words=decided["words"])
        self._tell_stage("reading", rows.words or "Reading all texts with the encoder, once.")
        self.template = rows.apply(self.template)
        self.probe = None if self.probe is None else rows.apply(self.probe)
        with self.reading() as tell:
            is_read = read_ahead([self.template], tell, stop=partial(is_stop_asked, self.executor))
        if self.timer.is_over():
            raise OptionError(
                "The budget should last until the encoder has read all texts, once. The time was over "
                "before. What was read is kept: run the same command again with a larger `budget`.",
                arguments=("budget",),
            )
        if not is_read:
            raise RunError(
                "Stopped. What was read is kept. Run the same command again to continue."
            )
        return [rows.words] if rows.words else []

    def _open_spending(self, ledger: Ledger) -> Spending:
        """What the study says of the budget, or else what is measured now."""

        return Spending.of_ledger(
            ledger,
            self.timer,
            self.options.budget,
            template=self.template,
            executor=self.executor,
            meter=Meter(self.executor, self.timer, partial(self._tell_stage, "prices")),
            measure=self.measure,
        )

    def _candidate_runs(
        self, spending: Spending, tasks: TaskSet, targets: tuple[str, ...]
    ) -> CandidateRuns:
        """Runs as long as the budget allows; raises where it does not pay for the first ones."""
        length = choose_length(
            tasks,
            spending.budget,
            batch_size=self.template.batch_size,
            batches=self.options.batches,
        )
        runs = CandidateRuns(
            template=self.template,
            study=self.study,
            executor=self.executor,
            timer=self.timer,
            spending=spending,
            length=length,
            first_seed=self.options.seed,
        )
        ways = runs.first_seeds(distinct(baselines(tasks, targets)))
        costs = runs.costs_of(ways)[:FIRST_WAYS]
        if not spending.is_settled and not spending.can_pay(costs):
            words = words_of_too_small_budget(
                self.options.budget, spending.budget, self.timer, length.batches, costs
            )
            raise OptionError(words, arguments=("budget", "steps"))
        return runs

    def _advice(
        self, runs: CandidateRuns, known: _Known, lessons: TransferLessons | None
    ) -> Advice:
        judged = judged_targets(known.targets, known.unlearned)
        scores = {
            name: [mean_comparable(known.tasks, entry.dev, judged) for entry in some]
            for name, some in runs.entries.items()
        }
        if not scores:
            raise RunError(
                "At least one way of training should have a score. Found none. "
                + " ".join(runs.notes[:2])
            )
        advice = Advice(
            options=self.options,
            tasks=known.tasks,
            targets=known.targets,
            findings=known.findings,
            budget=runs.spending.budget,
            batches=runs.length.batches,
            batch_size=self.template.batch_size,
            spent=runs.spending.batches,
            entries={name: list(some) for name, some in runs.entries.items()},
            race=run_race(scores, self.options.level),
            lessons=lessons,
            unlearned=known.unlearned,
            notes=tuple(runs.notes),
        )
        self.keep(advice)
        return advice

    def _race_on(self, runs: CandidateRuns, race: Race) -> bool:
        """Gives every open candidate one more seed; False where nothing is open or left to spend."""
        seeds = race.leader.seeds
        contenders = [
            name for name in race.open if race.standing(name).seeds == seeds and seeds < MOST_SEEDS
        ]
        candidates = [runs.entries[name][0].candidate for name in contenders]
        seed = self.options.seed + seeds
        costs = runs.costs_of([(candidate, seed) for candidate in candidates])
        stage = f"seed {seeds + 1}"
        if len(contenders) < 2 or not runs.spending.affords(stage, costs):
            return False
        words = f"{len(contenders)} of {len(race.standings)} may be the best: one more seed."
        self._tell_stage("race", words)
        return runs.train_one_more_seed(stage, candidates, seed)
