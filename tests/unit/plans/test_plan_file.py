"""`plan.json`: what is saved is loaded as it was, and anything else is told in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.plans import Expected, Length, Part, Plan, Shares, Stage, Stages, Weighted
from taskmix.weighting import BanditMTL, Equal

jsonschema = pytest.importorskip("jsonschema", reason="comes with altair")

PAGES = Path(__file__).resolve().parents[3] / "docs"
SCHEMA = jsonschema.Draft202012Validator(json.loads((PAGES / "plan.schema.json").read_text()))

PLAN = Plan(
    name="groups",
    words="größe alone",
    parts=(
        Part(
            tasks=("cola", "rte"),
            scored=("rte",),
            share=0.75,
            division=Stages(
                stages=(
                    Stage(begin=0.0, probabilities=(0.6, 0.4)),
                    Stage(begin=0.5, probabilities=(0.25, 0.75)),
                )
            ),
        ),
        Part(tasks=("größe",), scored=("größe",), share=0.25, division=Shares.equal(1)),
    ),
    expected=(Expected(task="rte", metric="accuracy", value=0.7, low=0.65, high=0.75),),
    length=Length(batches=2000, batch_size=32),
    evidence={"runs": ["1f", "2e"], "value": {"low": 0.1, "high": 0.2}},
)
SMALL = Plan(parts=(Part(tasks=("a",), scored=("a",), share=1.0, division=Shares.equal(1)),))

names = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    min_size=1,
    max_size=8,
    unique=True,
)
leaves = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5)
leaves = leaves | st.floats(allow_nan=False, allow_infinity=False)
mappings = st.dictionaries(st.text(max_size=5), leaves | st.lists(leaves, max_size=3), max_size=4)


@st.composite
def parts(draw: st.DrawFn, tasks: list[str], share: float) -> Part:
    def shares() -> tuple[float, ...]:
        weights = draw(st.lists(st.floats(1e-3, 1e3), min_size=len(tasks), max_size=len(tasks)))
        return tuple((np.array(weights) / sum(weights)).tolist())

    begins = draw(st.lists(st.floats(0, 0.99, exclude_min=True), max_size=3, unique=True))
    stages = [Stage(begin=begin, probabilities=shares()) for begin in [0.0, *sorted(begins)]]
    division = draw(
        st.sampled_from(
            [
                Shares(probabilities=shares()),
                Stages(stages=tuple(stages)),
                Weighted(method=Equal()),
                Weighted(method=BanditMTL(radius=0.3)),
            ]
        )
    )
    scored = tuple(name for name in tasks if draw(st.booleans()))
    return Part(tasks=tuple(tasks), scored=scored, share=share, division=division)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    tasks = draw(names)
    cut = draw(st.integers(0, len(tasks) - 1))
    groups = [group for group in (tasks[:cut], tasks[cut:]) if group]
    number = st.floats(-1e300, 1e300)
    expected = st.builds(
        Expected,
        task=st.sampled_from(tasks),
        metric=st.text(max_size=5),
        value=number,
        low=number,
        high=number,
    )
    length = st.builds(Length, batches=st.integers(1, 10**9), batch_size=st.integers(1, 10**6))
    return Plan(
        name=draw(st.text(max_size=5)),
        parts=tuple(draw(parts(group, 1 / len(groups))) for group in groups),
        expected=tuple(draw(st.lists(expected, max_size=3))),
        length=draw(st.none() | length),
        evidence=draw(mappings),
    )


@given(plan=plans())
def test_a_saved_plan_is_loaded_as_it_was_and_agrees_with_the_schema(
    plan: Plan, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = plan.save(tmp_path_factory.mktemp("plan") / "plan.json")
    assert Plan.load(path) == plan
    SCHEMA.validate(json.loads(path.read_text(encoding="utf-8")))


@given(plan=plans(), seed=st.integers(0, 2**32))
def test_a_plan_in_another_order_says_the_same_of_every_task(plan: Plan, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(plan.tasks))
    moved = plan.for_tasks([plan.tasks[place] for place in order])
    assert moved.overall == plan.overall
    for before, after in zip(plan.parts, moved.parts, strict=True):
        assert after.probabilities == before.probabilities
        assert set(after.scored) == set(before.scored)
    assert moved.for_tasks(plan.tasks).parts == plan.for_tasks(plan.tasks).parts


def test_one_part_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    part = {"tasks": ["a", "b"], "share": 1, "shares": [0.5, 0.5]}
    path.write_text(json.dumps({"version": 2, "parts": [part]}))
    plan = Plan.load(path)
    assert plan.targets == ("a", "b"), "what is not said to only help is scored"
    assert plan.expected == ()
    assert plan.length is None


def test_saving_replaces_a_plan_whole_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PLAN.save(path)
    assert SMALL.save(str(path)) == path
    assert Plan.load(str(path)) == SMALL
    path.write_text('{"version": 1, "tasks": ["a"], "probabilities": [1]}')
    SMALL.save(path)  # one of version 1 is ours, too
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]
    path.write_text('{"plan": "to rob a bank"}')
    with pytest.raises(InputError, match="another file"):
        SMALL.save(path)
    assert "rob" in path.read_text()


def test_a_plan_for_a_hundred_thousand_tasks_is_put_in_another_order() -> None:
    tasks = tuple(str(number) for number in range(100_000))
    part = Part(tasks=tasks, scored=tasks, share=1.0, division=Shares.equal(len(tasks)))
    assert Plan(parts=(part,)).for_tasks(tasks[::-1]).tasks == tasks[::-1]


def changed(**changes: Any) -> str:
    part = {"tasks": ["a", "b"], "scored": ["a"], "share": 1.0, "shares": [0.5, 0.5]}
    given_parts = [part | changes.pop("part", {})]
    return json.dumps({"version": 2, "parts": given_parts} | changes)


def divided(**division: Any) -> str:
    part = {"tasks": ["a", "b"], "share": 1.0} | division
    return json.dumps({"version": 2, "parts": [part]})


EXPECTED = {"task": "a", "metric": "f1", "value": 0.5, "low": 0.4, "high": 0.6}
STAGE = {"begin": 0, "shares": [0.5, 0.5]}

MALFORMED = {
    "nothing": ("", "no JSON"),
    "half a file": ('{"version": 2, "parts": [{"tasks": ["a"', "no JSON"),
    "bytes that are no text": (b"\xff\xfe\x00", "no JSON"),
    "brackets without end": ("[" * 100_000, "no JSON"),
    "a list": ("[]", "a JSON list"),
    "a number": ("3", "a JSON int"),
    "no version": ('{"parts": []}', "version None"),
    "a plan of version 0.1": (
        '{"version": 1, "tasks": ["a"], "probabilities": [1]}',
        "version 1, which taskmix 0.1 reads",
    ),
    "another version": (changed(version=3), "version 3"),
    "an unknown entry": (changed(colour="red"), "unknown entry 'colour'"),
    "an unknown entry of a part": (changed(part={"colour": "red"}), "unknown entry 'colour'"),
    "no parts": ('{"version": 2}', "no entry 'parts'"),
    "no part": (changed(parts=[]), "at least one part"),
    "a part that is a word": (changed(parts=["a"]), "a str where a mapping"),
    "parts that are a mapping": (changed(parts={}), "a dict where a list"),
    "a name that is a number": (changed(name=3), "should be text"),
    "no tasks": (divided(tasks=[], weighting={"kind": "Equal"}), "at least one"),
    "a task twice": (changed(part={"tasks": ["a", "a"]}), "names that differ"),
    "a task that is a number": (changed(part={"tasks": ["a", 1]}), "names that differ"),
    "scored but not trained on": (changed(part={"scored": ["c"]}), "trained for"),
    "no share": (divided(share=None, shares=[0.5, 0.5]), "`share`"),
    "a share of 0": (changed(part={"share": 0}), "`share`"),
    "a share that is true": (changed(part={"share": True}), "`share`"),
    "shares of parts below 1": (changed(part={"share": 0.5}), "sum to 1. Found 0.5"),
    "no division": (divided(), "Found none"),
    "two divisions": (divided(shares=[0.5, 0.5], stages=[STAGE]), "Found shares and stages"),
    "one share too many": (changed(part={"shares": [0.5, 0.25, 0.25]}), "3 for 2 tasks"),
    "shares of 1.1": (changed(part={"shares": [0.6, 0.5]}), "sum to 1"),
    "a task that is never drawn": (changed(part={"shares": [1, 0]}), "above 0"),
    "a share that is a word": (changed(part={"shares": ["0.5", 0.5]}), "above 0"),
    "no number": (changed(part={"shares": [float("nan"), 0.5]}), "above 0"),
    "a number beyond floats": (changed(part={"shares": [10**400, 0.5]}), "above 0"),
    "no stages": (divided(stages=[]), "rise from 0"),
    "a first stage that begins late": (divided(stages=[STAGE | {"begin": 0.1}]), "rise from 0"),
    "a stage after the end": (
        divided(stages=[STAGE, STAGE | {"begin": 1}]),
        "stay below 1",
    ),
    "a stage from a word on": (divided(stages=[STAGE | {"begin": "0"}]), "a share of the run"),
    "stages of other lengths": (
        divided(stages=[STAGE, {"begin": 0.5, "shares": [1]}]),
        "all alike",
    ),
    "a stage without begin": (divided(stages=[{"shares": [0.5, 0.5]}]), "no entry 'begin'"),
    "a weighting that is a number": (divided(weighting=3), "where a mapping"),
    "a weighting that runs a command": (divided(weighting={"kind": "os.system"}), "weighting"),
    "a length of words": (changed(length={"batches": "many", "batch_size": 1}), "whole numbers"),
    "half a length": (changed(length={"batches": 1}), "wrong form"),
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


@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_file_whatever_brings_another_error(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        Plan.load(path)


def test_a_plan_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no readable file"):
        Plan.load(tmp_path / "none.json")
    with pytest.raises(InputError, match="no readable file"):
        Plan.load(tmp_path)


def test_a_file_far_too_large_for_a_plan_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with path.open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(InputError, match="more than the 67,108,864"):
        Plan.load(path)


def test_evidence_that_json_cannot_hold_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    for evidence in ({"value": float("nan")}, {"value": np.ones(2)}):
        with pytest.raises(InputError, match="Turn arrays into lists"):
            Plan(parts=SMALL.parts, evidence=evidence).save(tmp_path / "plan.json")
    assert not list(tmp_path.iterdir())


def test_the_schema_is_a_schema_and_agrees_with_a_plan_and_not_with_others(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA.schema)
    document = json.loads(PLAN.save(tmp_path / "plan.json").read_text(encoding="utf-8"))
    SCHEMA.validate(document)
    for change in ({"version": 1}, {"colour": "red"}, {"parts": []}, {"parts": [{"tasks": "ab"}]}):
        assert not SCHEMA.is_valid(document | change)
