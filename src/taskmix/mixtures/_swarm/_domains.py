"""The texts of a swarm: domains of passages, to train on and to be scored on."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pyarrow as pa

from taskmix.errors import InputError
from taskmix.tasks import Split, Task, TaskSet

PART = 1024  # characters: a passage's beginning is unlike the rest, so parts of many are drawn
LONGEST_ROWS = 4  # rows that a part is at least as long as


def domains_of_swarm(
    tasks: TaskSet, *, dev_bytes: int, context: int = 128, scored: tuple[str, ...] = ("dev",)
) -> TaskSet:
    """The domains with their train split and parts of those that are `scored`, always the same ones.

    Other splits are left out: a swarm does not look at the test set.

    >>> import pyarrow as pa
    >>> from taskmix.tasks import Split, Task, TaskSet
    >>> texts = pa.table({"text": ["a passage of some length " * 400]})
    >>> kind = {"kind": "language", "inputs": "passage", "labels": (), "metric": "bits_per_byte"}
    >>> split = Split(texts, np.empty(0))
    >>> task = Task(name="web", source="web", splits={"train": split, "dev": split}, **kind)
    >>> other = Task(name="code", source="code", splits={"train": split, "dev": split}, **kind)
    >>> few = domains_of_swarm(TaskSet((task, other)), dev_bytes=2048)
    >>> few.names, sum(map(len, few["web"].splits["dev"].inputs["text"].to_pylist()))
    (('web', 'code'), 2048)
    """
    if len(tasks) < 2:
        raise InputError(
            "A swarm should have two domains or more to mix. Found "
            f"{len(tasks)}. Put the texts of each domain into a folder of its own."
        )
    length = max(PART, LONGEST_ROWS * context)
    found = tuple(_domain(task, scored, dev_bytes, length) for task in tasks)
    return replace(tasks, tasks=found, _content=[])


def train_bytes(task: Task) -> int:
    """Bytes to train on."""
    column = task.splits["train"].inputs["text"]
    return sum(len((text or "").encode("utf-8", errors="replace")) for text in column.to_pylist())


def _domain(task: Task, scored: tuple[str, ...], wanted: int, length: int) -> Task:
    if task.kind != "language":
        raise InputError(
            f"The domains of a swarm should be passages to continue. Found that `{task.name}` has "
            f"labels or answers to learn ({task.kind}). Give a folder of texts."
        )
    for name in ("train", *scored):
        split = task.splits.get(name)
        if split is None or not any(split.inputs["text"].to_pylist()):
            raise InputError(
                "Each domain of a swarm should have texts to train on and others to be scored on. "
                f"Found no text in `{name}` of `{task.name}`. Add the file, or leave the domain out."
            )
    splits = {"train": task.splits["train"]}
    for name in scored:
        parts = _some_parts(f"{name} of {task.name}", task.splits[name], wanted, length)
        splits[name] = Split(pa.table({"text": parts}), np.empty(0))
    return replace(task, splits=splits)


def _some_parts(name: str, split: Split, wanted: int, length: int) -> list[str]:
    """Parts of texts, in their order, of so many bytes together; the name decides which."""
    parts = [
        text[begin : begin + length]
        for text in split.inputs["text"].to_pylist()
        if text
        for begin in range(0, len(text), length)
    ]
    sizes = np.array([len(part.encode("utf-8", errors="replace")) for part in parts])
    word = hashlib.sha256(name.encode()).digest()
    order = np.random.default_rng(int.from_bytes(word[:8], "little")).permutation(len(parts))
    before = np.cumsum(sizes[order]) - sizes[order]
    kept = np.sort(order[before < wanted])
    if not len(kept):
        return parts
    found = [parts[place] for place in kept]
    over = int(sizes[kept].sum()) - wanted
    if over > 0:  # of the part that was drawn last
        last = list(kept).index(order[before < wanted][-1])
        cut = found[last].encode("utf-8", errors="replace")[: sizes[kept[last]] - over]
        found[last] = cut.decode("utf-8", errors="ignore")
    return [part for part in found if part]
