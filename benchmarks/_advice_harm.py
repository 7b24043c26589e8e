"""Tasks that spoil a folder, and whether the adviser names them.

Four are added, each made of another task of the folder: one with shuffled labels, a copy, one whose
inputs tell the label, and one with twenty rows to train on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from taskmix.tasks import Split, Task, TaskSet

FEW = 20  # rows to train on

# What a finding of the adviser has to be, by how its kind is called.
KINDS = {"copy": "same task twice", "leaking": "leak", "few rows": "few rows"}


@dataclass(frozen=True, kw_only=True)
class Spoiled:
    """The tasks with four more, and the names that should be told for each kind of harm."""

    tasks: TaskSet
    names: Mapping[str, frozenset[str]]


def spoil(tasks: TaskSet, seed: int) -> Spoiled:
    """Which tasks the four are made of depends on the seed."""
    generator = np.random.default_rng(seed)
    order = [tasks[int(place)] for place in generator.permutation(len(tasks))]
    one, other, third, fourth = (order[place % len(order)] for place in range(4))
    added = {
        "copy": replace(one, name=f"{one.name} again"),
        "shuffled": shuffled(other, generator),
        "leaking": leaking(third),
        "few rows": short(fourth, generator),
    }
    names = {kind: frozenset({task.name}) for kind, task in added.items()}
    names["copy"] |= {one.name}
    return Spoiled(tasks=TaskSet((*tasks, *added.values())), names=names)


def shuffled(task: Task, generator: np.random.Generator) -> Task:
    splits = {
        name: Split(split.inputs, generator.permutation(split.targets))
        for name, split in task.splits.items()
    }
    return replace(task, name=f"{task.name} shuffled", splits=splits)


def leaking(task: Task) -> Task:
    """The label as a word at the end of the text, or as a column of the table."""

    def told(split: Split) -> Split:
        words = [f"answer{task.labels[int(target)]}" for target in split.targets]
        if "text" in split.inputs.column_names:
            texts = split.inputs.column("text").to_pylist()
            place = split.inputs.column_names.index("text")
            longer = [f"{text} {word}" for text, word in zip(texts, words, strict=True)]
            return Split(split.inputs.set_column(place, "text", pa.array(longer)), split.targets)
        return Split(split.inputs.append_column("outcome", pa.array(words)), split.targets)

    splits = {name: told(split) for name, split in task.splits.items()}
    return replace(task, name=f"{task.name} leaking", splits=splits)


def short(task: Task, generator: np.random.Generator) -> Task:
    train = task.splits["train"]
    kept = np.sort(generator.permutation(len(train))[:FEW])
    splits = dict(task.splits) | {"train": Split(train.inputs.take(kept), train.targets[kept])}
    return replace(task, name=f"{task.name} short", splits=splits)


def named(advised: Any, spoiled: Spoiled) -> dict[str, bool]:
    """Whether each kind of harm was told with the right names, and the plan is without the shuffled."""
    document, wrong = advised.document, spoiled.names["shuffled"]
    found = {
        kind: any(
            words in each.kind and spoiled.names[kind] <= set(each.tasks)
            for each in document.findings
        )
        for kind, words in KINDS.items()
    }
    found["shuffled"] = wrong <= set(document.unlearned)
    return found | {"left out": not wrong & set(document.plan.tasks)}
