"""What a constant answer would score, where text is written."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from taskmix.adviser._expect import expect_score, sampling_error
from taskmix.adviser._guess import guessed_score
from taskmix.adviser._scores import comparable
from taskmix.tasks import Split, Task

ASK = Task(
    name="ask",
    kind="generation",
    inputs="prompt",
    labels=(),
    metric="exact_match",
    source="ask",
    splits={
        "train": Split(
            pa.table({"prompt": ["a", "b", "c"], "answer": ["red", "red", "blue"]}), np.empty(0)
        ),
        "dev": Split(
            pa.table({"prompt": ["d", "e", "f", "g"], "answer": ["red", "blue", "red hat", "x"]}),
            np.empty(0),
        ),
    },
)


def test_the_commonest_answer_is_the_guess() -> None:
    assert guessed_score(ASK) == 0.25
    # Of `red hat` one word of two is right: F1 2/3.
    assert guessed_score(replace(ASK, metric="word_f1")) == pytest.approx((1 + 2 / 3) / 4)
    assert math.isnan(guessed_score(replace(ASK, metric="token_accuracy")))


def test_a_text_is_guessed_by_how_often_each_byte_came() -> None:
    tables = {"train": ["aab"], "dev": ["ab"]}
    splits = {name: Split(pa.table({"text": rows}), np.empty(0)) for name, rows in tables.items()}
    books = Task(
        name="books",
        kind="language",
        inputs="passage",
        labels=(),
        metric="bits_per_byte",
        source="books",
        splits=splits,
    )
    # Half a byte more of each of 256: 2.5 and 1.5 of 131.
    bits = -(math.log2(2.5 / 131) + math.log2(1.5 / 131)) / 2
    assert guessed_score(books) == pytest.approx(bits)
    assert comparable(books, 2.0) == -2.0, "lower is better"


def test_bits_per_byte_may_be_above_one() -> None:
    expected = expect_score([2.0, 2.2], "bits_per_byte", dev_rows=100, test_rows=100)
    assert expected.low < 2.1 < expected.high
    assert sampling_error("bits_per_byte", 2.0, 100) == pytest.approx(0.2)
