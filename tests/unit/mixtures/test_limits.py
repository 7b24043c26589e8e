from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from taskmix.errors import InputError
from taskmix.mixtures import DomainGroup, MixtureLimits, effective_tokens

THREE = ("web", "code", "wiki")


@pytest.mark.parametrize(
    ("tokens", "supply", "worth", "expected"),
    [
        # Eq. 5 by hand with U = 10, D = 40, R* = 15: 10 * (1 + 15 * (1 - exp(-3 / 15))).
        (40.0, 10.0, 15.0, 10 * (1 + 15 * (1 - 0.8187307530779818))),
        (5.0, 10.0, 4.0, 5.0),  # within the supply
        (40.0, 10.0, 0.0, 10.0),
        (40.0, 10.0, np.inf, 40.0),
        (40.0, np.inf, 4.0, 40.0),  # a domain without end
        (7.0, 0.0, 4.0, 0.0),  # one with nothing at hand
    ],
)
def test_repeated_tokens_are_worth_what_the_paper_says(
    tokens: float, supply: float, worth: float, expected: float
) -> None:
    assert effective_tokens(np.array([tokens]), np.array([supply]), worth) == pytest.approx(
        expected
    )


def test_effective_shares_sum_to_less_than_1_where_tokens_are_repeated() -> None:
    limits = MixtureLimits(supply={"web": 100, "code": 10}, budget=100, repetition=15)
    found = limits.effective(np.array([[0.5, 0.5], [0.95, 0.05]]), ("web", "code"))
    code = 0.1 * (1 + 15 * (1 - np.exp(-4 / 15)))  # 50 tokens of 10: four repetitions
    np.testing.assert_allclose(found, [[0.5, code], [0.95, 0.05]])
    passes = limits.passes_of(np.array([0.5, 0.5]), ("web", "code"))
    np.testing.assert_allclose(passes, [0.5, 5.0])


def test_a_limit_of_passes_is_a_bound_on_the_share() -> None:
    limits = MixtureLimits(supply={"web": 90, "code": 10, "wiki": 5}, budget=100, passes=4)
    np.testing.assert_allclose(limits.feasible(THREE).upper, [1.0, 0.4, 0.2])


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (
            MixtureLimits(at_least={"web": 0.7, "code": 0.5}),
            "contradict each other: `web` at least 0.7, `code` at least 0.5.",
        ),
        (
            MixtureLimits(at_most=0.3),
            "`web` at most 0.3, `code` at most 0.3, `wiki` at most 0.3.",
        ),
        (
            MixtureLimits(at_least={"web": 0.5}, at_most={"web": 0.4, "code": 0.9}),
            "contradict each other: `web` at least 0.5, `web` at most 0.4.",
        ),
        (
            MixtureLimits(
                at_most={"code": 0.1, "wiki": 0.2},
                groups=(DomainGroup(domains=("code", "wiki"), at_least=0.5),),
            ),
            "`code` at most 0.1, `wiki` at most 0.2, `code` \\+ `wiki` at least 0.5.",
        ),
        (
            MixtureLimits(
                groups=(
                    DomainGroup(domains=("web", "code"), at_most=0.4),
                    DomainGroup(domains=("wiki", "code"), at_most=0.5),
                )
            ),
            "`web` \\+ `code` at most 0.4, `wiki` \\+ `code` at most 0.5.",
        ),
        (
            MixtureLimits(supply={"web": 10, "code": 10, "wiki": 5}, budget=100, passes=2),
            "`web` at most 0.2 \\(its supply, and how often it may be read\\), `code` at most 0.2",
        ),
    ],
)
def test_bounds_that_contradict_each_other_are_named_and_no_others(
    limits: MixtureLimits, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        limits.check(THREE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"at_least": {"webb": 0.1}}, "Found `webb`; there are `web`, `code`, `wiki`"),
        ({"at_most": 20}, "A bound should be a share from 0 to 1. Found 20.0 for every domain"),
        ({"at_most": {"web": float("nan")}}, "Found nan for `web`"),
        ({"groups": (DomainGroup(domains=("books",)),)}, "Found `books`"),
        ({"groups": (DomainGroup(domains=()),)}, "at least one domain"),
        ({"groups": (DomainGroup(domains=("web",), at_most=-0.1),)}, "Found -0.1 for a group"),
        ({"supply": {"web": 1, "code": 2}, "budget": 1}, "Found nothing for `wiki`"),
        ({"supply": {"web": 1}}, "should be given together. Found only `supply`"),
        ({"budget": 5.0}, "Found only `budget`"),
        ({"passes": 2.0}, "`passes` should come with `supply`"),
        ({"supply": {"web": -1}, "budget": 1}, "Found -1 for `web`"),
        ({"supply": {"web": 1}, "budget": 0}, "`budget` should be a number of tokens above 0"),
        ({"repetition": -1.0}, "`repetition` should be at least 0"),
        ({"repetition": float("nan")}, "`repetition` should be at least 0"),
    ],
)
def test_limits_that_mean_nothing_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        MixtureLimits(**options).check(THREE)  # type: ignore[arg-type]


def nearest_by_scipy(point: np.ndarray, feasible: Any) -> np.ndarray:
    """The oracle: a quadratic programme, one row at a time."""
    found = minimize(
        lambda w: ((w - point) ** 2).sum(),
        feasible.middle(),
        jac=lambda w: 2 * (w - point),
        bounds=np.column_stack([feasible.lower, feasible.upper]),
        constraints=[
            {"type": "eq", "fun": lambda w: w.sum() - 1},
            {"type": "ineq", "fun": lambda w: feasible.members @ w - feasible.least},
            {"type": "ineq", "fun": lambda w: feasible.most - feasible.members @ w},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.asarray(found.x)


def random_limits(seed: int, domains: int) -> Any:
    """Bounds and overlapping groups that a mixture drawn at random keeps."""
    random = np.random.default_rng(seed)
    names = tuple(f"d{place}" for place in range(domains))
    inside = random.dirichlet(np.ones(domains))
    lower = inside * random.uniform(0, 1, domains)
    upper = inside + (1 - inside) * random.uniform(0, 0.5, domains)
    groups = []
    for members in random.random((random.integers(0, 4), domains)) < 0.5:
        total = float(inside[members].sum())
        low, high = total * random.uniform(0.8, 1), total + (1 - total) * random.uniform(0, 0.1)
        if members.any():
            chosen = tuple(name for name, has in zip(names, members, strict=True) if has)
            groups.append(DomainGroup(domains=chosen, at_least=low, at_most=high))
    limits = MixtureLimits(
        at_least=dict(zip(names, lower, strict=True)),
        at_most=dict(zip(names, upper, strict=True)),
        groups=tuple(groups),
    )
    return limits.feasible(names)


@given(seed=st.integers(0, 10_000), domains=st.integers(2, 8))
@example(seed=534, domains=2)  # a bound that is 1 but for rounding
@settings(max_examples=30)
def test_projections_are_the_nearest_allowed_mixtures(seed: int, domains: int) -> None:
    feasible = random_limits(seed, domains)
    points = np.random.default_rng(seed).normal(1 / domains, 0.5, size=(4, domains))
    found = feasible.project(points)
    assert feasible.contains(found).all()
    oracle = np.array([nearest_by_scipy(point, feasible) for point in points])
    ours, theirs = (((rows - points) ** 2).sum(axis=1) for rows in (found, oracle))
    assert (ours <= theirs + 1e-5).all()


@given(seed=st.integers(0, 10_000), domains=st.integers(2, 8))
@settings(max_examples=20)
def test_allowed_mixtures_stay_where_they_are_and_samples_are_allowed(
    seed: int, domains: int
) -> None:
    feasible = random_limits(seed, domains)
    drawn = feasible.sample(20, np.random.default_rng(seed))
    assert drawn.shape == (20, domains)
    assert feasible.contains(drawn).all()
    np.testing.assert_allclose(feasible.project(drawn), drawn, atol=1e-9)


def test_a_share_of_bounds_that_leave_one_mixture_is_that_mixture() -> None:
    limits = MixtureLimits(at_least={"web": 0.5, "code": 0.3, "wiki": 0.2})
    drawn = limits.sample(3, THREE, np.random.default_rng(0))
    np.testing.assert_allclose(drawn, np.tile([0.5, 0.3, 0.2], (3, 1)))


def test_samples_are_even_over_the_allowed_mixtures() -> None:
    # A triangle cut at 0.5: rejection from the whole triangle is even, and so is a walk.
    limits = MixtureLimits(
        at_most={"web": 0.5}, groups=(DomainGroup(domains=("web", "code"), at_least=0.3),)
    )
    feasible = limits.feasible(THREE)
    random = np.random.default_rng(0)
    drawn = random.dirichlet(np.ones(3), size=40_000)
    even = drawn[feasible.contains(drawn)]
    walked = feasible._walk(4000, random)
    np.testing.assert_allclose(walked.mean(axis=0), even.mean(axis=0), atol=0.015)
    np.testing.assert_allclose(walked.std(axis=0), even.std(axis=0), atol=0.015)


def test_a_group_of_a_fixed_sum_is_sampled_along_what_is_free() -> None:
    limits = MixtureLimits(
        groups=(DomainGroup(domains=("web", "code"), at_least=0.6, at_most=0.6),)
    )
    drawn = limits.sample(200, THREE, np.random.default_rng(0))
    np.testing.assert_allclose(drawn[:, 2], 0.4, atol=1e-9)
    assert drawn[:, 0].std() > 0.1  # even over 0 to 0.6 has 0.17


def test_the_range_of_a_share_follows_from_all_limits() -> None:
    limits = MixtureLimits(
        at_least={"web": 0.2},
        at_most={"wiki": 0.3},
        groups=(DomainGroup(domains=("web", "code"), at_most=0.9),),
    )
    low, high = limits.feasible(THREE).ranges()
    np.testing.assert_allclose(low, [0.2, 0.0, 0.1], atol=1e-9)
    np.testing.assert_allclose(high, [0.9, 0.7, 0.3], atol=1e-9)
    low, high = MixtureLimits(at_least={"web": 0.2}, at_most={"wiki": 0.3}).feasible(THREE).ranges()
    np.testing.assert_allclose((low, high), [[0.2, 0, 0], [1.0, 0.8, 0.3]], atol=1e-9)
