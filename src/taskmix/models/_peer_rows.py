"""The rows of a task as peers learn from them, and those that peers are chosen by."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.models._peer_features import READABLE, Matrix, PeerFeatures, stacked
from taskmix.tasks import MISSING, Encoding, Question, Split, TaskSet, sample_rows

MOST_ROWS = 30_000  # of a task and split; a peer of more would take minutes, and be hardly better
_KNOWN = 2  # features that are kept: those of `train`, and those of `train` and `dev`
_known: OrderedDict[Any, tuple[PeerFeatures, TaskSet]] = OrderedDict()


@dataclass(frozen=True, eq=False)
class PeerRows:
    """What there is to learn from of a task."""

    question: Question
    features: Matrix  # [row, feature]
    targets: NDArray[Any]  # [row], or [row, label]
    lengths: tuple[int, ...] = ()  # of sentences, where rows are words
    dev: PeerRows | None = None  # what it is chosen by

    @property
    def known(self) -> NDArray[np.bool_]:
        """[row], whether it has a target; of several labels, any of them."""
        if self.question.kind == "regression":
            return np.asarray(~np.isnan(self.targets))
        known = np.asarray(self.targets != MISSING)
        return np.asarray(known.any(axis=1)) if known.ndim > 1 else known


def peer_rows(
    tasks: TaskSet, splits: tuple[str, ...], encoding: Encoding | None
) -> tuple[PeerFeatures, list[PeerRows]]:
    """The features of tasks, and their rows; `dev` beside them, unless it is learned from."""
    for task in tasks:
        if task.inputs not in READABLE:
            raise InputError(
                f"Peers should be given texts, pairs, tables or tokens. Found `{task.name}`, "
                f"{task.kind} of {task.inputs}. Leave it out."
            )
    features, few = _features_of(tasks, splits, encoding)
    found = []
    for task, all_of_it in zip(few, tasks, strict=True):
        question, dev = Question.of(all_of_it), task.splits.get("dev")
        some = [task.splits[name] for name in splits if name in task.splits]
        if not some:  # a task without rows, which others may answer for
            inputs = next(iter(all_of_it.splits.values())).inputs[:0]
            some = list(question.unanswered(inputs).splits.values())
        rows = _rows(question, features, some)
        if dev is not None and "dev" not in splits:
            beside = _rows(question, features, [dev])
            rows = replace(rows, dev=beside if beside.known.any() else None)
        found.append(rows)
    return features, found


def lengths_of(question: Question, inputs: pa.Table) -> tuple[int, ...]:
    """How many words each sentence has, where words are labelled."""
    if question.kind != "tagging":
        return ()
    return tuple(len(words or ()) for words in inputs.column("tokens").to_pylist())


def _rows(question: Question, features: PeerFeatures, splits: Sequence[Split]) -> PeerRows:
    return PeerRows(
        question,
        stacked([features.matrix(question, split.inputs) for split in splits]),
        np.concatenate([split.targets for split in splits]),
        lengths=tuple(n for split in splits for n in lengths_of(question, split.inputs)),
    )


def _features_of(
    tasks: TaskSet, splits: tuple[str, ...], encoding: Encoding | None
) -> tuple[PeerFeatures, TaskSet]:
    """The features of these tasks, found once for several peers, and the rows that are read."""
    parts = {*splits, "dev"}
    needed = TaskSet(
        tuple(
            replace(task, splits={name: s for name, s in task.splits.items() if name in parts})
            for task in tasks
        )
    )
    key = (needed.content, splits, repr(encoding))
    if key not in _known:
        few = sample_rows(needed, dict.fromkeys(parts, MOST_ROWS))
        _known[key] = PeerFeatures.fit(few, splits, encoding), few
        while len(_known) > _KNOWN:
            _known.popitem(last=False)
    return _known[key]
