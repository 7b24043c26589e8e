"""Word vectors in an `.npz` archive, of which nothing is believed: not its sizes, not its types."""

from __future__ import annotations

import functools
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import TaskFileError
from taskmix.files import UnreadableError, open_plain
from taskmix.tasks._formats import FileAllowance

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
        f"{path}, row {row}, should have {wanted}. Found {found}. {remedy}", path=path, row=row
    )
