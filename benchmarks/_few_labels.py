"""A WRENCH set as a target with a few true labels and a source for every labelling function.

Positive and negative transfer need a target that can be trained alone, which weak supervision itself
does not have. So the first five dev rows of each class are trained on with their true labels, and the
others are measured; every function that votes on some train row is a task of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.papers._transfer._weak_data import class_count, read_weak_rows, voting
from taskmix.tasks import Split, Task, TaskSet
from taskmix.transfer import ABSTAIN

WEAK_TARGET = "target"
LABELLED = 5  # rows of each class with true labels


@dataclass(frozen=True, kw_only=True)
class FewLabels:
    """The folder of a set of single texts."""

    path: str
    cache: Path | None = None  # of the texts' vectors

    def load(self) -> TaskSet:
        rows = read_weak_rows(Path(self.path))
        train, dev = rows["train"], rows["dev"]
        labels = tuple(str(label) for label in range(class_count(rows)))
        shown = np.zeros(len(dev.labels), dtype=np.bool_)
        for label in np.unique(dev.labels):
            shown[np.flatnonzero(dev.labels == label)[:LABELLED]] = True

        def task(name: str, inputs: pa.Table, targets: NDArray[np.int64], **more: Split) -> Task:
            return Task(
                name=name,
                kind="classification",
                inputs="text",
                labels=labels,
                metric="accuracy",
                source=name,
                splits={"train": Split(inputs, targets), **more},
            )

        target = task(
            WEAK_TARGET,
            dev.inputs.filter(pa.array(shown)),
            dev.labels[shown],
            dev=Split(dev.inputs.filter(pa.array(~shown)), dev.labels[~shown]),
        )
        functions = []
        for number in voting(rows):
            votes = train.votes[:, number]
            places = np.flatnonzero(votes != ABSTAIN)
            functions.append(
                task(f"function {number}", train.inputs.take(pa.array(places)), votes[places])
            )
        return TaskSet((target, *functions))
