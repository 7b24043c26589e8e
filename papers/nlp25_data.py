"""Text tasks of GLUE, SuperGLUE, TweetEval and ANLI, a few rows of each.

    Wang et al., "GLUE", ICLR 2019; Wang et al., "SuperGLUE", NeurIPS 2019; Barbieri et al.,
    "TweetEval", Findings of EMNLP 2020; Nie et al., "Adversarial NLI", ACL 2020.

A folder has `train`, `dev` and, where its labels are public, `test` files. Where they are not, the
dev rows are the test rows and a part of the train rows is put aside as dev rows. A task without train
rows cannot be a source and is left out, which is why ANLI is missing where only its evaluation rows
are at hand. A question of COPA is two rows, one for each choice, of which one is right; a word of WiC
stands before both of its sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from papers.rows import read_lines
from taskmix.errors import InputError, OptionError
from taskmix.tasks import Split, Task, TaskSet

# Metrics are the benchmarks' own where we have them; else accuracy, or F1 over classes for TweetEval.
METRICS = {
    "glue/cola": "matthews",
    "glue/mnli": "accuracy",
    "glue/mrpc": "f1+accuracy",
    "glue/qnli": "accuracy",
    "glue/qqp": "f1+accuracy",
    "glue/rte": "accuracy",
    "glue/sst2": "accuracy",
    "glue/stsb": "pearson+spearman",
    "glue/wnli": "accuracy",
    "superglue/boolq": "accuracy",
    "superglue/cb": "accuracy",
    "superglue/copa": "accuracy",
    "superglue/wic": "accuracy",
    "superglue/wsc": "accuracy",
    "tweeteval/emoji": "macro_f1",
    "tweeteval/emotion": "macro_f1",
    "tweeteval/hate": "macro_f1",
    "tweeteval/irony": "f1",
    "tweeteval/offensive": "macro_f1",
    "tweeteval/sentiment": "macro_f1",
    "tweeteval/stance_abortion": "macro_f1",
    "tweeteval/stance_atheism": "macro_f1",
    "tweeteval/stance_climate": "macro_f1",
    "tweeteval/stance_feminist": "macro_f1",
    "tweeteval/stance_hillary": "macro_f1",
    "anli/r1": "accuracy",
    "anli/r2": "accuracy",
    "anli/r3": "accuracy",
}
DEV = ("dev", "dev_matched")
PUT_ASIDE = 0.2  # of the train rows, where there are no others for dev
FEWEST_TASKS = 4  # tasks: a target and three sources


@dataclass(frozen=True, kw_only=True)
class Nlp25Source:
    """The folder that holds `glue`, `superglue`, `tweeteval` and `anli`."""

    path: str
    rows: int = 1000  # of each task to train on, at most
    dev_rows: int = 500
    test_rows: int = 1000
    seed: int = 0  # of which rows are taken
    cache: Path | None = None  # of the texts' vectors

    def __post_init__(self) -> None:
        if min(self.rows, self.dev_rows, self.test_rows) < 1:
            raise OptionError(
                "`rows`, `dev_rows` and `test_rows` should be 1 or more. Found "
                f"{self.rows}, {self.dev_rows} and {self.test_rows}."
            )

    def load(self) -> TaskSet:
        """The tasks that have train rows, by name; notes say which are missing."""
        root, tasks, missing = Path(self.path), [], []
        for place, metric in METRICS.items():
            lines = {name: read_lines(root / place, name) for name in ("train", "test", *DEV)}
            dev = next((lines[name] for name in DEV if lines[name]), None)
            if not lines["train"] or not (dev or lines["test"]):
                missing.append(place)
                continue
            tasks.append(self._task(place, metric, lines["train"], dev, lines["test"]))
        if len(tasks) < FEWEST_TASKS:
            raise InputError(
                f"`{root}` should hold {FEWEST_TASKS} tasks or more in folders such as glue/cola. Found "
                f"{len(tasks)} with train rows. Name the folder that has glue in it."
            )
        notes = (f"without train rows, or not there: {', '.join(missing)}",) if missing else ()
        return TaskSet(tuple(tasks), notes)

    def _task(
        self,
        place: str,
        metric: str,
        train: list[dict[str, Any]],
        dev: list[dict[str, Any]] | None,
        test: list[dict[str, Any]] | None,
    ) -> Task:
        name = place.partition("/")[2]
        generator = np.random.default_rng([self.seed, *place.encode()])
        train = _shuffled(train, generator)
        if dev is None or test is None:
            aside = max(min(int(PUT_ASIDE * len(train)), self.dev_rows), 1)
            test, dev, train = test or dev, train[:aside], train[aside:]
        assert test is not None
        parts = {
            "train": train[: self.rows],
            "dev": _shuffled(dev, generator)[: self.dev_rows],
            "test": _shuffled(test, generator)[: self.test_rows],
        }
        try:
            expanded = {split: expand(name, lines) for split, lines in parts.items()}
        except KeyError as error:
            raise InputError(
                f"Every row of `{place}` should have {error}. Found one without."
            ) from None
        is_regression = metric == "pearson+spearman"
        labels: tuple[str, ...] = ()
        if not is_regression:
            every = {row["label"] for lines in expanded.values() for row in lines}
            labels = tuple(str(label) for label in sorted(every))
        pairs = "text2" in expanded["train"][0]
        return Task(
            name=name,
            kind="regression" if is_regression else "classification",
            inputs="pair" if pairs else "text",
            labels=labels,
            metric=metric,
            source=name,
            splits={split: _split(lines, labels) for split, lines in expanded.items()},
        )


def expand(name: str, lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with `text`, `text2` where there are two, and `label`."""
    if name == "copa":
        return [
            {
                "text": f"{line['text']} What was the {line['question']}?",
                "text2": line[f"choice{choice + 1}"],
                "label": int(line["label"] == choice),
            }
            for line in lines
            for choice in (0, 1)
        ]
    if name == "wic":
        return [
            {
                "text": f"{line['word']}: {line['text']}",
                "text2": f"{line['word']}: {line['text2']}",
                "label": line["label"],
            }
            for line in lines
        ]
    wanted = ("text", "text2", "label") if "text2" in lines[0] else ("text", "label")
    return [{key: line[key] for key in wanted} for line in lines]


def _shuffled(lines: list[dict[str, Any]], generator: np.random.Generator) -> list[dict[str, Any]]:
    return [lines[place] for place in generator.permutation(len(lines))]


def _split(lines: Sequence[dict[str, Any]], labels: tuple[str, ...]) -> Split:
    texts = {
        key: [str(line[key]) for line in lines] for key in ("text", "text2") if key in lines[0]
    }
    targets: NDArray[Any]
    if labels:
        targets = np.array([labels.index(str(line["label"])) for line in lines], dtype=np.int64)
    else:
        targets = np.array([float(line["label"]) for line in lines])
    return Split(pa.table(texts), targets)
