from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from taskmix.errors import InputError
from taskmix.records import read_document, write_document


@dataclass(frozen=True)
class Part:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise InputError("`a` should not be below zero.")


@dataclass(frozen=True)
class Whole:
    version: int
    part: Part


def test_a_document_comes_back_and_none_is_none(tmp_path: Path) -> None:
    path = write_document(tmp_path / "new" / "x.json", Whole(3, Part(1)))
    assert read_document(path, Whole, version=3, command="taskmix x") == Whole(3, Part(1))
    assert read_document(tmp_path / "y", Whole, version=3, command="taskmix x") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "something that is no JSON"),
        ("[" * 200_000, "something that is no JSON"),
        ('{"version": 2}', "another kind or version"),
        ("[3]", "another kind or version"),
        ('{"version": 3}', r"a part in another form \(Whole should have `part`\)"),
        ('{"version": 3, "part": 1}', r"Whole.part should be an object, and is 1"),
        (
            '{"version": 3, "part": {"a": true}}',
            r"Whole.part.a should be a whole number, and is True",
        ),
        ('{"version": 3, "part": {"a": -1}}', r"`a` should not be below zero"),
    ],
)
def test_anything_else_is_a_sentence_that_says_where(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"version 3 that `taskmix x` wrote. Found .*{found}"):
        read_document(path, Whole, version=3, command="taskmix x")


def test_what_is_written_has_no_number_that_json_does_not_know(tmp_path: Path) -> None:
    path = write_document(
        tmp_path / "x.json", {"a": (1.5, float("nan")), "b": [float("-inf"), "nan"]}
    )
    assert json.loads(path.read_text()) == {"a": [1.5, None], "b": [None, "nan"]}
