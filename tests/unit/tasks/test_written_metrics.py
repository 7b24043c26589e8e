"""Scores of text that a model writes, worked out by hand."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import OptionError
from taskmix.tasks import WrittenText, evaluate_written, find_metric


def of_answer(metric: str, found: str, true: str) -> float:
    return evaluate_written(metric, WrittenText(rows=1, answers=((found, true),)))


def test_pieces_are_counted_over_all_rows_and_rows_only_where_every_piece_is_right() -> None:
    text = WrittenText(
        rows=4, right_rows=1, pieces=10, right_pieces=7, loss=8 * math.log(2), bytes=16
    )
    assert evaluate_written("exact_match", text) == 0.25
    assert evaluate_written("token_accuracy", text) == 0.7
    assert evaluate_written("bits_per_byte", text) == pytest.approx(0.5)
    assert not find_metric("bits_per_byte").higher_is_better
    twice = text + text
    assert twice.rows == 8
    assert evaluate_written("bits_per_byte", twice) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("found", "true", "value"),
    [
        ("The Eiffel Tower!", "eiffel tower", 1.0),
        ("in Paris", "Paris, France", 0.5),  # one of two words each
        ("a b b", "b b c", 0.8),  # the article goes: two of two, two of three
        ("no", "yes", 0.0),
        ("", "yes", 0.0),
        ("the", "", 1.0),  # nothing is left of either
    ],
)
def test_f1_of_words_leaves_out_case_punctuation_and_articles(
    found: str, true: str, value: float
) -> None:
    assert of_answer("word_f1", found, true) == pytest.approx(value)


@pytest.mark.parametrize(
    ("found", "true", "value"),
    [
        ("police killed the gunman", "police kill the gunman", 0.75),  # Lin's S2 and S1
        ("the gunman kill police", "police kill the gunman", 0.5),  # S3: `the gunman`
        ("the gunman police killed", "police killed the gunman", 0.5),  # S4
        ("one two", "one two three four", 2 * 1.0 * 0.5 / 1.5),
        ("", "one", 0.0),
        ("", "", 1.0),
    ],
)
def test_rouge_l_is_the_f_measure_of_the_longest_common_subsequence(
    found: str, true: str, value: float
) -> None:
    assert of_answer("rouge_l", found, true) == pytest.approx(value)


def subsequences(words: str) -> set[tuple[str, ...]]:
    return {some for size in range(len(words) + 1) for some in combinations(words, size)}


@given(st.text("abc", min_size=1, max_size=7), st.text("abc", min_size=1, max_size=7))
def test_the_longest_common_subsequence_is_that_of_every_subsequence(one: str, other: str) -> None:
    longest = max(len(each) for each in subsequences(one) & subsequences(other))
    value = of_answer("rouge_l", " ".join(one), " ".join(other))
    assert value == pytest.approx(2 * longest / (len(one) + len(other)))


def test_a_mean_of_metrics_of_text_is_one_of_text_and_of_nothing_else() -> None:
    both = find_metric("exact_match+word_f1")
    assert both.needs == "answers", "so that answers are decoded"
    text = WrittenText(rows=1, right_rows=1, answers=(("in Paris", "Paris, France"),))
    assert evaluate_written("exact_match+word_f1", text) == pytest.approx(0.75)
    with pytest.raises(OptionError, match="same kind of task"):
        find_metric("accuracy+exact_match")
    with pytest.raises(OptionError, match="same direction"):
        find_metric("exact_match+bits_per_byte")


def test_nothing_written_is_no_score_and_not_a_bad_one() -> None:
    for name in ("exact_match", "token_accuracy", "word_f1", "rouge_l", "bits_per_byte"):
        assert math.isnan(evaluate_written(name, WrittenText()))
