from __future__ import annotations

import gzip
import json
import os
import string
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import OptionError
from taskmix.tasks import build_vocabulary, tokenize
from taskmix.tasks._encoding._vocabulary import UNKNOWN, WordNumbers, _any_script, word_ids

DATA = Path(os.environ.get("TASKMIX_DATA", Path(__file__).parents[4] / "shared" / "data"))


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
    spaced = text.lower().replace("n't", " n't")
    assert tokenize(text) == _any_script().findall(spaced)


def test_words_are_ordered_by_count_and_then_by_the_alphabet() -> None:
    counts = {"rare": 1, "b": 3, "a": 3, "the": 9}
    assert build_vocabulary(counts)[2:] == ("the", "a", "b")
    assert build_vocabulary(counts, min_count=1)[2:] == ("the", "a", "b", "rare")
    assert build_vocabulary(counts, max_words=1)[2:] == ("the",)
    assert build_vocabulary(counts, keep={"rare"})[2:] == ("the", "a", "b", "rare")
    assert len(build_vocabulary({})) == 2, "padding and the unknown word are always there"


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 5), max_size=20), st.randoms())
def test_the_order_of_counting_does_not_change_the_ids(
    counts: dict[str, int], random: object
) -> None:
    shuffled = list(counts.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert build_vocabulary(dict(shuffled)) == build_vocabulary(counts)


def test_a_minimal_count_below_one_is_refused() -> None:
    with pytest.raises(OptionError, match=r"`min_count` should be at least 1. Found 0"):
        build_vocabulary({}, min_count=0)


def test_unknown_words_and_reserved_names_have_the_unknown_id() -> None:
    vocabulary = build_vocabulary({"a": 2, "b": 2})
    ids = word_ids(["b", "zebra", "a", "<padding>"], vocabulary)
    assert ids.tolist() == [3, UNKNOWN, 2, UNKNOWN]


def test_words_are_numbered_as_they_are_met() -> None:
    numbers = WordNumbers()
    flat, offsets = numbers.rows([["a", "b"], [], ["b", "c"]])
    np.testing.assert_array_equal(flat, [0, 1, 1, 2])
    np.testing.assert_array_equal(offsets, [0, 2, 2, 4])
    assert list(numbers) == ["a", "b", "c"]


def test_the_newsgroups_are_tokenised_in_seconds() -> None:
    path = DATA / "newsgroups20" / "train.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here; TASKMIX_DATA names another folder of data")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    begin = time.process_time()
    count = sum(len(tokenize(text)) for text in texts)
    seconds = time.process_time() - begin
    assert 5_000_000 < count < 7_000_000
    assert seconds < 15, "it takes 2 to 3 s on one core; more than that is a slip"
