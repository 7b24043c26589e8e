"""What others do with a plan's probabilities."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from torch import full, tensor
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from taskmix.plans import Part, Plan, Shares
from taskmix.policies import Fixed
from taskmix.training import PolicyBatchSampler

DIVISION = Shares(probabilities=(0.25, 0.75))
PLAN = Plan(parts=(Part(tasks=("a", "b"), scored=("a", "b"), share=1.0, division=DIVISION),))


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
