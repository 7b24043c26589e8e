"""Plans outside of taskmix: their documented form, and what others do with their probabilities."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import full, tensor
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from taskmix.errors import InputError
from taskmix.policies import Fixed
from taskmix.records import Expected, Plan, Stage, describe
from taskmix.training import PolicyBatchSampler
from taskmix.weighting import BanditMTL

SCHEMA = Path(__file__).parents[3] / "docs" / "plan.schema.json"

PLAN = Plan(
    tasks=("a", "b"),
    probabilities=(0.25, 0.75),
    stages=(
        Stage(begin=0.0, probabilities=(0.5, 0.5)),
        Stage(begin=0.5, probabilities=(0.0, 1.0)),
    ),
    groups=(("a",), ("a", "b")),
    weighting=describe(BanditMTL(radius=0.1)),  # type: ignore[arg-type]
    expected=(Expected(task="a", metric="accuracy", value=0.9, low=0.8, high=1.0),),
    evidence={"words": ["because"]},
)


def must_be_valid(document: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)


@pytest.mark.parametrize("plan", [PLAN, Plan(tasks=("a",), probabilities=(1.0,))])
def test_a_plan_is_of_the_documented_form(plan: Plan, tmp_path: Path) -> None:
    document = json.loads(plan.save(tmp_path / "plan.json").read_text())
    must_be_valid(document)
    assert Plan.load(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"tasks": []},
        {"probabilities": [2.0, -1.0]},
        {"more": 1},
        {"stages": [{"begin": -1.0, "probabilities": [0.5, 0.5]}]},
        {"expected": [{"task": "a"}]},
    ],
)
def test_what_the_form_refuses_the_reader_refuses_too(
    change: dict[str, Any], tmp_path: Path
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(PLAN.save(tmp_path / "plan.json").read_text()) | change
    with pytest.raises(jsonschema.ValidationError):
        must_be_valid(document)
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(InputError):
        Plan.load(tmp_path / "plan.json")


def test_probabilities_go_into_interleave_datasets(tmp_path: Path) -> None:
    hub = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    plan = Plan.load(PLAN.save(tmp_path / "plan.json"))
    rows = {name: hub.Dataset.from_dict({"task": [name] * 400}) for name in plan.tasks}
    mixed = hub.interleave_datasets(
        [rows[name] for name in plan.tasks], probabilities=list(plan.probabilities), seed=0
    )
    counts = Counter(mixed["task"])
    assert counts["b"] / len(mixed) == pytest.approx(0.75, abs=0.05)


def test_probabilities_go_into_our_batch_sampler() -> None:
    parts = [TensorDataset(full((50,), place)) for place in range(2)]
    sampler = PolicyBatchSampler(
        [len(part) for part in parts],
        policy=Fixed(list(PLAN.probabilities)),
        batch_size=5,
        steps=400,
        generator=np.random.default_rng(0),
    )
    loader = DataLoader(ConcatDataset(parts), batch_sampler=sampler)
    batches = tensor([int(batch[0]) for (batch,) in loader])
    assert len(batches) == 400
    assert float(batches.float().mean()) == pytest.approx(0.75, abs=0.06)
