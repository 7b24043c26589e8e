"""How an answer came about: what each stage cost, who led after it, and who was out by then.

Everything follows from the advice after each stage, and that from the records, so an adviser that
was stopped and goes on has the same history as one that was not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from taskmix.adviser._advice import Advice
from taskmix.adviser._scores import Entry
from taskmix.plans import AdviceStage, Milestone


@dataclass
class History:
    """Collects milestones: `keep=history.add` of an `Adviser`."""

    milestones: list[Milestone] = field(default_factory=list)
    _last: Advice | None = None

    def add(self, advice: Advice) -> None:
        """Notes what is known after a stage; a stage that cost nothing is none."""
        if self._last is None or advice.spent > self._last.spent:
            leader = advice.race.leader
            self.milestones.append(
                Milestone(
                    stage=_stage(self._last, advice),
                    spent=advice.spent,
                    leader=leader.name,
                    score=leader.mean,
                    seeds=leader.seeds,
                    open=advice.race.open,
                    out=tuple(s.name for s in advice.race.standings if not s.is_open),
                )
            )
        self._last = advice

    def out_after(self, name: str) -> int | None:
        """The place of the milestone from which on a candidate was out; None where it never was."""
        place = len(self.milestones)
        while place and name in self.milestones[place - 1].out:
            place -= 1
        return place if place < len(self.milestones) else None


def _stage(before: Advice | None, after: Advice) -> AdviceStage:
    if before is None:
        return "baselines"
    if after.lessons is not None and before.lessons is None:
        return "transfer"
    if _runs(after.long) > _runs(before.long):
        return "longer"
    return "candidates" if len(after.entries) > len(before.entries) else "race"


def _runs(entries: Mapping[str, Sequence[Entry]]) -> int:
    return sum(map(len, entries.values()))
