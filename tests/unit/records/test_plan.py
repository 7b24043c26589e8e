from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.policies import Fixed
from taskmix.records import Expected, Plan, Stage

SCHEMA = Path(__file__).resolve().parents[3] / "docs" / "plan.schema.json"

PLAN = Plan(
    tasks=("cola", "rte", "größe"),
    probabilities=(0.5, 0.3, 0.2),
    stages=(
        Stage(begin=0.0, probabilities=(0.6, 0.2, 0.2)),
        Stage(begin=0.5, probabilities=(0.4, 0.4, 0.2)),
    ),
    groups=(("cola", "rte"), ("größe",)),
    weighting={"kind": "BanditMTL", "radius": 1.2},
    expected=(Expected(task="rte", metric="accuracy", value=0.7, low=0.65, high=0.75),),
    evidence={"runs": ["1f", "2e"], "value": {"low": 0.1, "high": 0.2}},
)

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
def plans(draw: st.DrawFn) -> Plan:
    tasks = draw(names)

    def shares() -> tuple[float, ...]:
        weights = draw(
            st.lists(st.floats(0, 1e6), min_size=len(tasks), max_size=len(tasks)).filter(
                lambda values: sum(values) > 1e-3
            )
        )
        return tuple((np.array(weights) / sum(weights)).tolist())

    begins = draw(st.lists(st.floats(0, 0.99, exclude_min=True), max_size=3, unique=True))
    stages = [Stage(begin=begin, probabilities=shares()) for begin in [0.0, *sorted(begins)]]
    number = st.floats(-1e300, 1e300)
    expected = st.builds(
        Expected,
        task=st.sampled_from(tasks),
        metric=st.text(max_size=5),
        value=number,
        low=number,
        high=number,
    )
    return Plan(
        tasks=tuple(tasks),
        probabilities=shares(),
        stages=tuple(draw(st.sampled_from([[], stages]))),
        groups=tuple(draw(st.lists(st.lists(st.sampled_from(tasks)).map(tuple), max_size=3))),
        weighting=draw(st.none() | mappings),
        expected=tuple(draw(st.lists(expected, max_size=3))),
        evidence=draw(mappings),
    )


@given(plan=plans())
def test_a_saved_plan_is_loaded_as_it_was(
    plan: Plan, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = plan.save(tmp_path_factory.mktemp("plan") / "plan.json")
    assert Plan.load(path) == plan


@given(plan=plans(), seed=st.integers(0, 2**32))
def test_a_plan_in_another_order_says_the_same_of_every_task(plan: Plan, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(plan.tasks))
    moved = plan.for_tasks([plan.tasks[place] for place in order])
    assert dict(zip(moved.tasks, moved.probabilities, strict=True)) == dict(
        zip(plan.tasks, plan.probabilities, strict=True)
    )
    for before, after in zip(plan.stages, moved.stages, strict=True):
        assert after.begin == before.begin
        assert after.probabilities == tuple(before.probabilities[place] for place in order)
    assert moved.for_tasks(plan.tasks) == plan


def test_a_plan_is_plain_json_that_anything_reads(tmp_path: Path) -> None:
    document = json.loads(PLAN.save(tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert document["version"] == 1
    assert document["tasks"] == ["cola", "rte", "größe"]
    assert document["probabilities"] == [0.5, 0.3, 0.2]
    assert document["stages"][1] == {"begin": 0.5, "probabilities": [0.4, 0.4, 0.2]}
    assert Fixed(document["probabilities"]).init(np.ones(3, dtype=np.int64)) is not None


def test_a_plan_with_tasks_and_probabilities_alone_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"version": 1, "tasks": ["a", "b"], "probabilities": [1, 0]}')
    plan = Plan.load(path)
    assert plan == Plan(tasks=("a", "b"), probabilities=(1, 0))
    assert plan.stages == plan.groups == plan.expected == ()


def test_saving_replaces_a_plan_whole(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PLAN.save(path)
    smaller = Plan(tasks=("a",), probabilities=(1.0,))
    assert smaller.save(str(path)) == path
    assert Plan.load(str(path)) == smaller
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]


def test_a_plan_for_a_hundred_thousand_tasks_is_put_in_another_order() -> None:
    count = 100_000
    tasks = tuple(str(number) for number in range(count))
    plan = Plan(tasks=tasks, probabilities=(1 / count,) * count)
    assert plan.for_tasks(tasks[::-1]).tasks == tasks[::-1]


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
    "another version": (changed(version=2), "version 2"),
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
        changed(stages=[{"begin": 0.1, "probabilities": [1, 0]}]),
        "rise from 0",
    ),
    "a stage after the end": (
        changed(stages=[{"begin": b, "probabilities": [1, 0]} for b in (0, 1)]),
        "stay below 1",
    ),
    "two stages at once": (
        changed(stages=[{"begin": b, "probabilities": [1, 0]} for b in (0, 0.5, 0.5)]),
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
        plan = Plan(tasks=("a",), probabilities=(1.0,), evidence=evidence)
        with pytest.raises(InputError, match="Turn arrays into lists"):
            plan.save(tmp_path / "plan.json")
    assert not list(tmp_path.iterdir())


def test_a_plan_for_other_tasks_says_which_are_missing() -> None:
    with pytest.raises(InputError, match="`sst` without a place in the plan and `rte` only in it"):
        PLAN.for_tasks(["cola", "größe", "sst"])
    with pytest.raises(InputError, match="names that differ"):
        PLAN.for_tasks(["cola", "größe", "rte", "rte"])


def agrees(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """The few words of JSON Schema that ours uses."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return agrees(value, root["$defs"][name], root)
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "number": int | float,
        "null": type(None),
    }
    wanted = schema.get("type", [])
    listed = [wanted] if isinstance(wanted, str) else wanted
    if listed and not any(isinstance(value, kinds[kind]) for kind in listed):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        return False
    if isinstance(value, list):
        items = schema.get("items", {})
        enough = len(value) >= schema.get("minItems", 0)
        return enough and all(agrees(item, items, root) for item in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        strict = schema.get("additionalProperties", True) is False
        return (
            set(schema.get("required", [])) <= set(value)
            and not (strict and set(value) - set(known))
            and all(agrees(value[name], known[name], root) for name in value if name in known)
        )
    return True


@given(plan=plans())
def test_every_saved_plan_agrees_with_the_schema(
    plan: Plan, tmp_path_factory: pytest.TempPathFactory
) -> None:
    schema = json.loads(SCHEMA.read_text())
    path = plan.save(tmp_path_factory.mktemp("plan") / "plan.json")
    assert agrees(json.loads(path.read_text(encoding="utf-8")), schema, schema)


def test_the_schema_is_a_schema_and_agrees_with_a_plan_and_not_with_others(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="comes with altair")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema)
    document = json.loads(PLAN.save(tmp_path / "plan.json").read_text(encoding="utf-8"))
    checker.validate(document)
    for change in ({"version": 2}, {"colour": "red"}, {"tasks": "ab"}, {"probabilities": [-1]}):
        assert not checker.is_valid(document | change)
        assert not agrees(document | change, schema, schema)
