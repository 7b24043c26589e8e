"""One model on several devices: the processes that `torchrun` starts train it together.

    torchrun --nproc-per-node 2 -m taskmix train FOLDER ...

Every process has the model and the tasks, takes its part of each batch, and the gradients are
averaged (`training.Ranks`). The first process holds the run's lock and writes its record, which is
that of the run in one process, to the order of sums. Launchers that set the same variables of the
environment, such as `accelerate launch`, do as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import torch
import torch.distributed as distributed

from taskmix.engine._executor import (
    UNOBSERVED,
    Observers,
    check_none_merged,
    equal_runs,
    never,
    to_each,
)
from taskmix.engine._run import (
    Executed,
    Listener,
    Run,
    begin_record,
    record_event,
    training_events,
)
from taskmix.engine._units import Progress, Stop, telling_progress
from taskmix.errors import InputError, OptionError, RecordError, TaskmixError
from taskmix.records import RecordWriter, Study
from taskmix.training import DistributedRanks, EndEvent, StepEvent

NEEDED = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def launched_processes() -> int:
    """How many processes a launcher has started for one model; 1 where there was none.

    >>> launched_processes()
    1
    """
    try:
        count = int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        return 1
    return count if all(name in os.environ for name in NEEDED) else 1


def is_first_process() -> bool:
    """Whether this one speaks for all: it writes and prints.

    >>> is_first_process()  # without a launcher
    True
    """
    return launched_processes() == 1 or os.environ["RANK"] == "0"


@contextmanager
def joined_ranks(device: str) -> Iterator[DistributedRanks]:
    """Joins the processes that the launcher started, over NCCL on CUDA and over Gloo else."""
    on_cuda = device.startswith("cuda")
    if on_cuda:
        number = int(os.environ["LOCAL_RANK"])
        if number >= torch.cuda.device_count():
            raise OptionError(
                "There should be a GPU for every process of a machine. Found "
                f"{torch.cuda.device_count()} for process {number + 1}. Start fewer with "
                "--nproc-per-node, or use `device` cpu.",
                arguments=("device",),
            )
        torch.cuda.set_device(number)
    distributed.init_process_group("nccl" if on_cuda else "gloo")
    try:
        yield DistributedRanks()
    finally:
        distributed.destroy_process_group()


@dataclass(frozen=True, kw_only=True)
class TorchrunExecutor:
    """The processes of a launcher, all of which train one run after the other, each a part of a batch.

    Every process has to ask for the same runs. It does so under `torchrun`, where `launched_processes()`
    says that there are several:

    >>> launched_processes()
    1
    """

    observers: Observers = UNOBSERVED

    @property
    def at_once(self) -> int:
        """One run after the other."""
        return 1

    def run(
        self, runs: Sequence[Run], study: Study, *, stop: Stop = never, fresh: bool = False
    ) -> list[Executed]:
        """As any executor does; only the first process's results have summaries."""
        if not runs:
            return []
        check_none_merged(runs)
        torch.set_num_threads(1)
        folders = [run.folder(study) for run in runs]
        places = equal_runs(folders, range(len(runs)))
        results: list[Executed | None] = [None] * len(runs)
        either = self.observers.either(stop)
        with joined_ranks(runs[0].device) as ranks, self.observers.progress(runs) as tell:
            tell_all = to_each(tell, places)
            for number, (first, *others) in enumerate(places):
                if ranks.any(either()):
                    continue
                run = runs[first]
                listener = telling_progress(number, tell_all)
                try:
                    executed = _execute_together(
                        run, study, ranks, listener=listener, should_stop=either, fresh=fresh
                    )
                except InputError:
                    raise
                except TaskmixError as error:
                    recorded = not isinstance(error, RecordError)
                    executed = Executed(
                        outcome="failed", summary=None, error=str(error), recorded=recorded
                    )
                results[first] = executed
                for place in others:
                    results[place] = executed.for_equal(folders[place])
                if executed.outcome != "stopped":
                    tell_all(Progress(number, run.steps, done=True))
        if is_first_process():
            self.observers.listening(study).replay(runs)
        stopped = Executed(outcome="stopped", summary=None)
        return [result or stopped for result in results]


def _execute_together(
    run: Run,
    study: Study,
    ranks: DistributedRanks,
    *,
    listener: Listener | None = None,
    should_stop: Callable[[], bool] | None = None,
    fresh: bool = False,
) -> Executed:
    """Does the run in all processes, as `execute` does in one; every process has to call it.

    Only the first process's result has the summary.
    """
    specification = run.specification()
    folder = study.run(specification, label=run.label)
    if run.device.startswith("cuda"):
        run = replace(run, device=f"cuda:{torch.cuda.current_device()}")
    with ExitStack() as claims:
        writer: RecordWriter | None = None
        outcome = None
        with ranks.working():
            if ranks.rank == 0:
                study.settle()
                claim = claims.enter_context(folder.claim(fresh=fresh))
                writer, outcome = claim.writer, claim.outcome
        outcome, resumed = ranks.from_first((outcome, writer.resumed if writer else None))
        if outcome != "claimed":
            summary = folder.summary() if ranks.rank == 0 else None
            return Executed(
                outcome="already finished" if outcome == "finished" else "busy", summary=summary
            )
        try:
            with ranks.working():
                events = training_events(
                    run, resumed, should_stop, ranks, with_credits=not study.lean
                )
                if writer is not None:
                    begin_record(writer, run, specification)
            ended = False
            for event in events:
                ended = isinstance(event, EndEvent)
                if isinstance(event, StepEvent):  # kept in memory, which cannot fail
                    if writer is not None:
                        record_event(writer, event)
                else:
                    with ranks.working():
                        if writer is not None:
                            record_event(writer, event)
                if writer is not None and listener is not None:
                    listener(event)
            if writer is not None and not ended:
                writer.stop()
        except Exception as error:
            if writer is not None:
                writer.fail(f"{type(error).__name__}: {error}")
            raise
        return Executed(
            outcome="finished" if ended else "stopped",
            summary=folder.summary() if ranks.rank == 0 else None,
            notes=tuple(writer.notes) if writer is not None else (),
        )
