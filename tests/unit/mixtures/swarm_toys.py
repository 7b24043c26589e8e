"""Domains small enough to be trained on in a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from taskmix.mixtures import SwarmOptions
from taskmix.tasks import Split, Task, TaskSet

ALPHABETS = {"vowels": "aeiou ", "digits": "0123456789", "tail": "uvwxyz "}
TINY: dict[str, Any] = {
    "members": 6,
    "layers": 1,
    "width": 16,
    "context": 16,
    "batch_size": 4,
    "tokens": 1280,
    "dev_bytes": 256,
    "replicates": 1,
    "learning_rate": 1e-2,
}


def tiny(**changes: Any) -> SwarmOptions:
    return SwarmOptions(**{**TINY, **changes})


def texts(alphabet: str, seed: int, count: int = 20) -> list[str]:
    random = np.random.default_rng(seed)
    return ["".join(random.choice(list(alphabet), 60)) for _ in range(count)]


def domains(names: tuple[str, ...] = tuple(ALPHABETS)) -> TaskSet:
    """Each of letters of its own, so that what a member was not trained on it does not know."""
    tasks = []
    for name in names:
        splits = {
            split: Split(pa.table({"text": texts(ALPHABETS[name], seed)}), np.empty(0))
            for seed, split in enumerate(("train", "dev", "test"))
        }
        kind: dict[str, Any] = {"kind": "language", "inputs": "passage", "labels": ()}
        tasks.append(Task(name=name, source=name, metric="bits_per_byte", splits=splits, **kind))
    return TaskSet(tuple(tasks))
