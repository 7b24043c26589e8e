"""What a worker does with a job, on whatever machine it is."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taskmix.engine._apart import put_together
from taskmix.engine._fleet import plan_units
from taskmix.engine._ray._post import ProgressSender, Snapshots
from taskmix.engine._run import Executed, Run
from taskmix.engine._source import TaskSource, has_tasks, keep_tasks
from taskmix.engine._units import Progress, SingleUnit, Unit
from taskmix.errors import InputError, RecordError
from taskmix.files import delete
from taskmix.records import RunFolder, Study, pack_run, unpack_run


@dataclass(frozen=True, kw_only=True)
class Common:
    """What holds for all jobs of a driver."""

    study: Study
    home: Path  # where the driver stands: relative paths of options are meant from there
    token: str  # of this driver, by which its folders are told
    marker: (
        str | None
    )  # a file in the study by which a worker knows that it sees it; None: it does not
    talk_every: float  # seconds between two words to the post
    send_every: float  # seconds between two records of one unfinished run that are sent home


@dataclass(frozen=True, kw_only=True)
class Done:
    """What became of one run of a job."""

    number: int
    executed: Executed | None = None
    seconds: float = 0.0
    sent: bool = False  # the record went by post
    input_error: str | None = None  # what the user must mend
    crash: str | None = None  # an error nobody expected


def do_job(
    numbers: Sequence[int],
    runs: Sequence[Run],
    on_gpu: bool,
    common: Common,
    post: Any,
    data: Sequence[tuple[TaskSource, Any]],  # with references into the object store
    begun: Mapping[int, Any],  # the same, to records that a run goes on from
) -> list[Done]:
    """Executes the runs, one after the other or, on a GPU, together; what was not begun is left out."""
    import ray
    import torch

    torch.set_num_threads(1)
    with contextlib.suppress(OSError):  # another machine may have no such folder, nor need it
        os.chdir(common.home)
    for source, reference in data:
        if not has_tasks(source):
            keep_tasks(source, put_together(ray.get(reference)))
    units: Sequence[Unit] = [SingleUnit(place, run) for place, run in enumerate(runs)]
    if on_gpu:
        units = plan_units(runs, chunk=None, workers=1)
    done = []
    with ProgressSender(post, common.token, common.talk_every) as voice:
        desk = _desk(common, voice, numbers, runs)
        desk.fetch({place: begun[n] for place, n in enumerate(numbers) if n in begun})
        for unit in units:
            if voice.should_stop():
                break
            done += desk.execute(unit)
            if done[-1].input_error is not None:
                break
    return done


class LocalWorker:
    """Where a worker executes: in the study itself, which it sees."""

    def __init__(
        self, study: Study, voice: ProgressSender, numbers: Sequence[int], runs: Sequence[Run]
    ) -> None:
        self.study, self.voice, self.numbers, self.runs = study, voice, numbers, runs

    def fetch(self, begun: Mapping[int, Any]) -> None:
        """Begun records are in the study."""

    def tell(self, progress: Progress) -> None:
        self.voice.tell(replace(progress, run=self.numbers[progress.run]))

    def execute(self, unit: Unit) -> list[Done]:
        begin = time.monotonic()
        numbers = [self.numbers[place] for place in unit.numbers]
        try:
            results = unit.work(self.study, self.tell, self.voice.should_stop, fresh=False)
        except InputError as error:
            return [Done(number=number, input_error=str(error)) for number in numbers]
        except Exception as error:  # the driver tries again elsewhere, and says it if that fails
            words = f"{type(error).__name__}: {error}"
            return [Done(number=number, crash=words) for number in numbers]
        seconds = (time.monotonic() - begin) / len(results)
        return [
            Done(number=number, executed=result, seconds=seconds, sent=self.deliver(place))
            for number, place, result in zip(numbers, unit.numbers, results, strict=True)
        ]

    def deliver(self, place: int) -> bool:
        """Whether the record of a run that ended had to be sent."""
        return False


class RemoteWorker(LocalWorker):
    """Where the study's folder is out of sight: in a folder of this machine, sent home as bytes."""

    def __init__(
        self,
        common: Common,
        voice: ProgressSender,
        numbers: Sequence[int],
        runs: Sequence[Run],
    ) -> None:
        self._here = Path(tempfile.gettempdir()) / f"taskmix-{common.token}"
        study = Study(self._here, lean=common.study.lean)
        super().__init__(study, voice, numbers, runs)
        self._snapshots = Snapshots(self._send, self._has_checkpoint, common.send_every)
        self._folders = [run.folder(study) for run in runs]

    def fetch(self, begun: Mapping[int, Any]) -> None:
        import ray

        for place, reference in begun.items():
            if self._folder(place).summary() is None:  # else it was begun on this very machine
                unpack_run(self._folder(place), ray.get(reference))

    def tell(self, progress: Progress) -> None:
        super().tell(progress)
        self._snapshots.see(progress)

    def deliver(self, place: int) -> bool:
        if self._send(place):
            with contextlib.suppress(RecordError):  # what stays there goes with the machine
                delete(self._folder(place).path, is_ours=lambda path: self._here in path.parents)
        return True

    def _folder(self, place: int) -> RunFolder:
        return self._folders[place]

    def _has_checkpoint(self, place: int) -> bool:
        summary = self._folder(place).summary()
        return summary is not None and summary.step > 0

    def _send(self, place: int) -> bool:
        files = pack_run(self._folder(place))
        return not files or self.voice.send(self.numbers[place], files)


def _desk(
    common: Common,
    voice: ProgressSender,
    numbers: Sequence[int],
    runs: Sequence[Run],
) -> LocalWorker:
    if common.marker is not None and (common.study.path / common.marker).is_file():
        return LocalWorker(common.study, voice, numbers, runs)
    return RemoteWorker(common, voice, numbers, runs)
