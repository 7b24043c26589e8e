"""First designs on the simplex: what is in them, that rows keep limits, that beginnings are designs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.mixtures import DomainGroup, MixtureLimits, first_mixtures


def names(count: int) -> tuple[str, ...]:
    return tuple(f"domain {number}" for number in range(count))


def root_distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Hellinger's, up to a factor: 0.01 and 0.04 of a domain are as far apart as 0.49 and 0.64."""
    return np.sqrt(((np.sqrt(one)[:, None] - np.sqrt(other)) ** 2).sum(axis=2))


def nearest_pair(shares: np.ndarray) -> float:
    apart = root_distances(shares, shares)
    return float(apart[~np.eye(len(shares), dtype=bool)].min())


def test_a_design_has_centre_corners_replicates_and_says_so() -> None:
    design = first_mixtures(("web", "code", "books"), 24, seed=3)
    assert design.kinds[0] == "centre"
    np.testing.assert_allclose(design.shares[0], 1 / 3)
    corners = design.shares[[kind == "corner" for kind in design.kinds]]
    np.testing.assert_allclose(np.sort(corners, axis=0), np.sort(np.eye(3), axis=0), atol=1e-9)
    without = design.shares[[kind == "without" for kind in design.kinds]]
    assert sorted((row < 1e-9).nonzero()[0].item() for row in without) == [0, 1, 2]
    assert design.describe() == (
        "24 runs on 3 domains: the centre, 3 with as much of one domain as is allowed, 3 without one "
        "domain, 15 that fill the space between, and 2 replicates of another row for the noise."
    )


def test_replicates_repeat_an_earlier_row_and_no_two_the_same() -> None:
    design = first_mixtures(names(5), 40, replicates=6)
    again = [place for place, kind in enumerate(design.kinds) if kind == "replicate"]
    assert len(again) == 6
    repeated = [design.repeats[place] for place in again]
    assert len(set(repeated)) == 6
    for place, row in zip(again, repeated, strict=True):
        assert row is not None
        assert row < place
        assert design.kinds[row] != "replicate"
        np.testing.assert_array_equal(design.shares[place], design.shares[row])
    assert all(
        (each is None) == (kind != "replicate")
        for each, kind in zip(design.repeats, design.kinds, strict=True)
    )


def test_corners_are_left_out_where_they_would_take_most_of_the_runs() -> None:
    kinds = first_mixtures(names(20), 40).kinds
    assert "corner" not in kinds
    assert first_mixtures(names(20), 60).kinds.count("corner") == 20
    assert "corner" not in first_mixtures(names(4), 60, corners=False).kinds


def test_a_corner_has_as_much_of_its_domain_as_the_limits_allow() -> None:
    domains = names(4)
    limits = MixtureLimits(
        at_most={domains[0]: 0.6},
        at_least={domains[1]: 0.1},
        groups=(DomainGroup(domains=domains[2:], at_most=0.5),),
    )
    design = first_mixtures(domains, 30, limits=limits)
    corners = design.shares[[kind == "corner" for kind in design.kinds]]
    # Domain 1 takes all but what nobody asks for; 2 and 3 may have half together; 0 its bound.
    np.testing.assert_allclose(np.sort(corners.max(axis=1)), [0.5, 0.5, 0.6, 1.0], atol=1e-6)
    # Domain 1 cannot be left out.
    without = design.shares[[kind == "without" for kind in design.kinds]]
    assert len(without) == 3
    assert (without[:, 1] >= 0.1 - 1e-6).all()


def test_natural_shares_are_the_centre_and_corners_keep_their_proportions() -> None:
    design = first_mixtures(
        ("web", "code", "books"), 24, prior={"web": 60, "code": 30, "books": 10}
    )
    np.testing.assert_allclose(design.shares[0], [0.6, 0.3, 0.1])
    without = design.shares[[kind == "without" for kind in design.kinds]]
    np.testing.assert_allclose(without[without[:, 2] < 1e-9][0], [2 / 3, 1 / 3, 0], atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    domains=st.integers(2, 12),
    count=st.integers(1, 40),
    most=st.floats(0.0, 1.0),
    least=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**31),
)
def test_rows_are_mixtures_within_limits_and_the_same_for_the_same_seed(
    domains: int, count: int, most: float, least: float, seed: int
) -> None:
    # Bounds from just possible to none.
    limits = MixtureLimits(
        at_most=1 / domains + most * (1 - 1 / domains), at_least=0.95 * least / domains
    )
    design = first_mixtures(names(domains), count, limits=limits, seed=seed)
    assert len(design) == len(design.kinds) == len(design.repeats) == count
    np.testing.assert_allclose(design.shares.sum(axis=1), 1.0, atol=1e-6)
    assert limits.feasible(names(domains)).contains(design.shares).all()
    again = first_mixtures(names(domains), count, limits=limits, seed=seed)
    np.testing.assert_array_equal(design.shares, again.shares)
    assert design.kinds == again.kinds
    assert design.repeats == again.repeats


def test_renaming_domains_changes_nothing_and_reordering_moves_centre_and_corners() -> None:
    prior = np.array([0.5, 0.3, 0.2])
    one = first_mixtures(("a", "b", "c"), 18, prior=prior)
    renamed = first_mixtures(("x", "y", "z"), 18, prior=prior)
    np.testing.assert_array_equal(one.shares, renamed.shares)
    turned = first_mixtures(("c", "a", "b"), 18, prior=prior[[2, 0, 1]])
    for kind in ("centre", "corner"):
        here = one.shares[[each == kind for each in one.kinds]][:, [2, 0, 1]]
        there = turned.shares[[each == kind for each in turned.kinds]]
        assert root_distances(here, there).min(axis=1).max() < 1e-6


def test_every_beginning_is_farther_apart_than_runs_drawn_at_random() -> None:
    random = np.random.default_rng(0)
    design = first_mixtures(names(17), 128, replicates=0)
    for length in (8, 16, 32, 64, 128):
        drawn = [nearest_pair(random.dirichlet(np.full(17, 0.5), length)) for _ in range(5)]
        assert nearest_pair(design.shares[:length]) > 1.3 * max(drawn)


def test_narrow_limits_of_many_domains_are_filled_not_given_up_on() -> None:
    # Of flat Dirichlet draws about one in 10^15 keeps these.
    domains = names(50)
    limits = MixtureLimits(
        at_most=0.03, at_least=0.005, groups=(DomainGroup(domains=domains[:25], at_most=0.52),)
    )
    design = first_mixtures(domains, 120, limits=limits)
    assert limits.feasible(domains).contains(design.shares).all()
    assert nearest_pair(design.shares[[each is None for each in design.repeats]]) > 0.05


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"count": 0}, "`count` should be at least 1"),
        ({"count": 4, "replicates": 4}, "`replicates` should be at least 0 and below `count`, 4"),
        ({"count": 4, "limits": MixtureLimits(at_most=0.2)}, "contradict"),
        ({"count": 4, "prior": {"web": 1.0}}, "Found none for `code`"),
        (
            {"count": 4, "prior": {"web": 1.0, "code": 1.0, "cod": 1.0}},
            "Found `cod`, which is none",
        ),
        ({"count": 4, "prior": [1.0, 2.0, 3.0]}, "a number for each of the 2 domains"),
        ({"count": 4, "prior": [1.0, -2.0]}, "none below 0"),
        ({"count": 4, "prior": [0.0, 0.0]}, "some above"),
    ],
)
def test_what_cannot_be_designed_is_refused_in_a_sentence(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        first_mixtures(("web", "code"), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("domains", ["web", ("web",), ("web", "web")])
def test_a_design_needs_two_names_at_least_and_none_twice(domains: object) -> None:
    with pytest.raises(InputError, match="at least two names, none twice"):
        first_mixtures(domains, 4)  # type: ignore[arg-type]
