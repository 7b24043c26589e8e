"""Text files of any encoding: the same rows, whatever the blocks they come in."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import read_rows, text_lines
from taskmix.tasks._formats import _streams
from taskmix.tasks._formats._encodings import NotTextError, TextDecoder

TEXT = "text,label\r\ncafé „naïve“,a\r\nüber €,b\r\n"
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]


def decoded(data: bytes, size: int) -> tuple[bytes, str]:
    decoder = TextDecoder()
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    whole = b"".join(decoder.decode(block) for block in blocks) + decoder.decode(b"", final=True)
    return whole, decoder.encoding


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_size_of_blocks_does_not_matter(encoding: str) -> None:
    # Without a mark, UTF-16 is told by more bytes than the smallest blocks have.
    smallest = 24 if encoding in ("utf-16-le", "utf-16-be") else 1
    for size in range(smallest, 80):
        assert decoded(TEXT.encode(encoding), size)[0].decode() == TEXT


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_rows_and_their_numbers_do_not_depend_on_the_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.encode(encoding))
    for size in (64, 2**20):
        monkeypatch.setattr(_streams, "_BLOCK", size)
        rows = read_rows(path)
        assert rows.table.to_pylist()[1] == {"text": "über €", "label": "b"}
        assert rows.row_number(1) == 3
        is_other = not encoding.startswith("utf-8")
        assert any("is not UTF-8 and was read as" in remark for remark in rows.remarks) == is_other
    assert list(text_lines(path))[2] == "über €,b"


def test_a_late_byte_of_cp1252_is_read_and_a_late_broken_byte_of_utf8_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_streams, "_BLOCK", 1000)
    plain = b"text,label\n" + b"some words,a\n" * 300
    path = tmp_path / "a.csv"
    path.write_bytes(plain + b"caf\xe9,b\n")
    assert read_rows(path).table.column("text")[-1].as_py() == "café"
    path.write_bytes(plain.replace(b"some", "söme".encode()) + b"caf\xe9,b\n")
    with pytest.raises(TaskFileError, match="should be UTF-8") as caught:
        read_rows(path)
    assert caught.value.row == 302


def test_a_character_that_the_end_of_a_block_cuts_may_be_of_either_encoding() -> None:
    assert decoded(b"abcd\xe9", 5) == ("abcdé".encode(), "cp1252")
    assert decoded(b"abcd\xc3\xa9", 5) == ("abcdé".encode(), "utf-8")
    assert decoded(b"abcd\xc3", 5) == ("abcdÃ".encode(), "cp1252")


@pytest.mark.parametrize(
    "data",
    [
        b"text \x81 more",  # nothing in cp1252
        b"\x01\x02\xff\xfe binary",
        "eins é zwei é drei é".encode() + b"\xe9",  # mostly UTF-8
        b"\xe9 " + "eins é zwei é drei é".encode(),
        "ab".encode("utf-16") + b"\x00\xd8",  # half a pair
    ],
)
def test_what_is_neither_is_refused(data: bytes) -> None:
    with pytest.raises(NotTextError):
        decoded(data, 7)


def test_other_text_formats_are_decoded_too(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_bytes("Café\tB-LOC\nist\tO\n\nÜber\tO\n".encode("utf-16"))
    assert read_rows(tmp_path / "a.conll").table.column("1").to_pylist() == [
        ["Café", "ist"],
        ["Über"],
    ]
    (tmp_path / "a.txt").write_bytes("a é\nb\n".encode("cp1252"))
    assert read_rows(tmp_path / "a.txt").table.column("line").to_pylist() == ["a é", "b"]
    (tmp_path / "a.json").write_bytes('[{"text": "é"}]'.encode("utf-16"))
    assert read_rows(tmp_path / "a.json").table.to_pylist() == [{"text": "é"}]
