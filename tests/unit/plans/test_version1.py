"""Plans that version 0.1 wrote are read as the parts they stood for."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.plans import Part, Plan, Shares, Stages, Weighted
from taskmix.weighting import BanditMTL


def read(tmp_path: Path, **changes: Any) -> Plan:
    (tmp_path / "plan.json").write_text(changed(**changes))
    return Plan.load(tmp_path / "plan.json")


def test_probabilities_alone_are_one_part(tmp_path: Path) -> None:
    plan = read(tmp_path, probabilities=[0.75, 0.25])
    division = Shares(probabilities=(0.75, 0.25))
    assert plan.parts == (Part(tasks=("a", "b"), scored=("a", "b"), share=1.0, division=division),)
    assert plan.probabilities == (0.75, 0.25)


def test_a_task_that_is_never_drawn_is_in_no_part(tmp_path: Path) -> None:
    plan = read(tmp_path, probabilities=[1, 0])
    assert plan.tasks == ("a",)
    assert plan.probabilities == (1.0,)


def test_groups_are_parts_that_share_the_batches(tmp_path: Path) -> None:
    plan = read(
        tmp_path,
        tasks=["a", "b", "c"],
        probabilities=[0.5, 0.3, 0.2],
        groups=[["c", "a"], ["b"]],
    )
    assert [part.tasks for part in plan.parts] == [("c", "a"), ("b",)]
    assert [part.share for part in plan.parts] == pytest.approx([0.7, 0.3])
    assert plan.parts[0].probabilities == pytest.approx({"c": 2 / 7, "a": 5 / 7})
    assert plan.overall == pytest.approx({"a": 0.5, "b": 0.3, "c": 0.2})


def test_stages_are_shared_out_within_a_group(tmp_path: Path) -> None:
    stages = [{"begin": 0, "probabilities": [0.5, 0.3, 0.2]}]
    stages += [{"begin": 0.5, "probabilities": [0.1, 0.3, 0.6]}]
    plan = read(
        tmp_path,
        tasks=["a", "b", "c"],
        probabilities=[0.5, 0.3, 0.2],
        groups=[["a", "b"], ["c"]],
        stages=stages,
    )
    division = plan.parts[0].division
    assert isinstance(division, Stages)
    assert division.stages[0].probabilities == pytest.approx((0.625, 0.375))
    assert division.stages[1].begin == 0.5
    assert division.stages[1].probabilities == pytest.approx((0.25, 0.75))


def test_a_weighting_weighs_every_part_of_several_tasks(tmp_path: Path) -> None:
    plan = read(
        tmp_path,
        tasks=["a", "b", "c"],
        probabilities=[0.4, 0.4, 0.2],
        groups=[["a", "b"], ["c"]],
        weighting={"kind": "BanditMTL", "radius": 1.2},
    )
    assert plan.parts[0].division == Weighted(method=BanditMTL(radius=1.2))
    assert plan.parts[1].division == Shares(probabilities=(1.0,))
    with pytest.raises(InputError, match=r"plan\.parts"):
        plan.probabilities  # noqa: B018


@given(
    weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=8),
    cuts=st.lists(st.integers(1, 7), max_size=3),
)
def test_every_task_keeps_its_share_of_all_batches(
    weights: list[float], cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = [f"t{place}" for place in range(len(weights))]
    shares = [weight / sum(weights) for weight in weights]
    ends = sorted({0, len(names), *(cut for cut in cuts if cut < len(names))})
    groups = [names[begin:end] for begin, end in pairwise(ends)]
    plan = read(tmp_path_factory.mktemp("plan"), tasks=names, probabilities=shares, groups=groups)
    assert plan.overall == pytest.approx(dict(zip(names, shares, strict=True)))


def changed(**changes: Any) -> str:
    document = {"version": 1, "tasks": ["a", "b"], "probabilities": [0.5, 0.5]}
    return json.dumps(document | changes)


EXPECTED = {"task": "a", "metric": "f1", "value": 0.5, "low": 0.4, "high": 0.6}

MALFORMED = {
    "nothing": ("", "no JSON"),
    "half a file": ('{"version": 1, "tasks": ["a"', "no JSON"),
    "bytes that are no text": (b"\xff\xfe\x00", "no JSON"),
    "brackets without end": ("[" * 100_000, "no JSON"),
    "a list": ("[]", "a JSON list"),
    "a number": ("3", "a JSON int"),
    "no version": ('{"tasks": ["a"], "probabilities": [1]}', "version None"),
    "another version": (changed(version=3), "version 3"),
    "an unknown entry": (changed(colour="red"), "unknown entry 'colour'"),
    "no tasks": ('{"version": 1, "probabilities": [1]}', "no entry 'tasks'"),
    "no probabilities": ('{"version": 1, "tasks": ["a"]}', "no entry 'probabilities'"),
    "tasks as a word": (changed(tasks="ab"), "a str where a list"),
    "an empty list of tasks": (changed(tasks=[], probabilities=[]), "at least one"),
    "a task twice": (changed(tasks=["a", "a"]), "names that differ"),
    "a task that is a number": (changed(tasks=["a", 1]), "names that differ"),
    "a task that is a list": (changed(tasks=["a", ["b"]]), "names that differ"),
    "one probability too many": (changed(probabilities=[0.5, 0.3, 0.2]), "2 numbers"),
    "probabilities of 1.1": (changed(probabilities=[0.6, 0.5]), "sum to 1"),
    "a negative probability": (changed(probabilities=[1.5, -0.5]), "from 0 up"),
    "a probability that is a word": (changed(probabilities=["0.5", 0.5]), "2 numbers"),
    "a probability that is true": (changed(probabilities=[True, 0]), "2 numbers"),
    "no number": (changed(probabilities=[float("nan"), 0.5]), "2 numbers"),
    "an infinite probability": (changed(probabilities=[float("inf"), 0.5]), "2 numbers"),
    "a number beyond floats": (changed(probabilities=[10**400, 0.5]), "2 numbers"),
    "probabilities as a mapping": (changed(probabilities={"a": 1}), "a dict where a list"),
    "stages that are no list": (changed(stages={}), "a dict where a list"),
    "a stage that is a number": (changed(stages=[1]), "wrong form"),
    "a stage without begin": (changed(stages=[{"probabilities": [1, 0]}]), "no entry 'begin'"),
    "a stage from a word on": (
        changed(stages=[{"begin": "0", "probabilities": [1, 0]}]),
        "a share of the run",
    ),
    "a first stage that begins late": (
        changed(stages=[{"begin": 0.1, "probabilities": [0.5, 0.5]}]),
        "rise from 0",
    ),
    "a stage after the end": (
        changed(stages=[{"begin": b, "probabilities": [0.5, 0.5]} for b in (0, 1)]),
        "stay below 1",
    ),
    "two stages at once": (
        changed(stages=[{"begin": b, "probabilities": [0.5, 0.5]} for b in (0, 0.5, 0.5)]),
        "rise from 0",
    ),
    "a stage of too few shares": (
        changed(stages=[{"begin": 0, "probabilities": [1]}]),
        r"stages\[0\]",
    ),
    "a group of unknown tasks": (changed(groups=[["a", "c"]]), "`c`, which is none"),
    "a group that is a word": (changed(groups=["ab"]), "a str where a list"),
    "a weighting that is a number": (changed(weighting=3), "where a mapping"),
    "evidence that is a list": (changed(evidence=[["a", 1]]), "where a mapping"),
    "an expectation of an unknown task": (
        changed(expected=[EXPECTED | {"task": "z"}]),
        "`z`, which is none",
    ),
    "an expectation without an interval": (changed(expected=[{"task": "a"}]), "wrong form"),
    "an expected word": (changed(expected=[EXPECTED | {"value": "high"}]), "finite numbers"),
}


@pytest.mark.parametrize(("content", "sentence"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_plan_is_told_with_its_path_and_fault(
    tmp_path: Path, content: str | bytes, sentence: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=sentence) as caught:
        Plan.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
