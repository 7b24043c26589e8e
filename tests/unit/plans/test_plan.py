from __future__ import annotations

import pytest

from taskmix.errors import InputError
from taskmix.plans import Part, Plan, Shares, Stage, Stages, Weighted
from taskmix.policies import Fixed, SizeProportional, Uniform
from taskmix.weighting import FairGrad

AB = ("a", "b")


def part(**changes: object) -> Part:
    given = {"tasks": AB, "scored": AB, "share": 1.0, "division": Shares.equal(2)}
    return Part(**{**given, **changes})  # type: ignore[arg-type]


TWO_STAGES = Stages(
    stages=(
        Stage(begin=0.0, probabilities=(0.5, 0.5)),
        Stage(begin=0.75, probabilities=(0.1, 0.9)),
    )
)


def test_probabilities_are_given_where_they_are_the_whole_plan() -> None:
    division = Shares(probabilities=(0.25, 0.75))
    assert Plan(parts=(part(division=division),)).probabilities == (0.25, 0.75)


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ((part(division=Weighted(method=FairGrad())),), "weighted by FairGrad"),
        ((part(division=TWO_STAGES),), "change over the run"),
        (
            (
                part(tasks=("a",), scored=("a",), share=0.5, division=Shares.equal(1)),
                part(tasks=("b",), scored=("b",), share=0.5, division=Shares.equal(1)),
            ),
            "2 models to train",
        ),
    ],
    ids=["a weighting", "stages", "groups"],
)
def test_a_plan_that_is_more_than_probabilities_does_not_give_them(
    parts: tuple[Part, ...], found: str
) -> None:
    with pytest.raises(InputError, match=r"plan\.parts") as caught:
        Plan(parts=parts).probabilities  # noqa: B018
    assert found in str(caught.value)


def test_what_a_task_gets_in_all_is_summed_over_the_models() -> None:
    plan = Plan(
        parts=(
            part(scored=("a",), share=0.5, division=Shares(probabilities=(0.8, 0.2))),
            part(scored=("b",), share=0.5, division=TWO_STAGES),
        )
    )
    # 0.5 * 0.8 + 0.5 * (0.75 * 0.5 + 0.25 * 0.1), by hand
    assert plan.overall == pytest.approx({"a": 0.6, "b": 0.4})
    assert plan.parts[0].helpers == ("b",)
    assert plan.targets == AB


def test_a_task_is_scored_in_one_part() -> None:
    with pytest.raises(InputError, match="Found `a` in several"):
        Plan(parts=(part(share=0.5), part(share=0.5)))


def test_equal_shares_are_the_uniform_policy() -> None:
    assert Shares.equal(3).policy(10) == Uniform()
    assert Shares(probabilities=(0.25, 0.75)).policy(10) == Fixed((0.25, 0.75))
    assert Shares.of(SizeProportional(), [1, 3]) == Shares(probabilities=(0.25, 0.75))
