from __future__ import annotations

import numpy as np
from encoding_toys import tagging

from taskmix.tasks import TaskSet, digits_tasks, sample_rows


def test_large_splits_are_sampled_with_their_targets_and_small_ones_stay() -> None:
    whole = digits_tasks().select(["parity", "half"])
    few = sample_rows(whole, {"train": 50, "dev": 10_000})
    rows = few["parity"].splits["train"]
    assert len(rows) == 50
    assert few["parity"].splits["dev"] is whole["parity"].splits["dev"]
    assert few["parity"].splits["test"] is whole["parity"].splits["test"]
    every = whole["parity"].splits["train"].inputs.to_pylist()
    targets = whole["parity"].splits["train"].targets
    for row, target in zip(rows.inputs.to_pylist(), rows.targets, strict=True):
        assert target == targets[every.index(row)]
    assert few.content != whole.content
    assert few.content == sample_rows(whole, {"train": 50}).content


def test_a_sampled_sentence_keeps_the_tags_of_its_words() -> None:
    sentences = [["a"] * count for count in (1, 3, 2, 4)]
    tags = [0, 1, 1, 1, 2, 2, 0, 0, 0, 0]  # the tag says which sentence, by its length
    few = sample_rows(
        TaskSet((tagging("ner", {"train": sentences}, {"train": tags}),)), {"train": 2}
    )
    split = few["ner"].splits["train"]
    of_length = {1: [0], 3: [1, 1, 1], 2: [2, 2], 4: [0, 0, 0, 0]}
    expected = [
        tag for words in split.inputs.column("tokens").to_pylist() for tag in of_length[len(words)]
    ]
    assert np.array_equal(split.targets, expected)
