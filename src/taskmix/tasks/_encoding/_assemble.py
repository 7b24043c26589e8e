"""What every encoding does alike: distinct tables in, encoded tasks out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from taskmix.errors import InputError, OptionError
from taskmix.tasks._encoding._inputs import EncodedSplit, EncodedTask, EncodedTasks, Inputs
from taskmix.tasks._reading import WRITTEN, InputKind
from taskmix.tasks._task import Task, TaskSet

_WRITTEN_ADVICE = (
    "Text is written by a causal language model of which adapters or all weights are trained: use "
    "`SubwordEncoding` with such a model, or leave the task out."
)


class SourceSplit(NamedTuple):
    """Rows that tasks may share: a split of a source, read in one way."""

    source: str
    inputs: InputKind
    tagged: bool  # each word has a target, so the inputs say where words begin
    split: str


class Encoding(Protocol):
    """Options of an encoding, and the encoding."""

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks as tensors; from the folder `cache` where the same was encoded before."""
        ...


def source_split(task: Task, split_name: str) -> SourceSplit:
    return SourceSplit(task.source, task.inputs, task.kind == "tagging", split_name)


def distinct_tables(
    tasks: TaskSet,
    encoding: str,
    accepts: Callable[[Task], bool],
    *,
    advice: str,  # what to use for other tasks
    needs_train: bool = True,
) -> dict[SourceSplit, pa.Table]:
    """Every table once, in the order of the tasks."""
    tables: dict[SourceSplit, pa.Table] = {}
    for task in tasks:
        if not accepts(task):
            raise InputError(
                f"`{encoding}` should be given tasks that it can read. Found `{task.name}`, "
                f"{task.kind} of {task.inputs}. "
                f"{_WRITTEN_ADVICE if task.kind in WRITTEN else advice}"
            )
        for split_name, split in task.splits.items():
            table = tables.setdefault(source_split(task, split_name), split.inputs)
            if table.num_rows != len(split):
                raise InputError(
                    f"Tasks of the source `{task.source}` should share their rows. Found "
                    f"{table.num_rows} and {len(split)} in the split `{split_name}` "
                    f"(task `{task.name}`). Give the tasks sources of their own."
                )
    if needs_train and not any(key.split == "train" for key in tables):
        raise InputError(
            f"`{encoding}` should be given a split `train` to learn from. Found none among the "
            f"tasks {', '.join(tasks.names)}. Add a task that has one."
        )
    return tables


def plain_targets(task: Task, split_name: str) -> Tensor:
    """A class a row (or `MISSING`), a value (or NaN), or a mark for each of its labels."""
    values = task.splits[split_name].targets
    if task.kind == "multilabel":
        return torch.from_numpy(values.astype(np.int8))
    if task.kind != "regression":
        return torch.from_numpy(values.astype(np.int64))
    large = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
    if len(large):
        raise InputError(
            f"The values of task `{task.name}` should fit into 32 bits, that is, be below 3e38 in "
            f"size. Found {values[large[0]]:g} in row {large[0] + 1} of the split `{split_name}`. "
            "Give them in another unit."
        )
    return torch.from_numpy(values.astype(np.float32))


def encoded_tasks(
    tasks: TaskSet,
    inputs: Mapping[SourceSplit, Inputs],
    *,
    targets: Callable[[Task, str], Tensor] = plain_targets,
    sentences: Mapping[SourceSplit, Tensor] | None = None,
    target_bytes: Mapping[SourceSplit, Tensor] | None = None,
    features: int = 0,
    vocabulary: tuple[str, ...] = (),
    vectors: Tensor | None = None,
    extra: Mapping[str, Any] | None = None,
) -> EncodedTasks:
    """Tasks over inputs that are already tensors.

    `extra["target_scale"]` has the mean and the standard deviation of each regression's targets in
    `train`, so that a head can give values of the size of the targets, which are left as they are.
    """
    offsets, sizes = sentences or {}, target_bytes or {}
    pieces = int((extra or {}).get("vocabulary_size", 0))

    def encoded_split(task: Task, name: str) -> EncodedSplit:
        rows = source_split(task, name)
        return EncodedSplit(inputs[rows], targets(task, name), offsets.get(rows), sizes.get(rows))

    result = tuple(
        EncodedTask.of(task, {name: encoded_split(task, name) for name in task.splits}, pieces)
        for task in tasks
    )
    scales = {task.name: _target_scale(task) for task in tasks if task.kind == "regression"}
    everything = {**(extra or {}), **({"target_scale": scales} if scales else {})}
    return EncodedTasks(result, features, vocabulary, vectors, everything)


def _target_scale(task: Task) -> tuple[float, float]:
    values = task.splits["train"].targets.astype(np.float64) if task.size else np.zeros(0)
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return (0.0, 1.0)
    return (float(values.mean()), float(values.std()) or 1.0)  # 1 where all targets are equal


def at_least(name: str, value: int, least: int) -> None:
    """Checks an option that counts something."""
    if value < least:
        raise OptionError(f"`{name}` should be at least {least}. Found {value}. Give a larger one.")
