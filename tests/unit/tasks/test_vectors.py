from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import build_vocabulary, read_word_vectors, vectors_for

DATA = Path(os.environ.get("TASKMIX_DATA", Path(__file__).parents[4] / "shared" / "data"))
WORDS = ("the", "cat", "caf\u00e9")
VECTORS = np.array([[0.5, -1.0], [2.0, 0.25], [-0.125, 3.0]], dtype=np.float32)
LINES = "".join(f"{word} {a} {b}\n" for word, (a, b) in zip(WORDS, VECTORS.tolist(), strict=True))
# Without the time: parameters name tests, and every worker must find the same names.
CUT = gzip.compress(LINES.encode() * 50, mtime=0)[:-30]


def glove(path: Path) -> None:
    path.write_text(LINES, encoding="utf-8")


def fasttext(path: Path) -> None:
    path.write_text("3 2\n" + LINES.replace("\n", " \n"), encoding="utf-8")


def zipped(path: Path) -> None:
    path.write_bytes(gzip.compress(LINES.encode()))


def archive(path: Path) -> None:
    joined = np.frombuffer("\n".join(WORDS).encode(), dtype=np.uint8)
    np.savez(path, words=joined, vectors=VECTORS.astype(np.float16))


FORMATS = [
    ("glove.txt", glove),
    ("wiki.vec", fasttext),
    ("glove.txt.gz", zipped),
    ("shared.npz", archive),
]


@pytest.mark.parametrize(("name", "write"), FORMATS)
def test_every_format_gives_the_same_words_and_vectors(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    words, vectors = read_word_vectors(tmp_path / name)
    assert words == WORDS
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, VECTORS)


@pytest.mark.parametrize(("name", "write"), FORMATS)
def test_only_the_words_asked_for_are_read_in_the_order_of_the_file(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    words, vectors = read_word_vectors(tmp_path / name, {"caf\u00e9", "the", "zebra"})
    assert words == ("the", "caf\u00e9")
    np.testing.assert_array_equal(vectors, VECTORS[[0, 2]])
    none, nothing = read_word_vectors(tmp_path / name, set())
    assert (none, nothing.shape) == ((), (0, 2))


def test_a_word_with_spaces_inside_is_read_from_the_right(tmp_path: Path) -> None:
    path = tmp_path / "glove.840B.txt"
    path.write_text("a 1 2\n. . . 3 4\n")
    assert read_word_vectors(path)[0] == ("a", ". . .")


@pytest.mark.parametrize(
    ("name", "content", "row", "sentence"),
    [
        ("short.txt", b"a 1 2\nb 3\n", 2, "line 2, should have a word and 2 numbers. Found fewer"),
        ("words.txt", b"a 1 2\nb 3 x\n", 2, "line 2, should have numbers after the word"),
        ("nan.txt", b"a 1 2\nb 3 nan\n", 2, "line 2, should have finite numbers"),
        ("bytes.txt", b"a 1 2\n\xff\xfe 3 4\n", 2, "line 2, should have a word in UTF-8"),
        ("empty.txt", b"", 1, "line 1, should have a word and its numbers"),
        ("cut.vec", b"3 2\na 1 2\n", 2, "the 3 words that its first line announces. Found 1"),
        ("cut.txt.gz", CUT, None, "ends early or is damaged"),
        ("not.npz", b"no archive", None, "ends early or is damaged"),
    ],
)
def test_a_bad_file_is_answered_with_its_row_and_a_remedy(
    tmp_path: Path, name: str, content: bytes, row: int | None, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TaskFileError, match=sentence) as caught:
        read_word_vectors(path)
    assert (caught.value.path, caught.value.row) == (path, row)
    assert str(path) in str(caught.value)


def test_unknown_words_get_small_random_vectors_and_padding_gets_zeros(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    glove(path)
    vocabulary = build_vocabulary({"the": 5, "Cat": 4, "zebra": 3})
    placed = vectors_for(vocabulary, path, np.random.default_rng(0))
    assert not placed.vectors[0].any()
    assert placed.known.tolist() == [False, False, True, True, False]
    np.testing.assert_array_equal(placed.vectors[2:4], VECTORS[:2])  # Cat by its lower-case form
    for unknown in (1, 4):
        assert 0.0 < np.abs(placed.vectors[unknown]).max() <= 0.25
    assert placed.coverage == pytest.approx(2 / 3)
    again = vectors_for(vocabulary, path, np.random.default_rng(0))
    np.testing.assert_array_equal(again.vectors, placed.vectors)


def test_the_shared_glove_file_has_the_published_values() -> None:
    path = DATA / "glove_6b_100d" / "glove.6B.100d.top100k.fp16.npz"
    if not path.exists():
        pytest.skip(f"{path} is not here; TASKMIX_DATA names another folder of data")
    words, vectors = read_word_vectors(path, {"the", "of", "qwxzy"})
    assert words == ("the", "of")
    np.testing.assert_allclose(vectors[0, :3], [-0.038194, -0.24487, 0.72812], atol=1e-3)
