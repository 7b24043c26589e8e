r"""Which mixtures may be taken: bounds, groups of domains, and how much of each domain there is.

Tokens that are read more than once are worth less:

    Muennighoff et al., "Scaling Data-Constrained Language Models", NeurIPS 2023, Eq. 5:
    $D' = U_D + U_D R^*_D (1 - e^{-R_D / R^*_D})$

`tokens` is their $D$, of which $U_D$ (`supply`) are unique, so $R_D = D / U_D - 1$ is how often they are
repeated. $R^*_D$ is `worth`: repetitions teach like that many passes of new text at the most, and the
next repetition still teaches 1/e after that many. They found 15.4 for English web text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from taskmix.errors import InputError
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._table import Floats

NAMED = 6  # bounds that a sentence lists
ROUNDING = 1e-9  # bounds read from text add up to 1 that nearly
PUBLISHED_WORTH = 15.4  # fitted over runs of up to 9 B parameters; 44 passes gain nothing more


@dataclass(frozen=True, kw_only=True)
class DomainGroup:
    """Domains whose shares together have bounds."""

    domains: tuple[str, ...]
    at_least: float = 0.0
    at_most: float = 1.0


@dataclass(frozen=True, kw_only=True)
class MixtureLimits:
    """What a mixture has to keep to; without options every mixture is allowed.

    `supply` is how many tokens of each domain are at hand, and `budget` how many the large run will
    read. A domain whose share asks for more than its supply is read again, and repeated tokens are
    worth less (`repetition`, see `effective_tokens`), or it may not be read more than `passes` times.

    >>> limits = MixtureLimits(supply={"web": 90, "code": 10}, budget=100, passes=2)
    >>> limits.project(np.array([[0.5, 0.5]]), ("web", "code")).round(2).tolist()
    [[0.8, 0.2]]
    >>> limits.effective(np.array([[0.8, 0.2]]), ("web", "code")).round(4).tolist()
    [[0.8, 0.1968]]
    """

    at_least: float | Mapping[str, float] = 0.0  # one for all domains, or by domain (others: 0)
    at_most: float | Mapping[str, float] = 1.0
    groups: tuple[DomainGroup, ...] = ()
    supply: Mapping[str, float] | None = None  # tokens at hand, by domain
    budget: float | None = None  # tokens wanted
    repetition: float = PUBLISHED_WORTH  # R of `effective_tokens`
    passes: float | None = None  # no domain is read more often; None: as often as it pays

    def __post_init__(self) -> None:
        if (self.supply is None) != (self.budget is None):
            raise InputError(
                "`supply` (tokens at hand) and `budget` (tokens wanted) should be given together. "
                f"Found only `{'budget' if self.supply is None else 'supply'}`.",
                arguments=("supply", "budget"),
            )
        if self.passes is not None and self.supply is None:
            raise InputError(
                "`passes` should come with `supply` and `budget`, which say how often a domain is "
                "read. Found neither.",
                arguments=("passes", "supply", "budget"),
            )
        if self.budget is not None and not (math.isfinite(self.budget) and self.budget > 0):
            raise InputError(
                f"`budget` should be a number of tokens above 0. Found {self.budget}.",
                arguments=("budget",),
            )
        if self.passes is not None and not self.passes > 0:
            raise InputError(
                f"`passes` should be above 0. Found {self.passes}.", arguments=("passes",)
            )
        if not self.repetition >= 0:
            raise InputError(
                "`repetition` should be at least 0 (0: repeated tokens teach nothing, 15.4: as "
                f"published). Found {self.repetition}.",
                arguments=("repetition",),
            )
        for name, tokens in (self.supply or {}).items():
            if not tokens >= 0:
                raise InputError(
                    f"The supply of a domain should be a number of tokens of at least 0. Found "
                    f"{tokens} for `{name}`."
                )

    def feasible(self, domains: Sequence[str]) -> FeasibleShares:
        """The allowed mixtures as arrays; refuses limits that no mixture can keep."""
        found = self._arrays(domains)
        explain_contradiction(found, self._words(domains))
        return found

    def check(self, domains: Sequence[str]) -> None:
        """Refuses unknown domains, and bounds that contradict each other, saying which."""
        self.feasible(domains)

    def project(self, shares: Floats, domains: Sequence[str]) -> Floats:
        """The allowed mixtures nearest to `shares` [mixture, domain]."""
        return self.feasible(domains).project(np.asarray(shares, dtype=np.float64))

    def sample(self, count: int, domains: Sequence[str], generator: np.random.Generator) -> Floats:
        """Allowed mixtures at random, evenly over all of them [mixture, domain]."""
        return self.feasible(domains).sample(count, generator)

    def effective(self, shares: Floats, domains: Sequence[str]) -> Floats:
        """Shares of the budget in tokens' worth [..., domain]: less than 1 in sum where repeated."""
        if self.supply is None or self.budget is None:
            return shares
        supply = self.supply_of(domains)
        return effective_tokens(shares * self.budget, supply, self.repetition) / self.budget

    def passes_of(self, shares: Floats, domains: Sequence[str]) -> Floats | None:
        """How often each domain is read [..., domain]; None where nothing is known of its size."""
        if self.supply is None or self.budget is None:
            return None
        supply, wanted = self.supply_of(domains), shares * self.budget
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(wanted > 0, wanted / supply, 0.0)

    def supply_of(self, domains: Sequence[str]) -> Floats:
        """[domain], tokens at hand."""
        assert self.supply is not None
        _check_known(self.supply, domains, "supply")
        missing = [name for name in domains if name not in self.supply]
        if missing:
            raise InputError(
                "`supply` should say how many tokens there are of each domain. Found nothing for "
                f"`{missing[0]}`. Give infinity for a domain that does not run out.",
                arguments=("supply",),
            )
        return np.array([self.supply[name] for name in domains], dtype=np.float64)

    def _arrays(self, domains: Sequence[str]) -> FeasibleShares:
        lower = _bounds(self.at_least, domains, "at_least", otherwise=0.0)
        upper = _bounds(self.at_most, domains, "at_most", otherwise=1.0)
        if self.supply is not None and self.budget is not None and self.passes is not None:
            upper = np.minimum(upper, self.passes * self.supply_of(domains) / self.budget)
        elif self.supply is not None:
            upper = np.where(self.supply_of(domains) > 0, upper, 0.0)
        members = np.zeros((len(self.groups), len(domains)))
        for row, group in enumerate(self.groups):
            if not group.domains:
                raise InputError("A group should have at least one domain. Found none.")
            _check_known(group.domains, domains, "groups")
            members[row] = [name in group.domains for name in domains]
        least = np.array([group.at_least for group in self.groups], dtype=np.float64)
        most = np.array([group.at_most for group in self.groups], dtype=np.float64)
        for bound in (*least, *most):
            _check_share(float(bound), "a group")
        return FeasibleShares(lower=lower, upper=upper, members=members, least=least, most=most)

    def _words(self, domains: Sequence[str]) -> list[str]:
        """What each bound is called: lower and upper of each domain, then of each group."""
        found = self._arrays(domains)
        asked = _bounds(self.at_most, domains, "at_most", otherwise=1.0)
        words = [
            f"`{name}` at least {low:g}" for name, low in zip(domains, found.lower, strict=True)
        ]
        for name, high, bound in zip(domains, found.upper, asked, strict=True):
            reason = "" if high == bound else " (its supply, and how often it may be read)"
            words.append(f"`{name}` at most {high:.4g}{reason}")
        for word, ends in (("at least", found.least), ("at most", found.most)):
            for group, end in zip(self.groups, ends, strict=True):
                names = " + ".join(f"`{name}`" for name in group.domains)
                words.append(f"{names} {word} {end:g}")
        return words


def _bounds(
    given: float | Mapping[str, float], domains: Sequence[str], option: str, *, otherwise: float
) -> Floats:
    if not isinstance(given, Mapping):
        _check_share(float(given), "every domain")
        return np.full(len(domains), float(given))
    _check_known(given, domains, option)
    for name, bound in given.items():
        _check_share(float(bound), f"`{name}`")
    return np.array([given.get(name, otherwise) for name in domains], dtype=np.float64)


def _check_share(bound: float, whose: str) -> None:
    if not -ROUNDING <= bound <= 1 + ROUNDING:
        raise InputError(
            f"A bound should be a share from 0 to 1. Found {bound} for {whose}; 20 % is 0.2."
        )


def _check_known(
    names: Mapping[str, float] | Sequence[str], domains: Sequence[str], option: str
) -> None:
    unknown = [name for name in names if name not in domains]
    if unknown:
        listed = ", ".join(f"`{name}`" for name in list(domains)[:20])
        raise InputError(
            f"`{option}` should name domains of the table. Found `{unknown[0]}`; there are {listed}.",
            arguments=(option,),
        )


def explain_contradiction(feasible: FeasibleShares, words: Sequence[str]) -> None:
    """Raises a sentence that names the bounds that cannot hold together, or returns.

    `words` [bound] are the names of all lower, then all upper bounds of domains, then those of groups.
    """
    count = feasible.count
    # Every bound as a row of `rows @ shares <= ends`.
    rows = np.concatenate([-np.eye(count), np.eye(count), -feasible.members, feasible.members])
    ends = np.concatenate([-feasible.lower, feasible.upper, -feasible.least, feasible.most])
    if _can_hold(rows, ends):
        return
    # Taking one bound away after another, and putting back those without which all could hold,
    # leaves a contradiction with nothing superfluous. Groups go last: they are the rarer kind.
    needed = list(range(len(ends)))
    for bound in range(len(ends)):
        fewer = [each for each in needed if each != bound]
        if not _can_hold(rows[fewer], ends[fewer]):
            needed = fewer
    # That no share is below 0 or above 1 goes without saying.
    lower_ends = np.concatenate([feasible.lower > 0, feasible.upper < 1])
    named = [words[each] for each in needed if each >= 2 * count or lower_ends[each]]
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    raise InputError(
        "Some mixture should keep all limits, its shares summing to 1. Found limits that contradict "
        f"each other: {', '.join(named[:NAMED])}{more}. Loosen one of them."
    )


def _can_hold(rows: Floats, ends: Floats) -> bool:
    """Whether shares that sum to 1 and are not negative keep these bounds."""
    found = linprog(
        np.zeros(rows.shape[1]),
        A_ub=rows if len(rows) else None,
        b_ub=ends + ROUNDING if len(rows) else None,
        A_eq=np.ones((1, rows.shape[1])),
        b_eq=[1.0],
        bounds=(0.0, 1.0),
    )
    return int(found.status) != 2  # 2: infeasible


def effective_tokens(tokens: Floats, supply: Floats, worth: float = PUBLISHED_WORTH) -> Floats:
    """How many new tokens teach as much as `tokens` of which only `supply` are different.

    A `worth` of 0 says that repeated tokens teach nothing, infinity that they teach like new ones.

    >>> effective_tokens(np.array([1.0, 4.0]), np.array([2.0, 2.0]), 15.4).round(3).tolist()
    [1.0, 3.936]
    """
    tokens, supply = np.broadcast_arrays(tokens, supply)
    if np.isinf(worth):
        return tokens.astype(np.float64)
    # A domain with nothing at hand teaches nothing, and has no number of passes to divide by.
    passes = np.divide(tokens, supply, out=np.zeros(tokens.shape), where=supply > 0)
    repeats = np.maximum(passes - 1, 0.0)
    gained = np.zeros_like(repeats) if worth == 0 else -worth * np.expm1(-repeats / worth)
    unlimited = np.isinf(supply)
    beyond = np.where(unlimited, 0.0, supply) * (1 + gained)
    return np.where(tokens <= supply, tokens, beyond)
