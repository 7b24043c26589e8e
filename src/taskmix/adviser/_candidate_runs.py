"""The runs of candidates: what they cost, how they are trained, and the scores that came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from taskmix.adviser._budget import Timer
from taskmix.adviser._run_length import RunLength
from taskmix.adviser._scores import Entry, entry_of
from taskmix.adviser._spending import Spending
from taskmix.engine import Executed, Executor, Run, companions
from taskmix.errors import RunError
from taskmix.models import Perceptron
from taskmix.plans import Plan
from taskmix.policies import HardProgress
from taskmix.records import Study

FEW_TRAINED_ROWS = 100_000  # in all steps of a run that keeps no checkpoints on the way
FIRST_SEEDS = 2  # of what anyone would try: with one, no noise is known and nobody is ever out

Asked = tuple[Plan, int]  # a candidate and a seed


@dataclass
class CandidateRuns:
    """Trains candidates within what may be spent, and keeps their scores."""

    template: Run
    study: Study
    executor: Executor
    timer: Timer
    spending: Spending
    first_seed: int
    length: RunLength = field(
        default_factory=lambda: RunLength(0, 1)
    )  # chosen once prices are known
    name: str = "model"  # or that of a cheaper one
    counted: float = 1.0  # what its batches count in a budget of steps
    entries: dict[str, list[Entry]] = field(default_factory=dict)  # of each candidate, by seed
    failed: set[str] = field(default_factory=set)  # candidates that no further seed counts for
    notes: list[str] = field(default_factory=list)

    def measure(self, candidates: Sequence[Plan], evaluations: int) -> bool:
        """Finds what a candidate costs; False where the time does not pay for finding it."""
        asked = self.first_seeds(candidates)

        def runs_of(steps: int) -> list[Run]:
            some = asked
            runs = [run for each in asked for run in self._runs(*each, steps, evaluations)]
            if max(companions(self.executor, runs), default=1) == 1:  # one after another: one tells
                some = asked[len(candidates) > 1 :][:1]
                runs = [run for each in some for run in self._runs(*each, steps, evaluations)]
            return runs

        count = max(len(runs_of(2)) // max(len(self._runs(*asked[-1], 2, 1)), 1), 1)
        return self.spending.price(self.name, runs_of, count, counted=self.counted) is not None

    def cost(self, asked: Sequence[Asked]) -> float:
        """In the budget's currency, of those that are not there yet where it is one of seconds."""
        new = asked
        if self.spending.by_clock:
            new = [each for each in asked if not self.has(each)]
        return self.spending.cost(self.name, self.length.batches, len(new))

    def affordable(self, asked: Sequence[Asked], *, keep: float = 0.0) -> int:
        """How many of the first of these can be paid for while `keep` is left over.

        What is there already costs nothing, even where all the time has been used.
        """
        count = len(asked)
        while count and (cost := self.cost(asked[:count])) and cost + keep > self.spending.left:
            count -= 1
        return count

    def has(self, asked: Asked) -> bool:
        """Whether the study has its runs, whole."""
        folders = [run.folder(self.study) for run in self.runs(*asked)]
        found = [each.summary() if each.path.exists() else None for each in folders]
        return all(each is not None and each.status == "finished" for each in found)

    def first_seeds(self, candidates: Sequence[Plan], seeds: int = FIRST_SEEDS) -> list[Asked]:
        """Every candidate under its first seeds, seed by seed."""
        return [
            (candidate, self.first_seed + number)
            for number in range(seeds)
            for candidate in candidates
        ]

    def train_first_seeds(
        self, candidates: Sequence[Plan], *, seeds: int = FIRST_SEEDS, keep: float = 0.0
    ) -> int:
        """Brings candidates to their first seeds, as far as the budget goes; each seed counts."""
        asked = self.first_seeds(candidates, seeds)
        count = self.affordable(asked, keep=keep)
        if count > len(candidates):  # a seed that only some have: who has it would lead for that
            count -= count % len(candidates)
        found = self._train(asked[:count])
        done = next((place for place, each in enumerate(found) if each is None), count)
        self._keep(asked[:done], [each for each in found[:done] if each is not None])
        return done

    def train_one_more_seed(self, candidates: Sequence[Plan], seed: int) -> bool:
        """Gives each one more seed; False where the time was over, or all of them failed."""
        asked = [(candidate, seed) for candidate in candidates]
        found = self._train(asked)
        done = [each for each in found if each is not None]
        if len(done) < len(found):  # the time is over: a round that some have run is none
            return False
        before = sum(map(len, self.entries.values()))
        self._keep(asked, done)
        return sum(map(len, self.entries.values())) > before

    def runs(self, candidate: Plan, seed: int) -> list[Run]:
        return self._runs(candidate, seed, self.length.batches, self.length.evaluations)

    def _runs(self, candidate: Plan, seed: int, steps: int, evaluations: int) -> list[Run]:
        # What a draw was worth costs nothing to log, and another policy can be learned from it.
        template = replace(self.template, steps=steps, reward=HardProgress())
        runs = candidate.runs(template, seeds=[seed], evaluations=min(evaluations, steps))
        # Runs of a second or two need no way back but their ends: writing it takes longer than they do.
        small = isinstance(template.architecture, Perceptron)
        if small and steps * template.batch_size <= FEW_TRAINED_ROWS:
            return [_without_checkpoints(run) for run in runs]
        return runs

    def _train(self, asked: Sequence[Asked]) -> list[list[Executed] | None]:
        """What came of the runs of each candidate; None where the time was over before its end."""
        if not asked:
            return []
        runs = [self.runs(candidate, seed) for candidate, seed in asked]
        new = sum(not self.has(each) for each in asked)
        flat = [run for some in runs for run in some]
        # Seed by seed, in case the time is over before the last, and the longest run first, so that
        # no process waits long for the others.
        order = sorted(range(len(flat)), key=lambda at: (flat[at].seed, -flat[at].cost))
        begin = self.timer.used()
        done = self.executor.run([flat[place] for place in order], self.study)
        took = self.timer.used() - begin
        by_place = dict(zip(order, done, strict=True))
        late = self.timer.is_over()
        if not late:
            self.spending.spend(self.name, self.length.batches, self._charged(asked, new), took)
        rest = iter(by_place[place] for place in range(len(flat)))
        return [self.unless_stopped([next(rest) for _ in some], late=late) for some in runs]

    def _charged(self, asked: Sequence[Asked], new: int) -> int:
        """Candidates that count as spent: of seconds the new ones, of steps all but merged ones."""
        if self.spending.by_clock:
            return new
        return sum(candidate.merge is None for candidate, _ in asked)

    def unless_stopped(self, results: list[Executed], *, late: bool) -> list[Executed] | None:
        """The results; None where the budget stopped some of them. Whoever else did is told."""
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

    def words_of_stop(self) -> str:
        """What is said where runs were stopped and the time is not over."""
        known = f" The best plan so far is in {self.study.path}." if self.entries else ""
        return f"Stopped. What is done is kept.{known} Run the same command again to continue."

    def _keep(self, asked: Sequence[Asked], found: Sequence[list[Executed]]) -> None:
        for (candidate, seed), results in zip(asked, found, strict=True):
            entry = entry_of(candidate, seed, self.runs(candidate, seed), results, self.study)
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
