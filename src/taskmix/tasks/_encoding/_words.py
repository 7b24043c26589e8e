"""Texts as lists of word ids, with one vocabulary for all tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.tasks._encoding._assemble import SourceSplit, at_least, distinct_tables, encoded_tasks
from taskmix.tasks._encoding._cache import cached, file_hash
from taskmix.tasks._encoding._encoded import EncodedTasks
from taskmix.tasks._encoding._inputs import Inputs, PairInputs, RaggedInputs
from taskmix.tasks._encoding._vectors import place_vectors, read_word_vectors, with_lower
from taskmix.tasks._encoding._vocabulary import WordNumbers, build_vocabulary, tokenize, word_ids
from taskmix.tasks._kept import KeptByTable
from taskmix.tasks._task import TaskSet

_COLUMNS = {"text": ("text",), "pair": ("text", "text2"), "tokens": ("tokens",)}
_WIDEST_KERNEL = 7  # of the text convolution, which needs rows at least as long

# Of a column: its distinct words, the place of each token among them, and where rows begin.
_Parted = tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.int64]]
_parted: KeptByTable[_Parted] = KeptByTable()
# Of each column: the number of each token's word, and where rows begin.
_Columns = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True, kw_only=True)
class WordEncoding:
    """Texts as `RaggedInputs`, pairs of texts as `PairInputs`.

    Words are counted in the `train` rows of all tasks. With `keep_words_with_vectors`, a word that
    the file of vectors knows is in the vocabulary wherever it occurs, in `test` too: its vector is
    known without training on it. Random vectors of other words are part of the encoding, the same
    each time. `extra["coverage"]` is the share of the vocabulary that the file knows.

    >>> import pyarrow as pa
    >>> texts = pa.table({"text": ["good film", "film"], "label": ["yes", "no"]})
    >>> tasks = tables_as_tasks({"a": {"train": texts, "dev": texts}})
    >>> encoded = WordEncoding(min_count=1).encode(tasks)
    >>> encoded.vocabulary, encoded["a"].splits["train"].inputs.ids.tolist()
    (('<padding>', '<unknown>', 'film', 'good'), [3, 2, 2])
    """

    lowercase: bool = True
    min_count: int = 2
    max_words: int | None = 50_000
    max_length: int = 500  # tokens of a text; the rest is cut off
    vectors: Path | None = None
    keep_words_with_vectors: bool = True

    def __post_init__(self) -> None:
        at_least("min_count", self.min_count, 1)
        at_least("max_length", self.max_length, 1)
        if self.max_words is not None:
            at_least("max_words", self.max_words, 0)

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks as tensors; from the folder `cache` where the same was encoded before."""
        options = repr((replace(self, vectors=None), vectors_hash(self.vectors, cache)))
        return cached(lambda: self._encode(tasks), tasks, options, cache)

    def _encode(self, tasks: TaskSet) -> EncodedTasks:
        rows, numbers = self._rows(tasks)
        seen = np.zeros(len(numbers), dtype=np.int64)
        for key, columns in rows.items():
            if key.split == "train":
                for flat, _ in columns:
                    seen += np.bincount(flat, minlength=len(numbers))
        lexicon = Lexicon.build(
            dict(zip(numbers, seen.tolist(), strict=True)),
            min_count=self.min_count,
            max_words=self.max_words,
            vectors=self.vectors,
            keep_words_with_vectors=self.keep_words_with_vectors,
        )
        return _encoded(tasks, rows, numbers, lexicon)

    def encode_with(self, learned: Mapping[str, Any], tasks: TaskSet) -> EncodedTasks:
        """Texts by a vocabulary that was learned before; nothing is learned from them."""
        rows, numbers = self._rows(tasks, needs_train=False)
        return _encoded(tasks, rows, numbers, Lexicon(tuple(learned["vocabulary"]), None, {}))

    def _rows(
        self, tasks: TaskSet, *, needs_train: bool = True
    ) -> tuple[dict[SourceSplit, _Columns], WordNumbers]:
        """The words of all texts as numbers, and the words in the order of their numbers."""
        tables = distinct_tables(
            tasks,
            "WordEncoding",
            lambda task: task.inputs in _COLUMNS and task.kind != "tagging",
            advice="Use `TableEncoding` for tables and `WindowEncoding` for tagging.",
            needs_train=needs_train,
        )
        numbers = WordNumbers()
        rows = {
            key: [self._numbered(table, name, numbers) for name in _COLUMNS[key.inputs]]
            for key, table in tables.items()
        }
        return rows, numbers

    def _numbered(
        self, table: pa.Table, name: str, numbers: WordNumbers
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of all words of a column, and where each row begins; parted into words once."""
        options = (name, self.lowercase, self.max_length)
        known = _parted.get(table, options)
        if known is None:
            here = WordNumbers()
            flat, offsets = here.rows(self._words(table, name))
            known = _parted.put(table, options, (tuple(here), flat.astype(np.int32), offsets))
        words, places, offsets = known
        return np.array([numbers[word] for word in words], dtype=np.int64)[places], offsets

    def _words(self, table: pa.Table, name: str) -> Iterator[Iterable[str]]:
        for row in table.column(name).to_pylist():
            if isinstance(row, list):  # tokens already
                yield (w.lower() if self.lowercase else w for w in row[: self.max_length])
            else:  # a row without a text is an empty one
                yield tokenize(row or "", lowercase=self.lowercase)[: self.max_length]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """A vocabulary, with vectors where a file of them was given."""

    vocabulary: tuple[str, ...]
    vectors: Tensor | None  # [id, dimension]
    extra: Mapping[str, Any]

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int,
        max_words: int | None,
        vectors: Path | None,
        keep_words_with_vectors: bool,
    ) -> Lexicon:
        """The words frequent enough, or known to the file, of those counted."""
        if vectors is None:
            words = build_vocabulary(counts, min_count=min_count, max_words=max_words)
            return cls(words, None, {})
        found, matrix = read_word_vectors(vectors, with_lower(counts.keys()))
        keep: frozenset[str] = frozenset()
        if keep_words_with_vectors:
            known = frozenset(found)
            keep = frozenset(word for word in counts if word in known or word.lower() in known)
        words = build_vocabulary(counts, min_count=min_count, max_words=max_words, keep=keep)
        # The same each time: the encoding is shared by all seeds of a study.
        placed = place_vectors(words, found, matrix, np.random.default_rng(0))
        return cls(words, torch.from_numpy(placed.vectors), {"coverage": placed.coverage})


def _encoded(
    tasks: TaskSet, rows: Mapping[SourceSplit, _Columns], numbers: WordNumbers, lexicon: Lexicon
) -> EncodedTasks:
    lookup = word_ids(numbers, lexicon.vocabulary)
    inputs: dict[SourceSplit, Inputs] = {}
    for key, columns in rows.items():
        first, *second = (_ragged(lookup[flat], offsets) for flat, offsets in columns)
        inputs[key] = PairInputs(first, second[0]) if second else first
    return encoded_tasks(
        tasks,
        inputs,
        vocabulary=lexicon.vocabulary,
        vectors=lexicon.vectors,
        extra=lexicon.extra,
    )


def vectors_hash(vectors: Path | None, cache: Path | None) -> str:
    """What an entry of the cache must know of a file of vectors."""
    if vectors is None or cache is None or not Path(vectors).is_file():
        return ""  # a file that is not there is reported by its reader
    return file_hash(Path(vectors))


def _ragged(ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> RaggedInputs:
    return RaggedInputs(torch.from_numpy(ids), torch.from_numpy(offsets), minimum=_WIDEST_KERNEL)
