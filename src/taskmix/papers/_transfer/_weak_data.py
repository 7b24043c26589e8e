"""A set of weak supervision as tasks: the true labels of a few rows, and one task a labelling function.

    Zhang, Yu, Li, Wang, Yang, Yang and Ratner, "WRENCH: A Comprehensive Benchmark for Weak
    Supervision", NeurIPS 2021 Datasets and Benchmarks.

Every row has a `label` and `weak_labels`, a vote of each function, -1 where it abstains. The target
learns from the first few dev rows of each class and is measured on the others; a function's task has
the train rows that it votes on, with its votes as labels. Three more tasks stand for what one would do
otherwise: `vote` and `label model` have the train rows that some function votes on, with the majority
vote and the label model's choice, and `truth` has all train rows with their true labels. A relation
between two marked entities is read as the sentence and, as a second text, the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.papers._shared import read_lines
from taskmix.tasks import Split, Task, TaskSet
from taskmix.transfer import ABSTAIN, fit_label_model, majority_vote

TARGET, VOTE, LABEL_MODEL, TRUTH = "target", "vote", "label model", "truth"
F1_SETS = ("sms", "cdr")  # of two classes, one of them rare


@dataclass(frozen=True, kw_only=True)
class WeakRows:
    """The rows of one split."""

    inputs: pa.Table
    labels: NDArray[np.int64]  # [row], true
    votes: NDArray[np.int64]  # [row, function]


@dataclass(frozen=True, kw_only=True)
class WeakSource:
    """The folder of a set, with `train`, `dev` and `test` files."""

    path: str
    labelled: int = 5  # dev rows of each class that the target learns from
    seed: int = 0  # of ties in the majority vote
    cache: Path | None = None  # of the texts' vectors

    def load(self) -> TaskSet:
        """The target, the functions that vote on some train row, and the three others."""
        rows = read_weak_rows(Path(self.path))
        train, dev = rows["train"], rows["dev"]
        classes = 1 + max(int(max(part.labels.max(), part.votes.max())) for part in rows.values())
        labels = tuple(str(label) for label in range(classes))
        metric = "f1" if Path(self.path).name in F1_SETS else "accuracy"
        shown = first_of_each_class(dev.labels, self.labelled)

        def task(name: str, inputs: pa.Table, targets: NDArray[np.int64], **more: Split) -> Task:
            kind = "pair" if "text2" in inputs.column_names else "text"
            return Task(
                name=name,
                kind="classification",
                inputs=kind,  # type: ignore[arg-type]
                labels=labels,
                metric=metric,
                source=name,
                splits={"train": Split(inputs, targets), **more},
            )

        def some(name: str, targets: NDArray[np.int64]) -> Task:
            kept = np.flatnonzero(targets != ABSTAIN)
            return task(name, train.inputs.take(pa.array(kept)), targets[kept])

        target = task(
            TARGET,
            dev.inputs.filter(pa.array(shown)),
            dev.labels[shown],
            dev=Split(dev.inputs.filter(pa.array(~shown)), dev.labels[~shown]),
            test=Split(rows["test"].inputs, rows["test"].labels),
        )
        functions = [
            some(f"function {number}", votes)
            for number, votes in enumerate(train.votes.T)
            if (votes != ABSTAIN).any()
        ]
        voted, modelled = chosen_labels(rows, classes, seed=self.seed)
        others = [some(VOTE, voted), some(LABEL_MODEL, modelled), some(TRUTH, train.labels)]
        return TaskSet((target, *functions, *others))


def first_of_each_class(labels: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """[row], whether it is among the first so many of its class; some rows have to be left."""
    shown = np.zeros(len(labels), dtype=np.bool_)
    for label in np.unique(labels):
        shown[np.flatnonzero(labels == label)[:count]] = True
    if count < 1 or shown.all():
        raise InputError(
            "The target should learn from 1 dev row of each class or more, and others should be left to "
            f"measure it. Found {count} of each class, with {len(labels)} rows in all."
        )
    return shown


def chosen_labels(
    rows: dict[str, WeakRows], classes: int, *, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[train row], by majority vote with ties broken at random, and by the label model."""
    votes = rows["train"].votes
    silent = (votes == ABSTAIN).all(axis=1)
    shares = majority_vote(votes, classes)
    ties = np.random.default_rng(seed).random(shares.shape)
    voted = np.where(silent, ABSTAIN, (shares * (1 + ties)).argmax(axis=1))
    model = fit_label_model(votes, classes, balance=class_balance(rows, classes))
    return voted, np.where(silent, ABSTAIN, model.predict(votes).argmax(axis=1))


def class_balance(rows: dict[str, WeakRows], classes: int) -> NDArray[np.float64]:
    """[class], the shares among the dev rows, none of them 0."""
    counts = np.bincount(rows["dev"].labels, minlength=classes) + 1.0
    return np.asarray(counts / counts.sum())


def read_weak_rows(folder: Path) -> dict[str, WeakRows]:
    """The three splits of a set."""
    rows = {}
    for split in ("train", "dev", "test"):
        lines = read_lines(folder, split)
        if lines is None:
            raise InputError(
                f"`{folder}` should hold train, dev and test files with weak labels. Found no "
                f"{split}.jsonl. Choose another set."
            )
        try:
            rows[split] = _rows(lines)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"Every line of `{folder.name}/{split}` should have `text`, `label` and as many "
                f"`weak_labels` as the others. Found: {error}."
            ) from error
    return rows


def _rows(lines: Sequence[dict[str, Any]]) -> WeakRows:
    columns = {"text": [str(line["text"]) for line in lines]}
    if "entity1" in lines[0]:
        columns["text2"] = [f"{line['entity1']} and {line['entity2']}" for line in lines]
    return WeakRows(
        inputs=pa.table(columns),
        labels=np.array([int(line["label"]) for line in lines], dtype=np.int64),
        votes=np.array([line["weak_labels"] for line in lines], dtype=np.int64),
    )
