"""Texts as n-grams: how often each has a run of words or of characters, rarer ones counting more.

    Salton and Buckley, "Term-weighting approaches in automatic text retrieval", 1988: the logarithm of
    the count times that of the inverse document frequency, each row of length 1.
    Deerwester and others, "Indexing by latent semantic analysis", 1990: the directions in which such
    rows differ most, which is what `NgramEncoding` gives to a network.

Runs of one and two words, and of two to five characters within a word with a space on each side, are
what scikit-learn's `TfidfVectorizer` finds with `analyzer="word"` and `"char_wb"`; so are the weights.
A run is known by 64 bits that its characters give, so that a vocabulary is an array of numbers and all
rows are counted at once: that two of a million different runs share them happens once in 10 million
vocabularies. The counts of a table are kept while it lives: runs on subsets of tasks count nothing anew.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from taskmix.tasks._encoding._assemble import SourceSplit, at_least, distinct_tables, encoded_tasks
from taskmix.tasks._encoding._cache import cached
from taskmix.tasks._encoding._features import join, texts_of
from taskmix.tasks._encoding._inputs import DenseInputs, EncodedTasks
from taskmix.tasks._task import KeptByTable, TaskSet

CHARACTER_RUNS = (2, 3, 4, 5)
MOST_RUNS = (20_000, 30_000)  # of words and of characters that are known, the most frequent ones
MANY_ROWS = 500  # from here on, a run that is in one row only is not worth a weight
LONG = 1_000_000  # characters of all texts; beyond, words say enough and runs of characters cost minutes
AT_ONCE = 500_000  # characters: their runs are some 30 MB of numbers
DIRECTIONS_FROM = 2_000  # rows, evenly drawn: more of them give much the same directions
_LEARNED = 4  # of encodings, kept in a process for whoever saves the model

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2 ** 64
_CHARACTERS = np.uint64(1 << 63)  # the bit of runs of characters, which lie behind those of words
Numbers = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Ngrams:
    """Which runs of words and characters are known, and what each counts.

    >>> import pyarrow as pa
    >>> known = Ngrams.fit([pa.table({"text": ["good film", "bad film"]})])
    >>> rows = known.matrix(pa.table({"text": ["a good film", "?"]}))
    >>> rows.shape[0], round(float(rows[0].multiply(rows[0]).sum()), 3), rows[1].nnz
    (2, 2.0, 0)
    """

    keys: Numbers  # [feature], sorted: words, then characters
    weights: NDArray[np.float32]  # [feature], the inverse document frequencies

    @classmethod
    def fit(cls, tables: Sequence[pa.Table]) -> Self:
        """Learns which runs the texts of these tables have."""
        sizes = [sum(map(len, texts_of(table))) for table in tables]
        found = [_counted(table, sum(sizes) <= LONG) for table in tables]
        rows = sum(each.counts.shape[0] for each in found)
        every = np.concatenate([np.zeros(0, np.uint64), *(each.keys for each in found)])
        texts = [np.bincount(each.counts.indices, minlength=len(each.keys)) for each in found]
        keys, places = np.unique(every, return_inverse=True)
        counts = np.concatenate([np.zeros(0, np.int64), *texts])
        frequencies = np.bincount(places, counts, minlength=len(keys)).astype(np.int64)
        kept = frequencies >= (2 if rows > MANY_ROWS else 1)
        are_words = keys < _CHARACTERS
        for kind, most in zip((are_words, ~are_words), MOST_RUNS, strict=True):
            several = np.flatnonzero(kind & kept)
            kept[several[np.argsort(-frequencies[several], kind="stable")[most:]]] = False
        rarity = np.log((1 + rows) / (1 + frequencies[kept])) + 1
        return cls(keys[kept], rarity.astype(np.float32))

    def __len__(self) -> int:
        return len(self.keys)

    def matrix(self, table: pa.Table) -> Any:
        """[text, feature], sparse; the words of a text have length 1, and so have its characters.

        Of a table of pairs the texts alternate.
        """
        from scipy import sparse

        words = int(np.searchsorted(self.keys, _CHARACTERS))
        found = _counted(table, words < len(self))
        places = np.searchsorted(self.keys, found.keys)
        places[places == len(self)] = 0
        known = self.keys[places] == found.keys if len(self) else np.zeros(len(places), np.bool_)
        kept = known[found.counts.indices]
        texts = np.repeat(np.arange(found.counts.shape[0]), np.diff(found.counts.indptr))[kept]
        columns = places[found.counts.indices[kept]]
        values = (1 + np.log(found.counts.data[kept])) * self.weights[columns]
        blocks = 2 * texts + (columns >= words)
        squares = np.bincount(blocks, values.astype(np.float64) ** 2)
        values /= np.sqrt(squares[blocks]).astype(np.float32)
        shape = (found.counts.shape[0], len(self))
        begins = np.append(0, np.cumsum(np.bincount(texts, minlength=shape[0])))
        return sparse.csr_matrix((values, columns, begins), shape=shape)


@dataclass(frozen=True, kw_only=True)
class NgramEncoding:
    """Texts and pairs of texts as `DenseInputs`: where their n-grams lie in some directions.

    The directions are those in which the `train` rows of all tasks differ most, all on one scale, so
    that the first ones count most. A pair is [u, v, |u - v|, u * v]; single texts are as wide, filled up
    with zeros, where a task of pairs is among the tasks.

    >>> import pyarrow as pa
    >>> texts = pa.table({"text": ["good film", "bad film", "good"], "label": ["yes", "no", "yes"]})
    >>> tasks = tables_as_tasks({"a": {"train": texts, "dev": texts}})
    >>> NgramEncoding(width=2).encode(tasks)["a"].splits["train"].inputs.values.shape
    torch.Size([3, 2])
    """

    width: int = 256  # directions; at most as many as rows

    def __post_init__(self) -> None:
        at_least("width", self.width, 1)

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks as tensors; from the folder `cache` where the same was encoded before."""
        return cached(
            lambda: self.encode_with(self.learned(tasks), tasks), tasks, repr(self), cache
        )

    def learned(self, tasks: TaskSet) -> Mapping[str, Any]:
        """The n-grams and the directions, tensors among them: the same whenever it is asked."""
        key = (self, tasks.content)
        if key not in _learned:
            _learned[key] = self._fit(tasks)
            if len(_learned) > _LEARNED:
                _learned.popitem(last=False)
        return _learned[key]

    def encode_with(self, learned: Mapping[str, Any], tasks: TaskSet) -> EncodedTasks:
        """Texts in directions that were learned before; nothing is learned from them."""
        known = Ngrams(learned["keys"].numpy().view(np.uint64), learned["weights"].numpy())
        directions = learned["directions"].float().numpy()
        shift, scale = learned["shift"].numpy(), np.float32(learned["scale"])
        inputs: dict[SourceSplit, DenseInputs] = {}
        for key, table in _tables(tasks, needs_train=False).items():
            vectors = (known.matrix(table) @ directions - shift) / scale
            texts = 2 if key.inputs == "pair" else 1
            shaped = torch.from_numpy(vectors.astype(np.float32)).view(
                table.num_rows, texts, directions.shape[1]
            )
            inputs[key] = DenseInputs(join(shaped, wide=learned["wide"]))
        features = directions.shape[1] * (4 if learned["wide"] else 1)
        return encoded_tasks(tasks, inputs, features=features)

    def _fit(self, tasks: TaskSet) -> dict[str, Any]:
        from scipy import sparse
        from scipy.linalg import eigh

        tables = [t for key, t in _tables(tasks).items() if key.split == "train"]
        known = Ngrams.fit(tables)
        rows = sparse.vstack([known.matrix(table) for table in tables], format="csr")
        some = rows[:: -(-rows.shape[0] // DIRECTIONS_FROM)] if rows.shape[0] else rows
        width = max(min(self.width, *some.shape), 1)
        directions = np.zeros((rows.shape[1], width), np.float32)
        if some.nnz:
            # The products of rows have the same directions, and there are fewer rows than n-grams.
            squares, sides = eigh((some @ some.T).toarray().astype(np.float64))
            sides, squares = sides[:, : -width - 1 : -1], squares[: -width - 1 : -1]
            largest = np.abs(sides).argmax(axis=0)  # which is above 0: signs are free otherwise
            sides *= np.sign(sides[largest, np.arange(width)])
            along = some.T @ sides / np.sqrt(np.maximum(squares, squares[0] * 1e-9))
            directions = along.astype(np.float16)  # as they are saved
        vectors = some @ directions.astype(np.float32)
        shift = vectors.mean(axis=0) if len(vectors) else np.zeros(width)
        spread = float(np.sqrt(vectors.var(axis=0).mean())) if len(vectors) else 0.0
        return {
            "keys": torch.from_numpy(known.keys.view(np.int64)),
            "weights": torch.from_numpy(known.weights),
            "directions": torch.from_numpy(directions.astype(np.float16)),
            "shift": torch.from_numpy(shift.astype(np.float32)),
            "scale": spread or 1.0,
            "wide": any(task.inputs == "pair" for task in tasks),
        }


_learned: OrderedDict[tuple[NgramEncoding, str], Mapping[str, Any]] = OrderedDict()


def _tables(tasks: TaskSet, *, needs_train: bool = True) -> dict[SourceSplit, pa.Table]:
    return distinct_tables(
        tasks,
        "NgramEncoding",
        lambda task: task.inputs in ("text", "pair"),
        advice="Use `TableEncoding` for tables and `WindowEncoding` for tokens.",
        needs_train=needs_train,
    )


class _Counted(NamedTuple):
    """The runs of the texts of a table."""

    keys: Numbers  # [run], sorted, each once
    counts: Any  # [text, run], sparse


_kept: KeptByTable[_Counted] = KeptByTable()


def _counted(table: pa.Table, with_characters: bool) -> _Counted:
    from scipy import sparse

    known = _kept.get(table, with_characters)
    if known is not None:
        return known
    parts = []
    for runs in _runs(texts_of(table), with_characters=with_characters):
        keys, places = np.unique(runs.keys, return_inverse=True)
        ones = np.ones(len(places), np.float32)
        cells = sparse.coo_matrix((ones, (runs.rows, places)), shape=(runs.texts, len(keys)))
        parts.append(_Counted(keys, cells.tocsr()))  # equal cells are summed
    keys = np.unique(np.concatenate([np.zeros(0, np.uint64), *(part.keys for part in parts)]))
    whole = [sparse.csr_matrix((0, len(keys)), dtype=np.float32)]
    for part in parts:
        columns = np.searchsorted(keys, part.keys)[part.counts.indices]
        shape = (part.counts.shape[0], len(keys))
        whole.append(
            sparse.csr_matrix((part.counts.data, columns, part.counts.indptr), shape=shape)
        )
    return _kept.put(table, with_characters, _Counted(keys, sparse.vstack(whole, format="csr")))


class _Runs(NamedTuple):
    """The runs of some texts, one after another."""

    texts: int
    rows: NDArray[np.int64]  # [run], the number of its text
    keys: Numbers  # [run]


def _runs(texts: Sequence[str], *, with_characters: bool) -> Iterator[_Runs]:
    begin, size = 0, 0
    for place, text in enumerate(texts):
        size += len(text)
        if size >= AT_ONCE or place == len(texts) - 1:
            yield _runs_of(texts[begin : place + 1], with_characters)
            begin, size = place + 1, 0


def _runs_of(texts: Sequence[str], with_characters: bool) -> _Runs:
    # Each word with a space of its own on either side, so that two spaces are where words part.
    padded = [f" {'  '.join(text.lower().split())} " for text in texts]
    code = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
    points = np.frombuffer("".join(padded).encode(code, "surrogatepass"), np.uint32)
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in padded])
    values = _mixed(points.astype(np.uint64))
    word_rows, word_keys = _word_runs(points, values, rows)
    if not with_characters:
        return _Runs(len(texts), word_rows, word_keys)
    all_rows, all_keys = [word_rows], [word_keys]
    is_space = points == ord(" ")
    parts = np.cumsum(np.append(False, is_space[1:] & is_space[:-1]))  # [character], its word
    keys = values
    for more, size in enumerate(range(2, max(CHARACTER_RUNS) + 1), 1):
        keys = keys[:-1] * np.uint64(_BASE) + values[more:]
        if size in CHARACTER_RUNS:
            within = parts[: len(keys)] == parts[more:]
            found = _mixed(keys[within] + np.uint64(size))
            all_rows.append(rows[: len(keys)][within])
            all_keys.append((found >> np.uint64(1)) | _CHARACTERS)
    return _Runs(len(texts), np.concatenate(all_rows), np.concatenate(all_keys))


def _word_runs(
    points: NDArray[np.uint32], values: Numbers, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Numbers]:
    """Words, of letters, digits and low lines, and pairs of words that follow each other."""
    distinct = np.flatnonzero(np.bincount(points, minlength=1))
    letters = [point for point in distinct.tolist() if chr(point).isalnum() or point == ord("_")]
    is_letter = np.isin(points, letters)
    edges = np.flatnonzero(np.diff(is_letter, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]  # spaces part the words of two texts
    # The sum of value * base ** place over a word, by sums from the begin, moved to place 0.
    sums = np.append(np.uint64(0), np.cumsum(values * _powers(_BASE, len(values))))
    back = _powers(pow(_BASE, -1, 2**64), len(values))
    words = _mixed((sums[ends] - sums[starts]) * back[starts])
    follows = rows[starts[1:]] == rows[starts[:-1]]
    pairs = _mixed(words[:-1] * np.uint64(_BASE) + words[1:])[follows]
    keys = np.concatenate([words, pairs]) >> np.uint64(1)
    return np.concatenate([rows[starts], rows[starts[:-1]][follows]]), keys


def _powers(base: int, count: int) -> Numbers:
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    return np.cumprod(factors)


def _mixed(values: Numbers) -> Numbers:
    """Steele, Lea and Flood, OOPSLA 2014 (SplitMix): every bit depends on every bit."""
    mixed = values + np.uint64(_BASE)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)
