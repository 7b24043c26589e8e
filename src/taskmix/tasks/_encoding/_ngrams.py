"""Texts as sparse rows: how often each has a run of words or of characters, rarer ones counting more.

    Salton and Buckley, "Term-weighting approaches in automatic text retrieval", 1988: the logarithm of
    the count times that of the inverse document frequency, each row of length 1.

Runs of one and two words, and of two to five characters within a word with a space on each side, are
what scikit-learn's `TfidfVectorizer` finds with `analyzer="word"` and `"char_wb"`; so are the weights.
A run is known by 64 bits that its characters give, so that a vocabulary is an array of numbers and all
rows are counted at once: that two of a million different runs share them happens once in 10 million
vocabularies.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

CHARACTER_RUNS = (2, 3, 4, 5)
MOST_RUNS = (20_000, 30_000)  # of words and of characters that are known, the most frequent ones
MANY_ROWS = 500  # from here on, a run that is in one row only is not worth a weight
LONG = 1_000_000  # characters of all texts; beyond, words say enough and runs of characters cost minutes
LEARNED_FROM = 4_000_000  # characters; more of them give much the same vocabulary
AT_ONCE = 500_000  # characters: their runs are some 30 MB of numbers

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2 ** 64
_CHARACTERS = np.uint64(1 << 63)  # the bit of runs of characters, which lie behind those of words
Numbers = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Ngrams:
    """Which runs of words and characters are known, and what each counts.

    >>> known = Ngrams.fit(["good film", "bad film"])
    >>> rows = known.matrix(["a good film", "?"])
    >>> rows.shape[0], round(float(rows[0].multiply(rows[0]).sum()), 3), rows[1].nnz
    (2, 2.0, 0)
    """

    keys: Numbers  # [feature], sorted: words, then characters
    weights: NDArray[np.float32]  # [feature], the inverse document frequencies

    @classmethod
    def fit(cls, texts: Sequence[str]) -> Self:
        """Learns which runs the texts have; those of a long list from texts all over it."""
        total = sum(map(len, texts))
        texts = texts[:: -(-total // LEARNED_FROM) or 1]
        found = [_document_counts(runs) for runs in _runs(texts, with_characters=total <= LONG)]
        every = np.concatenate([np.zeros(0, np.uint64), *(keys for keys, _ in found)])
        counts = np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in found)])
        keys, places = np.unique(every, return_inverse=True)
        frequencies = np.bincount(places, counts, minlength=len(keys)).astype(np.int64)
        kept = frequencies >= (2 if len(texts) > MANY_ROWS else 1)
        are_words = keys < _CHARACTERS
        for kind, most in zip((are_words, ~are_words), MOST_RUNS, strict=True):
            several = np.flatnonzero(kind & kept)
            kept[several[np.argsort(-frequencies[several], kind="stable")[most:]]] = False
        rarity = np.log((1 + len(texts)) / (1 + frequencies[kept])) + 1
        return cls(keys[kept], rarity.astype(np.float32))

    def __len__(self) -> int:
        return len(self.keys)

    def matrix(self, texts: Sequence[str]) -> Any:
        """[row, feature], sparse; the words of a row have length 1, and so have its characters."""
        from scipy import sparse

        words = int(np.searchsorted(self.keys, _CHARACTERS))
        parts = [sparse.csr_matrix((0, len(self)), dtype=np.float32)]
        for runs in _runs(texts, with_characters=words < len(self)):
            places = np.searchsorted(self.keys, runs.keys)
            places[places == len(self)] = 0
            known = self.keys[places] == runs.keys if len(self) else np.zeros(0, np.bool_)
            cells = (runs.rows[known], places[known]) if len(self) else ([], [])
            counts = sparse.coo_matrix(
                (np.ones(len(cells[0]), np.float32), cells), shape=(runs.texts, len(self))
            ).tocsr()  # equal cells are summed
            counts.data = (1 + np.log(counts.data)) * self.weights[counts.indices]
            blocks = 2 * np.repeat(np.arange(runs.texts), np.diff(counts.indptr))
            blocks += counts.indices >= words
            squares = np.bincount(blocks, counts.data.astype(np.float64) ** 2)
            counts.data /= np.sqrt(squares[blocks]).astype(np.float32)
            parts.append(counts)
        return sparse.vstack(parts, format="csr")


class _Runs(NamedTuple):
    """The runs of some texts, one after another."""

    texts: int
    rows: NDArray[np.int64]  # [run], the number of its text
    keys: Numbers  # [run]


def _document_counts(runs: _Runs) -> tuple[Numbers, NDArray[np.int64]]:
    """The different runs, and how many texts have each."""
    keys, places = np.unique(runs.keys, return_inverse=True)
    cells = np.unique(places * max(runs.texts, 1) + runs.rows)
    return keys, np.bincount(cells // max(runs.texts, 1), minlength=len(keys))


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
