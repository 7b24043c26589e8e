"""A set of weak supervision as tasks: one for each choice of labelling functions.

    Zhang, Yu, Li, Wang, Yang, Yang and Ratner, "WRENCH: A Comprehensive Benchmark for Weak
    Supervision", NeurIPS 2021 Datasets and Benchmarks.

Every row has a `label` and `weak_labels`, a vote of each function, -1 where it abstains. No true label
is trained on. All functions answer by one output layer, so the votes of chosen functions are the train
rows of one task, every vote a row: a batch has rows of a function in proportion to its votes. Dev and
test rows have their true labels. Three more tasks stand for what one would do otherwise: `vote` and
`label model` have the train rows that some function votes on, with the majority vote and the choice of
the label model, and `truth` has all train rows with their true labels. A relation between two marked
entities is read as the sentence and, as a second text, the two.

A function that only ever votes for one class teaches a constant when it is alone. With `abstains="other
class"` it also has, for each of its votes, a row on which it abstains, labelled with another class
drawn by the classes' shares among dev rows.

A set without train rows (chemprot here) has its dev rows divided: the votes on two thirds are trained
on, and one third is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from papers.label_model import ABSTAIN, fit_label_model, majority_vote
from papers.rows import read_lines
from taskmix.errors import InputError
from taskmix.tasks import Split, Task, TaskSet

VOTE, LABEL_MODEL, TRUTH = "vote", "label model", "truth"
F1_SETS = ("sms", "cdr")  # of two classes, one of them rare
MEASURED_SHARE = 1 / 3  # of the dev rows, where there are no train rows
Abstains = Literal["left out", "other class"]


@dataclass(frozen=True, kw_only=True)
class WeakRows:
    """The rows of one split."""

    inputs: pa.Table
    labels: NDArray[np.int64]  # [row], true
    votes: NDArray[np.int64]  # [row, function]

    def take(self, rows: NDArray[np.int64]) -> WeakRows:
        """Some of them."""
        return WeakRows(
            inputs=self.inputs.take(pa.array(rows)),
            labels=self.labels[rows],
            votes=self.votes[rows],
        )


@dataclass(frozen=True, kw_only=True)
class WeakSource:
    """The folder of a set, and the choices of functions to train on."""

    path: str
    choices: tuple[tuple[int, ...], ...] = ()
    abstains: Abstains = "left out"
    seed: int = 0  # of ties in the majority vote, and of rows and labels where a function abstains

    def load(self) -> TaskSet:
        """A task for each choice, and the three others."""
        rows = read_weak_rows(Path(self.path))
        train = rows["train"]
        classes = class_count(rows)
        labels = tuple(str(label) for label in range(classes))
        metric = "f1" if Path(self.path).name in F1_SETS else "accuracy"
        measured = {name: Split(rows[name].inputs, rows[name].labels) for name in ("dev", "test")}
        kind: Any = "pair" if "text2" in train.inputs.column_names else "text"

        def task(name: str, places: NDArray[np.int64], targets: NDArray[np.int64]) -> Task:
            return Task(
                name=name,
                kind="classification",
                inputs=kind,
                labels=labels,
                metric=metric,
                source=name,
                splits={"train": Split(train.inputs.take(pa.array(places)), targets), **measured},
            )

        def some(name: str, targets: NDArray[np.int64]) -> Task:
            kept = np.flatnonzero(targets != ABSTAIN)
            return task(name, kept, targets[kept])

        balance = class_balance(rows, classes)
        functions = {
            number: self._votes(train.votes[:, number], number, balance)
            for number in sorted({number for choice in self.choices for number in choice})
        }
        chosen = []
        for choice in dict.fromkeys(self.choices):
            places = np.concatenate([functions[number][0] for number in choice])
            targets = np.concatenate([functions[number][1] for number in choice])
            chosen.append(task(name_of(choice), places, targets))
        voted, modelled = chosen_labels(rows, classes, seed=self.seed)
        others = [some(VOTE, voted), some(LABEL_MODEL, modelled), some(TRUTH, train.labels)]
        return TaskSet((*chosen, *others))

    def _votes(
        self, votes: NDArray[np.int64], number: int, balance: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The train rows of a function and their labels."""
        places = np.flatnonzero(votes != ABSTAIN)
        classes = np.unique(votes[places])
        if self.abstains == "left out" or len(classes) != 1:
            return places, votes[places]
        generator = np.random.default_rng([self.seed, number])
        silent = generator.permutation(np.flatnonzero(votes == ABSTAIN))[: len(places)]
        shares = balance.copy()
        shares[classes[0]] = 0.0
        drawn = generator.choice(len(shares), size=len(silent), p=shares / shares.sum())
        return np.concatenate([places, silent]), np.concatenate([votes[places], drawn])


def name_of(choice: Sequence[int]) -> str:
    """What the task of these functions is called: `functions 0 3`."""
    return "functions " + " ".join(str(number) for number in choice)


def voting(rows: dict[str, WeakRows]) -> list[int]:
    """The functions that vote on some train row."""
    return [int(place) for place in np.flatnonzero((rows["train"].votes != ABSTAIN).any(axis=0))]


def class_count(rows: dict[str, WeakRows]) -> int:
    """Of labels and votes."""
    return 1 + max(int(max(part.labels.max(), part.votes.max())) for part in rows.values())


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
        if lines is None and split == "train":
            continue
        if lines is None:
            raise InputError(
                f"`{folder}` should hold dev and test files with weak labels. Found no "
                f"{split}.jsonl. Choose another set."
            )
        try:
            rows[split] = _rows(lines)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"Every line of `{folder.name}/{split}` should have `text`, `label` and as many "
                f"`weak_labels` as the others. Found: {error}."
            ) from error
    if "train" not in rows:
        order = np.random.default_rng(0).permutation(len(rows["dev"].labels))
        measured = round(MEASURED_SHARE * len(order))
        rows["train"] = rows["dev"].take(np.sort(order[measured:]))
        rows["dev"] = rows["dev"].take(np.sort(order[:measured]))
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
