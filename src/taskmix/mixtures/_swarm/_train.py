"""Trains a swarm, says in `swarm.json` what it is, and gathers its table."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taskmix.engine import Auto, Executed, Executor, Run, peak_operations, working_alone
from taskmix.errors import InputError, OptionError, RunError
from taskmix.files import check_output, guard_formula, write_bytes
from taskmix.mixtures._swarm._domains import domains_of_swarm
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._swarm._runs import GivenMixtures, swarm_runs
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.models import CausalTransformer
from taskmix.records import Study, read_document, write_document
from taskmix.tasks import TaskSet

METRIC = "bits_per_byte"
NAME = "swarm.json"
VERSION = 1
RATIOS, METRICS = "ratios.csv", "metrics.csv"
RUN = "run"  # the first column of both


@dataclass(frozen=True, kw_only=True)
class SwarmSpeed:
    """How fast the steps of one call were, all of it counted but reading the texts."""

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
    """What a swarm gave."""

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
    with working_alone(study.path, "swarm"):
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
                f"All {len(runs)} members of the swarm should come to their end. Found {stopped} that "
                "were stopped, or are at work in another process. Run the same command again to go on."
            )
        table, failed = gather_table(runs, results)
        write_table_files(table, study.path)
    architecture = runs[0].architecture
    is_causal = isinstance(architecture, CausalTransformer)
    speed = SwarmSpeed(
        member_steps=after - before,
        seconds=seconds,
        operations_a_step=operations_of(runs[0]) if is_causal else None,
        peak=peak_operations(device),
    )
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


@dataclass(frozen=True, kw_only=True)
class SwarmDocument:
    """Options, device and mixtures of a swarm."""

    version: int = VERSION
    options: SwarmOptions
    device: str
    domains: tuple[str, ...]
    members: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]  # [member][domain]

    def mixtures(self) -> dict[str, dict[str, float]]:
        """Of each member the share of each domain."""
        return {
            name: dict(zip(self.domains, shares, strict=True))
            for name, shares in zip(self.members, self.shares, strict=True)
        }


def read_swarm(folder: Path) -> SwarmDocument | None:
    """What the swarm in a folder was begun with; None where there is none."""
    return read_document(folder / NAME, SwarmDocument, version=VERSION, command="taskmix swarm")


def write_swarm(folder: Path, document: SwarmDocument) -> None:
    """Says what the swarm in a folder is, once."""
    if read_swarm(folder) is None:
        write_document(folder / NAME, document)


def check_same(known: SwarmDocument, asked: SwarmDocument, folder: Path) -> None:
    """Raises where another swarm is asked for than the folder holds."""
    name = asked.options.changed(known.options)
    if name is not None:
        raise OptionError(
            f"`{name}` should be as when the swarm in `{folder}` was begun, "
            f"{getattr(known.options, name)}. Found {getattr(asked.options, name)}. Give that again to "
            "go on with it, or another folder for another swarm."
        )
    if known.device != asked.device:
        raise OptionError(
            f"`device` should be as when the swarm in `{folder}` was begun, {known.device}. Found "
            f"{asked.device}. Give that again to go on with it, or another folder for another swarm."
        )
    if known.domains != asked.domains:
        raise InputError(
            f"The swarm in `{folder}` should go on with its domains, {', '.join(known.domains)}. Found "
            f"{', '.join(asked.domains)}. Choose another folder for these."
        )
    if known.members != asked.members or not np.allclose(known.shares, asked.shares, atol=1e-9):
        raise InputError(
            f"The swarm in `{folder}` should go on with its mixtures. Found other ones. Choose another "
            "folder for these."
        )


def check_table_files(folder: Path) -> None:
    """Raises where one of the files is there and has not been written by us."""
    for name in (RATIOS, METRICS):
        check_output(folder / name, is_ours=_is_table, what="the table of the swarm")


def write_table_files(table: MixtureTable, folder: Path) -> tuple[Path, Path]:
    """Writes `ratios.csv` and `metrics.csv` into a folder.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=("a",),
    ...     shares=np.array([[0.5, 0.5]]), values=np.array([[3.25]]),
    ... )
    >>> ratios, metrics = write_table_files(table, Path("."))
    >>> ratios.read_text().split(), metrics.read_text().split()
    (['run,web,code', 'a,0.5,0.5'], ['run,loss', 'a,3.25'])
    """
    check_table_files(folder)
    parts = ((RATIOS, table.domains, table.shares), (METRICS, table.metrics, table.values))
    for name, columns, numbers in parts:
        rows = zip(table.runs, numbers.tolist(), strict=True)
        write_bytes(folder / name, _as_csv((RUN, *columns), rows).encode())
    return folder / RATIOS, folder / METRICS


def _as_csv(header: Sequence[str], rows: Iterable[tuple[str, list[float]]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(guard_formula, header))
    for name, numbers in rows:
        cells = ("" if math.isnan(each) else repr(each) for each in numbers)
        writer.writerow([guard_formula(name), *cells])
    return text.getvalue()


def _is_table(begin: bytes) -> bool:
    return begin.startswith(f"{RUN},".encode())
