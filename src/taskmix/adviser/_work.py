"""The runs of one piece of advice, of all kinds, and what they taught so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._learned import Learned, unlearned
from taskmix.adviser._scores import Entry, mean_comparable
from taskmix.plans import Plan
from taskmix.tasks import Finding, TaskSet
from taskmix.transfer import TransferLessons

Entries = dict[str, list[Entry]]


@dataclass(frozen=True)
class Known:
    """What does not change with the runs."""

    tasks: TaskSet
    targets: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass
class Work:
    """The runs of all kinds, and what they taught so far."""

    runs: CandidateRuns  # of the model itself
    below: dict[str, CandidateRuns]  # of cheaper ones, the cheapest first
    known: Known
    long: CandidateRuns | None = None  # of the leaders
    lessons: TransferLessons | None = None
    dropped: tuple[str, ...] = ()  # rungs that mislead
    learned: tuple[Learned, ...] = ()

    @property
    def lowest(self) -> CandidateRuns:
        """Where ways are tried first."""
        return next(iter(self.below.values()), self.runs)

    @property
    def unlearned(self) -> tuple[str, ...]:
        return unlearned(self.learned)

    def way(self, name: str) -> Plan:
        for runs in (self.runs, *self.below.values()):
            if name in runs.entries:
                return runs.entries[name][0].candidate
        raise KeyError(name)

    @property
    def longer(self) -> Entries:
        """The longer runs, by way."""
        return {} if self.long is None else self.long.entries


def with_scores(
    entries: Mapping[str, Sequence[Entry]], tasks: TaskSet, judged: Sequence[str]
) -> Entries:
    """Each way's seeds up to the first without a mean score: comparisons are paired by seed."""
    found: Entries = {}
    for way, some in entries.items():
        for entry in some:
            if not math.isfinite(mean_comparable(tasks, entry.dev, judged)):
                break
            found.setdefault(way, []).append(entry)
    return found
