"""What runs cost on this machine, by short runs of the same kind.

Runs are of one kind where their model, their device and their batches are the same and they are trained
alone, or together with others in a fleet. A kind is measured the first time that its price is asked for,
by as many processes as there will be, so that what they take from each other is in the prices. Measuring
takes a small part of the budget and stops with the budget, or when the user wants it, one step late at
most. What a method needs besides a plain step is not measured but counted (`Run.cost`).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from taskmix.adviser._budget import END_SECONDS, END_SHARE, Prices, Timer, typed_time
from taskmix.adviser._candidates import EVALUATED_PER_TRAINED, evaluated_rows
from taskmix.engine import Executor, Run, SampledSource, Until, companions, is_stop_asked
from taskmix.errors import OptionError, RunError
from taskmix.models import Perceptron, Transformer, tuning_of
from taskmix.policies import Uniform
from taskmix.records import Study, specification_hash
from taskmix.tasks import WRITTEN

WARMING_STEPS = 2  # of a first run, which is not priced: processes begin, libraries warm up
FIRST_STEPS = 8  # of the first run that is: fewer, and the clock itself is what is timed
MOST_STEPS = 600  # of the second: more tell the price no better
EVALUATIONS_OF_SECOND = 3  # the first has one: the difference is the price of evaluated rows
BUDGET_SHARE = 0.03  # that a kind may be measured for
LEAST_SECONDS = 0.3  # for which it is measured, however small the budget
# Of the budget, and seconds, after which the first run is stopped and is all there is: starting
# processes and loading a model is a part of it.
WARMING_SHARE, WARMING_SECONDS = 0.2, 5.0
FLEET_MEMBERS = 8  # of each process: with fewer, a fleet looks more expensive than it is
SMALLEST_SECONDS = 1e-6  # of a batch, by which the budget is divided
# Rows of each task, where a step or an answer takes long: what is read and evaluated is priced by row.
FEW_ROWS = (("train", 256), ("dev", 16), ("test", 16))
# Rows that the runs of a trial may evaluate, since nothing stops a run while it does: of more, a few are
# priced.
MOST_EVALUATED = 10_000


class NoTimeError(OptionError):
    """The budget was over before a price was known."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Runs that cost alike but for their lengths, their methods and the rows they are evaluated on."""

    key: str  # under which the prices are kept
    words: str  # for people
    together: bool  # in a fleet

    @classmethod
    def of(cls, run: Run, *, together: bool) -> Kind:
        model = specification_hash(
            {
                "architecture": run.architecture,
                "device": run.device,
                "precision": run.precision,
                "batch_size": run.batch_size,
            }
        )
        tuning = tuning_of(run.architecture)
        name = type(run.architecture).__name__ if tuning is None else f"a model with tuned {tuning}"
        if tuning == "all":
            name = "a model that is fine-tuned"
        company = "together" if together else "alone"
        return cls(key=f"{model} {company}", words=f"{name}, trained {company}", together=together)


@dataclass
class Meter:
    """Measures kinds of runs; `tell` hears which."""

    executor: Executor
    timer: Timer
    tell: Callable[[str], None] = lambda words: None
    clock: Callable[[], float] = time.perf_counter

    @property
    def seconds(self) -> float:
        """That measuring should take, besides the first step."""
        return max(BUDGET_SHARE * (self.timer.seconds or 0.0), LEAST_SECONDS)

    def measure(self, run: Run, *, together: bool) -> Prices:
        """The prices of runs like this one; raises where the user or the budget stops it."""
        kind = Kind.of(run, together=together)
        self.tell(f"Measuring what a batch takes: {kind.words}.")
        run = _plain(run)
        once = 0.0
        if _is_slow(run):
            run, once = self._with_few_rows(run)
        count = self._count(run, together=together)
        is_small = isinstance(run.architecture, Perceptron)
        if not is_small and count * evaluated_rows(run.load(), 1) > MOST_EVALUATED:
            run = replace(run, source=SampledSource(source=run.source, most=FEW_ROWS[1:]))
        budget, limit = self.timer.seconds or 0.0, self.seconds
        with tempfile.TemporaryDirectory() as folder:
            trial = _Trial(Study(Path(folder)), self, run, count)
            warmed = trial(WARMING_STEPS, 1, seconds=max(WARMING_SHARE * budget, WARMING_SECONDS))
            if warmed.is_stopped or warmed.step > limit:
                prices = self._after_one_step(run, warmed)
            else:
                prices = self._by_two_runs(run, trial, limit)
        return replace(prices, once=once, workers=self.executor.at_once)

    def _by_two_runs(self, run: Run, trial: _Trial, limit: float) -> Prices:
        tasks, size = run.load(), run.batch_size
        begin = self.clock()
        first = trial(FIRST_STEPS, 1, seconds=limit)
        if first.is_stopped:
            return self._after_one_step(run, first)
        batch = first.step
        row = first.besides / evaluated_rows(tasks, 1)
        start = 0.0
        left = limit - (self.clock() - begin)
        affordable = trial.seconds_a_run(left) / max(batch, SMALLEST_SECONDS)
        steps = int(min(affordable, MOST_STEPS))
        if steps >= 2 * FIRST_STEPS:
            second = trial(steps, EVALUATIONS_OF_SECOND, seconds=2 * left + LEAST_SECONDS)
            batch = second.step
            if not second.is_stopped:
                more = evaluated_rows(tasks, EVALUATIONS_OF_SECOND) - evaluated_rows(tasks, 1)
                row = max((second.besides - first.besides) / more, 0.0)
                start = second.besides - row * evaluated_rows(tasks, EVALUATIONS_OF_SECOND)
        # Of little work, noise is most of what is measured: a row costs no more than one trained on.
        row = min(row, batch / size) if size and not _is_slow(run) else row
        start = min(max(start, 0.0), max(first.besides, 0.0))
        return Prices(
            batch=max(batch, SMALLEST_SECONDS), start=start, row=row, members=trial.members
        )

    def _after_one_step(self, run: Run, found: _Measured) -> Prices:
        """Prices by a step or two, which took longer than all measuring should."""
        if not found.steps:
            raise self.no_time()
        self.tell(f"One step takes {found.step:,.1f} s here: all prices are by its first ones.")
        batch = max(found.step, SMALLEST_SECONDS)
        return Prices(
            batch=batch,
            row=batch / (EVALUATED_PER_TRAINED * max(run.batch_size, 1)),
            members=found.members,
        )

    def no_time(self) -> NoTimeError:
        """What is said where the budget is over before anything is known."""
        used, budget = self.timer.used(), self.timer.seconds or 0.0
        return NoTimeError(
            "The budget should last until it is known how long a batch takes. Found "
            f"{typed_time(budget)}, of which {typed_time(used)} were used before the first price. Give "
            f"at least {typed_time(2 * (used + END_SECONDS) / (1 - END_SHARE))}, or a smaller model.",
            arguments=("budget",),
        )

    def _count(self, run: Run, *, together: bool) -> int:
        """Runs at once: one a process, or the members of its fleet."""
        workers = self.executor.at_once
        counts = [FLEET_MEMBERS * workers, FLEET_MEMBERS] if together else [workers, 1]

        def fits(count: int) -> bool:
            runs = [replace(run, seed=seed) for seed in range(count)]
            return (companions(self.executor, runs)[0] > 1) == together

        return next((count for count in counts if fits(count)), counts[-1])

    def _with_few_rows(self, run: Run) -> tuple[Run, float]:
        """The run on some rows, and what it takes a process to encode all of them, once."""
        few = replace(run, source=SampledSource(source=run.source, most=FEW_ROWS))
        tasks = few.load()
        begin = self.clock()
        few.architecture.encoding.encode(tasks)
        seconds = self.clock() - begin
        rows, of = (sum(sum(t.sizes.values()) for t in some) for some in (run.load(), tasks))
        return few, seconds * rows / max(of, 1)


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """Seconds of one process for one of the runs, the mean over all."""

    step: float  # one of them
    besides: float  # evaluations, checkpoints, and all that comes before and after
    steps: int  # done
    is_stopped: bool
    wall: float
    members: int


class _Trial:
    """Times short runs that all processes do at once; each is done under a seed of its own."""

    def __init__(self, study: Study, meter: Meter, run: Run, count: int) -> None:
        self._study, self._meter, self._run = study, meter, run
        self._count = count
        self._seed = 0
        executor = meter.executor
        runs = [replace(run, seed=seed) for seed in range(count)]
        self.members = companions(executor, runs)[0]
        # Processes that one unit of work takes: on a GPU a fleet has all of the machine.
        self._takes = executor.at_once / max(min(executor.at_once, count // self.members), 1)

    def seconds_a_run(self, seconds: float) -> float:
        """Of one process, that each of the runs at once has in so many seconds."""
        return seconds * self._meter.executor.at_once / self._count

    def __call__(self, steps: int, evaluations: int, *, seconds: float) -> _Measured:
        every = max(steps // evaluations, 1)
        run = replace(self._run, steps=steps, evaluate_every=every)
        runs = [replace(run, seed=self._seed + place) for place in range(self._count)]
        self._seed += self._count
        meter, begin = self._meter, self._meter.clock()
        executor = Until(meter.executor, lambda: meter.clock() - begin > seconds)
        stopped = False
        for result in executor.run(runs, self._study):
            if result.error is not None:
                raise RunError(f"A first short run should work. It failed: {result.error}")
            stopped = stopped or result.outcome == "stopped"
        if meter.timer.is_over():
            raise meter.no_time()
        if is_stop_asked(meter.executor):
            raise RunError(
                "Stopped before it was known how long a batch takes. Run the same command again."
            )
        wall = meter.clock() - begin
        tables = [each.folder(self._study).steps(["step", "seconds"]) for each in runs]
        steps_done = np.concatenate([table["step"].to_numpy() for table in tables])
        taken = np.concatenate([table["seconds"].to_numpy() for table in tables])
        training, done = float(taken.sum()), len(taken)
        # A first step warms up what the others find warm.
        usual = taken[steps_done > 1] if (steps_done > 1).any() else taken
        whole = wall * meter.executor.at_once / self._count
        return _Measured(
            step=float(usual.mean()) * self._takes if done else 0.0,
            besides=max(whole - training * self._takes / self._count, 0.0),
            steps=done,
            is_stopped=stopped,
            wall=wall,
            members=self.members,
        )


def _plain(run: Run) -> Run:
    """The run as a plain one on all tasks: what a method costs besides is counted."""
    return replace(
        run,
        label="price",
        tasks=None,
        policy=Uniform(),
        weighting=None,
        reward=None,
        patience=None,
        seed=0,
    )


def _is_slow(run: Run) -> bool:
    """Whether evaluating all rows may take minutes: a pretrained network reads or writes each."""
    return isinstance(run.architecture, Transformer) or any(t.kind in WRITTEN for t in run.load())
