"""Longer runs of the two leaders, inside a part of the budget that the race leaves for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from taskmix.adviser._advice import Advice
from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._work import Work
from taskmix.plans import Plan

LONG_SHARE = 0.3  # of the budget
LEAST_LONGER = 2.0  # times: what is not twice as long says little that the curves do not
LONG_SEEDS = 3  # of each leader at most


def _leaders(work: Work, advice: Advice) -> list[Plan]:
    """The likeliest to be the best, and whoever leads now: what the curves foretell is tried.

    Where these are one, the next likeliest is the second.
    """
    run = [each for each in advice.race.standings if each.seeds]
    by_chance = [each.name for each in sorted(run, key=lambda each: -each.chance)]
    names = dict.fromkeys([by_chance[0], advice.leader_now, *by_chance[1:]])
    return [work.way(name) for name in list(names)[:2]]


def kept_for_long(work: Work, advice: Advice) -> list[list[float]]:
    """What longer runs of the leaders should cost, so that the race leaves it."""
    share = LONG_SHARE * work.runs.spending.budget.batches / 2
    longest = int(min(advice.promised, share))
    if longest < LEAST_LONGER * advice.batches:
        return []
    return [work.runs.costs(way, batches=longest) for way in _leaders(work, advice)]


def run_longer(work: Work, advice: Advice, tell: Callable[[str, str], None]) -> bool:
    """Trains the two leaders as long as can be paid for; False where that says nothing new."""
    ways = _leaders(work, advice)
    if work.long is None:
        length = float(advice.promised)
        while length >= LEAST_LONGER * advice.batches and len(ways) > 1:
            longer = replace(work.runs.length, batches=int(length))
            long = replace(work.runs, length=longer, name="long", entries={}, failed=set())
            if _train_longer(long, ways, 0, tell):
                work.long = long
                return True
            length /= 2
        return False
    # Whoever leads now: the two that were run, where they are still the ones.
    seeds = {len(some) for some in work.long.entries.values()}
    again = [way for way in ways if way.name in work.long.entries]
    is_open = sum(way.name in advice.race.open for way in again) > 1
    if not is_open or len(again) < 2 or max(seeds) >= LONG_SEEDS or len(seeds) > 1:
        return False
    return _train_longer(work.long, again, max(seeds), tell)


def _train_longer(
    long: CandidateRuns, ways: Sequence[Plan], place: int, tell: Callable[[str, str], None]
) -> bool:
    stage = f"{long.length.batches} batches, seed {place + 1}"
    seed = long.first_seed + place
    costs = long.costs_of([(way, seed) for way in ways])
    if not long.spending.affords(stage, costs):
        return False
    shown = " and ".join(way.name for way in ways)
    tell("longer", f"{shown} again, {long.length.batches:,} batches each.")
    return long.train_one_more_seed(stage, ways, seed)
