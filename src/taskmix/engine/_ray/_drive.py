"""The driver: jobs out, results in, and another try for what was lost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from taskmix.engine._executor import (
    UNOBSERVED,
    Observers,
    check_none_merged,
    equal_runs,
    never,
    to_each,
)
from taskmix.engine._ray._cluster import cluster, count_places, current_store
from taskmix.engine._ray._jobs_in_flight import JobsInFlight, Outcome
from taskmix.engine._ray._sender import Sender
from taskmix.engine._ray._store import Copies, Store
from taskmix.engine._run import Executed, Run
from taskmix.engine._units import Stop, Tell
from taskmix.records import Study


@dataclass(frozen=True, kw_only=True)
class Ray:
    """A Ray cluster.

    Without an `address` it is one on this machine, of `workers` cores, for each call; within a
    `with cluster(...)` block it is that one. Runs on the CPU get a core each and the bits that they get
    here; runs on CUDA get a GPU, in fleets. Finished runs are also copied to `store`, any path that
    fsspec knows, and runs that are there are not trained again. Workers find out by themselves whether
    they see the study's folder; `shared_disk` False has them send all records to the driver.

    >>> Ray(address="head:6379", workers=8, store="s3://bucket/runs").shared_disk
    True
    """

    address: str | None = None
    workers: int | None = None
    store: str | None = None
    shared_disk: bool = True
    observers: Observers = UNOBSERVED

    @property
    def at_once(self) -> int:
        """The cores, or the workers asked for."""
        with cluster(self.address, workers=self.workers):
            return count_places(self.workers).cores

    def run(
        self, runs: Sequence[Run], study: Study, *, stop: Stop = never, fresh: bool = False
    ) -> list[Executed]:
        """As any executor does."""
        if not runs:
            return []  # a cluster takes seconds to start
        check_none_merged(runs)
        study.settle()
        folders = [run.folder(study) for run in runs]
        places = equal_runs(folders, range(len(runs)))
        distinct = [runs[first] for first, *_ in places]
        results: list[Executed | None] = [None] * len(runs)
        with self.observers.progress(runs) as tell:
            for place, executed in self._stream(
                distinct, study, to_each(tell, places), stop, fresh=fresh
            ):
                first, *others = places[place]
                results[first] = executed
                for number in others:
                    results[number] = executed.for_equal(folders[number])
        self.observers.listening(study).replay(runs)
        return [
            result or Executed(outcome="stopped", summary=folder.summary())
            for result, folder in zip(results, folders, strict=True)
        ]

    def stream(
        self, runs: Iterable[Run], study: Study, *, stop: Stop = never, fresh: bool = False
    ) -> Iterator[Outcome]:
        """The same for any number of runs: yields each one's place and result as it ends.

        Runs are drawn from `runs` as the cluster has room, and nothing of a run is kept once its result
        is yielded, so a hundred thousand take the driver no more memory than a thousand.
        """
        study.settle()
        with self.observers.progress(()) as tell:
            yield from self._stream(runs, study, tell, stop, fresh=fresh)

    def _stream(
        self, runs: Iterable[Run], study: Study, tell: Tell, stop: Stop, *, fresh: bool
    ) -> Iterator[Outcome]:
        path = Path(os.path.abspath(study.path))  # noqa: PTH100 - links stay as they are
        absolute = Study(path, lean=study.lean)
        with ExitStack() as stack:
            store = self.store or current_store()
            copies = Copies(Store(store)) if store is not None else None
            stack.enter_context(cluster(self.address, workers=self.workers))
            sender = Sender(absolute, workers=self.workers, shared_disk=self.shared_disk)
            flight = stack.enter_context(
                JobsInFlight(
                    runs,
                    absolute,
                    sender,
                    copies=copies,
                    tell=tell,
                    stop=self.observers.either(stop),
                    fresh=fresh,
                )
            )
            yield from flight.results()
