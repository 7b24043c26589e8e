"""Runs that train together, from their claims to their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch

from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._plan import can_join, compiling_pays, family_of, plan_chunks
from taskmix.engine._fleet._train import WRITERS, train_fleet
from taskmix.engine._run import Executed, Run, begin_record, encode
from taskmix.engine._units import Progress, SingleUnit, Stop, Tell, Unit
from taskmix.records import RecordWriter, RunFolder, Study
from taskmix.tasks import EncodedTasks

_TELL_EVERY = 0.5  # seconds between two words about all members


def plan_units(runs: Sequence[Run], *, chunk: int | None, workers: int) -> list[Unit]:
    """Chunks of the runs that can train together, and the others alone."""
    families: dict[Hashable, list[int]] = {}
    alone: list[int] = []
    seen: set[Run] = set()
    for number, run in enumerate(runs):
        if can_join(run) and replace(run, label="") not in seen:
            seen.add(replace(run, label=""))
            families.setdefault(family_of(run), []).append(number)
        else:  # asked for again, a run is found finished
            alone.append(number)
    units: list[Unit] = []
    for numbers in families.values():
        compiled = compiling_pays([runs[number] for number in numbers])
        for part in plan_chunks(runs, numbers, chunk=chunk, workers=workers):
            if len(part) > 1:
                some = tuple(runs[number] for number in part)
                units.append(FleetUnit(tuple(part), some, compiled=compiled))
            else:
                alone += part
    # The longest first: no process is left with one of them in the end.
    units.sort(key=lambda unit: -sum(runs[number].steps for number in unit.numbers))
    return [*units, *(SingleUnit(number, runs[number]) for number in sorted(alone))]


@dataclass(frozen=True)
class FleetUnit:
    """Runs of one family, in the order of their learning rates."""

    numbers: tuple[int, ...]
    runs: tuple[Run, ...]
    compiled: bool = False  # whether what the members share is worth compiling

    def work(self, study: Study, tell: Tell, stop: Stop, *, fresh: bool) -> list[Executed]:
        """Trains them; where that takes more memory than there is, in halves."""
        try:
            return _train(self, study, tell, stop, fresh=fresh)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not _is_memory(error) or len(self.runs) == 1:
                raise
        torch.cuda.empty_cache()
        half = len(self.runs) // 2
        parts = [
            FleetUnit(self.numbers[part], self.runs[part], compiled=self.compiled)
            for part in (slice(half), slice(half, None))
        ]
        # Whatever was to be started over has been, when all were claimed the first time.
        results = [part.work(study, tell, stop, fresh=False) for part in parts]
        return [*results[0], *results[1]]


def _is_memory(error: Exception) -> bool:
    words = str(error)
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate" in words


def _train(unit: FleetUnit, study: Study, tell: Tell, stop: Stop, *, fresh: bool) -> list[Executed]:
    results: dict[int, Executed] = {}
    claimed: list[_Claimed] = []
    with ExitStack() as claims:
        try:
            for number, run in zip(unit.numbers, unit.runs, strict=True):
                specification = run.specification()
                folder = study.run(specification, label=run.label)
                claim = claims.enter_context(folder.claim(fresh=fresh))
                if claim.writer is not None:
                    claimed.append(_Claimed(number, run, specification, folder, claim.writer))
                elif claim.outcome == "finished":
                    results[number] = Executed(outcome="already finished", summary=folder.summary())
                else:
                    results[number] = Executed(outcome="busy", summary=folder.summary())
            members = _members(claimed)
            for fleet in _fleets(members, compiled=unit.compiled):
                train_fleet(fleet, tell=_thinned(tell), should_stop=stop)
        except Exception as error:
            if not _is_memory(error):
                for each in claimed:
                    each.writer.fail(f"{type(error).__name__}: {error}")
            raise
        for member, each in zip(members, claimed, strict=True):
            results[each.number] = _executed(member, each.folder)
    return [results[number] for number in unit.numbers]


@dataclass(frozen=True)
class _Claimed:
    """A run that is ours to do."""

    number: int
    run: Run
    specification: dict[str, Any]
    folder: RunFolder
    writer: RecordWriter

    def begin(self) -> None:
        begin_record(self.writer, self.run, self.specification)


def _members(claimed: Sequence[_Claimed]) -> list[Member]:
    with ThreadPoolExecutor(WRITERS) as threads:  # beginning a record waits for the disk
        for _ in threads.map(_Claimed.begin, claimed):
            pass
    encoded: dict[tuple[str, ...] | None, EncodedTasks] = {}
    members = []
    for each in claimed:
        tasks = each.run.tasks
        if tasks not in encoded:
            encoded[tasks] = encode(each.run)
        members.append(Member.of(each.number, each.run, encoded[tasks], each.writer))
    return members


def _fleets(members: Sequence[Member], *, compiled: bool) -> Iterator[StackedModels]:
    """Members that begin at the same step: all of them, but for what was interrupted."""
    by_step: dict[int, list[Member]] = {}
    for member in members:
        by_step.setdefault(member.checkpoint or 0, []).append(member)
    for group in by_step.values():
        yield StackedModels(group, compiled=compiled)


def _executed(member: Member, folder: RunFolder) -> Executed:
    if member.error is not None:
        return Executed(outcome="failed", summary=folder.summary(), error=str(member.error))
    return Executed(
        outcome="stopped" if member.stopped else "finished",
        summary=folder.summary(),
        notes=tuple(member.writer.notes),
    )


def _thinned(tell: Tell) -> Callable[[int, int, bool], None]:
    """Word of each member, but of all together only now and then."""
    last: dict[int, float] = {}

    def say(run: int, step: int, done: bool) -> None:
        now = time.monotonic()
        if done or now - last.get(run, 0.0) > _TELL_EVERY:
            last[run] = now
            tell(Progress(run, step, done))

    return say
