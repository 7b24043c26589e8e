"""What peers read of rows: n-grams of texts, windows of words, or the vectors of an encoding.

A matrix for each kind of input, [row, feature], whose rows have a mean squared length of 1 in training,
so that one penalty means the same for all of them. Texts are sparse n-grams (`Ngrams`), a pair those of
both texts and how they overlap. A word of a sentence is described by itself, its form, its ends and its
neighbours. Vectors of a pretrained encoder are standardised; columns of tables are so already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.tasks import (
    DenseInputs,
    Encoding,
    FeatureEncoding,
    InputKind,
    KeptByTable,
    Ngrams,
    Question,
    TableEncoding,
    Task,
    TaskSet,
    encode_with,
    learned_by,
)

Matrix: TypeAlias = Any  # [row, feature], an array or a sparse matrix of scipy's
READABLE: frozenset[InputKind] = frozenset({"text", "pair", "table", "tokens"})
OVERLAPS = 3  # features of how the texts of a pair overlap; each counts as much as a text
MOST_WINDOWS = 100_000  # features of words in their windows, the most frequent ones
MANY_WORDS = 500  # from here on, what was seen once costs twice the seconds and teaches nothing
NO_WORD = np.uint64(0x5EED)  # stands for what is beyond the end of a sentence
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of an encoding, shifted and scaled."""

    encoding: FeatureEncoding | TableEncoding
    learned: Mapping[str, Any]
    shift: NDArray[np.float32]  # [feature]
    scale: NDArray[np.float32]  # [feature]

    @classmethod
    def fit(
        cls, encoding: FeatureEncoding | TableEncoding, tasks: TaskSet, splits: Sequence[str]
    ) -> Vectors:
        wide = any(task.inputs == "pair" for task in tasks)
        if isinstance(encoding, FeatureEncoding) and wide:
            encoding = replace(encoding, as_pairs=True)  # a single text is as wide without company
        encoded = encoding.encode(tasks)
        learned = learned_by(encoding, tasks, encoded)
        distinct = {
            id(split.inputs): _dense(split.inputs)
            for task in encoded
            for name, split in task.splits.items()
            if name in splits
        }
        rows = np.concatenate(list(distinct.values()))
        shift = np.zeros(rows.shape[1], np.float32)
        scale = np.ones(rows.shape[1], np.float32)
        if not isinstance(encoding, TableEncoding):  # which has standardised them
            deviations = rows.std(axis=0)
            shift, scale = rows.mean(axis=0), np.where(deviations > 1e-6, deviations, 1)
        length = np.sqrt(np.square((rows - shift) / scale).sum(axis=1).mean()) if len(rows) else 1
        return cls(encoding, learned, shift, (scale * (length or 1)).astype(np.float32))

    def matrix(self, tasks: TaskSet) -> Matrix:
        """Of the one split of the one task."""
        (split,) = encode_with(self.encoding, self.learned, tasks)[0].splits.values()
        values = _dense(split.inputs)
        if values.shape[1] != len(self.shift):
            raise InputError(
                f"The vectors should have {len(self.shift)} numbers, as those that the peer was fitted "
                f"to. Found {values.shape[1]}. Give the encoder that it was fitted on."
            )
        return (values - self.shift) / self.scale


def _dense(inputs: Any) -> NDArray[np.float32]:
    if not isinstance(inputs, DenseInputs) or inputs.values.dim() != 2:
        raise InputError(
            "Peers should read one vector a row. Found inputs of another form. Leave `encoding` out, "
            "or race without peers."
        )
    return inputs.values.float().cpu().numpy()


@dataclass(frozen=True, eq=False)
class Texts:
    """N-grams of texts and of pairs of texts."""

    known: Ngrams

    @classmethod
    def fit(cls, tables: Iterable[pa.Table]) -> Texts:
        return cls(Ngrams.fit(list(tables)))

    def matrix(self, table: pa.Table) -> Matrix:
        from scipy import sparse

        found = self.known.matrix(table) * np.float32(np.sqrt(0.5))  # words and characters
        if "text2" not in table.column_names:
            return found
        first, second = found[::2], found[1::2]
        shared = (first != 0).multiply(second != 0).sum(axis=1).A1
        sizes = [np.diff(each.indptr) for each in (first, second)]
        overlaps = np.stack(
            [
                first.multiply(second).sum(axis=1).A1,  # the cosine
                shared / np.maximum(sizes[0] + sizes[1] - shared, 1),
                np.minimum(*sizes) / np.maximum(np.maximum(*sizes), 1),
            ],
            axis=1,
        )
        whole = sparse.hstack([first, second, overlaps.astype(np.float32)], format="csr")
        return whole * np.float32(np.sqrt(0.5))


@dataclass(frozen=True, eq=False)
class Windows:
    """What a word is, how it is written, and the same of two words before and behind it."""

    keys: NDArray[np.uint64]  # [feature], sorted

    @classmethod
    def fit(cls, tables: Iterable[pa.Table]) -> Windows:
        found = [_window_keys(table.column("tokens").to_pylist()) for table in tables]
        every = np.concatenate([np.zeros(0, np.uint64), *(keys.ravel() for keys in found)])
        keys, counts = np.unique(every, return_counts=True)
        words = sum(map(len, found))
        keys, counts = (each[counts >= (2 if words > MANY_WORDS else 1)] for each in (keys, counts))
        return cls(np.sort(keys[np.argsort(-counts, kind="stable")[:MOST_WINDOWS]]))

    def matrix(self, table: pa.Table) -> Matrix:
        from scipy import sparse

        keys = _window_keys(table.column("tokens").to_pylist())
        places = np.searchsorted(self.keys, keys)
        places[places == len(self.keys)] = 0
        known = self.keys[places] == keys if len(self.keys) else np.zeros(keys.shape, np.bool_)
        rows = np.broadcast_to(np.arange(len(keys))[:, None], keys.shape)
        values = np.full(int(known.sum()), 1 / np.sqrt(keys.shape[1]), np.float32)
        shape = (len(keys), len(self.keys))
        return sparse.csr_matrix((values, (rows[known], places[known])), shape=shape)


# Of a word: itself, in lower case, its first and last two and three letters, its form; and how far the
# neighbours are of which the same is looked at.
_LOOKS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (0, (0,)),
    (1, (-2, -1, 0, 1, 2)),
    (2, (0,)),
    (3, (-1, 0, 1)),
    (4, (0,)),
    (5, (-1, 0, 1)),
)


def _window_keys(sentences: Sequence[Sequence[str] | None]) -> NDArray[np.uint64]:
    """[word, feature], 64 bits of everything that is looked at."""
    words = [word or "" for sentence in sentences for word in sentence or ()]
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64)
    looks = np.array([_looks(word) for word in numbers], np.uint64).reshape(len(numbers), 6)[places]
    lengths = [len(sentence or ()) for sentence in sentences]
    sentence_of = np.repeat(np.arange(len(lengths)), lengths)
    columns = []
    for look, distances in _LOOKS:
        for distance in distances:
            column = np.full(len(words), NO_WORD)
            beyond = np.arange(len(words)) + distance
            there = (beyond >= 0) & (beyond < len(words))
            there[there] = sentence_of[beyond[there]] == sentence_of[there]
            column[there] = looks[beyond[there], look]
            columns.append(column * _ODD + np.uint64(16 * look + distance + 2))
    return np.stack(columns, axis=1) * _ODD


def _looks(word: str) -> list[int]:
    small = word.lower()
    form = "".join(_form(letter) for letter in word)
    short = "".join(a for a, b in zip(form, f"{form[1:]} ", strict=True) if a != b)  # runs as one
    ends = (small[:3], small[-3:], small[-2:])
    looks = (word, small, ends[0], ends[1], ends[2], short)
    return [
        int.from_bytes(hashlib.blake2b(each.encode("utf-8", "replace"), digest_size=8).digest())
        for each in looks
    ]


def _form(letter: str) -> str:
    if letter.isdigit():
        return "0"
    if letter.isalpha():
        return "A" if letter.isupper() else "a"
    return letter


@dataclass(frozen=True, eq=False)
class PeerFeatures:
    """The features of every kind of input among some tasks."""

    texts: Texts | None = None
    windows: Windows | None = None
    vectors: Vectors | None = None  # of the encoding that was given
    columns: Vectors | None = None  # of tables
    _made: KeptByTable[Matrix] = field(default_factory=KeptByTable, repr=False)

    @classmethod
    def fit(cls, tasks: TaskSet, splits: Sequence[str], encoding: Encoding | None) -> PeerFeatures:
        """What the rows of these splits tell, of all tasks together."""
        if not isinstance(encoding, FeatureEncoding | TableEncoding):
            encoding = None  # ids of words, which nothing linear reads
        tables = _select(tasks, lambda task: task.inputs == "table")
        others = _select(tasks, lambda task: task.inputs != "table")
        of_tables = encoding if isinstance(encoding, TableEncoding) else TableEncoding()
        columns = Vectors.fit(of_tables, tables, splits) if tables else None
        if isinstance(encoding, FeatureEncoding):
            vectors = Vectors.fit(encoding, others, splits) if others else None
            return cls(vectors=vectors, columns=columns)
        tagged = _select(others, lambda task: task.kind == "tagging")
        whole = _select(others, lambda task: task.kind != "tagging")
        return cls(
            texts=Texts.fit(_tables(whole, splits)) if whole else None,
            windows=Windows.fit(_tables(tagged, splits)) if tagged else None,
            columns=columns,
        )

    def matrix(self, question: Question, inputs: pa.Table) -> Matrix:
        """[row, feature], or [word, feature] of a task whose words are labelled."""
        options = (question.inputs, question.kind == "tagging")
        known = self._made.get(inputs, options)
        return (
            known
            if known is not None
            else self._made.put(inputs, options, self._matrix(question, inputs))
        )

    def _matrix(self, question: Question, inputs: pa.Table) -> Matrix:
        vectors = self.columns if question.inputs == "table" else self.vectors
        if vectors is not None:
            return vectors.matrix(TaskSet((question.unanswered(inputs),)))
        reader = self.windows if question.kind == "tagging" else self.texts
        if reader is None:
            raise InputError(
                f"The peer should have been fitted to tasks like `{question.name}`. Found none of "
                f"{question.inputs}."
            )
        return reader.matrix(inputs)

    def width(self, question: Question) -> int:
        """How many features a row of the task has."""
        vectors = self.columns if question.inputs == "table" else self.vectors
        if vectors is not None:
            return len(vectors.shift)
        if question.kind == "tagging":
            return len(self.windows.keys) if self.windows is not None else 0
        known = len(self.texts.known) if self.texts is not None else 0
        return 2 * known + OVERLAPS if question.inputs == "pair" else known

    @property
    def base(self) -> FeatureEncoding | None:
        """How a pretrained encoder is read whose weights are not among the arrays."""
        encoding = None if self.vectors is None else self.vectors.encoding
        return encoding if isinstance(encoding, FeatureEncoding) else None

    def with_base(self, encoding: FeatureEncoding) -> PeerFeatures:
        """The same by an encoder that lies elsewhere."""
        assert self.vectors is not None
        return replace(self, vectors=replace(self.vectors, encoding=encoding), _made=KeptByTable())


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Matrices, all sparse or none, one below the other."""
    from scipy import sparse

    if len(parts) == 1:
        return parts[0]
    return (
        sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    )


def _select(tasks: TaskSet, wanted: Callable[[Task], bool]) -> TaskSet:
    return tasks.select([task.name for task in tasks if wanted(task)])


def _tables(tasks: TaskSet, splits: Sequence[str]) -> list[pa.Table]:
    distinct = {
        id(split.inputs): split.inputs
        for task in tasks
        for name, split in task.splits.items()
        if name in splits
    }
    return list(distinct.values())
