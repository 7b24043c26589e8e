"""Word vectors from files.

| file              | what it holds                                                           |
|-------------------|-------------------------------------------------------------------------|
| `.txt`, `.txt.gz` | GloVe: a word and its numbers on each line, parted by spaces            |
| `.vec`, `.vec.gz` | fastText and word2vec: the same after a line with both sizes            |
| `.npz`            | `vectors` [word, dimension], `words` the UTF-8 bytes joined by newlines |

Whether there is a line with the sizes is read off the file, not its name. Where a word stands
twice, its first vector is taken.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import TaskFileError
from taskmix.tasks._encoding._vector_archive import (
    ONLY_TEXT,
    Matrix,
    bad_row,
    decode_word,
    open_vectors,
    read_archive,
)
from taskmix.tasks._encoding._vocabulary import PADDING, UNKNOWN
from taskmix.tasks._formats import DamagedError, FileAllowance, unpacked

_LONGEST_LINE = 2**22  # bytes; bounds what a hostile file makes us hold
_BYTES_OF_ROW = 200  # bytes of a word and its array in Python, besides their own
_BYTES_OF_NUMBER = 32  # bytes of a number while a line is parsed


@dataclass(frozen=True, eq=False)
class VocabularyVectors:
    """A vector for each id of a vocabulary."""

    vectors: Matrix  # [id, dimension]
    known: NDArray[np.bool_]  # [id], whether the file has a vector for it

    @property
    def coverage(self) -> float:
        """The share of the words that the file knows."""
        return float(self.known[2:].mean()) if len(self.known) > 2 else 0.0


def read_word_vectors(
    path: Path | str,
    words: Collection[str] | None = None,  # only these; None is all
) -> tuple[tuple[str, ...], Matrix]:  # [word], [word, dimension]
    r"""Words and their vectors, in the order of the file.

    >>> from pathlib import Path
    >>> _ = Path("words.vec").write_text("good 1 0\nbad 0 1\n")
    >>> words, vectors = read_word_vectors(Path("words.vec"))
    >>> words, vectors.tolist()
    (('good', 'bad'), [[1.0, 0.0], [0.0, 1.0]])
    """
    path = Path(path)
    wanted = None if words is None else frozenset(words)
    try:
        if path.suffix == ".npz":
            with open_vectors(path) as file:
                status = os.fstat(file.fileno())
            found, vectors = read_archive(path, (status.st_mtime_ns, status.st_size))
        else:
            found, vectors = _read_text(path, wanted)
    except (DamagedError, zipfile.BadZipFile) as error:
        raise TaskFileError(
            f"{path} should be a whole compressed file. It ends early or is damaged ({error}). "
            "Copy it again.",
            path=path,
        ) from None
    places: dict[str, int] = {}
    for place, word in enumerate(found):
        if wanted is None or word in wanted:
            places.setdefault(word, place)
    return tuple(places), vectors[list(places.values())]


def vectors_for(
    vocabulary: tuple[str, ...],
    path: Path | str,
    generator: np.random.Generator,
) -> VocabularyVectors:
    r"""The vectors of a vocabulary, from a file.

    A word that the file does not know takes the vector of its lower-case form, else, like the
    unknown word, a random one, uniform in ±0.25 (as Kim's "Convolutional Neural Networks for
    Sentence Classification" of 2014 does); padding is zero.

    >>> from pathlib import Path
    >>> _ = Path("words.vec").write_text("good 1 0\nbad 0 1\n")
    >>> vocabulary, generator = ("<padding>", "<unknown>", "good", "film"), np.random.default_rng(0)
    >>> found = vectors_for(vocabulary, Path("words.vec"), generator=generator)
    >>> found.coverage, found.vectors[2].tolist()  # of the two words the file has one
    (0.5, [1.0, 0.0])
    """
    return place_vectors(vocabulary, *read_word_vectors(path, with_lower(vocabulary)), generator)


def place_vectors(
    vocabulary: tuple[str, ...],
    words: tuple[str, ...],
    vectors: Matrix,  # [word, dimension]
    generator: np.random.Generator,
) -> VocabularyVectors:
    """The vectors of a vocabulary, from those already read."""
    rows = {word: row for row, word in enumerate(words)}
    shape = (len(vocabulary), vectors.shape[1])
    placed = generator.uniform(-0.25, 0.25, shape).astype(np.float32)
    found = np.array([rows.get(word, rows.get(word.lower(), -1)) for word in vocabulary])
    found[[PADDING, UNKNOWN]] = -1
    placed[found >= 0] = vectors[found[found >= 0]]
    placed[PADDING] = 0.0
    return VocabularyVectors(placed, found >= 0)


def with_lower(words: Collection[str]) -> frozenset[str]:
    """The words and their lower-case forms: all that a file may know them by."""
    return frozenset(words) | frozenset(word.lower() for word in words)


def _read_text(path: Path, wanted: frozenset[str] | None) -> tuple[list[str], Matrix]:
    names: list[str] = []
    numbers: list[Matrix] = []
    taken = 0
    with open_vectors(path) as file:
        bounds = FileAllowance(path, os.fstat(file.fileno()).st_size)
        lines = _lines(unpacked(file, is_gzip=path.suffix == ".gz"), path, bounds)
        first = next(lines, b"")
        sizes = first.split()
        header = len(sizes) == 2 and all(part.isdigit() and len(part) < 12 for part in sizes)
        dimension = int(sizes[1]) if header else len(sizes) - 1
        if not 1 <= dimension <= _LONGEST_LINE:
            raise bad_row(path, 1, "a word and its numbers", "none", ONLY_TEXT)
        row = 1
        for row, line in enumerate(lines if header else chain([first], lines), start=1 + header):
            bounds.check(taken + _BYTES_OF_NUMBER * line.count(b" "))
            # From the right: some words of GloVe have spaces inside.
            parts = line.rstrip().rsplit(b" ", dimension)
            if len(parts) != dimension + 1:
                remedy = "Is the file cut short? Copy it again."
                raise bad_row(path, row, f"a word and {dimension} numbers", "fewer", remedy)
            word = decode_word(parts[0], path, row)
            if wanted is None or word in wanted:
                names.append(word)
                numbers.append(_parse(parts[1:], path, row))
                taken += _BYTES_OF_ROW + 2 * numbers[-1].nbytes + len(word)  # rows, then a matrix
    if header and int(sizes[0]) != row - 1:
        raise TaskFileError(
            f"{path} should have the {int(sizes[0])} words that its first line announces. Found "
            f"{row - 1}. Copy it again.",
            path=path,
            row=row,
        )
    return names, np.array(numbers, dtype=np.float32).reshape(len(numbers), dimension)


def _lines(
    blocks: Iterator[tuple[bytes, int]], path: Path, bounds: FileAllowance
) -> Iterator[bytes]:
    """The lines, of which none is so long that it could not be one: a bomb has one alone."""
    row, rest, size = 0, b"", 0
    for block, packed in blocks:
        size += len(block)
        bounds.check(size, packed=packed)
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            row += 1
            _check_length(line, path, row)
            yield line
        _check_length(rest, path, row + 1)
    if rest:
        yield rest


def _check_length(line: bytes, path: Path, row: int) -> None:
    if len(line) > _LONGEST_LINE:
        raise bad_row(path, row, f"at most {_LONGEST_LINE} bytes", "more", ONLY_TEXT)


def _parse(parts: list[bytes], path: Path, row: int) -> Matrix:
    try:
        values = np.array(list(map(float, parts)), dtype=np.float32)
    except ValueError:
        remedy = f"Mend or remove the row. {ONLY_TEXT}"
        raise bad_row(path, row, "numbers after the word", "something else", remedy) from None
    if not np.isfinite(values).all():
        raise bad_row(path, row, "finite numbers", "NaN or infinity", "Remove the row.")
    return values
