"""What "do these runs" means, wherever it is done.

An executor is the only thing that knows where runs are trained: `Here` (a process a core), `Fleet` (many
models as one batch), `Auto` (the faster of these two), `Ray` (a cluster), `TorchrunExecutor` (the
processes of `torchrun`, all for one model). Commands, experiments, the adviser and scripts of one's own
all take one and call `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from taskmix.engine._replay import events_of
from taskmix.engine._run import Executed, Listener, Run
from taskmix.engine._units import Progress, Stop, Tell
from taskmix.errors import OptionError, RecordError, RunError
from taskmix.records import RunFolder, Study
from taskmix.training import Event


def never() -> bool:
    """A wish to stop that never comes.

    >>> never()
    False
    """
    return False


class Executor(Protocol):
    """Does runs into a study."""

    @property
    def at_once(self) -> int:
        """How many processes are at work at the same time."""
        ...

    def run(
        self, runs: Sequence[Run], study: Study, *, stop: Stop = never, fresh: bool = False
    ) -> list[Executed]:
        """Does every run that the study does not hold already; the results in the order asked.

        A run that fails is told in its result and does not stop the others. What the user must mend
        (an `InputError`) stops all: it would come again with the next run. When `stop` says so, runs
        at work end with a checkpoint. `fresh` starts all of them over.
        """
        ...


class RunListener(Protocol):
    """Hears the events of one run, and then that there are no more."""

    def __call__(self, event: Event, /) -> None: ...

    def close(self) -> None: ...


@contextmanager
def _unseen(runs: Sequence[Run]) -> Iterator[Tell]:
    yield lambda progress: None


@dataclass(frozen=True, kw_only=True)
class Observers:
    """Who hears of runs while they are done, and who may stop them.

    `progress` is opened for the runs of every call and gives a function that hears how far each is.
    `listeners` gives those who hear all events of a run, once a call: as they come where the run begins
    in this process, and from its record otherwise, when all runs are done.

    >>> from taskmix.engine import Progress
    >>> heard = []
    >>> with Observers.telling(heard.append).progress([]) as tell:
    ...     tell(Progress(0, 10))
    >>> heard[0].step
    10
    """

    progress: Callable[[Sequence[Run]], AbstractContextManager[Tell]] = _unseen
    listeners: Callable[[Run, RunFolder], Sequence[RunListener]] | None = None
    stop: Stop = never

    @classmethod
    def telling(cls, on_progress: Tell, *, stop: Stop = never) -> Observers:
        """One function that hears of the runs of every call."""

        @contextmanager
        def same(runs: Sequence[Run]) -> Iterator[Tell]:
            yield on_progress

        return cls(progress=same, stop=stop)

    def either(self, stop: Stop) -> Stop:
        """Whether either of the two wants to stop."""
        return lambda: self.stop() or stop()

    def listening(self, study: Study) -> Listening:
        """The listeners of one call."""
        return Listening(self.listeners, study)


@dataclass
class Listening:
    """The listeners of one call: each run that is asked for is heard once, live or from its record."""

    listeners: Callable[[Run, RunFolder], Sequence[RunListener]] | None
    study: Study
    _heard: set[tuple[str, str]] = field(default_factory=set)  # label and name

    @contextmanager
    def live(self, run: Run) -> Iterator[Listener | None]:
        """A listener for a run that begins in this process now; one that goes on is replayed."""
        folder = run.folder(self.study)
        if self.listeners is None or _record_of(folder) != "none":
            yield None
            return
        found = self._listeners_of(run, folder)

        def listen(event: Event) -> None:
            for each in found:
                each(event)

        try:
            yield listen
        finally:
            for each in found:
                each.close()

    def replay(self, runs: Sequence[Run]) -> None:
        """Tells of the runs that were not heard live, from their records."""
        for run in runs if self.listeners is not None else ():
            folder = run.folder(self.study)
            if _record_of(folder) != "sound":
                continue
            for listen in self._listeners_of(run, folder):
                for event in events_of(folder):
                    listen(event)
                listen.close()

    def _listeners_of(self, run: Run, folder: RunFolder) -> Sequence[RunListener]:
        key = (run.label, folder.name)
        if self.listeners is None or key in self._heard:
            return ()
        self._heard.add(key)
        return self.listeners(run, folder)


def _record_of(folder: RunFolder) -> Literal["none", "sound", "damaged"]:
    """What a run has; what is damaged is recovered, or told of, by who claims the run."""
    try:
        return "none" if folder.summary() is None else "sound"
    except RecordError:
        return "damaged"


UNOBSERVED = Observers()


def equal_runs(folders: Sequence[RunFolder], wanted: Iterable[int]) -> list[list[int]]:
    """The places that are wanted, those of runs that are equal but for their labels together."""
    places: dict[str, list[int]] = {}
    for place in wanted:
        places.setdefault(folders[place].name, []).append(place)
    return list(places.values())


def sources_of(runs: Iterable[Run]) -> list[Run]:
    """The runs that others are made of, which have to be done before these, each once."""
    return list(dict.fromkeys(source for run in runs for source in run.sources))


def check_none_merged(runs: Iterable[Run]) -> None:
    """Raises where a run is made of others: they may lie on the disk of another machine."""
    if sources_of(runs):
        raise OptionError(
            "Models should be merged by one process of this machine. Found a plan that merges them, and "
            "processes of a launcher or a cluster. Train by it without them, with `engine` auto.",
            arguments=("engine",),
        )


def to_each(tell: Tell, places: Sequence[Sequence[int]]) -> Tell:
    """Says of every one of equal runs what is said of the one that is done."""

    def tell_all(progress: Progress) -> None:
        for place in places[progress.run]:
            tell(replace(progress, run=place))

    return tell_all


@dataclass(frozen=True)
class RestartingExecutor:
    """Another executor, whose runs start over the first time they are asked for.

    A run that is asked for again is the one that was started over: stages of one command share runs.

    >>> RestartingExecutor(Here(workers=2)).at_once
    2
    """

    executor: Executor
    _begun: set[str] = field(default_factory=set, repr=False, compare=False)

    @property
    def at_once(self) -> int:
        """As the other's."""
        return self.executor.at_once

    def run(
        self, runs: Sequence[Run], study: Study, *, stop: Stop = never, fresh: bool = False
    ) -> list[Executed]:
        """As any executor does."""
        names = [run.folder(study).name for run in runs]
        new = [place for place, name in enumerate(names) if name not in self._begun]
        old = [place for place, name in enumerate(names) if name in self._begun]
        found: dict[int, Executed] = {}
        for places, over in ((new, True), (old, fresh)):
            if places:
                some = [runs[place] for place in places]
                done = self.executor.run(some, study, stop=stop, fresh=over)
                found.update(zip(places, done, strict=True))
        self._begun.update(names[place] for place in new if not _is_untouched(found[place]))
        return [found[place] for place in range(len(runs))]


def _is_untouched(result: Executed) -> bool:
    """Whether a run was to start over and was stopped before it did: its record is the old one."""
    summary = result.summary
    return result.outcome == "stopped" and (summary is None or summary.status == "finished")


@dataclass(frozen=True)
class Until:
    """Another executor, whose runs end with a checkpoint once `is_over` says so.

    >>> Until(Here(workers=2), is_over=lambda: True).at_once
    2
    """

    executor: Executor
    is_over: Stop

    @property
    def at_once(self) -> int:
        """As the other's."""
        return self.executor.at_once

    def run(
        self, runs: Sequence[Run], study: Study, *, stop: Stop = never, fresh: bool = False
    ) -> list[Executed]:
        """As any executor does."""
        either = lambda: self.is_over() or stop()  # noqa: E731
        return self.executor.run(runs, study, stop=either, fresh=fresh)


def is_stop_asked(executor: Executor) -> bool:
    """Whether those who watch an executor want its work to stop; for work between two of its calls.

    >>> is_stop_asked(Here(observers=Observers(stop=lambda: True)))
    True
    """
    if isinstance(executor, Until) and executor.is_over():
        return True
    if isinstance(executor, Until | RestartingExecutor):
        return is_stop_asked(executor.executor)
    observers: Observers = getattr(executor, "observers", UNOBSERVED)
    return observers.stop()


def companions(executor: Executor, runs: Sequence[Run]) -> list[int]:
    """For each of these runs, how many models an executor would train in one batch with it, its own
    counted; 1 where it is trained alone.

    >>> from dataclasses import replace
    >>> from taskmix.models import Perceptron
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> runs = [replace(run, seed=seed) for seed in range(6)]
    >>> companions(Auto(workers=2), runs), companions(Here(workers=2), runs)
    ([3, 3, 3, 3, 3, 3], [1, 1, 1, 1, 1, 1])
    """
    if isinstance(executor, Until | RestartingExecutor):
        return companions(executor.executor, runs)
    asked: Callable[[Sequence[Run]], list[int]] | None = getattr(executor, "companions", None)
    return [1] * len(runs) if asked is None else asked(runs)


def finish(executor: Executor, runs: Sequence[Run], study: Study) -> None:
    """Does runs of which all are needed, each once; raises a sentence about one that did not finish.

    >>> from taskmix.models import Perceptron
    >>> from taskmix.records import Study
    >>> run = Run(label="demo", source=DigitsSource(), architecture=Perceptron(), steps=2, seed=0)
    >>> finish(Until(Here(workers=1), lambda: True), [run], Study("study"))
    Traceback (most recent call last):
    taskmix.errors.RunError: Run `demo` with seed 0 should have finished. Found it stopped. ...
    """
    distinct = list(dict.fromkeys(runs))
    for run, result in zip(distinct, executor.run(distinct, study), strict=True):
        if not result.is_done:
            raise RunError(
                f"Run `{run.label}` with seed {run.seed} should have finished. Found it "
                f"{result.outcome}. {result.error or ''} Run the same command again to go on."
            )
