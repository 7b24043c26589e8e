"""The runs of candidates: what they cost, how they are trained, and the scores that came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from taskmix.adviser._budget import Timer
from taskmix.adviser._candidates import evaluated_rows
from taskmix.adviser._run_length import RunLength
from taskmix.adviser._scores import Entry, entry_of
from taskmix.adviser._spending import Spending
from taskmix.engine import Executed, Executor, Run
from taskmix.errors import OptionError, RunError
from taskmix.models import Perceptron
from taskmix.plans import Plan
from taskmix.policies import HardProgress
from taskmix.records import Study

FEW_TRAINED_ROWS = 100_000  # in all steps of a run that keeps no checkpoints on the way
FIRST_SEEDS = 2  # of every candidate: with one, no noise is known and nobody is ever out

Asked = tuple[Plan, int]  # a candidate and a seed


@dataclass
class CandidateRuns:
    """Trains candidates within what may be spent, and keeps their scores."""

    template: Run
    study: Study
    executor: Executor
    timer: Timer
    spending: Spending
    length: RunLength
    first_seed: int
    name: str = ""  # of a cheaper model, or of longer runs
    price: float = 1.0  # of its batches in a budget of steps
    entries: dict[str, list[Entry]] = field(default_factory=dict)  # of each candidate, by seed
    failed: set[str] = field(default_factory=set)  # candidates that no further seed counts for
    notes: list[str] = field(default_factory=list)

    def costs(self, candidate: Plan, *, batches: int | None = None) -> list[float]:
        """Of each of its runs, where it is asked for alone; of runs of so many `batches`, if given."""
        return self.costs_of([(candidate, self.first_seed)], batches=batches)[0]

    def costs_of(self, asked: Sequence[Asked], *, batches: int | None = None) -> list[list[float]]:
        """The same for candidates that are asked for at once: runs in company may be cheaper.

        A budget of steps counts a candidate as one: all of them cost what a plain one does, but models
        that were trained before, which are merged for the price of evaluating them.
        """
        if not self.spending.by_clock:
            return [[self._batches(*each, batches) * self.price] for each in asked]
        runs = [self._trained(each, batches) for each in asked]
        costs = iter(self.spending.costs([run for some in runs for run in some]))
        found = [[next(costs) for _ in some] for some in runs]
        return [
            some if each[0].merge is None else [sum(some) + self._of_merging(each[0])]
            for each, some in zip(asked, found, strict=True)
        ]

    def _trained(self, asked: Asked, batches: int | None) -> list[Run]:
        """The runs to train; those whose models are merged, where they are not there yet."""
        candidate, seed = asked
        runs = self._runs(candidate, seed, batches=batches)
        if candidate.merge is None:
            return runs
        return list(runs[0].sources) if self._batches(candidate, seed, batches) else []

    def _of_merging(self, candidate: Plan) -> float:
        assert candidate.merge is not None
        tasks = self.template.load().select(candidate.tasks)
        rows = evaluated_rows(tasks, candidate.merge.evaluations(len(candidate.parts)))
        return self.spending.budget.cost(0.0, rows)

    def _batches(self, candidate: Plan, seed: int, batches: int | None = None) -> float:
        """That a candidate trains on under a seed: none where it is merged of models that are there."""
        known = [entry for some in self.entries.values() for entry in some if entry.seed == seed]
        is_there = batches is None and any(
            e.candidate.parts == candidate.parts and not e.candidate.merge for e in known
        )
        whole = float(batches or self.length.batches)
        return 0.0 if candidate.merge is not None and is_there else whole

    def first_seeds(self, candidates: Sequence[Plan], seeds: int = FIRST_SEEDS) -> list[Asked]:
        """Every candidate under its first seeds, seed by seed."""
        return [
            (candidate, self.first_seed + number)
            for number in range(seeds)
            for candidate in candidates
        ]

    def train_first_seeds(
        self, stage: str, candidates: Sequence[Plan], *, least: int = 0, seeds: int = FIRST_SEEDS
    ) -> int:
        """Brings candidates to their first seeds, as far as the budget goes, `least` in any case.

        Returns how many have been trained, each seed counted.
        """
        asked = self.first_seeds(candidates, seeds)
        affordable = self.spending.affordable(stage, self.costs_of(asked), least=least)
        count = _without_partial_seed(affordable, len(candidates))
        found = self._train(asked[:count])
        done = next((place for place, each in enumerate(found) if each is None), count)
        done = _without_partial_seed(done, len(candidates))
        if done < count:  # the time is over
            self.spending.settle(stage, done)
        if done < least:
            raise OptionError(
                f"The budget should pay for {least} ways of training. The time was over after {done}. "
                "Give a larger `budget`, or shorter runs with `steps`.",
                arguments=("budget", "steps"),
            )
        self._keep(asked[:done], [each for each in found[:done] if each is not None])
        return done

    def train_one_more_seed(self, stage: str, candidates: Sequence[Plan], seed: int) -> bool:
        """Gives each one more seed; False where the time was over, or all of them failed."""
        asked = [(candidate, seed) for candidate in candidates]
        found = self._train(asked)
        done = [each for each in found if each is not None]
        if len(done) < len(found):  # the time is over: a round that some have run is none
            self.spending.settle(stage, False)
            return False
        before = sum(map(len, self.entries.values()))
        self._keep(asked, done)
        return sum(map(len, self.entries.values())) > before

    def words_of_stop(self) -> str:
        """What is said where runs were stopped and the time is not over."""
        known = f" The best plan so far is in {self.study.path}." if self.entries else ""
        return f"Stopped. What is done is kept.{known} Run the same command again to continue."

    def _runs(self, candidate: Plan, seed: int, *, batches: int | None = None) -> list[Run]:
        # What a draw was worth costs nothing to log, and another policy can be learned from it.
        steps = batches or self.length.batches
        template = replace(self.template, steps=steps, reward=HardProgress())
        runs = candidate.runs(template, seeds=[seed], evaluations=self.length.evaluations)
        # Runs of a second or two need no way back but their ends: writing it takes longer than they do.
        small = isinstance(template.architecture, Perceptron)
        if small and steps * template.batch_size <= FEW_TRAINED_ROWS:
            return [_without_checkpoints(run) for run in runs]
        return runs

    def _train(self, asked: Sequence[Asked]) -> list[list[Executed] | None]:
        """What came of the runs of each candidate; None where the time was over before its end."""
        runs = [self._runs(candidate, seed) for candidate, seed in asked]
        flat = [run for some in runs for run in some]
        # Seed by seed, in case the time is over before the last, and the longest run first, so that
        # no process waits long for the others.
        order = sorted(range(len(flat)), key=lambda at: (flat[at].seed, -flat[at].cost))
        begin = self.timer.used()
        done = self.executor.run([flat[place] for place in order], self.study)
        took = self.timer.used() - begin
        by_place = dict(zip(order, done, strict=True))
        results = [by_place[place] for place in range(len(flat))]
        paired = zip(flat, results, strict=True)
        self.spending.learn(
            [run for run, each in paired if each.outcome == "finished" and run.merge is None], took
        )
        late = self.timer.is_over()
        rest = iter(results)
        return [self._unless_stopped([next(rest) for _ in some], late=late) for some in runs]

    def _unless_stopped(self, results: list[Executed], *, late: bool) -> list[Executed] | None:
        stopped = [each for each in results if each.outcome in ("stopped", "busy")]
        if not stopped:
            return results
        if late:
            return None
        if stopped[0].outcome == "busy":
            raise RunError(
                "The runs should be this command's alone. Found one that another process is at. "
                "Wait for it, or choose another `out`.",
                arguments=("out",),
            )
        raise RunError(self.words_of_stop())

    def _keep(self, asked: Sequence[Asked], found: Sequence[list[Executed]]) -> None:
        for (candidate, seed), results in zip(asked, found, strict=True):
            entry = entry_of(candidate, seed, self._runs(candidate, seed), results)
            self.spending.batches += self._batches(candidate, seed) * self.price
            earlier = len(self.entries.get(candidate.name, ()))
            if entry is None:
                reason = next((each.error for each in results if each.error), "it failed")
                self.notes.append(f"`{candidate.name}` with seed {seed} has no score: {reason}")
                self.failed.add(candidate.name)
            elif earlier == seed - self.first_seed:
                # Comparisons are paired by seed, so after one that failed no other counts.
                entry = replace(entry, seconds=sum(map(self._seconds, entry.runs)))
                self.entries.setdefault(candidate.name, []).append(entry)

    def _seconds(self, run: Run) -> float:
        """Of the run's steps, by its record: a run of a fleet has its share of theirs.

        One that is merged took what its sources did.
        """
        if run.sources:
            return sum(map(self._seconds, run.sources))
        seconds = run.folder(self.study).steps(["seconds"])["seconds"].to_numpy()
        return float(seconds.sum()) if len(seconds) else float("nan")


def _without_checkpoints(run: Run) -> Run:
    """On the way; those that it is merged of too, which are runs that other candidates ask for."""
    sources = tuple(map(_without_checkpoints, run.sources))
    return replace(run, checkpoint_every=None, sources=sources)


def _without_partial_seed(count: int, candidates: int) -> int:
    """Without a last seed that only some have: who has it would lead for that alone."""
    return count if count < candidates else count - count % candidates
