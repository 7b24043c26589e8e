"""Prompts with answers, and passages: where the model is read, and which piece is to come next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from encoding_toys import split, task

from taskmix.errors import InputError
from taskmix.tasks import (
    MISSING,
    EncodedTasks,
    FeatureEncoding,
    Split,
    SubwordEncoding,
    Task,
    TaskSet,
    encode_with,
    learned_by,
)

END, BEGIN = 0, 1
LETTERS = " \n?!.,abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZé0123456789"


def written(name: str = "ask", **splits: dict[str, Any]) -> Task:
    is_answer = "prompt" in next(iter(splits.values()))
    return Task(
        name=name,
        kind="generation" if is_answer else "language",
        inputs="prompt" if is_answer else "passage",
        labels=(),
        metric="exact_match" if is_answer else "bits_per_byte",
        source=name,
        splits={each: Split(pa.table(rows), np.empty(0)) for each, rows in splits.items()},
    )


def spelled(ids: Any) -> str:
    """Pieces as text: `$` ends, `^` begins, `_` is no target."""
    marks = {END: "$", BEGIN: "^", MISSING: "_"}
    values = ids.tolist() if isinstance(ids, torch.Tensor) else ids
    return "".join(marks.get(each) or LETTERS[each - 2] for each in values)


def rows_of(encoded: EncodedTasks, name: str = "ask", part: str = "train") -> list[tuple[str, str]]:
    """What a model is read at, piece by piece, beside what it should write."""
    data = encoded[name].splits[part]
    found = []
    for row in range(len(data)):
        batch = data.inputs.batch(torch.tensor([row]))
        read = batch["input_ids"][0][batch["word_starts"][0]]
        assert len(read) == int(data.inputs.places[row]), "no wider than it needs"
        found.append((spelled(read), spelled(data.targets[row])))
    return found


def whole(encoded: EncodedTasks, row: int, name: str = "ask", part: str = "train") -> str:
    batch = encoded[name].splits[part].inputs.batch(torch.tensor([row]))
    return spelled(batch["input_ids"][0])


def test_an_answer_is_written_piece_by_piece_from_the_end_of_its_prompt(
    save_letters: Callable[..., str],
) -> None:
    tasks = TaskSet((written(train={"prompt": ["big?", "a "], "answer": ["yes", ""]}),))
    encoded = SubwordEncoding(path=save_letters()).encode(tasks)
    # A prompt ends with white space, and the answer's last piece is written but never read.
    assert [whole(encoded, row) for row in (0, 1)] == ["big?\nyes", "a "]
    assert rows_of(encoded) == [("\nyes", "yes$"), (" ", "$___")]
    assert encoded["ask"].outputs == 2 + len(LETTERS)
    assert encoded["ask"].splits["train"].target_bytes.tolist() == [3, 0]
    assert encoded.extra["longest_answer"] == {"ask": 4}


def test_a_prompt_goes_into_the_chat_template_with_all_it_was_told_before(
    save_letters: Callable[..., str],
) -> None:
    talk = [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}]
    rows = {"prompt": [talk], "answer": ["yo"]}
    tasks = TaskSet(
        (written(train={"prompt": ["hi"], "answer": ["yo"]}), written("talk", train=rows))
    )
    encoded = SubwordEncoding(path=save_letters(template=True)).encode(tasks)
    assert whole(encoded, 0) == "u!hi?yo"
    assert whole(encoded, 0, "talk") == "s!beu!hi?yo"
    assert rows_of(encoded, "talk") == [("?yo", "yo$")]


def test_a_long_prompt_loses_its_beginning_and_never_its_answer(
    save_letters: Callable[..., str],
) -> None:
    tasks = TaskSet((written(train={"prompt": ["abcdefgh?\n"], "answer": ["yes"]}),))
    plain = SubwordEncoding(path=save_letters(), max_length=7).encode(tasks)
    assert whole(plain, 0) == "gh?\nyes"
    begun = SubwordEncoding(path=save_letters(begins=True), max_length=7).encode(tasks)
    assert whole(begun, 0) == "^h?\nyes", "the piece that begins every text stays"
    assert rows_of(begun) == [("\nyes", "yes$")]


@pytest.mark.parametrize(("context", "limit"), [(None, 6), (5, 5)])
def test_an_answer_longer_than_the_context_is_told_with_task_row_and_both_numbers(
    save_letters: Callable[..., str], context: int | None, limit: int
) -> None:
    more = {} if context is None else {"model_max_length": context}
    encoding = SubwordEncoding(path=save_letters(**more), max_length=6)
    rows = {"prompt": ["a", "b"], "answer": ["yes", "certainly"]}
    with pytest.raises(
        InputError, match=f"in {limit} pieces.* 10 pieces in row 2 .*`dev` of.*`ask`"
    ):
        encoding.encode(TaskSet((written(dev=rows),)))
    rows["answer"] = ["yes", "yes"]
    encoding.encode(TaskSet((written(dev=rows),)))


def test_passages_are_windows_in_which_every_letter_is_to_be_written_once(
    save_letters: Callable[..., str],
) -> None:
    tasks = TaskSet((written(train={"text": ["abc", "déf", ""]}),))
    encoded = SubwordEncoding(path=save_letters(), max_length=4).encode(tasks)
    assert rows_of(encoded) == [("$abc", "abc_"), ("$déf", "déf_"), ("$", "____")]
    # An é has two bytes in UTF-8. Where a text ends is read, and not to be written.
    assert encoded["ask"].splits["train"].target_bytes.tolist() == [3, 4, 0]
    begun = SubwordEncoding(path=save_letters(begins=True), max_length=5).encode(tasks)
    assert rows_of(begun) == [("^abc$", "abc_d"), ("déf$", "éf___")]
    assert begun["ask"].splits["train"].target_bytes.tolist() == [4, 3]


def test_classes_answers_and_passages_are_encoded_for_one_model(
    save_letters: Callable[..., str], tmp_path: Path
) -> None:
    rows = {"prompt": ["big?"], "answer": ["yes"]}
    tasks = TaskSet(
        (
            task("film", "text", train=split({"text": ["good", "bad"]})),
            written(train=rows),
            written("books", train={"text": ["abc"]}),
        )
    )
    encoding = SubwordEncoding(path=save_letters())
    encoded = encoding.encode(tasks, cache=tmp_path / "cache")
    assert [each.outputs for each in encoded] == [2, 2 + len(LETTERS), 2 + len(LETTERS)]
    again = encoding.encode(tasks, cache=tmp_path / "cache")  # read from the cache
    assert again["books"].outputs == encoded["books"].outputs
    assert again["ask"].splits["train"].target_bytes.tolist() == [3]
    assert rows_of(again) == rows_of(encoded)


def test_rows_to_be_answered_are_read_at_the_end_of_their_prompt_and_passages_one_by_one(
    save_letters: Callable[..., str],
) -> None:
    trained = TaskSet(
        (
            written(train={"prompt": ["big?"], "answer": ["yes"]}),
            written("books", train={"text": ["abc", "de"]}),
        )
    )
    encoding = SubwordEncoding(path=save_letters(model_max_length=8), max_length=8)
    learned = learned_by(encoding, trained, encoding.encode(trained))
    new = TaskSet(
        (
            written(rows={"prompt": ["abcdefghij"]}),
            written("books", rows={"text": ["abc", "de"]}),
        )
    )
    encoded = encode_with(encoding, learned, new)
    # Four pieces may be written, of which three are read again: they fit into the context of eight.
    assert whole(encoded, 0, part="rows") == "ghij\n"
    assert encoded["ask"].splits["rows"].targets.tolist() == [[MISSING]]
    assert rows_of(encoded, "books", "rows") == [("$abc", "abc_"), ("$de", "de__")]


def test_a_model_that_cannot_write_is_refused_in_a_sentence(tokenizer_folder: str) -> None:
    tasks = TaskSet((written(train={"prompt": ["we"], "answer": ["go"]}),))
    with pytest.raises(InputError, match=r"causal language model.* end-of-sequence piece"):
        SubwordEncoding(path=tokenizer_folder).encode(tasks)
    with pytest.raises(
        InputError, match=r"`ask`, generation of prompt\. Text is written by a causal"
    ):
        FeatureEncoding(path=tokenizer_folder).encode(tasks)
