"""Small tasks to encode."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from taskmix.tasks import DenseInputs, EncodedTasks, RaggedInputs, Split, Task


def split(
    columns: Mapping[str, Any], targets: list[Any] | None = None, **types: pa.DataType
) -> Split:
    table = pa.table(
        {name: pa.array(values, type=types.get(name)) for name, values in columns.items()}
    )
    rows = targets if targets is not None else [0] * table.num_rows
    kind = np.float64 if any(isinstance(row, float) for row in rows) else np.int64
    return Split(table, np.array(rows, dtype=kind))


def task(name: str, inputs: str, *, source: str | None = None, **splits: Split) -> Task:
    regression = any(part.targets.dtype == np.float64 for part in splits.values())
    return Task(
        name=name,
        kind="regression" if regression else "classification",
        inputs=cast("Any", inputs),
        labels=() if regression else ("no", "yes"),
        metric="rmse" if regression else "accuracy",
        source=source or name,
        splits=splits,
    )


def tagging(
    name: str,
    sentences: Mapping[str, list[list[str]]],
    tags: Mapping[str, list[int]],
    *,
    labels: tuple[str, ...] = ("O", "B-X", "I-X"),
    source: str | None = None,
) -> Task:
    splits = {
        key: Split(pa.table({"tokens": pa.array(rows, pa.list_(pa.string()))}), np.array(tags[key]))
        for key, rows in sentences.items()
    }
    return Task(
        name=name,
        kind="tagging",
        inputs="tokens",
        labels=labels,
        metric="entity_f1",
        source=source or name,
        splits=splits,
    )


def dense(encoded: EncodedTasks, name: str, part: str = "train") -> Tensor:
    return cast("DenseInputs", encoded[name].splits[part].inputs).values


def ragged(encoded: EncodedTasks, name: str, part: str = "train") -> RaggedInputs:
    return cast("RaggedInputs", encoded[name].splits[part].inputs)


def words(encoded: EncodedTasks, ids: Tensor) -> list[str]:
    return [encoded.vocabulary[i] for i in ids.tolist() if i]


def everything(count: int) -> Tensor:
    return torch.arange(count)


def write_vectors(path: Path) -> Path:
    path.write_text("good 1 2\nbad 3 4\nfood 5 6\n")
    return path
