"""Trains a swarm and gathers its table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taskmix.engine import Auto, Executed, Executor, Run, peak_operations
from taskmix.errors import RunError
from taskmix.mixtures._swarm._document import SwarmDocument, check_same, read_swarm, write_swarm
from taskmix.mixtures._swarm._domains import domains_of_swarm
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._swarm._runs import GivenMixtures, swarm_runs
from taskmix.mixtures._swarm._table_files import check_table_files, write_table_files
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.models import CausalTransformer
from taskmix.records import Study
from taskmix.tasks import TaskSet

METRIC = "bits_per_byte"


@dataclass(frozen=True, kw_only=True)
class SwarmSpeed:
    """How fast the steps of one call were, all of it counted but reading the texts.

    >>> SwarmSpeed(member_steps=1000, seconds=2.0, operations_a_step=1e9, peak=1e12).share_of_peak
    0.5
    """

    member_steps: int
    seconds: float
    operations_a_step: float | None  # of one member
    peak: float | None  # operations a second of the device, where known

    @property
    def steps_a_second(self) -> float:
        """Steps of single members."""
        return self.member_steps / self.seconds if self.seconds > 0 else 0.0

    @property
    def share_of_peak(self) -> float | None:
        """Of the device's limit, by the products of the models."""
        if self.operations_a_step is None or self.peak is None:
            return None
        return self.steps_a_second * self.operations_a_step / self.peak


@dataclass(frozen=True, kw_only=True)
class TrainedSwarm:
    """What a swarm gave.

    >>> import numpy as np
    >>> table = MixtureTable(
    ...     domains=("web",), metrics=("web/bits_per_byte",), runs=("m0",),
    ...     shares=np.ones((1, 1)), values=np.array([[2.5]]),
    ... )
    >>> speed = SwarmSpeed(member_steps=0, seconds=0.0, operations_a_step=None, peak=None)
    >>> len(TrainedSwarm(table=table, failed=(), speed=speed).table)
    1
    """

    table: MixtureTable  # of the members that came to their end
    failed: tuple[tuple[str, str], ...]  # members that did not, and why
    speed: SwarmSpeed


def train_swarm(
    tasks: TaskSet,
    options: SwarmOptions,
    study: Study,
    *,
    executor: Executor | None = None,
    device: str = "cpu",
    mixtures: GivenMixtures | None = None,  # None: drawn
) -> TrainedSwarm:
    """Trains what the study does not hold yet, and writes the table beside the records.

    Called again with the same options it goes on where it was stopped; with others it says which one
    has changed.

    >>> train_swarm(tasks, SwarmOptions(members=64), Study("swarm")).table  # doctest: +SKIP
    """
    runs = begin_swarm(tasks, options, study, device=device, mixtures=mixtures)
    study.settle()
    write_swarm(study.path, document_of(runs, options))
    before = steps_done(runs, study)
    begin = time.monotonic()
    results = (executor or Auto()).run(runs, study)
    seconds = time.monotonic() - begin
    after = steps_done(runs, study)
    stopped = sum(result.outcome in ("stopped", "busy") for result in results)
    if stopped:
        raise RunError(
            f"All {len(runs)} members of the swarm should come to their end. Found {stopped} that were "
            "stopped, or are at work in another process. Run the same command again to go on."
        )
    architecture = runs[0].architecture
    is_causal = isinstance(architecture, CausalTransformer)
    speed = SwarmSpeed(
        member_steps=after - before,
        seconds=seconds,
        operations_a_step=operations_of(runs[0]) if is_causal else None,
        peak=peak_operations(device),
    )
    table, failed = gather_table(runs, results)
    write_table_files(table, study.path)
    return TrainedSwarm(table=table, failed=failed, speed=speed)


def begin_swarm(
    tasks: TaskSet,
    options: SwarmOptions,
    study: Study,
    *,
    device: str = "cpu",
    mixtures: GivenMixtures | None = None,
) -> list[Run]:
    """The runs of a swarm, if it is the one that the study holds or the study is new.

    Nothing is written.
    """
    check_table_files(study.path)
    domains = domains_of_swarm(tasks, dev_bytes=options.dev_bytes, context=options.context)
    known = read_swarm(study.path)
    if mixtures is None and known is not None and options.changed(known.options) is None:
        mixtures = known.mixtures()  # whatever a later version would draw
    runs = swarm_runs(domains, options, device=device, mixtures=mixtures)
    if known is not None:
        check_same(known, document_of(runs, options), study.path)
    return runs


def document_of(runs: Sequence[Run], options: SwarmOptions) -> SwarmDocument:
    """What a swarm is begun with."""
    return SwarmDocument(
        options=options,
        device=runs[0].device.split(":", maxsplit=1)[0],
        domains=runs[0].load().names,
        members=tuple(run.label for run in runs),
        shares=tuple(tuple(shares_of(run).tolist()) for run in runs),
    )


def shares_of(run: Run) -> Floats:
    """[domain], of a member."""
    assert run.policy is not None
    return run.policy.probabilities(run.policy.init(run.load().sizes))


def steps_done(runs: Sequence[Run], study: Study) -> int:
    """Of all members together, that the study holds."""
    summaries = (run.folder(study).summary() for run in runs)
    return sum(0 if summary is None else summary.step for summary in summaries)


def gather_table(
    runs: Sequence[Run], results: Sequence[Executed]
) -> tuple[MixtureTable, tuple[tuple[str, str], ...]]:
    """The table of the runs that came to their end, and the names of the others with the reason."""
    domains = runs[0].load().names
    names, shares, values = [], [], []
    failed = []
    for run, result in zip(runs, results, strict=True):
        if not result.is_done or result.summary is None:
            failed.append((run.label, result.error or result.outcome))
            continue
        found = {
            score.task: score.value
            for score in result.summary.scores
            if score.split == "dev" and score.metric == METRIC
        }
        names.append(run.label)
        shares.append(shares_of(run))
        values.append([found.get(domain, np.nan) for domain in domains])
    if not names:
        raise RunError(
            f"Some members of the swarm should come to their end. Found that all {len(runs)} failed: "
            f"{failed[0][1]}"
        )
    table = MixtureTable(
        domains=domains,
        metrics=tuple(f"{domain}/{METRIC}" for domain in domains),
        runs=tuple(names),
        shares=np.array(shares),
        values=np.array(values),
    )
    return table, tuple(failed)


def operations_of(run: Run) -> float:
    """Floating-point operations of one step of a member that is trained from scratch."""
    architecture = run.architecture
    assert isinstance(architecture, CausalTransformer)
    pieces = architecture.encoding.encode(run.load())[0].outputs
    return architecture.operations(run.batch_size, outputs=pieces)
