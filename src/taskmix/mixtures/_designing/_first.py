"""First designs: which mixtures to run before anything is known.

Four kinds of rows, each with its purpose:

- the centre, natural shares or even ones: what others are compared with;
- corners: as much of one domain as is allowed, and none of one domain (the rest as in the centre).
  No other run says more about a single domain (Cornell, "Experiments with Mixtures", 2002, chapter 2);
- space-filling: mixtures far from all others, see `_filling.py`;
- replicates: a mixture run again with another seed, because only these tell noise from law. They
  repeat mixtures that are far apart, as noise depends on the mixture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._designing._crowd import center_of, crowd_of, random_of
from taskmix.mixtures._designing._filling import order_by_filling
from taskmix.mixtures._optimum import FeasibleShares, MixtureLimits
from taskmix.mixtures._table import Floats

Kind = Literal["centre", "corner", "without", "space-filling", "replicate"]

CORNERS = 1 / 3  # of the runs may be corners; more, and too little is known of the middle
WITHOUT = 1 / 4  # and only if together these are no more, runs without a domain, which tell less
REPLICATED = 1 / 12  # of the runs repeat another, unless it is said how many
NONE = 1e-3  # smaller shares of a first design are none: a run cannot tell them from it
CROWD = 2000  # mixtures that a design is chosen from; four for each run, if these are more


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstDesign:
    """Mixtures to run first, the most telling first: every beginning is a design too.

    >>> design = FirstDesign(
    ...     domains=("web", "code"), shares=np.array([[0.5, 0.5], [0.5, 0.5]]),
    ...     kinds=("centre", "replicate"), repeats=(None, 0),
    ... )
    >>> design.describe()
    '2 runs on 2 domains: the centre, and 1 replicate of another row for the noise.'
    """

    domains: tuple[str, ...]
    shares: Floats  # [run, domain]; rows sum to 1
    kinds: tuple[Kind, ...]  # [run]
    repeats: tuple[int | None, ...]  # [run], the row that it repeats, to be run with another seed

    def __len__(self) -> int:
        return len(self.shares)

    def describe(self) -> str:
        """What it contains, in words."""
        number = {kind: self.kinds.count(kind) for kind in self.kinds}
        words = [
            phrase
            for kind, phrase in (
                ("centre", "the centre"),
                ("corner", "{} with as much of one domain as is allowed"),
                ("without", "{} without one domain"),
                ("space-filling", "{} that fill the space between"),
                ("replicate", "{} replicate{} of another row for the noise"),
            )
            if kind in number
        ]
        counts = [number[kind] for kind in _ORDER if kind in number]
        told = [
            phrase.format(count, "" if count == 1 else "s")
            for phrase, count in zip(words, counts, strict=True)
        ]
        listed = told[0] if len(told) == 1 else f"{', '.join(told[:-1])}, and {told[-1]}"
        runs = "1 run" if len(self) == 1 else f"{len(self)} runs"
        return f"{runs} on {len(self.domains)} domains: {listed}."


_ORDER: tuple[Kind, ...] = ("centre", "corner", "without", "space-filling", "replicate")


def first_mixtures(
    domains: Sequence[str],
    count: int,
    *,
    limits: MixtureLimits | None = None,
    prior: Mapping[str, float]
    | Sequence[float]
    | Floats
    | None = None,  # natural shares, or tokens
    replicates: int
    | None = None,  # None: a twelfth of the runs, at least two where there are eight
    corners: bool = True,  # where they are affordable
    seed: int = 0,
) -> FirstDesign:
    """A design of `count` runs within `limits`, around natural shares if `prior` has them.

    >>> design = first_mixtures(("web", "code", "books"), 12, seed=1)
    >>> design.kinds[0], design.shares[0].round(2).tolist()
    ('centre', [0.33, 0.33, 0.33])
    >>> design.describe()[:66]
    '12 runs on 3 domains: the centre, 3 with as much of one domain as '
    """
    names = _checked(domains, count)
    repeated = _replicates(replicates, count)
    feasible = (limits or MixtureLimits()).feasible(names)
    center = center_of(feasible, names, prior)
    rows: list[Floats] = [center]
    kinds: list[Kind] = ["centre"]
    wanted = count - repeated
    if corners:
        most, least = _corners(feasible, center)
        if len(most) <= CORNERS * count:
            rows += list(most)
            kinds += ["corner"] * len(most)
        if len(most) + len(least) <= WITHOUT * count:
            rows += list(least)
            kinds += ["without"] * len(least)
    rows, kinds = rows[:wanted], kinds[:wanted]
    crowd = crowd_of(feasible, center, max(CROWD, 4 * count), random_of(seed, 0))
    candidates = _without_traces(feasible, np.concatenate([np.array(rows), crowd]))
    filled = order_by_filling(candidates, wanted, first=range(len(rows)))
    kinds += ["space-filling"] * (len(filled) - len(rows))
    chosen = candidates[filled]
    # Corners are chosen first and run among the others: each beginning should be a design.
    order = order_by_filling(chosen, len(chosen))
    return _with_replicates(
        names, chosen[order], [kinds[place] for place in order], repeated, count
    )


def _without_traces(feasible: FeasibleShares, shares: Floats) -> Floats:
    """Shares too small to tell become none where that is allowed [mixture, domain]."""
    whole = np.where((shares < NONE) & (feasible.lower <= 0), 0.0, shares)
    whole = whole / whole.sum(axis=1, keepdims=True)
    return np.where(feasible.contains(whole)[:, None], whole, shares)


def _checked(domains: Sequence[str], count: int) -> tuple[str, ...]:
    names = tuple(domains)
    if isinstance(domains, str) or len(names) < 2 or len(set(names)) < len(names):
        raise InputError(
            "`domains` should be at least two names, none twice. "
            f"Found {domains if isinstance(domains, str) else list(names)[:8]}.",
            arguments=("domains",),
        )
    if count < 1:
        raise InputError(
            f"`count` should be at least 1, the number of runs. Found {count}.",
            arguments=("count",),
        )
    return names


def _replicates(asked: int | None, count: int) -> int:
    if asked is None:
        return max(2, round(REPLICATED * count)) if count >= 8 else 0
    if not 0 <= asked < count:
        raise InputError(
            f"`replicates` should be at least 0 and below `count`, {count}. Found {asked}.",
            arguments=("replicates", "count"),
        )
    return asked


def _corners(feasible: FeasibleShares, center: Floats) -> tuple[Floats, Floats]:
    """Mixtures [domain, domain] with as much of each as is allowed, and those without each."""
    low, high = feasible.ranges()
    most, least = _moved(feasible, center, high), _moved(feasible, center, low)
    # A corner that is the centre says nothing, nor does one without a domain that cannot be left out.
    is_far = np.abs(most - center).max(axis=1) > 1e-3
    can_leave = (low <= 1e-9) & (np.abs(least - center).max(axis=1) > 1e-3)
    return most[is_far], least[can_leave]


def _moved(feasible: FeasibleShares, center: Floats, ends: Floats) -> Floats:
    """The centre with each domain in turn at its end, the others keeping their proportions."""
    count = len(center)
    rest = np.maximum(1.0 - center, 1e-12)
    shares = center[None, :] * ((1.0 - ends) / rest)[:, None]
    shares[np.arange(count), np.arange(count)] = ends
    lower, upper = np.tile(feasible.lower, (count, 1)), np.tile(feasible.upper, (count, 1))
    for bound in (lower, upper):
        bound[np.arange(count), np.arange(count)] = ends
    found: Floats = feasible.project(shares, lower=lower, upper=upper)
    return found


def _with_replicates(
    domains: tuple[str, ...], shares: Floats, kinds: list[Kind], repeated: int, count: int
) -> FirstDesign:
    """Replicates among the rows, evenly, each somewhere after the row that it repeats."""
    order: list[tuple[int, bool]] = [(row, False) for row in range(len(shares))]
    for number, row in enumerate(_far_apart(shares, repeated)):
        due = round((number + 1) * count / (repeated + 1))
        place = order.index((row, False))
        order.insert(min(max(due, place + 1), len(order)), (row, True))
    at = {row: place for place, (row, is_again) in enumerate(order) if not is_again}
    return FirstDesign(
        domains=domains,
        shares=shares[[row for row, _ in order]],
        kinds=tuple("replicate" if again else kinds[row] for row, again in order),
        repeats=tuple(at[row] if again else None for row, again in order),
    )


def _far_apart(shares: Floats, count: int) -> list[int]:
    """Rows far from each other, the centre first; over again where there are too few."""
    if count == 0:
        return []
    order = order_by_filling(shares, count)
    return [int(order[number % len(order)]) for number in range(count)]
