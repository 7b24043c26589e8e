"""Streams mixed as a plan says."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from taskmix.errors import InputError
from taskmix.plans import Part, Plan, Shares, Stage, Stages, Weighted, mix_streams
from taskmix.policies import Fixed
from taskmix.weighting import PCGrad

STREAMS = {name: [name] * 20 for name in "cab"}
UNEVEN = Shares(probabilities=(0.25, 0.75))


def plan_of(*divisions: Any) -> Plan:
    names = [("a", "b"), ("c",)]
    return Plan(
        parts=tuple(
            Part(tasks=tasks, scored=tasks, share=1 / len(divisions), division=division)
            for tasks, division in zip(names, divisions, strict=False)
        )
    )


def test_a_plan_s_shares_are_drawn_from_the_streams_of_its_tasks(tmp_path: Path) -> None:
    plan = Plan.load(plan_of(UNEVEN).save(tmp_path / "plan.json"))
    mixed = mix_streams(STREAMS, plan, seed=0)
    assert mixed.shares == {"a": 0.25, "b": 0.75}
    counts = Counter(islice(mixed, 2000))
    assert counts["b"] / 2000 == pytest.approx(0.75, abs=0.05)
    assert set(counts) == {"a", "b"}


def test_a_plan_s_stages_change_the_shares_during_the_run() -> None:
    first, then = Stage(begin=0, probabilities=(0.999, 0.001)), (0.001, 0.999)
    stages = Stages(stages=(first, Stage(begin=0.5, probabilities=then)))
    rows = list(islice(mix_streams(STREAMS, plan_of(stages), seed=0, steps=100), 100))
    assert Counter(rows[:50]).most_common(1)[0][0] == "a"
    assert Counter(rows[50:]).most_common(1)[0][0] == "b"
    with pytest.raises(InputError, match="`steps` should say how many draws"):
        mix_streams(STREAMS, plan_of(stages), seed=0)


@pytest.mark.parametrize(
    "by", [Fixed((0.2, 0.3, 0.5)), [0.2, 0.3, 0.5], {"a": 0.3, "b": 0.5, "c": 0.2}]
)
def test_a_policy_or_shares_mix_all_streams_in_their_order(by: Any) -> None:
    assert mix_streams(STREAMS, by, seed=0).shares == {"c": 0.2, "a": 0.3, "b": 0.5}


@pytest.mark.parametrize(
    ("streams", "by", "sentence"),
    [
        (STREAMS, plan_of(UNEVEN, Shares.equal(1)), "Found 2 models to train"),
        (STREAMS, plan_of(Weighted(method=PCGrad())), "Found a weighting, PCGrad"),
        ([[1], [2]], plan_of(UNEVEN), "named by task"),
        ({"a": [1]}, plan_of(UNEVEN), r"Found none for \['b'\]"),
        (STREAMS, {"a": 1.0}, "should name the streams"),
    ],
)
def test_what_cannot_be_mixed_is_told_in_a_sentence(streams: Any, by: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        mix_streams(streams, by, seed=0)
