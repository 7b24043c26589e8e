"""What would tell ways apart that may all be the best: more seeds, more dev rows, longer runs.

The nearest rival lies g behind the leader. Seeds take it out where g passes the reach of the noise of
their means, which shrinks with the root of their number; the error of dev rows stays whatever the
number of seeds, and so does that of curves until runs are as long as the training that will be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taskmix.adviser._advice import Advice
from taskmix.adviser._budget import typed_time
from taskmix.numerics import normal_quantile

MOST_BUDGETS = 20  # that it may take to tell ways apart, before they count as alike
MOST_ROWS = 50.0  # times the dev rows, before more of them are no advice


@dataclass(frozen=True, kw_only=True)
class WhatSettles:
    """What it would cost to know."""

    words: str
    batches: int | None  # of further runs; None: no number of them would do
    rows: float | None = None  # times the dev rows that would be needed, where they are what lacks


def what_settles(advice: Advice) -> WhatSettles | None:
    """None where the race is over."""
    race = advice.race
    rivals = [each for each in race.standings[1:] if each.is_open]
    if not rivals:
        return None
    nearest = min(rivals, key=lambda each: abs(each.behind.mean))
    gap, reach = abs(nearest.behind.mean), normal_quantile(advice.options.level)
    if race.leader.seeds == 1 and not any(len(some) > 1 for some in advice.entries.values()):
        second = (len(rivals) + 1) * advice.batches
        words = f"A second seed of each would take {_cost(advice, second)}."
        return WhatSettles(words=words, batches=second)
    rows = advice.row_error if math.isfinite(advice.row_error) else 0.0
    if gap > 0 and reach * rows > gap:
        times = (reach * rows / gap) ** 2
        if times > MOST_ROWS:
            return WhatSettles(words=_small(gap), batches=None)
        dev = int(np.sum([advice.tasks[name].sizes["dev"] for name in advice.judged]))
        words = (
            f"More seeds would not settle it: the {dev:,} dev rows tell ways apart that differ by "
            f"{reach * rows:.3f}, and these differ by about {gap:.3f}. About {math.ceil(times)} times "
            "as many would."
        )
        return WhatSettles(words=words, batches=None, rows=times)
    is_short = reach * math.hypot(rows, advice.curve_error) > gap
    length = advice.promised if is_short else advice.batches
    left = math.sqrt(max(gap**2 - (reach * rows) ** 2, 0.0))
    seeds = float(math.ceil(2 * (reach * race.noise / left) ** 2)) if left > 0 else math.inf
    done = 0 if is_short else race.leader.seeds
    batches = max(seeds - done, 1) * (len(rivals) + 1) * length
    if not batches <= MOST_BUDGETS * advice.budget.batches:
        return WhatSettles(words=_small(gap), batches=None)
    why = ", as long as the training will be" if is_short else ""
    words = (
        f"To settle it: {_cost(advice, int(batches))} with --steps {length}{why}, about {int(seeds)} "
        f"{'seed' if seeds == 1 else 'seeds'} of each."
    )
    return WhatSettles(words=words, batches=int(batches))


def _small(gap: float) -> str:
    return f"Whatever the difference is, it is small: about {gap:.3f}."


def _cost(advice: Advice, further: int) -> str:
    """The budget as one types it; with runs of the same length, those done are not done again."""
    prices = advice.budget.prices
    if prices is None:
        return f"a budget of {math.ceil(advice.spent + further)}-steps"
    share = further / max(advice.budget.batches, 1)
    return f"a budget of {typed_time((advice.options.budget.seconds or 0.0) * (1 + share))}"
