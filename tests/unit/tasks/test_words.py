from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.tasks import build_vocabulary, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It's 3.14, or 1,000!", ["it", "'s", "3.14", ",", "or", "1,000", "!"]),
        ("Don't; do n't", ["do", "n't", ";", "do", "n't"]),
        ("the '90s and 'quotes'", ["the", "'", "90s", "and", "'", "quotes", "'"]),
        ("mp3 snake_case a--b", ["mp3", "snake", "_", "case", "a", "-", "-", "b"]),
        ("l\u2019\u00e9t\u00e9 na\u00efve", ["l", "'", "\u00e9t\u00e9", "na\u00efve"]),
        ("e.g. 1.2.3", ["e", ".", "g", ".", "1.2.3"]),
        ("", []),
        (" \t\r\n\u00a0", []),
    ],
)
def test_words_numbers_and_marks_are_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_combining_marks_stay_with_their_letters() -> None:
    tamil = "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd"  # with a vowel sign inside and a mark at the end
    yoruba = "e\u0323\u0301ko\u0323"  # has no precomposed form
    assert tokenize(f"{tamil} {yoruba}.") == [tamil, yoruba, "."]


def test_case_is_kept_on_demand() -> None:
    assert tokenize("Apple's iPod", lowercase=False) == ["Apple", "'s", "iPod"]


@given(st.text())
def test_no_character_but_white_space_is_lost(text: str) -> None:
    kept = "".join(text.lower().replace("\u2019", "'").split())
    assert "".join(tokenize(text)) == kept


@given(st.text(alphabet=string.printable + "\x1c\x00'"))
def test_plain_text_gives_the_same_tokens_by_both_patterns(text: str) -> None:
    assert [*tokenize(text), "é"] == tokenize(f"{text} é")


def test_words_are_ordered_by_count_and_then_by_the_alphabet() -> None:
    counts = {"rare": 1, "b": 3, "a": 3, "the": 9}
    assert build_vocabulary(counts)[2:] == ("the", "a", "b")
    assert build_vocabulary(counts, min_count=1)[2:] == ("the", "a", "b", "rare")
    assert build_vocabulary(counts, max_words=1)[2:] == ("the",)
    assert build_vocabulary(counts, keep={"rare"})[2:] == ("the", "a", "b", "rare")
    assert len(build_vocabulary({})) == 2, "padding and the unknown word are always there"
