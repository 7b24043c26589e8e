r"""Texts as lists of word ids, and sentences as a window of them for each token: one vocabulary for all.

A token of a text is the first of these that fits, from left to right; white space parts tokens:

1. `n't` and `'s 'm 'd 're 've 'll`, the contractions that the Penn Treebank parts from their word,
   because word vectors and corpora that come tokenised have them so: `don't` is `do n't`;
2. a number with decimal points or commas inside: `3.14`, `1,000`;
3. a run of letters and digits, with the combining marks of their script: `mp3`, `naïve`, `தமிழ்`;
4. any other mark by itself: `-` `!` `_` `😀`.

    n't(?!\w) | '(?:s|m|d|re|ve|ll)(?!\w) | \d+(?:[.,]\d+)+
    | [^\W_]+(?:[marks]+[^\W_]*)* | [^\w\s] | _

Typographic apostrophes are read as straight ones.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.tasks._encoding._assemble import (
    SourceSplit,
    at_least,
    distinct_tables,
    encoded_tasks,
    plain_targets,
)
from taskmix.tasks._encoding._cache import cached, file_hash
from taskmix.tasks._encoding._inputs import (
    EncodedTasks,
    Inputs,
    PairInputs,
    RaggedInputs,
    WindowInputs,
)
from taskmix.tasks._encoding._vectors import (
    PADDING,
    UNKNOWN,
    place_vectors,
    read_word_vectors,
    with_lower,
)
from taskmix.tasks._task import MISSING, KeptByTable, Task, TaskSet

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
        return _encoded(tasks, rows, numbers, Lexicon.learned(self, rows, numbers, self.max_words))

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
    def learned(
        cls,
        encoding: WordEncoding | WindowEncoding,
        rows: Mapping[SourceSplit, _Columns],
        numbers: WordNumbers,
        max_words: int | None,
    ) -> Lexicon:
        """The words that are frequent enough in `train`, or known to the file of vectors."""
        seen = np.zeros(len(numbers), dtype=np.int64)
        for key, columns in rows.items():
            for flat, _ in columns if key.split == "train" else ():
                seen += np.bincount(flat, minlength=len(numbers))
        counts = dict(zip(numbers, seen.tolist(), strict=True))
        min_count, vectors = encoding.min_count, encoding.vectors
        if vectors is None:
            words = build_vocabulary(counts, min_count=min_count, max_words=max_words)
            return cls(words, None, {})
        found, matrix = read_word_vectors(vectors, with_lower(counts.keys()))
        keep: frozenset[str] = frozenset()
        if encoding.keep_words_with_vectors:
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


_RESERVED = ("<padding>", "<unknown>")

_CONTRACTIONS = r"n't(?!\w)|'(?:s|m|d|re|ve|ll)(?!\w)"
_ASCII = re.compile(rf"{_CONTRACTIONS}|\d+(?:[.,]\d+)+|[A-Za-z0-9]+|\S")


def tokenize(text: str, *, lowercase: bool = True) -> list[str]:
    """The tokens of a text, as the head of this module describes.

    >>> tokenize("It isn't 3.5 stars!")
    ['it', 'is', "n't", '3.5', 'stars', '!']
    """
    if lowercase:
        text = text.lower()
    # Plain text has no combining marks, so a pattern twice as fast gives the same tokens.
    pattern = _ASCII if text.isascii() else _any_script()
    text = text.replace("\u2019", "'")
    if "n't" in text:
        text = text.replace("n't", " n't")
    return pattern.findall(text)


@cache
def _any_script() -> re.Pattern[str]:
    marks = "".join(chr(i) for i in range(0x10000) if unicodedata.category(chr(i))[0] == "M")
    word = rf"[^\W_]+(?:[{marks}]+[^\W_]*)*"
    return re.compile(rf"{_CONTRACTIONS}|\d+(?:[.,]\d+)+|{word}|[^\w\s]|_")


class WordNumbers(dict[str, int]):
    """Numbers words in the order in which they are met; asking for a new word adds it."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def rows(
        self, rows: Iterable[Iterable[str]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # [token], numbers; [row + 1], offsets
        """The numbers of all words of all rows, one after another, and where each row begins."""
        flat, offsets = array("q"), array("q", [0])
        for row in rows:
            flat.extend(map(self.__getitem__, row))
            offsets.append(len(flat))
        return np.array(flat, dtype=np.int64), np.array(offsets, dtype=np.int64)


def build_vocabulary(
    counts: Mapping[str, int],  # how often each word occurs in the rows to train on
    *,
    min_count: int = 2,
    max_words: int | None = 50_000,
    keep: Collection[str] = (),  # words that need no minimal count: they have a vector already
) -> tuple[str, ...]:
    """The word of each id: padding, unknown, then words from frequent to rare.

    Words that are equally frequent are in alphabetical order, so equal counts give equal ids.

    >>> from collections import Counter
    >>> build_vocabulary(Counter(["film", "film", "good", "bad"]), min_count=2)
    ('<padding>', '<unknown>', 'film')
    """
    if min_count < 1:
        raise OptionError(
            f"`min_count` should be at least 1. Found {min_count}. Words that never occur have no "
            "place in a vocabulary, unless `keep` names them."
        )
    words = [word for word, count in counts.items() if count >= min_count or word in keep]
    words.sort(key=lambda word: (-counts[word], word))
    return (*_RESERVED, *words[:max_words])


def word_ids(
    words: Iterable[str],
    vocabulary: tuple[str, ...],
) -> NDArray[np.int64]:  # [word]
    """The id of each word; unknown ones get `UNKNOWN`."""
    ids = {word: i for i, word in enumerate(vocabulary) if i > UNKNOWN}
    return np.array([ids.get(word, UNKNOWN) for word in words], dtype=np.int64)


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
        rows, numbers = self._rows(tasks)
        return self._encoded(tasks, rows, numbers, Lexicon.learned(self, rows, numbers, None))

    def encode_with(self, learned: Mapping[str, Any], tasks: TaskSet) -> EncodedTasks:
        """Sentences by a vocabulary that was learned before; nothing is learned from them."""
        rows, numbers = self._rows(tasks, needs_train=False)
        return self._encoded(tasks, rows, numbers, Lexicon(tuple(learned["vocabulary"]), None, {}))

    def _rows(
        self, tasks: TaskSet, *, needs_train: bool = True
    ) -> tuple[dict[SourceSplit, _Columns], WordNumbers]:
        """The words of all sentences as numbers, and the words."""
        tables = distinct_tables(
            tasks,
            "WindowEncoding",
            lambda task: task.kind == "tagging" and task.inputs == "tokens",
            advice="Use `WordEncoding` to classify whole texts.",
            needs_train=needs_train,
        )
        numbers = WordNumbers()
        rows: dict[SourceSplit, _Columns] = {}
        for key, table in tables.items():
            lists = table.column("tokens").combine_chunks()
            encoded = lists.flatten().dictionary_encode()
            lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
            here = [numbers[self._word(word)] for word in encoded.dictionary.to_pylist()]
            places = encoded.indices.to_numpy(zero_copy_only=False)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            rows[key] = [(np.array(here, dtype=np.int64)[places], offsets)]
        return rows, numbers

    def _encoded(
        self,
        tasks: TaskSet,
        rows: Mapping[SourceSplit, _Columns],
        numbers: WordNumbers,
        lexicon: Lexicon,
    ) -> EncodedTasks:
        lookup = word_ids(numbers, lexicon.vocabulary)
        inputs = {key: self._windows(lookup[flat], at) for key, [(flat, at)] in rows.items()}
        return encoded_tasks(
            tasks,
            inputs,
            targets=self._targets,
            sentences={key: torch.from_numpy(at) for key, [(_, at)] in rows.items()},
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
