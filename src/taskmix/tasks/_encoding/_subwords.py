"""Texts as pieces of words, by the tokenizer of a Hugging Face model.

Tasks encoded source by source, where what is made of one does not depend on the others.

A thousand runs on subsets of the same tasks then encode every task once, and hold the same tensors, of
which a fleet needs one copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import InputError
from taskmix.tasks._encoding._assemble import (
    SourceSplit,
    at_least,
    distinct_tables,
    encoded_tasks,
    plain_targets,
    source_split,
)
from taskmix.tasks._encoding._cache import cached
from taskmix.tasks._encoding._generation import PieceWriter, WrittenSplit
from taskmix.tasks._encoding._inputs import EncodedTasks, SubwordInputs
from taskmix.tasks._encoding._pooling import context_length
from taskmix.tasks._encoding._pretrained import load_pretrained, locate, reading_model, stamp_of
from taskmix.tasks._task import MISSING, KeptByTable, Task, TaskSet

_COLUMNS = {"text": ("text",), "pair": ("text", "text2"), "tokens": ("tokens",)}
_WRITTEN = ("prompt", "passage")
_kept: KeptByTable[EncodedTasks] = KeptByTable()


@dataclass(frozen=True, kw_only=True)
class SubwordEncoding:
    """Texts, pairs of texts, lists of tokens, prompts and passages as `SubwordInputs`.

    A tagged sentence is one row and its targets are [row, word]. A word is read at its first piece.
    One without a piece, because `max_length` cuts it off or the tokenizer drops its characters, is
    left out of training; elsewhere its target stays and it is read at the last piece, so that what
    is lost counts against the model. `extra["lost_words"]` has the number of such words by task.

    A prompt with its answer is one row and its targets are [row, piece], those of the answer; so is a
    window of `max_length` pieces of passages (`_generation.py` has the rules). A prompt that is too
    long loses its beginning. `extra["longest_answer"]` has the pieces of the longest answer in
    training by task, and `extra["context"]` those that the model can read, where that is known.

    >>> SubwordEncoding(path="bert-base-uncased", max_length=64)
    SubwordEncoding(path='bert-base-uncased', max_length=64)
    >>> SubwordEncoding(path="bert-base-uncased", max_length=3)
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `max_length` should be at least 4. Found 3. Give a larger one.
    """

    path: str  # a folder, or a name on the hub
    max_length: int = 128  # pieces, the special ones included

    def __post_init__(self) -> None:
        at_least("max_length", self.max_length, 4)

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks as tensors; from the folder `cache` where the same was encoded before."""
        return encode_by_source(
            tasks, (self, stamp_of(self.path), cache), lambda some: self._cached(some, cache)
        )

    def _cached(self, tasks: TaskSet, cache: Path | None) -> EncodedTasks:
        tokenizer = load_tokenizer(self.path)
        # By what it does, not by its name: a name on the hub may come to mean another tokenizer.
        rules = hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()
        options = repr((self, tokenizer.pad_token_id, tokenizer.model_input_names, rules))
        if any(task.inputs in _WRITTEN for task in tasks):
            ends = tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.model_max_length
            options += repr((tokenizer.chat_template, ends, context_length(self.path)))
        return cached(lambda: self._encode(tasks, tokenizer), tasks, options, cache)

    def encode_with(self, learned: Mapping[str, Any], tasks: TaskSet) -> EncodedTasks:
        """Rows that come after training: passages one by one, and room for answers."""
        return self._encode(tasks, load_tokenizer(self.path), learned.get("longest_answer", {}))

    def _encode(
        self, tasks: TaskSet, tokenizer: Any, longest: Mapping[str, int] | None = None
    ) -> EncodedTasks:
        tables = distinct_tables(
            tasks,
            "SubwordEncoding",
            lambda task: task.inputs in _COLUMNS or task.inputs in _WRITTEN,
            advice="Use `TableEncoding` for tables.",
            needs_train=False,
        )
        inputs: dict[SourceSplit, SubwordInputs] = {}
        words: dict[SourceSplit, Words] = {}
        written: dict[SourceSplit, WrittenSplit] = {}
        for key, table in tables.items():
            if key.inputs in _WRITTEN:
                written[key] = self._written(tasks, key, table, tokenizer, longest)
                inputs[key] = written[key].inputs
                continue
            columns = [table.column(name).to_pylist() for name in _COLUMNS[key.inputs]]
            batch = self._pieces(tokenizer, columns, split_into_words=key.inputs == "tokens")
            if key.tagged:
                words[key] = Words.find(batch, columns[0])
            inputs[key] = subword_inputs(batch, tokenizer.pad_token_id or 0, words.get(key))

        def targets(task: Task, split_name: str) -> Tensor:
            if task.inputs in _WRITTEN:
                return written[source_split(task, split_name)].targets
            flat = plain_targets(task, split_name)
            if task.kind != "tagging":
                return flat
            return words[source_split(task, split_name)].targets(flat, train=split_name == "train")

        lost = {
            task.name: sum(words[source_split(task, name)].lost for name in task.splits)
            for task in tasks
            if task.kind == "tagging"
        }
        answers = {
            task.name: max(
                written[source_split(task, name)].longest
                for name in (["train"] if "train" in task.splits else task.splits)
            )
            for task in tasks
            if task.kind == "generation"
        }
        extra: dict[str, Any] = {
            "tokenizer": self.path,
            "vocabulary_size": len(tokenizer),
            "lost_words": lost,
        }
        if answers:
            extra["longest_answer"] = answers | dict(longest or {})
            extra["context"] = self._writer(tokenizer).context
        sizes = {key: split.target_bytes for key, split in written.items()}
        texts = {key: split.texts for key, split in written.items() if split.texts is not None}
        return encoded_tasks(
            tasks, inputs, targets=targets, sentences=texts, target_bytes=sizes, extra=extra
        )

    def _writer(self, tokenizer: Any) -> PieceWriter:
        return PieceWriter(tokenizer=tokenizer, path=self.path, max_length=self.max_length)

    def _written(
        self,
        tasks: TaskSet,
        key: SourceSplit,
        table: pa.Table,
        tokenizer: Any,
        longest: Mapping[str, int] | None,  # of answers, where rows come after training
    ) -> WrittenSplit:
        writer = self._writer(tokenizer)
        if key.inputs == "passage":
            return writer.passages(table, packed=longest is None)
        name = next(task.name for task in tasks if task.source == key.source)
        where = f"the split `{key.split}` of task `{name}`"
        return writer.prompts(table, where=where, longest=(longest or {}).get(name, 1))

    def _pieces(self, tokenizer: Any, columns: list[list[Any]], *, split_into_words: bool) -> Any:
        if not columns[0]:  # tokenizers refuse to be given nothing
            return {"input_ids": []}
        empty: Any = [] if split_into_words else ""
        with reading_model(self.path):
            return tokenizer(
                *([row or empty for row in column] for column in columns),
                is_split_into_words=split_into_words,
                truncation=True,
                max_length=self.max_length,
                return_attention_mask=False,
            )


@dataclass(frozen=True, eq=False)
class Words:
    """Where the words of each row are."""

    starts: NDArray[np.int64]  # [row, word], the first piece of each
    inside: NDArray[np.bool_]  # [row, word], whether the row has that many words
    read: NDArray[np.bool_]  # [row, word], whether a piece stands for it

    @classmethod
    def find(cls, batch: Any, rows: list[list[str]]) -> Words:
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        shape = (len(rows), int(lengths.max(initial=0)))
        starts, read = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
        for row in range(len(rows)):
            pieces = batch.encodings[row].word_ids
            starts[row] = max(len(pieces) - 1, 0)
            for piece in range(len(pieces) - 1, -1, -1):  # the first piece has the last word
                if pieces[piece] is not None:
                    starts[row, pieces[piece]] = piece
                    read[row, pieces[piece]] = True
        inside = np.arange(shape[1]) < lengths[:, None]
        return cls(starts * inside, inside, read)

    @property
    def lost(self) -> int:
        return int((self.inside & ~self.read).sum())

    def targets(self, flat: Tensor, *, train: bool) -> Tensor:
        """[row, word], from one target for each word."""
        padded = torch.full(self.inside.shape, MISSING, dtype=flat.dtype)
        padded[torch.from_numpy(self.inside)] = flat
        if train:
            padded[torch.from_numpy(~self.read)] = MISSING
        return padded


def subword_inputs(batch: Any, padding: int, words: Words | None = None) -> SubwordInputs:
    """What a tokenizer gives for all rows, as tensors."""
    # A tokenizer without special pieces gives nothing for an empty text; a model needs something.
    rows = [row or [padding] for row in batch["input_ids"]]
    types = None
    if "token_type_ids" in batch:
        types = _flat([row or [0] for row in batch["token_type_ids"]])
    offsets = torch.zeros(len(rows) + 1, dtype=torch.int64)
    offsets[1:] = torch.tensor([len(row) for row in rows], dtype=torch.int64).cumsum(0)
    starts = None if words is None else torch.from_numpy(words.starts)
    return SubwordInputs(_flat(rows), offsets, padding, types, starts)


def _flat(rows: list[list[int]]) -> Tensor:
    return torch.tensor(list(chain.from_iterable(rows)), dtype=torch.int64)


# What a tokenizer's pieces are in. Without any of them transformers makes one that knows no word.
_PIECES = ("tokenizer.json", "vocab.*", "merges.txt", "*.model", "*.tiktoken", "tekken.json")


def load_tokenizer(path: str) -> Any:
    folder = Path(path)
    found = any(next(folder.glob(pattern), None) for pattern in _PIECES)
    if folder.is_dir() and locate(path).gguf is None and not found:
        raise InputError(
            f"`{path}` should have a tokenizer beside its model, such as `tokenizer.json`. Found none. "
            "Save the tokenizer there with `save_pretrained`."
        )
    tokenizer = load_pretrained("AutoTokenizer", path)
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"The tokenizer of `{path}` should be a fast one, which knows the words of its pieces. "
            f"Found {type(tokenizer).__name__}. Convert it to `tokenizer.json`."
        )
    return tokenizer


def encode_by_source(
    tasks: TaskSet,
    options: Hashable,  # all else that an encoding depends on
    encode: Callable[[TaskSet], EncodedTasks],  # the tasks of one source
) -> EncodedTasks:
    """The tasks of each source as `encode` gives them, in the order of `tasks`."""
    sources: dict[str, list[str]] = {}
    for task in tasks:
        sources.setdefault(task.source, []).append(task.name)
    parts = [_part(tasks.select(names), options, encode) for names in sources.values()]
    if len(parts) == 1:
        return parts[0]
    found = {task.name: task for part in parts for task in part}
    extra: dict[str, Any] = {}
    for part in parts:
        for name, value in part.extra.items():
            known = extra.get(name)
            both = isinstance(value, Mapping) and isinstance(known, Mapping)
            extra[name] = {**known, **value} if both else value  # type: ignore[dict-item]
    return EncodedTasks(tuple(found[name] for name in tasks.names), extra=extra)


def _part(
    tasks: TaskSet, options: Hashable, encode: Callable[[TaskSet], EncodedTasks]
) -> EncodedTasks:
    tables = [split.inputs for task in tasks for split in task.splits.values()]
    if not tables:
        return encode(tasks)
    # The tasks themselves are part of the key: others may share their rows.
    key = (options, tuple(map(id, tasks)))
    known = _kept.get(tables[0], key)
    if known is None:
        known = _kept.put(tables[0], key, encode(tasks))
    return known
