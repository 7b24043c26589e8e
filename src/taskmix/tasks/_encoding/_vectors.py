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

import functools
import os
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import TaskFileError
from taskmix.files import UnreadableError, open_plain
from taskmix.tasks._formats._streams import DamagedError, FileAllowance, unpacked
from taskmix.tasks._formats._words import show_place

PADDING, UNKNOWN = 0, 1  # ids; words of a vocabulary begin at 2
_LONGEST_LINE = 2**22  # bytes; bounds what a hostile file makes us hold
_BYTES_OF_ROW = 200  # bytes of a word and its array in Python, besides their own
_BYTES_OF_NUMBER = 32  # bytes of a number while a line is parsed
Matrix = NDArray[np.float32]
ONLY_TEXT = (
    "Word vectors are read from GloVe `.txt`, fastText `.vec`, either with `.gz`, or `.npz`."
)
_WORDS, _VECTORS = (
    64,
    5,
)  # bytes in memory for each of a member: short words, and single bytes as floats
# What numpy and zipfile make of an archive that is none of theirs.
_BROKEN = (
    ValueError,
    LookupError,
    TypeError,
    OSError,
    EOFError,
    RuntimeError,
    MemoryError,
    OverflowError,
    SyntaxError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
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


def open_vectors(path: Path) -> BinaryIO:
    """Opens a plain file to read; anything else gets a sentence."""
    try:
        return open_plain(path)
    except (OSError, UnreadableError) as error:
        reason = error.found if isinstance(error, UnreadableError) else error.strerror
        raise TaskFileError(
            f"{path} should be a file of word vectors. There is no such file that can be read "
            f"({reason}). Check the path.",
            path=path,
        ) from None


@functools.lru_cache(maxsize=1)  # a study encodes many selections of tasks with one file
def read_archive(path: Path, state: tuple[int, int]) -> tuple[list[str], Matrix]:
    """All words and vectors of a file that was last changed then and has this size."""
    try:
        with open_vectors(path) as file:
            if not zipfile.is_zipfile(file):
                raise zipfile.BadZipFile("it is not an archive")
            words, vectors = _arrays(file, path, FileAllowance(path, state[1]))
        names = _names(words, path)
    except zipfile.BadZipFile:
        raise
    except _BROKEN as error:  # also what numpy says of pickled objects, which can run code
        raise TaskFileError(
            f"{path} should hold plain arrays. Found something else ({error}). "
            "Save the bytes of the words joined by newlines, and a matrix.",
            path=path,
        ) from None
    if vectors.ndim != 2 or len(vectors) != len(names):
        raise TaskFileError(
            f"{path} should have one row of `vectors` for each of its {len(names)} words. Found "
            f"the shape {vectors.shape}. Save both again.",
            path=path,
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        remedy = "Remove the row."
        raise bad_row(path, int(bad[0]) + 1, "finite numbers", "NaN or infinity", remedy)
    return names, vectors


def _arrays(file: BinaryIO, path: Path, bounds: FileAllowance) -> tuple[NDArray[Any], Matrix]:
    with zipfile.ZipFile(file) as archive:  # which reads no more of a member than is said here
        bounds.check(
            sum(
                part.file_size * (_WORDS if part.filename == "words.npy" else _VECTORS)
                for part in archive.infolist()
            )
        )
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays, np.errstate(all="ignore"):
        if not {"words", "vectors"} <= set(arrays):
            found = ", ".join(arrays) or "nothing"
            raise TaskFileError(
                f"{path} should hold `words` and `vectors`. Found {found}. "
                "Save the bytes of the words joined by newlines, and a matrix.",
                path=path,
            )
        words, vectors = arrays["words"], arrays["vectors"]
        if not (isinstance(words, np.ndarray) and isinstance(vectors, np.ndarray)):
            raise TypeError("a member that is no array")
        if vectors.dtype.kind not in "biuf":
            raise TypeError(f"vectors of type {vectors.dtype}")
        return words, vectors.astype(np.float32)


def _names(words: NDArray[Any], path: Path) -> list[str]:
    if words.dtype.kind == "U":  # one string a word, in which half a surrogate pair may stand
        lines = [word.encode("utf-8", "surrogatepass") for word in words.ravel().tolist()]
    else:
        lines = words.tobytes().split(b"\n")
    return [decode_word(word, path, row) for row, word in enumerate(lines, start=1)]


def decode_word(word: bytes, path: Path, row: int) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise bad_row(path, row, "a word in UTF-8", "other bytes", ONLY_TEXT) from None


def bad_row(path: Path, row: int, wanted: str, found: str, remedy: str) -> TaskFileError:
    return TaskFileError(
        f"{show_place(path, row)}, should have {wanted}. Found {found}. {remedy}",
        path=path,
        row=row,
    )
