"""Small tasks made of tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from taskmix.models import HardSharing, Head
from taskmix.tasks import DenseInputs, EncodedSplit, EncodedTask, EncodedTasks

sys.path.insert(0, str(Path(__file__).parent))  # `launched_losses`, whichever file is run

FEATURES = 6


def make_task(
    name: str, rows: int, seed: int, *, classes: int = 2, kind: str = "classification"
) -> EncodedTask:
    generator = torch.Generator().manual_seed(seed)
    rule = torch.randn(FEATURES, classes, generator=generator)

    def split(count: int) -> EncodedSplit:
        values = torch.randn(count, FEATURES, generator=generator)
        targets = (values @ rule).argmax(dim=1)
        if kind == "regression":
            targets = 50.0 + 10.0 * (values @ rule[:, 0])
        return EncodedSplit(DenseInputs(values), targets)

    return EncodedTask(
        name=name,
        kind="regression" if kind == "regression" else "classification",
        labels=() if kind == "regression" else tuple(str(number) for number in range(classes)),
        metric="rmse" if kind == "regression" else "accuracy",
        source=name,
        splits={"train": split(rows), "dev": split(40), "test": split(40)},
    )


@pytest.fixture
def tasks() -> EncodedTasks:
    return EncodedTasks(
        (
            make_task("large", 90, 1),
            make_task("small", 17, 2),
            make_task("three", 50, 3, classes=3),
        ),
        features=FEATURES,
    )


@pytest.fixture
def make_model() -> Callable[[EncodedTasks], HardSharing]:
    def make(tasks: EncodedTasks, dropout: float = 0.3) -> HardSharing:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            encoder = torch.nn.Sequential(
                torch.nn.Linear(FEATURES, 8), torch.nn.ReLU(), torch.nn.Dropout(dropout)
            )
            heads = [Head(8, task.outputs) for task in tasks]
        return HardSharing(encoder, heads, tasks.names)

    return make
