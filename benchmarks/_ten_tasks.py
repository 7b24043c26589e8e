"""Ten classifications of short English texts, cut to a common size, from the data at hand.

python benchmarks/_ten_tasks.py FOLDER    # reads $TASKMIX_DATA
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

# The folder of each task, and which of its splits stand for train, dev and test.
TASKS = {
    "agnews": ("agnews", "train", "train", "test"),
    "banking": ("banking77", "train", "train", "test"),
    "cola": ("glue/cola", "train", "train", "dev"),
    "emotion": ("tweeteval/emotion", "train", "dev", "test"),
    "hate": ("tweeteval/hate", "train", "dev", "test"),
    "irony": ("tweeteval/irony", "train", "dev", "test"),
    "offensive": ("tweeteval/offensive", "train", "dev", "test"),
    "reviews": ("fdu_mtl/mr", "train", "dev", "test"),
    "sentiment": ("tweeteval/sentiment", "train", "dev", "test"),
    "sst2": ("glue/sst2", "train", "train", "dev"),
}
ROWS = {"train": 2000, "dev": 300, "test": 300}


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [{"text": row["text"], "label": str(row["label"])} for row in rows]


def make(folder: Path, data: Path) -> None:
    """Writes the ten tasks as a task folder; rows of one split are never those of another."""
    for name, (place, *splits) in TASKS.items():
        chance = random.Random(0)
        rest: dict[str, list[dict[str, Any]]] = {}
        for split, source in zip(ROWS, splits, strict=True):
            if source not in rest:
                rest[source] = read(data / place / f"{source}.jsonl.gz")
                chance.shuffle(rest[source])
            rows = [rest[source].pop() for _ in range(min(ROWS[split], len(rest[source])))]
            path = folder / name / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(os.environ["TASKMIX_DATA"]))
