from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from encoding_toys import everything, ragged, split, tagging, task, words
from torch import Tensor

from taskmix.errors import InputError
from taskmix.tasks import (
    MISSING,
    EncodedTasks,
    Encoding,
    KeptByTable,
    SubwordEncoding,
    SubwordInputs,
    TableEncoding,
    TaskSet,
    WindowEncoding,
    WordEncoding,
    digits_tasks,
)


def small_sets(tokenizer_folder: str) -> dict[str, tuple[Encoding, TaskSet]]:
    """An encoding of each kind, with two tasks that share their rows and one that does not."""
    table = split({"x": [1.0, 2.0, None], "c": ["u", "v", None]})
    text = split({"text": ["a b a", "", "b c"]})
    pair = split({"text": ["a", "b"], "text2": ["c", ""]})
    sentences = {"train": [["a", "b"], ["c"]], "test": [["b"]]}
    tags = {"train": [0, 1, 2], "test": [1]}
    other = {"train": [2, MISSING, 0], "test": [0]}
    tables = TaskSet(
        (
            task("one", "table", source="file", train=table),
            task("two", "table", source="file", train=replace(table, targets=np.ones(3))),
            task("own", "table", train=table),
        )
    )
    texts = TaskSet(
        (
            task("one", "text", source="file", train=text, test=text),
            task(
                "two", "text", source="file", train=replace(text, targets=np.array([0.5, 1.0, 2.0]))
            ),
            task("own", "pair", train=pair),
        )
    )
    tokens = TaskSet(
        (
            tagging("one", sentences, tags, source="file"),
            tagging("two", sentences, other, source="file"),
            tagging("own", sentences, tags),
        )
    )
    pieces = SubwordEncoding(path=tokenizer_folder)
    return {
        "table": (TableEncoding(), tables),
        "words": (WordEncoding(min_count=1), texts),
        "windows": (WindowEncoding(), tokens),
        "pieces": (pieces, texts),
        "tagged pieces": (pieces, tokens),
    }


KINDS = ["table", "words", "windows", "pieces", "tagged pieces"]


def tensors(value: Any) -> list[Tensor]:
    """All tensors of some inputs, in the order of their fields."""
    if isinstance(value, Tensor):
        return [value]
    if hasattr(value, "__dataclass_fields__"):
        return [t for name in value.__dataclass_fields__ for t in tensors(getattr(value, name))]
    return []


def assert_equal(first: EncodedTasks, second: EncodedTasks) -> None:
    assert first.names == second.names
    assert (first.features, first.vocabulary) == (second.features, second.vocabulary)
    assert dict(first.extra) == dict(second.extra)
    for one, two in zip(first, second, strict=True):
        assert (one.kind, one.labels, one.metric) == (two.kind, two.labels, two.metric)
        assert list(one.splits) == list(two.splits)
        for name in one.splits:
            a, b = one.splits[name], two.splits[name]
            assert type(a.inputs) is type(b.inputs)
            for x, y in zip([*tensors(a)], [*tensors(b)], strict=True):
                assert x.dtype == y.dtype
                assert x.numpy().tobytes() == y.numpy().tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_of_one_source_hold_the_same_inputs(kind: str, tokenizer_folder: str) -> None:
    encoding, tasks = small_sets(tokenizer_folder)[kind]
    encoded = encoding.encode(tasks)
    one, two, own = (encoded[name].splits["train"].inputs for name in ("one", "two", "own"))
    assert one is two
    assert one is not own


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_cache_gives_is_equal_bit_for_bit(
    kind: str, tokenizer_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding, tasks = small_sets(tokenizer_folder)[kind]
    plain = encoding.encode(tasks)
    first = encoding.encode(tasks, cache=tmp_path)
    written = {entry: entry.stat().st_mtime_ns for entry in tmp_path.iterdir()}
    # What does not depend on the other tasks is kept source by source.
    assert len(written) == (2 if "pieces" in kind else 1)
    monkeypatch.setattr(
        "taskmix.tasks._encoding._subwords._kept", KeptByTable()
    )  # as another process has it
    again = encoding.encode(tasks, cache=tmp_path)
    found = {entry: entry.stat().st_mtime_ns for entry in tmp_path.iterdir()}
    assert found == written, "the second call reads"
    assert_equal(plain, first)
    assert_equal(plain, again)
    assert again["one"].splits["train"].inputs is again["two"].splits["train"].inputs
    assert again["one"].splits["train"].inputs is not again["own"].splits["train"].inputs


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "replaced"])
def test_a_damaged_entry_is_made_again(damage: str, tmp_path: Path) -> None:
    tasks = digits_tasks().select(["loop", "prime"])
    whole = TableEncoding().encode(tasks, cache=tmp_path)
    (entry,) = tmp_path.iterdir()
    data = entry.read_bytes()
    flipped = bytearray(data)
    flipped[-1000] ^= 1
    bad = {"cut": data[:-100], "flipped": bytes(flipped), "emptied": b"", "replaced": b"x" * 5000}
    entry.unlink()
    entry.write_bytes(bad[damage])
    assert_equal(whole, TableEncoding().encode(tasks, cache=tmp_path))
    assert entry.read_bytes() == data
    assert list(tmp_path.iterdir()) == [entry], "nothing is left beside it"


def test_a_cache_that_cannot_be_written_costs_a_warning_only(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    tasks = digits_tasks().select(["loop"])
    with pytest.warns(UserWarning, match=r"The encoding was not kept"):
        encoded = TableEncoding().encode(tasks, cache=blocked)
    assert len(encoded["loop"].splits["train"]) == 50


def test_tasks_that_an_encoding_cannot_read_are_named() -> None:
    table = TaskSet((task("a", "table", train=split({"x": [1.0]})),))
    tokens = TaskSet((tagging("t", {"train": [["a"]]}, {"train": [0]}),))
    for encoding, tasks in (
        (WordEncoding(), table),
        (WindowEncoding(), table),
        (WordEncoding(), tokens),
    ):
        with pytest.raises(InputError, match=f"Found `{tasks.names[0]}`"):
            encoding.encode(tasks)
    with pytest.raises(InputError, match=r"should be given a split `train`"):
        TableEncoding().encode(TaskSet((task("a", "table", test=split({"x": [1.0]})),)))


def test_lists_of_tokens_can_be_classified_whole(tokenizer_folder: str) -> None:
    rows = {"tokens": [["We", "go"], ["play"]]}
    tasks = TaskSet(
        (
            task("intent", "tokens", source="slu", train=split(rows)),
            tagging("slots", {"train": rows["tokens"]}, {"train": [0, 1, 2]}, source="slu"),
        )
    )
    encoded = WordEncoding(min_count=1).encode(tasks.select(["intent"]))
    assert words(encoded, ragged(encoded, "intent").batch(everything(2))[0]) == ["we", "go"]
    pieces = SubwordEncoding(path=tokenizer_folder).encode(tasks)
    intent = cast("SubwordInputs", pieces["intent"].splits["train"].inputs)
    assert "word_starts" not in intent.batch(everything(2))
    assert pieces["intent"].splits["train"].targets.shape == (2,)
    assert pieces["slots"].splits["train"].targets.shape == (2, 2)
