from __future__ import annotations

from pathlib import Path

import pytest
import torch
from encoding_toys import everything, ragged, split, tagging, task, words, write_vectors

from taskmix.tasks import (
    MISSING,
    TaskSet,
    WindowEncoding,
    WindowInputs,
    WordEncoding,
)


def test_words_are_counted_in_the_training_rows_of_all_tasks() -> None:
    tasks = TaskSet(
        (
            task(
                "a", "text", train=split({"text": ["Good film"]}), dev=split({"text": ["bad bad"]})
            ),
            task("b", "text", train=split({"text": ["good food"]})),
        )
    )
    encoded = WordEncoding().encode(tasks)
    assert encoded.vocabulary[2:] == ("good",)
    assert ragged(encoded, "a").ids.tolist() == [2, 1]
    assert ragged(encoded, "a", "dev").ids.tolist() == [1, 1], "unknown words have the id 1"
    assert encoded.vectors is None


def test_empty_and_long_texts_and_rows_without_text_are_padded_and_cut() -> None:
    texts = ["", None, "a b c d e f g h i j", "a"]
    tasks = TaskSet((task("a", "text", train=split({"text": texts})),))
    encoded = WordEncoding(min_count=1, max_length=8).encode(tasks)
    inputs = ragged(encoded, "a")
    batch = inputs.batch(everything(4))
    assert batch.shape == (4, 8)
    assert [words(encoded, row) for row in batch] == [[], [], list("abcdefgh"), ["a"]]
    assert inputs.batch(torch.tensor([0, 3])).shape == (2, 7), "as wide as the widest kernel"


def test_words_with_vectors_are_kept_wherever_they_occur(tmp_path: Path) -> None:
    path = write_vectors(tmp_path / "v.txt")
    tasks = TaskSet(
        (
            task(
                "a",
                "text",
                train=split({"text": ["the the good"]}),
                test=split({"text": ["bad zebra"]}),
            ),
        )
    )
    encoded = WordEncoding(vectors=path).encode(tasks)
    assert encoded.vocabulary[2:] == ("the", "good", "bad")
    assert encoded.vectors is not None
    assert encoded.vectors[3:].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert encoded.vectors[0].tolist() == [0.0, 0.0]
    assert 0 < encoded.vectors[2].abs().max() <= 0.25
    assert encoded.extra["coverage"] == pytest.approx(2 / 3)
    plain = WordEncoding(vectors=path, keep_words_with_vectors=False).encode(tasks)
    assert plain.vocabulary[2:] == ("the",)


def test_windows_are_padded_at_the_ends_of_sentences() -> None:
    tasks = TaskSet(
        (
            tagging(
                "ner",
                {"train": [["Ann", "saw", "Bob"], ["Go"]], "test": [["Bob", "x"]]},
                {"train": [1, 0, 1, 0], "test": [1, MISSING]},
            ),
        )
    )
    encoded = WindowEncoding(width=2).encode(tasks)
    train, test = encoded["ner"].splits["train"], encoded["ner"].splits["test"]
    ann, bob, go, saw = (encoded.vocabulary.index(word) for word in ("ann", "bob", "go", "saw"))
    assert isinstance(train.inputs, WindowInputs)
    assert train.inputs.batch(everything(4)).tolist() == [
        [0, 0, ann, saw, bob],
        [0, ann, saw, bob, 0],
        [ann, saw, bob, 0, 0],
        [0, 0, go, 0, 0],
    ]
    assert test.inputs.batch(everything(2)).tolist() == [[0, 0, bob, 1, 0], [0, bob, 1, 0, 0]]
    assert train.sentences is not None
    assert train.sentences.tolist() == [0, 3, 4]
    assert (len(train), encoded["ner"].size) == (4, 4)
    assert test.targets.tolist() == [1, MISSING]


def test_training_tags_lose_their_b_and_others_keep_it() -> None:
    labels = ("B-X", "B-Y", "I-X", "O", "Bx")
    tasks = TaskSet(
        (
            tagging(
                "ner",
                {"train": [list("abcdef")], "dev": [list("ab")]},
                {"train": [0, 2, 1, 3, MISSING, 4], "dev": [0, 2]},
                labels=labels,
            ),
        )
    )
    encoded = WindowEncoding(io_training=True).encode(tasks)
    assert encoded["ner"].splits["train"].targets.tolist() == [2, 2, 1, 3, MISSING, 4]
    assert encoded["ner"].splits["dev"].targets.tolist() == [0, 2]
    assert encoded["ner"].labels == labels
