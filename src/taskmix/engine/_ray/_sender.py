"""What a cluster has to be given, once for all jobs, and the jobs themselves."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskmix.engine._apart import take_apart
from taskmix.engine._ray._cluster import Places, count_places, import_ray, is_ours
from taskmix.engine._ray._jobs import Job
from taskmix.engine._ray._post import Ear
from taskmix.engine._ray._work import Common, do_job
from taskmix.engine._source import TaskSource, load_once
from taskmix.errors import RecordError
from taskmix.files import delete, write_bytes
from taskmix.records import RunFolder, Study, pack_run

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
        self.ear = Ear(self._token)
        # Made once: Ray makes a class for each set of options, and a class is slow to be collected.
        self._work = {
            on_gpu: ray.remote(do_job).options(num_cpus=1, num_gpus=int(on_gpu), max_retries=0)
            for on_gpu in (False, True)
        }
        self._data: dict[TaskSource, Any] = {}
        self._study.look_for_older_runs()  # once, not in every job
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
            [folders[number].name for number in job.numbers],
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
