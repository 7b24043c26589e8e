"""Models that may be part of what is delivered: what each says of the dev and test rows.

Networks and peers are alike here: numbers for rows, whatever made them. Of classes and tags they are
logits, [row, class] or [word, class]; of several labels logits, [row, label]; else values, [row].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.adviser._scores import comparable, unit_of
from taskmix.engine import Run, model_of_run
from taskmix.models import FittedPeer, Peer, peers_for
from taskmix.numerics import Interval, normal_quantile
from taskmix.plans import Plan
from taskmix.records import Study
from taskmix.tasks import Encoding, FeatureEncoding, Task, TaskSet, evaluate_outputs, row_credits
from taskmix.training import outputs_of_split

Array = NDArray[np.float64]
Rows = Literal["dev", "test"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BlendMember:
    """What a model says, task by task; a task that it does not answer for is missing."""

    name: str
    words: str
    dev: Mapping[str, Array]
    test: Mapping[str, Array]
    peer: FittedPeer | None = None  # None: a network
    encoding: Encoding | None = None  # whose vectors the peer reads; None: its own features
    runs: tuple[
        tuple[Run, tuple[str, ...]], ...
    ] = ()  # of a network: its models, and what each is for

    def outputs(self, split: Rows) -> Mapping[str, Array]:
        return self.dev if split == "dev" else self.test

    def scores(self, tasks: TaskSet, split: Rows) -> dict[str, float]:
        found = self.outputs(split)
        return {name: score_of(tasks[name], split, found[name]) for name in found}


def peer_members(
    tasks: TaskSet,
    encoding: Encoding,
    *,
    groups: Sequence[Sequence[str]] | None = None,
    seed: int = 0,
    stop: Any = lambda: False,  # between two of them
) -> Iterator[BlendMember]:
    """Each peer that can read these tasks, fitted to their train rows; on an encoder's vectors too.

    With groups only those that they change.
    """
    reads: list[tuple[Encoding | None, str]] = [(None, "")]
    if isinstance(encoding, FeatureEncoding):
        reads.insert(0, (encoding, " on vectors"))
    for given, about in reads:
        for peer in peers_for(tasks, groups=groups):
            if groups is not None and getattr(peer, "groups", None) is None:
                continue  # it is the same with groups as without
            if stop():
                return
            yield peer_member(peer, tasks, given, name=peer.name + about, seed=seed)


def peer_member(
    peer: Peer, tasks: TaskSet, encoding: Encoding | None, *, name: str, seed: int
) -> BlendMember:
    fitted = peer.fit(tasks, encoding=encoding, seed=seed)

    def said(split: Rows) -> dict[str, Array]:
        return {
            task.name: fitted.outputs(task.name, task.splits[split].inputs).double().numpy()
            for task in tasks
            if len(task.splits.get(split, ()))
        }

    words = f"{name}: a {'tree ensemble' if 'trees' in name else 'linear model'}"
    return BlendMember(
        name=name, words=words, dev=said("dev"), test=said("test"), peer=fitted, encoding=encoding
    )


def network_member(
    plan: Plan, runs: Sequence[Run], tasks: TaskSet, study: Study, *, name: str
) -> BlendMember:
    """The models of a plan's runs, each for the tasks of its part."""
    found: dict[Rows, dict[str, Array]] = {"dev": {}, "test": {}}
    parts = []
    for part, run in zip(plan.models, runs, strict=True):
        model, encoded = model_of_run(run, study)
        parts.append((run, part.scored))
        for task in part.scored:
            for split, said in found.items():
                if split in encoded[task].splits:
                    said[task] = outputs_of_split(model, encoded, task, split).astype(np.float64)
    fits = {
        split: {task: out for task, out in said.items() if len(out) == _length(tasks[task], split)}
        for split, said in found.items()
    }
    return BlendMember(
        name=name, words=plan.words, dev=fits["dev"], test=fits["test"], runs=tuple(parts)
    )


def _length(task: Task, split: str) -> int:
    return len(task.splits[split].targets)


def sentences_of(task: Task, split: str) -> NDArray[np.int64] | None:
    """[sentence + 1], where each begins; None where a row is no sentence."""
    return None if task.kind != "tagging" else _ends(_Table(task.splits[split].inputs))


@dataclass(frozen=True)
class _Table:
    """A table as a key: by what it is, not by what it says."""

    table: pa.Table = field(compare=False)
    number: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", id(self.table))


@lru_cache(maxsize=256)
def _ends(rows: _Table) -> NDArray[np.int64]:
    lengths = [len(words or ()) for words in rows.table.column("tokens").to_pylist()]
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def score_of(task: Task, split: str, outputs: Array) -> float:
    """The task's metric of outputs for all rows of a split."""
    return evaluate_outputs(
        task.metric,
        outputs=outputs,
        targets=task.splits[split].targets,
        labels=task.labels,
        sentences=sentences_of(task, split),
    )


def gain_on(
    tasks: TaskSet,
    names: Sequence[str],
    split: Rows,
    ours: Mapping[str, Array],
    theirs: Sequence[Mapping[str, Array]],  # one or several models, of which the mean counts
    *,
    level: float,
) -> Interval | None:
    """How far the mean score of some outputs lies above others', over rows like these.

    Differences are taken row by row, since models share what is easy and what is hard: the error is
    that of the mean of the differences of credits. None where a task is not answered by all.
    """
    known = [n for n in names if n in ours and all(n in each for each in theirs)]
    if len(known) < len(names) or not known or not theirs:
        return None
    gain, parts = 0.0, dict[int, Array]()
    for name in known:
        task = tasks[name]
        mine = score_of(task, split, ours[name])
        other = float(np.mean([score_of(task, split, each[name]) for each in theirs]))
        gain += (comparable(task, mine) - comparable(task, other)) / len(known)
        own = credits_of_outputs(task, split, ours[name])
        against = np.mean([credits_of_outputs(task, split, each[name]) for each in theirs], axis=0)
        difference = unit_of(task) * (own - against)
        seen = np.isfinite(difference)
        count = max(int(seen.sum()), 1)
        part = np.zeros(len(difference))
        part[seen] = (difference[seen] - difference[seen].mean()) / np.sqrt(
            count * max(count - 1, 1)
        )
        key = id(task.splits[split].inputs)  # tasks that share rows share their luck
        same = key in parts and len(parts[key]) == len(part)
        parts[key if same or key not in parts else -len(parts)] = part / len(known) + (
            parts[key] if same else 0.0
        )
    if not np.isfinite(gain):
        return None
    error = float(np.sqrt(sum(float(part @ part) for part in parts.values())))
    half = normal_quantile(level) * max(error, 1e-12)
    rows = sum(len(tasks[name].splits[split].targets) for name in known)
    return Interval(float(gain), float(gain - half), float(gain + half), rows, level)


def credits_of_outputs(task: Task, split: str, outputs: Array) -> Array:
    return np.asarray(
        row_credits(
            task.metric,
            outputs=outputs,
            targets=task.splits[split].targets,
            labels=task.labels,
            sentences=sentences_of(task, split),
        ),
        dtype=np.float64,
    )
