"""Sentences as one window of word ids for each token, with one vocabulary for all tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.tasks._encoding._assemble import (
    SourceSplit,
    at_least,
    distinct_tables,
    encoded_tasks,
    plain_targets,
)
from taskmix.tasks._encoding._cache import cached
from taskmix.tasks._encoding._encoded import EncodedTasks
from taskmix.tasks._encoding._inputs import WindowInputs
from taskmix.tasks._encoding._vocabulary import PADDING, WordNumbers, word_ids
from taskmix.tasks._encoding._words import Lexicon, vectors_hash
from taskmix.tasks._task import MISSING, Task, TaskSet

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, kw_only=True)
class WindowEncoding:
    """Tagging as `WindowInputs`: each token is a row, `sentences` says where sentences begin.

    Words are counted, and kept for their vectors, as in `WordEncoding`. With `io_training` the
    targets of `train` lose the difference between `B-` and `I-` (a type that has no `I-` among its
    labels keeps `B-`); `dev` and `test` stay as they are, and `entity_f1` reads both.

    >>> import pyarrow as pa
    >>> rows = pa.table({"tokens": [["in", "Rome"], ["in"]], "tags": [["O", "I-LOC"], ["O"]]})
    >>> encoded = WindowEncoding(width=1).encode(tables_as_tasks({"a": {"train": rows, "dev": rows}}))
    >>> encoded.vocabulary
    ('<padding>', '<unknown>', 'in', 'rome')
    >>> encoded["a"].splits["train"].inputs.batch(torch.tensor([0, 1, 2])).tolist()
    [[0, 2, 3], [2, 3, 0], [0, 2, 0]]
    """

    width: int = 3  # neighbours on each side
    lowercase: bool = True
    digits_to_zero: bool = True  # 1996 and 1997 are one word, 0000
    min_count: int = 1
    vectors: Path | None = None
    keep_words_with_vectors: bool = True
    io_training: bool = False

    def __post_init__(self) -> None:
        at_least("width", self.width, 0)
        at_least("min_count", self.min_count, 1)

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks as tensors; from the folder `cache` where the same was encoded before."""
        options = repr((replace(self, vectors=None), vectors_hash(self.vectors, cache)))
        return cached(lambda: self._encode(tasks), tasks, options, cache)

    def _encode(self, tasks: TaskSet) -> EncodedTasks:
        tokens, offsets, numbers = self._rows(tasks)
        seen = np.zeros(len(numbers), dtype=np.int64)
        for key, flat in tokens.items():
            if key.split == "train":
                seen += np.bincount(flat, minlength=len(numbers))
        lexicon = Lexicon.build(
            dict(zip(numbers, seen.tolist(), strict=True)),
            min_count=self.min_count,
            max_words=None,
            vectors=self.vectors,
            keep_words_with_vectors=self.keep_words_with_vectors,
        )
        return self._encoded(tasks, tokens, offsets, numbers, lexicon)

    def encode_with(self, learned: Mapping[str, Any], tasks: TaskSet) -> EncodedTasks:
        """Sentences by a vocabulary that was learned before; nothing is learned from them."""
        tokens, offsets, numbers = self._rows(tasks, needs_train=False)
        lexicon = Lexicon(tuple(learned["vocabulary"]), None, {})
        return self._encoded(tasks, tokens, offsets, numbers, lexicon)

    def _rows(
        self, tasks: TaskSet, *, needs_train: bool = True
    ) -> tuple[
        dict[SourceSplit, NDArray[np.int64]], dict[SourceSplit, NDArray[np.int64]], WordNumbers
    ]:
        """The words of all sentences as numbers, where sentences begin, and the words."""
        tables = distinct_tables(
            tasks,
            "WindowEncoding",
            lambda task: task.kind == "tagging" and task.inputs == "tokens",
            advice="Use `WordEncoding` to classify whole texts.",
            needs_train=needs_train,
        )
        numbers = WordNumbers()
        tokens: dict[SourceSplit, NDArray[np.int64]] = {}
        offsets: dict[SourceSplit, NDArray[np.int64]] = {}
        for key, table in tables.items():
            places, distinct, offsets[key] = _tokens(table)
            here = [numbers[self._word(word)] for word in distinct]
            tokens[key] = np.array(here, dtype=np.int64)[places]
        return tokens, offsets, numbers

    def _encoded(
        self,
        tasks: TaskSet,
        tokens: Mapping[SourceSplit, NDArray[np.int64]],
        offsets: Mapping[SourceSplit, NDArray[np.int64]],
        numbers: WordNumbers,
        lexicon: Lexicon,
    ) -> EncodedTasks:
        lookup = word_ids(numbers, lexicon.vocabulary)
        inputs = {key: self._windows(lookup[flat], offsets[key]) for key, flat in tokens.items()}
        return encoded_tasks(
            tasks,
            inputs,
            targets=self._targets,
            sentences={key: torch.from_numpy(places) for key, places in offsets.items()},
            vocabulary=lexicon.vocabulary,
            vectors=lexicon.vectors,
            extra=lexicon.extra,
        )

    def _word(self, word: str) -> str:
        word = word.lower() if self.lowercase else word
        return _DIGIT.sub("0", word) if self.digits_to_zero else word

    def _windows(self, ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> WindowInputs:
        lengths = np.diff(offsets)
        sentence = np.repeat(np.arange(len(lengths)), lengths)  # [token]
        centres = np.arange(len(ids)) + (sentence + 1) * self.width
        padded = np.full(len(ids) + (len(lengths) + 1) * self.width, PADDING, dtype=np.int64)
        padded[centres] = ids
        return WindowInputs(torch.from_numpy(padded), torch.from_numpy(centres), self.width)

    def _targets(self, task: Task, split_name: str) -> Tensor:
        targets = plain_targets(task, split_name)
        if not self.io_training or split_name != "train":
            return targets
        places = {label: i for i, label in enumerate(task.labels)}
        inside = [
            places.get(f"I{label[1:]}", i) if re.match("B(-|$)", label) else i
            for label, i in places.items()
        ]
        known = targets != MISSING
        result = targets.clone()
        result[known] = torch.tensor(inside)[targets[known]]
        return result


def _tokens(table: pa.Table) -> tuple[NDArray[np.int64], list[str], NDArray[np.int64]]:
    """For each token the place of its word among the distinct ones, these, and the offsets."""
    lists = table.column("tokens").combine_chunks()
    encoded = lists.flatten().dictionary_encode()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers, encoded.dictionary.to_pylist(), offsets
