"""From tasks to a plan, inside a budget.

The budget is spent in this order: baselines under two seeds; a study of transfer with a small, fast
model; candidates that these suggest, under one seed, and shares fitted over all mixtures so far; a
race, in which every way that may still be the best gets one more seed at a time; and a part that was
kept for longer runs of the two leaders, since what leads early need not lead in the training that will
be. Above a pretrained
model all ways are tried on cheaper rungs first, and only those that may be the best on the model
itself. Everything is decided from records, and everything random is a function of the seed, so an
adviser that was stopped does the same again, at no cost for what is done, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from taskmix.adviser._advice import Advice, AdviseOptions, News
from taskmix.adviser._budget import Prices, Timer
from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._candidates import baselines, distinct
from taskmix.adviser._fitted_mixture import fitted_mixture
from taskmix.adviser._judging import Judged, Trained, judge_ways
from taskmix.adviser._ladder import Rung, misleading, rungs_below, words_of_agreement
from taskmix.adviser._learned import judge_learned
from taskmix.adviser._ledger import Ledger
from taskmix.adviser._left_out import made_or_noted
from taskmix.adviser._longer_runs import kept_for_long, run_longer
from taskmix.adviser._prices import Meter
from taskmix.adviser._probe import probe_of
from taskmix.adviser._propose import propose_candidates
from taskmix.adviser._reading import ReadingProgress, read_texts
from taskmix.adviser._run_length import choose_length, words_of_end, words_of_too_small_budget
from taskmix.adviser._scores import judged_targets
from taskmix.adviser._spending import Spending
from taskmix.adviser._transfer_stage import learn_which_help
from taskmix.adviser._work import Known, Work, with_scores
from taskmix.engine import Executor, Run, Until, is_stop_asked
from taskmix.errors import InputError, OptionError, RunError
from taskmix.plans import Plan
from taskmix.records import Study
from taskmix.tasks import TaskSet, look_at

FIRST_WAYS = 2  # of training, trained whatever they cost: with one there is nothing to compare
CLIMBERS = 4  # ways that the model itself runs in a round, where cheaper ones have run all
RUNG_LENGTH = 4  # times the batches of the model itself: they are cheap, and ways part late
LOOKING_SHARE = 0.1  # of the time left, for what the rows themselves say
NOT_LOOKED_AT = (
    "There was no time to look at all rows for what would spoil them: `taskmix check` does."
)
MOST_SEEDS = 10  # of a candidate: what ten cannot tell apart is alike for all that matters


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
    reading: ReadingProgress = nullcontext  # hears how many texts the encoder has read
    _spending: Spending | None = None

    def run(self) -> Advice:
        """Does everything, or goes on with it."""
        self.timer.seconds = self.options.budget.seconds
        self.executor = Until(self.executor, self.timer.is_over)
        tasks = self.template.load()
        targets = self._targets(tasks)
        self._tell_stage("look", f"Looking at {len(tasks)} tasks.")
        end = (1 - LOOKING_SHARE) * self.timer.left()

        def is_late() -> bool:
            return self.timer.left() < max(end, 0.0)

        findings = look_at(tasks, stop=is_late)
        words = [NOT_LOOKED_AT] if is_late() else []
        ledger = Ledger(self.study.path, self.options.question)
        self.template, more = self._read(ledger, self.template)
        words += more
        tasks = self.template.load()
        rungs = []
        for rung in rungs_below(self.template, tasks):
            template, more = self._read(ledger, rung.template)
            rungs.append(replace(rung, template=template))
            words += more
        if self.probe is not None:  # it studies transfer on the cheapest model there is
            self.probe = probe_of(rungs[0].template if rungs else self.template)
        spending = self._spending = self._open_spending(ledger)
        runs = self._candidate_runs(spending, tasks, targets)
        runs.notes += words
        spending.begin()
        below = {rung.name: self._runs_on(rung, runs) for rung in rungs}
        try:
            return self._spend(Work(runs, below, Known(tasks, targets, findings)))
        finally:
            spending.ledger.take_time(self.timer.used())

    def _read(self, ledger: Ledger, template: Run) -> tuple[Run, list[str]]:
        return read_texts(
            template,
            ledger,
            self.timer,
            self.reading,
            stop=partial(is_stop_asked, self.executor),
            tell=partial(self._tell_stage, "reading"),
        )

    def _runs_on(self, rung: Rung, runs: CandidateRuns) -> CandidateRuns:
        """The same ways on a cheaper model, which is trained longer."""
        longer = replace(runs.length, batches=RUNG_LENGTH * runs.length.batches)
        return replace(
            runs,
            template=rung.template,
            length=longer,
            price=rung.price,
            name=rung.name,
            entries={},
            failed=set(),
        )

    def _spend(self, work: Work) -> Advice:
        runs, tasks, targets = work.runs, work.known.tasks, work.known.targets
        first = distinct(baselines(tasks, targets))
        words = f"{len(first)} ways anyone would try, {runs.length.batches} batches each."
        self._tell_stage("baselines", words)
        done = self._train_below(work, "baselines", first)
        some = first[:FIRST_WAYS] if work.below else first
        done += runs.train_first_seeds("baselines", some, least=min(len(first), FIRST_WAYS))
        self._tell_stage("runs", f"{done} candidates trained.")
        advice = self._advice(work)

        learn = partial(learn_which_help, work.lowest, self.probe, tasks, targets, self._tell_stage)
        work.lessons = made_or_noted("Which tasks help which", learn, runs.notes)
        advice = self._advice(work)

        suggest = partial(
            propose_candidates,
            work.lowest.entries,
            self.study,
            tasks,
            [name for name in targets if name not in work.unlearned],
            batches=work.lowest.length.batches,
            lessons=work.lessons,
            for_all=self.options.target is None,
            with_weightings="equal" in advice.race.open,
        )
        suggested = made_or_noted("What the first runs suggest", suggest, runs.notes)
        more = distinct(suggested or [], first)
        if more:
            self._tell_stage("candidates", f"{len(more)} more that the first runs suggest.")
            done = self._train_below(work, "candidates", more)
            if not work.below:
                done += runs.train_first_seeds("candidates", more, seeds=1)
            self._tell_stage("runs", f"{done} candidates trained.")
            advice = self._advice(work)
        if self._train_fitted(work, advice):
            advice = self._advice(work)
        while self._race_on(work, advice):
            advice = self._advice(work)
        if work.dropped and self._run_what_misled(work):
            advice = self._advice(work)
            while self._race_on(work, advice):
                advice = self._advice(work)
        while run_longer(work, advice, self._tell_stage):
            advice = self._advice(work)
        while self._race_on(work, advice, last=True):
            advice = self._advice(work)
        words = words_of_end(advice.race, runs.spending, most_seeds=MOST_SEEDS)
        self._tell_stage("end", words)
        return replace(advice, notes=(*advice.notes, words))

    def _train_fitted(self, work: Work, advice: Advice) -> bool:
        """Trains shares fitted over all mixtures so far, where laws say that they are likely to gain.

        The price of longer runs is left, as in the race.
        """
        known, runs = work.known, work.lowest
        fit = partial(
            fitted_mixture,
            runs.entries,
            known.tasks,
            [name for name in known.targets if name not in work.unlearned],
            for_all=self.options.target is None,
            seed=self.options.seed,
        )
        plan = made_or_noted("The mixture fitted to all runs", fit, runs.notes)
        if plan is None:
            return False
        kept = kept_for_long(work, advice)
        cost = runs.costs_of([(plan, runs.first_seed)])
        if not runs.spending.affords("a fitted mixture", [*kept, *cost]):
            return False
        self._tell_stage("candidates", f"One more: {plan.words}.")
        if work.below:
            return self._train_below(work, "a fitted mixture's run", [plan]) > 0
        return runs.train_first_seeds("a fitted mixture's run", [plan], seeds=1) > 0

    def _run_what_misled(self, work: Work) -> bool:
        """Runs on the model itself the ways that only rungs have, which cannot be asked any more."""
        names = {name for runs in work.below.values() for name in runs.entries}
        ways = [work.way(name) for name in sorted(names - set(work.runs.entries))]
        if not ways:
            return False
        self._tell_stage("candidates", f"{len(ways)} ways that cheaper models cannot judge.")
        return work.runs.train_first_seeds("what misled", ways, seeds=1) > 0

    def _train_below(self, work: Work, stage: str, ways: Sequence[Plan]) -> int:
        """Tries ways on the cheaper rungs, each as far as the budget goes."""
        done = 0
        for name, runs in work.below.items():
            self._tell_stage("rungs", f"{len(ways)} ways with {name} first.")
            done += runs.train_first_seeds(f"{stage} with {name}", ways)
        return done

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

    def _advice(self, work: Work) -> Advice:
        """What is known now; it is kept, in case this is the last."""
        runs, known = work.runs, work.known
        if not runs.entries:
            raise RunError(
                "At least one way of training should have a score. Found none. "
                + " ".join(runs.notes[:2])
            )
        work.learned = judge_learned(
            {**runs.entries, **work.longer}, known.tasks, known.targets, self.study
        )
        judged = judged_targets(known.targets, work.unlearned)
        found = self._judge(work, judged)
        if wrong := misleading(found.race, len(runs.entries)):
            work.dropped += wrong
            found = self._judge(work, judged)
        advice = Advice(
            options=self.options,
            tasks=known.tasks,
            targets=known.targets,
            findings=known.findings,
            budget=runs.spending.budget,
            batches=runs.length.batches,
            batch_size=self.template.batch_size,
            spent=runs.spending.batches,
            entries=with_scores(runs.entries, known.tasks, judged),
            race=found.race,
            lessons=work.lessons,
            unlearned=work.unlearned,
            notes=(*runs.notes, *found.notes, *words_of_agreement(found.race, work.dropped)),
            learned=work.learned,
            length=found.batches,
            row_error=found.row_error,
            leader_now=found.leader_now,
            curve_error=found.curve_error,
            growth=found.growth,
            long={} if work.long is None else dict(work.long.entries),
            long_batches=0 if work.long is None else work.long.length.batches,
            rungs={name: dict(each.entries) for name, each in work.below.items()},
            architecture=self.template.architecture,
        )
        self.keep(advice)
        return advice

    def _judge(self, work: Work, judged: Sequence[str]) -> Judged:
        tasks = work.known.tasks
        trained = Trained(
            entries=with_scores(work.runs.entries, tasks, judged),
            batches=work.runs.length.batches,
            rungs={
                name: with_scores(each.entries, tasks, judged)
                for name, each in work.below.items()
                if each.entries and name not in work.dropped
            },
            long=with_scores(work.longer, tasks, judged),
            long_batches=0 if work.long is None else work.long.length.batches,
        )
        return judge_ways(
            trained,
            tasks,
            judged,
            self.study,
            batches=self._train_batches(work.runs.spending),
            # Where the losses of most tasks still fall, a score that stands still has not begun to rise.
            rising=2 * sum(each.still_rising for each in work.learned) > len(work.learned),
            level=self.options.level,
        )

    def _train_batches(self, spending: Spending) -> int | None:
        """Of the training that will be; None where nobody said."""
        if self.options.train_seconds is None:
            return self.options.train_batches
        alone = replace(self.template, steps=1, seed=self.options.seed)
        return max(round(self.options.train_seconds / spending.seconds_of_batch(alone)), 1)

    def _race_on(self, work: Work, advice: Advice, *, last: bool = False) -> bool:
        """Gives ways that may be the best another seed, the likeliest first.

        False where none is open or two cannot be paid for. Before the `last` rounds the price of longer
        runs is left.
        """
        race = advice.race
        # Comparisons are paired by seed: a way that failed with one has no use for another.
        waiting = [
            each
            for each in race.standings
            if each.is_open and each.seeds < MOST_SEEDS and each.name not in work.runs.failed
        ]
        if len(race.open) < 2 or not waiting:
            return False
        seeds = min(each.seeds for each in waiting)
        waiting = sorted(
            (each for each in waiting if each.seeds == seeds), key=lambda each: -each.chance
        )
        contenders = [each.name for each in waiting[: CLIMBERS if work.below else None]]
        candidates = [work.way(name) for name in contenders]
        seed = self.options.seed + seeds
        costs = work.runs.costs_of([(candidate, seed) for candidate in candidates])
        # Ways that were out may be back, so there may be several rounds of one seed.
        stage = f"seed {seeds + 1} of {', '.join(contenders)}"
        if last:
            stage += " after longer runs"
        kept = [] if last else kept_for_long(work, advice)
        count = work.runs.spending.affordable(stage, [*kept, *costs], least=0) - len(kept)
        if count < min(len(candidates), 2):
            return False
        words = (
            f"{len(race.open)} of {len(race.standings)} may be the best: one more seed of {count}."
        )
        self._tell_stage("race", words)
        before = len(work.runs.failed)
        trained = work.runs.train_one_more_seed(stage, candidates[:count], seed)
        return trained or len(work.runs.failed) > before
