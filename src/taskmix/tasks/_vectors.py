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

import gzip
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import TaskFileError
from taskmix.tasks._words import PADDING, UNKNOWN

Matrix = NDArray[np.float32]
_ONLY_TEXT = (
    "Word vectors are read from GloVe `.txt`, fastText `.vec`, either with `.gz`, or `.npz`."
)


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
    """Words and their vectors, in the order of the file."""
    path = Path(path)
    wanted = None if words is None else frozenset(words)
    try:
        found, vectors = _read_npz(path) if path.suffix == ".npz" else _read_text(path, wanted)
    except (FileNotFoundError, IsADirectoryError):
        raise TaskFileError(
            f"{path} should be a file of word vectors. There is no such file. Check the path.",
            path=path,
        ) from None
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
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
    """The vectors of a vocabulary, from a file.

    A word that the file does not know takes the vector of its lower-case form, else, like the
    unknown word, a random one, uniform in ±0.25 (as Kim's "Convolutional Neural Networks for
    Sentence Classification" of 2014 does); padding is zero.
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
    opener = gzip.open if path.suffix == ".gz" else open
    names: list[str] = []
    numbers: list[Matrix] = []
    with cast("IO[bytes]", opener(path, "rb")) as lines:
        first = lines.readline()
        sizes = first.split()
        header = len(sizes) == 2 and all(part.isdigit() for part in sizes)
        dimension = int(sizes[1]) if header else len(sizes) - 1
        if dimension < 1:
            raise _bad_row(path, 1, "a word and its numbers", "none", _ONLY_TEXT)
        row = 1
        for row, line in enumerate(lines if header else chain([first], lines), start=1 + header):
            # From the right: some words of GloVe have spaces inside.
            parts = line.rstrip().rsplit(b" ", dimension)
            if len(parts) != dimension + 1:
                remedy = "Is the file cut short? Copy it again."
                raise _bad_row(path, row, f"a word and {dimension} numbers", "fewer", remedy)
            word = _decode(parts[0], path, row)
            if wanted is None or word in wanted:
                names.append(word)
                numbers.append(_parse(parts[1:], path, row))
    if header and int(sizes[0]) != row - 1:
        raise TaskFileError(
            f"{path} should have the {int(sizes[0])} words that its first line announces. Found "
            f"{row - 1}. Copy it again.",
            path=path,
            row=row,
        )
    return names, np.array(numbers, dtype=np.float32).reshape(len(numbers), dimension)


def _parse(parts: list[bytes], path: Path, row: int) -> Matrix:
    try:
        values = np.array(list(map(float, parts)), dtype=np.float32)
    except ValueError:
        remedy = f"Mend or remove the row. {_ONLY_TEXT}"
        raise _bad_row(path, row, "numbers after the word", "something else", remedy) from None
    if not np.isfinite(values).all():
        raise _bad_row(path, row, "finite numbers", "NaN or infinity", "Remove the row.")
    return values


def _decode(word: bytes, path: Path, row: int) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise _bad_row(path, row, "a word in UTF-8", "other bytes", _ONLY_TEXT) from None


def _read_npz(path: Path) -> tuple[list[str], Matrix]:
    if not zipfile.is_zipfile(path) and path.is_file():
        raise zipfile.BadZipFile("it is not an archive")
    with np.load(path, allow_pickle=False) as arrays:
        if not {"words", "vectors"} <= set(arrays):
            found = ", ".join(arrays) or "nothing"
            raise TaskFileError(
                f"{path} should hold `words` and `vectors`. Found {found}. "
                "Save the bytes of the words joined by newlines, and a matrix.",
                path=path,
            )
        try:
            words, vectors = arrays["words"], arrays["vectors"].astype(np.float32)
        except ValueError as error:  # what numpy says of pickled objects, which can run code
            raise TaskFileError(
                f"{path} should hold plain arrays. Found something else ({error}). "
                "Save the bytes of the words joined by newlines, and a matrix.",
                path=path,
            ) from None
    if words.dtype.kind == "U":  # one string a word
        names = words.ravel().tolist()
    else:
        lines = words.tobytes().split(b"\n")
        names = [_decode(word, path, row) for row, word in enumerate(lines, start=1)]
    if vectors.ndim != 2 or len(vectors) != len(names):
        raise TaskFileError(
            f"{path} should have one row of `vectors` for each of its {len(names)} words. Found "
            f"the shape {vectors.shape}. Save both again.",
            path=path,
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        remedy = "Remove the row."
        raise _bad_row(path, int(bad[0]) + 1, "finite numbers", "NaN or infinity", remedy)
    return names, vectors


def _bad_row(path: Path, row: int, wanted: str, found: str, remedy: str) -> TaskFileError:
    return TaskFileError(
        f"{path}, row {row}, should have {wanted}. Found {found}. {remedy}", path=path, row=row
    )
