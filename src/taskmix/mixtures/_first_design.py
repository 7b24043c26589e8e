r"""First designs: which mixtures to run before anything is known.

Four kinds of rows, each with its purpose:

- the centre, natural shares or even ones: what others are compared with;
- corners: as much of one domain as is allowed, and none of one domain (the rest as in the centre).
  No other run says more about a single domain (Cornell, "Experiments with Mixtures", 2002, chapter 2);
- space-filling: mixtures far from all others;
- replicates: a mixture run again with another seed, because only these tell noise from law. They
  repeat mixtures that are far apart, as noise depends on the mixture.

Of the space-filling mixtures every beginning fills the space too: each step takes the candidate that is
farthest from all taken before it.

    Kennard and Stone, "Computer aided design of experiments", Technometrics 1969; maximin designs are
    from Johnson, Moore and Ylvisaker, 1990. The greedy order is at most a factor of two from the best
    design of each length (Gonzalez, "Clustering to minimize the maximum intercluster distance", 1985).

Distances are between roots of shares (Hellinger's): 0.01 and 0.04 of a domain are as far apart as 0.49
and about 0.64, because the first part of a domain teaches the most.

Of two rules that were tried on made-up laws (6 and 17 domains, two to four runs a domain) and on the
RegMix proxies, this one was the better or as good. The other, support points (Mak and Joseph, 2018),
takes the mixtures that together resemble the candidates; these lie more in the middle, and left up to
three times the regret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._table import Floats

Kind = Literal["centre", "corner", "without", "space-filling", "replicate"]

CORNERS = 1 / 3  # of the runs may be corners; more, and too little is known of the middle
WITHOUT = 1 / 4  # and only if together these are no more, runs without a domain, which tell less
REPLICATED = 1 / 12  # of the runs repeat another, unless it is said how many
NONE = 1e-3  # smaller shares of a first design are none: a run cannot tell them from it
CROWD = 2000  # mixtures that a design is chosen from; four for each run, if these are more
CONCENTRATIONS = (0.15, 0.5)  # per domain: mixtures of few domains tell most about each
TEMPERS = (1.0, 0.5, 0.0)  # natural shares as they are, flattened by a root, not at all


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstDesign:
    """Mixtures to run first, the most telling first: every beginning is a design too."""

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


def crowd_of(
    feasible: FeasibleShares, center: Floats, count: int, random: np.random.Generator
) -> Floats:
    """`count` allowed mixtures [mixture, domain] from Dirichlets around `center` [domain] and evenly.

    Where limits leave little room, drawing until a mixture keeps them takes forever (with seven domains
    already, Ax#3867). Here every draw counts: it fills the room above the lower bounds, and goes to the
    nearest allowed mixture if it is not one.
    """
    kinds = [(each, temper) for temper in TEMPERS for each in CONCENTRATIONS]
    even = count // 4
    places = np.arange(count - even) % len(kinds)
    bases = np.maximum(center, 1e-3 / len(center)) ** np.array([[kind[1]] for kind in kinds])
    bases = bases / bases.sum(axis=1, keepdims=True) * len(center)
    weights = np.array([[kind[0]] for kind in kinds]) * bases  # [kind, domain]
    parts = np.maximum(random.standard_gamma(weights[places]), 1e-12)
    parts /= parts.sum(axis=1, keepdims=True)
    room = max(1.0 - float(feasible.lower.sum()), 0.0)
    drawn = feasible.project(feasible.lower + room * parts)
    return np.concatenate([drawn, feasible.sample(even, random)])


def center_of(
    feasible: FeasibleShares,
    domains: Sequence[str],
    prior: Mapping[str, float] | Sequence[float] | Floats | None,
) -> Floats:
    """The allowed mixture [domain] nearest to natural shares, or to even ones where none are given."""
    if prior is None:
        return np.asarray(feasible.project(np.full((1, len(domains)), 1 / len(domains)))[0])
    if isinstance(prior, Mapping):
        unknown = [name for name in prior if name not in domains]
        missing = [name for name in domains if name not in prior]
        if unknown or missing:
            raise InputError(
                "`prior` should have a natural share, or a number of tokens, for each domain. Found "
                + (f"`{unknown[0]}`, which is none." if unknown else f"none for `{missing[0]}`."),
                arguments=("prior",),
            )
        prior = [float(prior[name]) for name in domains]
    natural = np.asarray(prior, dtype=np.float64)
    if natural.shape != (len(domains),):
        raise InputError(
            f"`prior` should have a number for each of the {len(domains)} domains. Found the shape "
            f"{natural.shape}.",
            arguments=("prior",),
        )
    if not np.isfinite(natural).all() or (natural < 0).any() or natural.sum() <= 0:
        raise InputError(
            "`prior` should have natural shares, or numbers of tokens, none below 0 and some above. "
            f"Found {natural.tolist()[:8]}.",
            arguments=("prior",),
        )
    return np.asarray(feasible.project((natural / natural.sum())[None])[0])


def random_of(seed: int, purpose: int) -> np.random.Generator:
    """A generator of its own for each purpose, so that asking for more of one changes no other."""
    return np.random.default_rng([seed, purpose])


def root_distances(one: Floats, other: Floats) -> Floats:
    """[mixture, other mixture], between roots of shares; at most the root of 2."""
    roots, others = np.sqrt(np.maximum(one, 0.0)), np.sqrt(np.maximum(other, 0.0))
    squares = (roots**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * roots @ others.T
    found: Floats = np.sqrt(np.maximum(squares, 0.0))
    return found


def order_by_filling(
    shares: Floats,  # [candidate, domain]
    count: int,
    *,
    first: Sequence[int] = (0,),  # candidates that are taken before any other
) -> NDArray[np.int64]:
    """The places of `count` candidates, `first` included, the most telling first; none twice."""
    taken = list(first)[:count]
    nearest = root_distances(shares, shares[taken]).min(axis=1)
    nearest[taken] = -1.0
    while len(taken) < min(count, len(shares)):
        place = int(np.argmax(nearest))
        taken.append(place)
        nearest = np.minimum(nearest, root_distances(shares, shares[place : place + 1])[:, 0])
        nearest[place] = -1.0
    return np.array(taken, dtype=np.int64)
