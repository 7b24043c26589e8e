"""Passages as rows of bytes, or of a tokenizer's pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from taskmix.errors import InputError, OptionError
from taskmix.tasks import MISSING, EncodedSplit, PassageEncoding, Split, Task, TaskSet, encode_with

BEGIN = 256


def tasks_of(**texts: list[str]) -> TaskSet:
    return TaskSet(
        tuple(
            Task(
                name=name,
                kind="language",
                inputs="passage",
                labels=(),
                metric="bits_per_byte",
                source=name,
                splits={"train": Split(pa.table({"text": its}), np.empty(0))},
            )
            for name, its in texts.items()
        )
    )


def encode(texts: list[str], context: int) -> EncodedSplit:
    encoded = PassageEncoding(context=context).encode(tasks_of(a=texts))
    assert encoded["a"].outputs == 256
    assert encoded.extra["ids"] == 257
    return encoded["a"].splits["train"]


def values_of(split: EncodedSplit) -> torch.Tensor:
    inputs: Any = split.inputs
    return inputs.values


@pytest.mark.parametrize("context", [2, 3, 4, 5, 7, 16, 64])
def test_every_byte_is_predicted_once_from_all_that_came_before_it_in_its_row(context: int) -> None:
    texts = ["Zoë", "", "a longer passage, of several rows", "b"]
    split = encode(texts, context)
    ids, targets = values_of(split).flatten(), split.targets.flatten()
    known = targets != MISSING
    assert bytes(targets[known].tolist()) == "".join(texts).encode()
    following = ids[1:][known[:-1]]
    assert torch.equal(following.long(), targets[:-1][known[:-1]])
    assert int((ids == BEGIN).sum()) >= len(texts)
    assert split.target_bytes is not None
    assert torch.equal(split.target_bytes, known.view(len(split), context).sum(dim=1))


def test_passages_that_come_after_training_have_rows_of_their_own() -> None:
    tasks = tasks_of(a=["one", "", "another one"])
    split = encode_with(PassageEncoding(context=4), {}, tasks)["a"].splits["train"]
    assert split.sentences is not None
    assert split.sentences.tolist() == [0, 1, 2, 5]
    assert split.target_bytes is not None
    assert split.target_bytes.tolist() == [3, 0, 4, 4, 3]
    nothing = encode_with(PassageEncoding(context=4), {}, tasks_of(a=[]))["a"].splits["train"]
    assert len(nothing) == 0


def test_pieces_of_a_tokenizer_spell_all_bytes(tokenizer_folder: str) -> None:
    texts = ["good film", "", "a fi\u0301lm, na\u00efve"]
    encoded = PassageEncoding(context=4, tokenizer=tokenizer_folder).encode(tasks_of(a=texts))
    split = encoded["a"].splits["train"]
    assert encoded.extra["ids"] == encoded["a"].outputs + 1
    assert split.target_bytes is not None
    assert int(split.target_bytes.sum()) == sum(len(text.encode()) for text in texts)
    known = split.targets != MISSING
    assert int(split.targets[known].max()) < encoded["a"].outputs
    following = values_of(split).flatten()[1:].long()
    same = following == split.targets.flatten()[:-1]
    assert bool((same | ~known.flatten()[:-1]).all())


def test_what_is_no_passage_is_refused_in_a_sentence() -> None:
    table = pa.table({"text": ["good"]})
    task = Task(
        name="films",
        kind="classification",
        inputs="text",
        labels=("no", "yes"),
        metric="accuracy",
        source="films",
        splits={"train": Split(table, np.array([1]))},
    )
    with pytest.raises(InputError, match="Found `films`, classification of text"):
        PassageEncoding().encode(TaskSet((task,)))
    with pytest.raises(OptionError, match="`context` should be at least 2"):
        PassageEncoding(context=1)
