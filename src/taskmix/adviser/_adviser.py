"""From tasks to a model and a plan, inside a budget.

Shallow peers come first: they answer within seconds, so there is always something to deliver. Then what
anyone would try is trained under two seeds; a study of transfer with a small, fast model; candidates
that these suggest, under one seed; and a race, in which every candidate that may still be the best gets
one more seed at a time. With a pretrained model everything is tried on a cheaper one first, and the best
on the model itself. A part of the budget is kept for what is delivered (`_deliver.py`). Everything is
decided from records, and everything random is a function of the seed, so an adviser that was stopped
does the same again, at no cost for what is done, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from taskmix.adviser._advice import Advice, AdviseOptions, News
from taskmix.adviser._budget import Timer
from taskmix.adviser._candidate_runs import FIRST_SEEDS, CandidateRuns
from taskmix.adviser._candidates import baselines, distinct
from taskmix.adviser._deliver import PLAIN, Delivered, deliver, train_network
from taskmix.adviser._judge import Race, rank_candidates
from taskmix.adviser._learned import Learned, judge_learned, learned_together, unlearned
from taskmix.adviser._ledger import Ledger
from taskmix.adviser._left_out import made_or_noted
from taskmix.adviser._members import BlendMember, peer_members
from taskmix.adviser._propose import propose_candidates, spoiled
from taskmix.adviser._reading import ReadingProgress, read_texts
from taskmix.adviser._rows import row_noise
from taskmix.adviser._run_length import (
    EVALUATIONS_PER_RUN,
    RUNS_PER_BUDGET,
    choose_length,
    wished_batches,
)
from taskmix.adviser._rungs import CheaperModel, rung_below
from taskmix.adviser._scores import Entry, fair_entries, judged_targets, mean_comparable
from taskmix.adviser._spending import Spending
from taskmix.adviser._transfer_stage import learn_which_help
from taskmix.engine import Executor, Run, Until, is_stop_asked
from taskmix.errors import InputError, OptionError, RunError
from taskmix.plans import Plan
from taskmix.records import Study
from taskmix.tasks import WRITTEN, Finding, HeldEncoding, TaskSet, look_at
from taskmix.transfer import TransferLessons

CLIMBERS = 4  # candidates that the model itself runs, where a cheaper one has run all
RUNG_LENGTH = 4  # times the batches of the model itself: they are cheap, and candidates part late
LOOKING_SHARE = 0.1  # of the time left, for what the rows themselves say
PEERS_SHARE = 0.35  # of the time left, after which no further peer is begun
DELIVERY_RUNS = 2.5  # that are kept for what is delivered: one to check, one on all rows
MOST_SEEDS = 10  # of a candidate: what ten cannot tell apart is alike for all that matters
NOT_LOOKED_AT = (
    "There was no time to look at all rows for what would spoil them: `taskmix check` does."
)
NO_NETWORK = (
    "The budget pays for no shared network: what is delivered are linear models or trees, which took "
    "seconds."
)


@dataclass
class Adviser:
    """Spends the budget; `run` gives what is known at its end."""

    template: Run  # source, model and optimisation of every run
    probe_of: Callable[[Run], Run] | None  # the small run of the study of transfer; None: no study
    study: Study
    options: AdviseOptions
    executor: Executor
    timer: Timer = field(default_factory=Timer)  # runs stop when it is over
    tell: Callable[[News], None] = lambda news: None
    keep: Callable[[Advice], object] = lambda advice: None  # of what is known after each stage
    reading: ReadingProgress = nullcontext  # hears how many texts the encoder has read

    _spending: Spending = field(init=False)
    _runs: CandidateRuns = field(init=False)
    _tasks: TaskSet = field(init=False)
    _targets: tuple[str, ...] = field(init=False)
    _below: CandidateRuns | None = None  # of a cheaper model
    _findings: tuple[Finding, ...] = ()
    _peers: tuple[BlendMember, ...] = ()
    _lessons: TransferLessons | None = None
    _learned: tuple[Learned, ...] = ()
    _delivered: Delivered | None = None

    def run(self) -> Advice:
        """Does everything, or goes on with it."""
        self.timer.seconds = self.options.budget.seconds
        self.executor = Until(self.executor, self.timer.is_over)
        tasks = self.template.load()
        self._targets = self._wanted(tasks)
        self._tell("look", f"Looking at {len(tasks)} tasks.")
        notes = self._look(tasks)
        ledger = Ledger(self.study.path, self.options.question)
        self.timer.before = ledger.seconds
        self._spending = Spending(self.options.budget, self.timer, self.executor, ledger)
        self.template, more = self._read(ledger, self.template)
        self._tasks = self.template.load()
        self._runs = CandidateRuns(
            template=self.template,
            study=self.study,
            executor=self.executor,
            timer=self.timer,
            spending=self._spending,
            first_seed=self.options.seed,
            notes=[*notes, *more],
        )
        try:
            self._fit_peers(None)
            race = self._race() if self._prepare() else None
            if race is not None and self._lessons is not None and self._lessons.groups:
                self._fit_peers([list(group) for group in self._lessons.groups])
            self._delivered = made_or_noted(
                "The blend", partial(self._deliver, race), self._runs.notes
            )
            return self._advice(race)
        finally:
            ledger.take_time(self.timer.used())

    def _wanted(self, tasks: TaskSet) -> tuple[str, ...]:
        if not len(tasks):
            raise InputError("There should be at least one task to advise on. Found none.")
        wanted = tasks.names if self.options.target is None else (self.options.target,)
        for name in wanted:
            if not tasks[name].sizes.get("dev"):
                raise InputError(
                    "Every target should have dev rows, by which candidates are compared. Found "
                    f"none for `{name}`. Give it a dev file, or name another `target`.",
                    arguments=("target",),
                )
        return wanted

    def _look(self, tasks: TaskSet) -> list[str]:
        end = (1 - LOOKING_SHARE) * self.timer.left()

        def is_late() -> bool:
            return self.timer.left() < max(end, 0.0)

        self._findings = look_at(tasks, stop=is_late)
        return [NOT_LOOKED_AT] if is_late() else []

    def _read(self, ledger: Ledger, template: Run) -> tuple[Run, list[str]]:
        return read_texts(
            template,
            ledger,
            self.timer,
            self.reading,
            stop=partial(is_stop_asked, self.executor),
            tell=partial(self._tell, "reading"),
        )

    def _fit_peers(self, groups: Sequence[Sequence[str]] | None) -> None:
        """Linear models and trees, which stop being begun when they have had their share of the time."""
        if any(task.kind in WRITTEN for task in self._tasks):
            return
        encoding = self.template.architecture.encoding
        if isinstance(encoding, HeldEncoding):
            return
        end = max((1 - PEERS_SHARE) * self.timer.left(), 0.0)
        self._tell("peers", "Linear models and trees, which take seconds.")
        ledger, name = self._spending.ledger, "peers" if groups is None else "peers of groups"
        fitted: list[BlendMember] = []

        def is_late() -> bool:
            if is_stop_asked(self.executor) and not self.timer.is_over():
                raise RunError(self._runs.words_of_stop())
            if name in ledger.decisions:
                return len(fitted) >= int(ledger.decisions[name])
            return bool(fitted or self._peers) and self.timer.left() < end

        def fit() -> None:
            seed = self.options.seed
            peers = peer_members(self._tasks, encoding, groups=groups, seed=seed, stop=is_late)
            fitted.extend(peers)  # one after another: `is_late` counts them as they come

        made_or_noted("Linear models and trees", fit, self._runs.notes)
        if self._spending.by_clock:
            ledger.settle(name, len(fitted), seconds=self.timer.used())
        self._peers = tuple({each.name: each for each in (*self._peers, *fitted)}.values())

    def _prepare(self) -> bool:
        """Finds what runs cost and how long they can be; False where the budget pays for none."""
        runs, spending = self._runs, self._spending
        first = distinct(baselines(self._tasks, self._targets))
        batch_size = self.template.batch_size
        fewest, _, _ = wished_batches(self._tasks, batch_size)
        asked = self.options.batches
        if spending.by_clock and "length" not in spending.ledger.decisions:
            self._tell("prices", "Measuring how long a batch takes.")
        if runs.measure(first, EVALUATIONS_PER_RUN[0]):
            cost = spending.left
            longest = [spending.longest(runs.name, cost / count) for count in RUNS_PER_BUDGET]
            kept = spending.ledger.decisions.get("length") if spending.by_clock else None
            batches = asked if kept is None else int(kept)
            runs.length = choose_length(
                self._tasks, longest, batch_size=batch_size, batches=batches
            )
            least = FIRST_SEEDS if len(first) == 1 else min(len(first), FIRST_SEEDS)
            if runs.affordable(runs.first_seeds(first)[:least]) == least:
                if spending.by_clock:
                    length = runs.length.batches
                    spending.ledger.settle("length", length, seconds=self.timer.used())
                self._below = self._cheaper()
                return True
        if not self._peers:
            raise _too_small(self.options, asked or fewest)
        runs.notes.append(NO_NETWORK)
        return False

    def _cheaper(self) -> CandidateRuns | None:
        """The same candidates on a cheaper model, which is trained longer."""
        rung: CheaperModel | None = rung_below(self.template, self._tasks)
        if rung is None:
            return None
        template, more = self._read(self._spending.ledger, rung.template)
        self._runs.notes += more
        batches = RUNG_LENGTH * self._runs.length.batches
        below = replace(
            self._runs,
            template=template,
            length=replace(self._runs.length, batches=batches),
            name=rung.name,
            counted=rung.counted,
            entries={},
            failed=set(),
        )
        first = distinct(baselines(self._tasks, self._targets))
        return below if below.measure(first, below.length.evaluations) else None

    @property
    def _lowest(self) -> CandidateRuns:
        """Where candidates are tried first."""
        return self._below or self._runs

    @property
    def _reserve(self) -> float:
        return DELIVERY_RUNS * self._spending.cost(self._runs.name, self._runs.length.batches)

    def _race(self) -> Race | None:
        runs, tasks, targets = self._runs, self._tasks, self._targets
        first = distinct(baselines(tasks, targets))
        words = f"{len(first)} candidates anyone would try, {runs.length.batches} batches each."
        self._tell("baselines", words)
        self._try(first, FIRST_SEEDS)
        if not runs.entries:
            runs.notes.append(NO_NETWORK)
            return None
        self._advice(self._judge(runs))
        if self.probe_of is not None:
            probe = self.probe_of(self._lowest.template)
            learn = partial(learn_which_help, self._lowest, probe, tasks, targets, self._tell)
            self._lessons = made_or_noted("Which tasks help which", learn, runs.notes)
        race = self._judge(runs)
        suggest = partial(
            propose_candidates,
            self._lowest.entries,
            self.study,
            tasks,
            [name for name in targets if name not in unlearned(self._learned)],
            lessons=self._lessons,
            findings=self._findings,
            for_all=self.options.target is None,
            with_weightings="equal" in race.open,
        )
        more = distinct(
            made_or_noted("What the first runs suggest", suggest, runs.notes) or [], first
        )
        if more:
            self._tell("candidates", f"{len(more)} more that the first runs suggest.")
            self._try(more, 1)
            race = self._judge(runs)
            self._advice(race)
        while self._one_more_seed(race):
            race = self._judge(runs)
            self._advice(race)
        self._tell("end", _words_of_end(race))
        return race

    def _try(self, candidates: Sequence[Plan], seeds: int) -> None:
        """On the model itself; where there is a cheaper one, there first, and then the best of them."""
        runs, keep = self._runs, self._reserve
        if self._below is not None:
            self._tell("rungs", f"{len(candidates)} candidates with {self._below.name} first.")
            self._below.train_first_seeds(candidates, seeds=seeds, keep=keep)
            if not self._below.entries:
                candidates = candidates[:FIRST_SEEDS]
            else:
                order = [each.name for each in self._judge(self._below).standings]
                known = [each for each in candidates if each.name in order]
                known.sort(key=lambda each: order.index(each.name))
                candidates = known[:CLIMBERS]
        done = runs.train_first_seeds(candidates, seeds=seeds, keep=keep)
        if not done and not runs.entries:
            runs.train_first_seeds(candidates[:FIRST_SEEDS], seeds=1)

    def _one_more_seed(self, race: Race) -> bool:
        """Gives those that may be the best another seed, the likeliest first; False at the end."""
        runs = self._runs
        # Comparisons are paired by seed: a candidate that failed with one has no use for another.
        waiting = [
            each
            for each in race.standings
            if each.is_open and each.seeds < MOST_SEEDS and each.name not in runs.failed
        ]
        if race.is_settled or len(race.open) < 2 or not waiting:
            return False
        seeds = min(each.seeds for each in waiting)
        waiting = sorted(
            (each for each in waiting if each.seeds == seeds), key=lambda each: -each.chance
        )
        if self._below is not None:
            waiting = waiting[:CLIMBERS]
        plans = [runs.entries[each.name][0].candidate for each in waiting]
        seed = self.options.seed + seeds
        count = runs.affordable([(plan, seed) for plan in plans], keep=self._reserve)
        if count < min(len(plans), 2):
            return False
        words = (
            f"{len(race.open)} of {len(race.standings)} may be the best: one more seed of {count}."
        )
        self._tell("race", words)
        before = len(runs.failed)
        trained = runs.train_one_more_seed(plans[:count], seed)
        return trained or len(runs.failed) > before

    def _judge(self, runs: CandidateRuns) -> Race:
        """Where every candidate stands with this model, on tasks of which something was learned."""
        tasks, targets = self._tasks, self._targets
        fair = self._fair(runs)
        scores = {member.name: member.scores(tasks, "dev") for member in self._peers}
        self._learned = judge_learned(fair, tasks, targets, self.study, peers=scores)
        entries = fair_entries(runs.entries, tasks, self._judged)
        if not entries:
            raise RunError(
                "At least one candidate should have a score. Found none. "
                + " ".join(runs.notes[:2])
            )
        return rank_candidates(
            {
                way: [mean_comparable(tasks, entry.dev, self._judged) for entry in some]
                for way, some in entries.items()
            },
            rows=row_noise(entries, tasks, self._judged, self.study),
            level=self.options.level,
        )

    def _fair(self, runs: CandidateRuns) -> Mapping[str, Sequence[Entry]]:
        return fair_entries(runs.entries, self._tasks, self._targets)

    @property
    def _judged(self) -> tuple[str, ...]:
        return judged_targets(self._targets, self._left_out)

    @property
    def _left_out(self) -> tuple[str, ...]:
        """What no plan should train: scores of it would count for those that train it alone."""
        return (*unlearned(self._learned), *spoiled(self._findings))

    def _deliver(self, race: Race | None) -> Delivered | None:
        """The blend; None where there is nothing to blend, as for text that is written."""
        if any(task.kind in WRITTEN for task in self._tasks):
            return None
        runs = self._runs
        if race is None:
            self._learn_of_peers()
        entries = fair_entries(runs.entries, self._tasks, self._judged)
        members, batches, plan = list(self._peers), 0, None
        if race is not None:
            plan = choose(race, entries, left_out=self._left_out)
            self._tell("deliver", f"The network of {plan.name} with a fresh seed, to be blended.")
            trained = train_network(plan, entries[plan.name], runs, self._judged)
            if trained is not None:
                members.insert(0, trained[0])
                batches = trained[1]
            else:
                runs.notes.append(
                    "There was no time to train the network once more: it is no part of the blend."
                )
        if not members:
            return None
        again = "trained again on train and dev rows" if self.options.refit else "as it is"
        self._tell("deliver", f"Choosing and weighing members of the blend, {again}.")
        return deliver(
            members,
            batches,
            runs,
            plan,
            self._targets,
            self._judged,
            refit=self.options.refit,
            level=self.options.level,
            entries={name: some for name, some in entries.items() if name in PLAIN},
        )

    def _learn_of_peers(self) -> None:
        scores = {member.name: member.scores(self._tasks, "dev") for member in self._peers}
        self._learned = judge_learned({}, self._tasks, self._targets, peers=scores)

    def _advice(self, race: Race | None) -> Advice:
        """What is known now; it is kept, in case this is the last."""
        runs, spending = self._runs, self._spending
        if race is None:
            self._learn_of_peers()
        entries = fair_entries(runs.entries, self._tasks, self._judged)
        ways: dict[str, list[Mapping[str, float]]] = {
            name: [entry.dev for entry in some] for name, some in entries.items()
        }
        ways |= {member.name: [member.scores(self._tasks, "dev")] for member in self._peers}
        advice = Advice(
            options=self.options,
            tasks=self._tasks,
            targets=self._targets,
            findings=self._findings,
            batches=runs.length.batches,
            batch_size=self.template.batch_size,
            spent=spending.batches,
            share_spent=spending.share,
            entries=entries,
            race=race,
            lessons=self._lessons,
            peers=self._peers,
            delivered=self._delivered,
            learned=self._learned,
            learned_together=learned_together(self._tasks, self._targets, ways),
            rung="" if self._below is None else self._below.name,
            notes=tuple(dict.fromkeys(runs.notes)),
            architecture=self.template.architecture,
        )
        self.keep(advice)
        return advice

    def _tell(self, stage: str, words: str) -> None:
        left = None if self.timer.seconds is None else max(self.timer.left(), 0.0)
        share = self._spending.share if hasattr(self, "_spending") else 0.0
        self.tell(News(stage=stage, words=words, spent=share, left=left))


# What one would do without advice, with the tasks that teach nothing or without.
SIMPLEST = ("uniform", "without", "size", "equal", "equal without", "single")
AS_GOOD = 0.3  # half-widths of its interval, by which a simple candidate may trail the leader


def choose(
    race: Race, entries: Mapping[str, Sequence[Entry]], *, left_out: Collection[str]
) -> Plan:
    """The leader, or the simplest of those that are as good for all one knows.

    One that trains what should be left out is chosen only where all others are known to be worse.
    """
    plans = {each.name: entries[each.name][0].candidate for each in race.standings}
    may = [each for each in race.standings if each.is_open]
    may = [each for each in may if not {*left_out} & {*plans[each.name].tasks}] or may
    best = may[0]
    for each in sorted(
        (each for each in may if each.name in SIMPLEST),
        key=lambda each: SIMPLEST.index(each.name),
    ):
        alike = each.name in race.alike and best.name in race.alike
        if alike or each.behind.mean - best.behind.mean <= AS_GOOD * each.behind.half_width:
            return plans[each.name]
    return plans[best.name]


def _words_of_end(race: Race) -> str:
    if len(race.open) == 1:
        return f"The race is settled: {race.leader.name} leads."
    if race.is_settled:
        return f"The {len(race.alike)} first candidates are within {100 * race.within:.1f} points."
    count = f"{len(race.open)} of {len(race.standings)}"
    return f"{count} may be the best: the budget pays for no more seeds."


def _too_small(options: AdviseOptions, batches: int) -> OptionError:
    found = (
        f"{options.budget.seconds:g} s"
        if options.budget.seconds
        else f"{options.budget.batches} steps"
    )
    return OptionError(
        f"The budget should pay for {FIRST_SEEDS} candidates of {batches:,} batches each. Found "
        f"{found}. Give a larger `budget`, or shorter runs with `steps`.",
        arguments=("budget", "steps"),
    )
