"""What a cluster has to be given, once for all jobs, and the jobs themselves.

Runs become jobs as places become free; however many there are, only a window of them is held.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from taskmix.engine._apart import take_apart
from taskmix.engine._fleet import can_join, family_of
from taskmix.engine._ray._cluster import Places, count_places, import_ray, is_ours
from taskmix.engine._ray._post import ProgressReceiver
from taskmix.engine._ray._work import Common, do_job
from taskmix.engine._run import Run
from taskmix.engine._source import TaskSource, load_once
from taskmix.errors import RecordError
from taskmix.files import delete, write_bytes
from taskmix.records import RunFolder, Study, pack_run

WINDOW = 1024  # runs drawn at once; for GPUs, as many for each
JOB_SECONDS = 2.0  # short runs make one job up to this: a job's own cost is some milliseconds
MOST_RUNS_OF_A_JOB = 64  # so that what is lost with a worker stays small
FIRST_PAUSE = 0.5  # seconds before a second attempt, and twice as many before each further one


@dataclass(frozen=True)
class Job:
    """Runs for one core, one after the other, or for one GPU, together."""

    numbers: tuple[int, ...]
    runs: tuple[Run, ...]
    on_gpu: bool
    attempt: int = 0
    deaths: int = 0  # of workers at it
    not_before: float = 0.0  # on the monotonic clock

    def run_of(self, number: int) -> Run:
        return self.runs[self.numbers.index(number)]

    def only(self, numbers: Iterable[int]) -> Job:
        """The same for some of its runs."""
        kept = tuple(numbers)
        return replace(self, numbers=kept, runs=tuple(map(self.run_of, kept)))

    def later(self, *, died: bool = False) -> Job:
        """The next attempt, after a while that grows."""
        return replace(
            self,
            attempt=self.attempt + 1,
            deaths=self.deaths + died,
            not_before=time.monotonic() + FIRST_PAUSE * 2**self.attempt,
        )


class Queue:
    """Draws runs from an iterable, skips what is done already, and cuts jobs."""

    def __init__(self, runs: Iterable[Run], is_done: Callable[[int, Run], bool]) -> None:
        self._runs = enumerate(runs)
        self._is_done = is_done
        self._exhausted = False
        self._single: deque[tuple[int, Run]] = deque()  # for cores
        self._fleets: deque[Job] = deque()
        self._retries: list[Job] = []
        self._seconds: float | None = None  # that a run takes, of late

    @property
    def is_empty(self) -> bool:
        return self._exhausted and not (self._single or self._fleets or self._retries)

    @property
    def wants_gpus(self) -> bool:
        return bool(self._fleets)

    def took(self, seconds: float) -> None:
        """Learns how long a run on a core takes."""
        last = self._seconds
        self._seconds = seconds if last is None else 0.7 * last + 0.3 * seconds

    def put_back(self, job: Job) -> None:
        """For another attempt: a fleet together, others one by one, for one may be to blame."""
        alone = not job.on_gpu
        self._retries += [job.only([number]) for number in job.numbers] if alone else [job]

    def next_job(self, places: Places, *, cores: int, gpus: int) -> Job | None:
        """A job for one of so many free places; None where there is none now."""
        if len(self._single) + len(self._fleets) < 2 * places.cores + places.gpus:
            self._draw(WINDOW * max(places.gpus, 1), places)
        now = time.monotonic()
        for job in self._retries:
            if job.not_before <= now and (gpus if job.on_gpu else cores) > 0:
                self._retries.remove(job)
                return job
        if self._fleets and gpus > 0:
            return self._fleets.popleft()
        if self._single and cores > 0:
            taken = [self._single.popleft() for _ in range(self._batch(places))]
            return Job(tuple(n for n, _ in taken), tuple(run for _, run in taken), on_gpu=False)
        return None

    def _batch(self, places: Places) -> int:
        """Runs in a job: more where they are short, but never so many that others wait for work."""
        fitting = 1 if self._seconds is None else int(JOB_SECONDS / max(self._seconds, 1e-3))
        fair = -(-len(self._single) // max(2 * places.cores, 1))
        return max(1, min(fitting, fair, MOST_RUNS_OF_A_JOB))

    def _draw(self, count: int, places: Places) -> None:
        families: dict[Hashable, list[tuple[int, Run]]] = {}
        drawn = 0
        for number, run in islice(self._runs, count):
            drawn += 1
            if self._is_done(number, run):
                continue
            if run.device.startswith("cuda"):
                run = replace(run, device="cuda")  # the one that the worker is given
                key = family_of(run) if can_join(run) else number
                families.setdefault(key, []).append((number, run))
            else:
                self._single.append((number, run))
        self._exhausted = drawn < count
        for members in families.values():
            size = -(-len(members) // max(places.gpus, 1))
            for first in range(0, len(members), size):
                part = members[first : first + size]
                self._fleets.append(
                    Job(tuple(n for n, _ in part), tuple(run for _, run in part), on_gpu=True)
                )


LOOK_EVERY = 5.0  # seconds between two looks at the cluster
SEND_EVERY = 60.0  # seconds between two records of an unfinished run that are sent home


class Sender:
    """Sends jobs, with references to the tasks that every machine is given once."""

    def __init__(self, study: Study, *, workers: int | None, shared_disk: bool) -> None:
        self._study = study
        self._workers = workers
        self._token = secrets.token_hex(8)
        self._marker = study.path / f".cluster-{self._token}" if shared_disk else None
        try:
            study.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(
                f"`{study.path}` should be a folder for the study. Found: {error.strerror}. "
                "Choose another one."
            ) from error
        if self._marker is not None:
            write_bytes(self._marker, self._token.encode(), sync=False)
        self.begin()

    def begin(self) -> None:
        """Everything that a new cluster does not know yet."""
        ray = import_ray()
        self.look()
        self.ear = ProgressReceiver(self._token)
        # Made once: Ray makes a class for each set of options, and a class is slow to be collected.
        self._work = {
            on_gpu: ray.remote(do_job).options(num_cpus=1, num_gpus=int(on_gpu), max_retries=0)
            for on_gpu in (False, True)
        }
        self._data: dict[TaskSource, Any] = {}
        self._common = ray.put(
            Common(
                study=self._study,
                home=Path.cwd(),
                token=self._token,
                marker=self._marker.name if self._marker is not None else None,
                talk_every=max(0.5, self.places.cores / 500),
                send_every=SEND_EVERY,
            )
        )

    @property
    def should_look(self) -> bool:
        """Whether it is time to see what the cluster has now."""
        return time.monotonic() - self._looked > LOOK_EVERY

    def look(self) -> None:
        self._looked = time.monotonic()
        self.places: Places = count_places(self._workers)

    def send(self, job: Job, folders: Mapping[int, RunFolder]) -> Any:
        """Ray's reference to the job's result."""
        ray = import_ray()
        sources = {run.source for run in job.runs}
        for source in sources - self._data.keys():
            self._data[source] = ray.put(take_apart(load_once(source)))
        begun = {}
        if self._marker is None or not is_ours():  # who sees the study finds it there
            for number in job.numbers:
                summary = folders[number].summary()
                if summary is not None:
                    begun[number] = ray.put(pack_run(folders[number]))
        return self._work[job.on_gpu].remote(
            job.numbers,
            job.runs,
            job.on_gpu,
            self._common,
            self.ear.post,
            [(source, self._data[source]) for source in sources],
            begun,
        )

    def close(self) -> None:
        if self._marker is not None:
            delete(self._marker, is_ours=self._marker.__eq__)
        self.ear.close()
