"""The driver: jobs out, results in, and another try for what was lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from taskmix.engine._ray._cluster import cluster, current_store
from taskmix.engine._ray._flight import Flight, Outcome
from taskmix.engine._ray._sender import Sender
from taskmix.engine._ray._store import Copies, Store
from taskmix.engine._run import Executed, Run
from taskmix.engine._units import Progress
from taskmix.records import Study


def run_ray(
    runs: Sequence[Run],
    study: Study,
    *,
    address: str | None = None,
    workers: int | None = None,
    store: str | None = None,
    shared_disk: bool | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    fresh: bool = False,
) -> list[Executed]:
    """Executes every run that the study does not hold already on a Ray cluster, as `run_all` does.

    The options are those of `stream_ray`.
    """
    folders = [run.folder(study) for run in runs]
    equals: dict[str, list[int]] = {}  # places of runs that are equal but for their labels
    for number, folder in enumerate(folders):
        equals.setdefault(folder.name, []).append(number)
    places = list(equals.values())

    def tell(progress: Progress) -> None:
        if on_progress is not None:
            for number in places[progress.run]:
                on_progress(replace(progress, run=number))

    results: list[Executed | None] = [None] * len(runs)
    for place, executed in stream_ray(
        [runs[first] for first, *_ in places],
        study,
        address=address,
        workers=workers,
        store=store,
        shared_disk=shared_disk,
        on_progress=tell,
        should_stop=should_stop,
        fresh=fresh,
    ):
        first, *others = places[place]
        results[first] = executed
        for number in others:
            results[number] = executed.for_equal(folders[number])
    return [
        result or Executed(outcome="stopped", summary=folder.summary())
        for result, folder in zip(results, folders, strict=True)
    ]


def stream_ray(
    runs: Iterable[Run],
    study: Study,
    *,
    address: str | None = None,
    workers: int | None = None,
    store: str | None = None,
    shared_disk: bool | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    fresh: bool = False,
) -> Iterator[Outcome]:
    """The same for any number of runs: yields each one's place and result as it ends.

    Runs are drawn from `runs` as the cluster has room, and nothing of a run is kept once its result
    is yielded, so a hundred thousand take the driver no more memory than a thousand.

    Without an `address` the cluster is one on this machine, of `workers` cores, for this call; within
    a `with cluster(...)` block it is that one. Runs on the CPU get a core each and the bits that they
    get here; runs on CUDA get a GPU, in fleets. Finished runs are also copied to `store`, any path
    that fsspec knows, and runs that are there are not trained again. Workers find out by themselves
    whether they see the study's folder; `shared_disk` False has them send all records to the driver.
    """
    path = Path(os.path.abspath(study.path))  # noqa: PTH100 - links stay as they are
    absolute = Study(path, lean=study.lean)
    with ExitStack() as stack:
        store = store or current_store()
        copies = Copies(Store(store)) if store is not None else None
        stack.enter_context(cluster(address, workers=workers))
        sender = Sender(absolute, workers=workers, shared_disk=shared_disk is not False)
        flight = stack.enter_context(
            Flight(
                runs,
                absolute,
                sender,
                copies=copies,
                on_progress=on_progress,
                should_stop=should_stop,
                fresh=fresh,
            )
        )
        yield from flight.results()
