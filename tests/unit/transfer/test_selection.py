from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from simulated_subsets import NAMES

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.transfer import (
    LinearSurrogate,
    best_prefixes,
    choose_prefix,
    effect_of_company,
    judge_sources,
    select_below,
    select_two_groups,
    select_unless_harmful,
)


def surrogate(
    effects: list[float], *, error: float = 0.1, degrees: float = 1e6, subsets: int = 50
) -> LinearSurrogate:
    count = len(effects)
    return LinearSurrogate(
        target="target",
        sources=NAMES[:count],
        anchor=1.0,
        effects=np.array(effects),
        covariance=error**2 * np.eye(count),
        dev_covariance=np.zeros((count, count)),
        dev_rows=0,
        degrees=np.full(count, degrees),
        deviation=1.0,
        subsets=subsets,
        mean_size=2.0,
        row_degrees=degrees,
        anchor_runs=10,
    )


def test_the_papers_rule_keeps_what_lowers_the_predicted_loss() -> None:
    found = select_below(surrogate([0.2, -0.1, 0.0, -0.3]))
    assert found.sources == ("d", "b")  # most helpful first
    assert found.kept.tolist() == [False, True, False, True]
    assert found.predicted == pytest.approx(0.6)
    assert found.threshold == 0.0
    assert select_below(surrogate([0.2, -0.1, 0.0, -0.3]), 0.1).sources == ("d", "b", "c")
    assert select_below(surrogate([0.2, 0.1, 0.3])).sources == ()


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=7))
def test_no_subset_has_a_lower_predicted_loss_than_the_papers(effects: list[float]) -> None:
    given_ = surrogate(effects)
    found = select_below(given_)
    every = np.array(list(product([False, True], repeat=len(effects))))
    assert found.predicted <= given_.predict(every).min() + 1e-12


def test_two_groups_by_hand() -> None:
    # 0.1, 0.2 | 0.7, 0.8, 0.9: γ is midway between 0.2 and 0.7, though all are above zero.
    found = select_two_groups(surrogate([0.8, 0.1, 0.9, 0.2, 0.7]))
    assert found.sources == ("b", "d")
    assert found.threshold == pytest.approx(0.45)


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=9, unique=True))
def test_two_groups_are_those_of_least_squares(effects: list[float]) -> None:
    values = np.array(effects)
    found = select_two_groups(surrogate(effects))

    def squares(kept: NDArray[np.bool_]) -> float:
        return float(
            sum(((part - part.mean()) ** 2).sum() for part in (values[kept], values[~kept]))
        )

    splits = [values <= limit for limit in np.sort(values)[:-1]]
    assert squares(found.kept) <= min(squares(split) for split in splits) + 1e-9


def test_verdicts_by_hand() -> None:
    # Errors of 0.1 and the quantile 1.96: significant beyond 0.196.
    found = judge_sources(surrogate([-0.3, 0.3, 0.1, -0.05]))
    assert [one.answer for one in found] == ["helps", "harms", "cannot tell", "cannot tell"]
    assert (found[0].low, found[0].high) == pytest.approx((-0.496, -0.104), abs=1e-3)
    assert found[0].further_subsets is None
    # An effect of 0.1 needs an error of 0.1 / (1.96 + 0.8416) = 0.03569: 7.849 times the runs.
    assert found[2].further_subsets == 316  # 46 · 6.849 = 315.05
    assert found[2].further_single_runs == 69
    assert found[3].further_subsets == 1399  # 46 · 30.396 = 1398.2
    assert str(found[1]) == "b: harms (+0.3, +0.104 to +0.496)"
    assert "about 316 further subsets and 69 runs of the target alone would tell" in str(found[2])


@pytest.mark.parametrize("sign", [1, -1])
def test_what_all_sources_do_alike_is_company_and_not_transfer(sign: int) -> None:
    alike = surrogate([sign * each for each in (0.5, 0.55, 0.45, 0.5, 0.6, 1.5)])
    answers = [verdict.answer for verdict in judge_sources(alike)]
    assert answers == [*["as any other"] * 5, "harms" if sign > 0 else "helps"]
    # By hand: the six differ beyond their errors by 0.8133 / 5 - 0.01 = 0.1527, and a sixth of it joins
    # the 0.01 / 6 of the mean: 0.02711, with 0.02711² / (0.02544² / 5) = 5.68 degrees of freedom.
    company = effect_of_company(alike)
    assert company is not None
    assert company.mean == pytest.approx(sign * 4.1 / 6)
    assert company.half_width == pytest.approx(stats.t.ppf(0.975, 5.6765) * 0.164655, rel=1e-3)
    kept = select_unless_harmful(alike).sources
    assert kept == (() if sign > 0 else ("f", "e", "b", "a", "d", "c"))


def test_one_source_that_harms_is_no_company_of_the_others() -> None:
    one = surrogate([0.0, 0.02, -0.02, 0.0, 0.0, 1.5])
    assert effect_of_company(one) is None
    assert [v.answer for v in judge_sources(one)] == [*["cannot tell"] * 5, "harms"]


def test_more_subsets_do_not_tell_what_too_few_dev_rows_leave_open() -> None:
    # An effect of 0.1 needs an error of 0.0357, of which dev rows leave 0.05, or 0.02: then the rest,
    # 0.1² - 0.02², has to fall to 0.0357² - 0.02², by the factor 10.98, and 46 · 9.98 = 459.2.
    for error, more in ((0.05, None), (0.02, 460)):
        dev = error**2 * np.eye(4)
        known = replace(surrogate([0.1, 0.0, 0.0, 0.0]), dev_covariance=dev, dev_rows=50)
        found = judge_sources(known)[0]
        assert found.answer == "cannot tell"
        assert found.further_subsets == more


def test_what_is_too_small_to_matter_is_called_so() -> None:
    found = judge_sources(surrogate([0.01, 0.3, -0.02], error=0.02), smallest=0.1)
    assert [one.answer for one in found] == ["negligible", "harms", "negligible"]
    assert judge_sources(surrogate([0.0, 0.3, -0.2]))[0].further_subsets is None
    limited = judge_sources(surrogate([0.0, 0.3, -0.2]), smallest=0.1)[0]
    assert limited.answer == "cannot tell"
    assert limited.further_subsets == 322  # three sources: 47 · 6.849


def test_false_discoveries_are_controlled_over_all_sources_when_asked() -> None:
    effects = [0.21, *[0.0] * 9]
    assert judge_sources(surrogate(effects))[0].answer == "harms"
    careful = judge_sources(surrogate(effects), false_discovery=True)[0]
    assert careful.answer == "cannot tell"
    assert careful.further_subsets is not None
    assert careful.further_subsets > 0
    many = judge_sources(surrogate([0.4, -0.4] * 5), false_discovery=True)
    assert [one.answer for one in many] == ["harms", "helps"] * 5


def test_only_what_surely_harms_is_left_out() -> None:
    found = select_unless_harmful(surrogate([-0.3, 0.3, 0.1, -0.05]))
    assert found.sources == ("a", "d", "c")
    # Without residuals nothing is sure, and no number of subsets can be named.
    blind = surrogate([1.0, 2.0, 3.0], error=float("nan"))
    assert select_unless_harmful(blind).sources == ("a", "b", "c")
    verdict = judge_sources(blind)[0]
    assert (verdict.answer, verdict.further_subsets) == ("cannot tell", None)
    assert "how many more subsets would tell is not known" in str(verdict)


def test_the_best_prefixes_lie_where_effects_change_sign() -> None:
    given_ = surrogate([0.2, -0.3, 0.05, -0.1, -0.01])
    found = best_prefixes(given_, count=3)
    # In the order b d e c a the predicted losses are 1, 0.7, 0.6, 0.59, 0.64, 0.84.
    assert found.sum(axis=1).tolist() == [0, 2, 3, 4]
    assert found[1].tolist() == [False, True, False, True, False]
    assert best_prefixes(given_, count=2, with_single=False).sum(axis=1).tolist() == [2, 3]


def test_the_best_measured_prefix_is_taken() -> None:
    given_ = surrogate([0.2, -0.3, 0.05, -0.1, -0.01])
    prefixes = best_prefixes(given_, count=3)
    measured = [[1.0, 1.1, 0.9], [0.5, 0.6, 0.4], [0.6, 0.7, np.nan], [np.nan] * 3]
    found = choose_prefix(given_, prefixes, measured)
    assert found.selection.sources == ("b", "d")
    assert found.selection.threshold == pytest.approx(-0.055)
    assert found.means == pytest.approx([1.0, 0.5, 0.65, np.nan], nan_ok=True)
    assert found.failed == 4
    scores = choose_prefix(given_, prefixes, -np.array(measured), higher_is_better=True)
    assert scores.selection.sources == found.selection.sources


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(6)))
def test_the_order_of_sources_does_not_change_what_is_selected(order: list[int]) -> None:
    effects = [-0.31, 0.32, 0.1, -0.05, 0.02, -0.2]
    plain, turned = surrogate(effects), surrogate([effects[place] for place in order])
    for select in (select_below, select_two_groups, select_unless_harmful):
        assert (select(turned).kept == select(plain).kept[order]).all()


def test_selections_that_cannot_be_are_refused() -> None:
    given_ = surrogate([0.2, -0.3, 0.05])
    with pytest.raises(OptionError, match="`threshold`"):
        select_below(given_, float("nan"))
    with pytest.raises(OptionError, match="`power`"):
        judge_sources(given_, power=1.0)
    with pytest.raises(OptionError, match="`smallest`"):
        judge_sources(given_, smallest=-1.0)
    with pytest.raises(OptionError, match="`count`"):
        best_prefixes(given_, count=0)
    prefixes = best_prefixes(given_, count=2)
    with pytest.raises(ShapeError, match="Found shapes"):
        choose_prefix(given_, prefixes, [1.0, 2.0])
    with pytest.raises(InputError, match="all 4 failed"):
        choose_prefix(given_, prefixes[:2], np.full((2, 2), np.nan))
