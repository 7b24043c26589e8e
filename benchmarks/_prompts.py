"""Three tasks with a prompt and an answer, made from labelled texts: reviews, news, wishes of customers.

The texts are those of `glue/sst2`, `agnews` and `banking77` in the folder that TASKMIX_DATA names.
Answers are one word for the first two and up to ten for the third, which has 77 of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from taskmix.tasks import TaskSet, read_rows, tables_as_tasks

OPINIONS = ("negative", "positive")
TOPICS = ("world", "sports", "business", "science")


@dataclass(frozen=True)
class _Origin:
    """A labelled set, and how it is asked about."""

    folder: str
    held_out: str  # the file whose rows are for the test
    question: str
    answer: Callable[[Any], str]


ORIGINS = {
    "opinion": _Origin(
        "glue/sst2",
        "dev",
        "Is this review positive or negative?",
        lambda label: OPINIONS[int(label)],
    ),
    "topic": _Origin(
        "agnews",
        "test",
        "Is this news about the world, sports, business or science?",
        lambda label: TOPICS[int(label)],
    ),
    "wish": _Origin(
        "banking77",
        "test",
        "What does this customer of a bank ask about? Answer in a few words.",
        lambda label: str(label).replace("_", " "),
    ),
}


@dataclass(frozen=True)
class Prompts:
    """So many rows of each of the tasks, drawn by a fixed seed."""

    train: int = 2000
    dev: int = 200
    test: int = 200
    data: str | None = None  # TASKMIX_DATA unless given

    def load(self) -> TaskSet:
        return tables_as_tasks({name: self._splits(origin) for name, origin in ORIGINS.items()})

    def _splits(self, origin: _Origin) -> dict[str, pa.Table]:
        folder = Path(self.data or os.environ["TASKMIX_DATA"]) / origin.folder
        chance = random.Random(0)
        rows = read_rows(folder / "train.jsonl.gz").table.to_pylist()
        mixed = chance.sample(rows, min(self.train + self.dev, len(rows)))
        held_out = read_rows(folder / f"{origin.held_out}.jsonl.gz").table.to_pylist()
        parts = {
            "train": mixed[self.dev :],
            "dev": mixed[: self.dev],
            "test": chance.sample(held_out, min(self.test, len(held_out))),
        }
        return {name: self._table(origin, part) for name, part in parts.items()}

    def _table(self, origin: _Origin, rows: list[dict[str, Any]]) -> pa.Table:
        prompts = [f"{origin.question}\n\n{row['text'].strip()}" for row in rows]
        return pa.table(
            {"prompt": prompts, "answer": [origin.answer(row["label"]) for row in rows]}
        )
