from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from encoding_toys import split, tagging, task

from taskmix.errors import InputError, MissingExtraError, OptionError
from taskmix.tasks import DenseInputs, FeatureEncoding, KeptByTable, TaskSet


@pytest.fixture(scope="module")
def encoder_folder(tokenizer_folder: str) -> str:
    """A BERT of one layer with random weights beside the tokenizer."""
    transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
    configuration = transformers.BertConfig(
        vocab_size=10,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
    )
    torch.manual_seed(0)
    transformers.BertModel(configuration).save_pretrained(tokenizer_folder)
    return tokenizer_folder


def texts(*rows: str) -> TaskSet:
    return TaskSet((task("text", "text", train=split({"text": list(rows)})),))


def values(tasks: Any, name: str = "text") -> torch.Tensor:
    inputs = tasks[name].splits["train"].inputs
    assert isinstance(inputs, DenseInputs)
    return inputs.values


def alone(folder: str, text: str, *, pooling: str) -> torch.Tensor:
    """The vector of one text without any batch: an oracle by transformers itself."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = network(**tokenizer([text], return_tensors="pt")).last_hidden_state[0]
    code = states.mean(dim=0) if pooling == "mean" else states[0]
    return code / code.norm() * 8**0.5


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_a_texts_vector_does_not_depend_on_its_company(encoder_folder: str, pooling: str) -> None:
    rows = ("we play.", "", "playing zebra . go go go", "go", "we play.")
    encoding = FeatureEncoding(path=encoder_folder, pooling=pooling)  # type: ignore[arg-type]
    found = encoding.encode(texts(*rows))
    assert found.features == 8
    for place, text in enumerate(rows):
        expected = alone(encoder_folder, text, pooling=pooling)
        torch.testing.assert_close(values(found)[place], expected, atol=3e-3, rtol=0)
    assert torch.equal(values(found)[0], values(found)[4])


def test_a_pair_is_joined_and_a_single_text_beside_it_is_filled_up(encoder_folder: str) -> None:
    tasks = TaskSet(
        (
            task("text", "text", train=split({"text": ["we", "go"]})),
            task("pair", "pair", train=split({"text": ["we"], "text2": ["go"]})),
        )
    )
    encoded = FeatureEncoding(path=encoder_folder).encode(tasks)
    first, second = values(encoded)[:, :8]
    assert encoded.features == 32
    assert not values(encoded)[:, 8:].any()
    expected = torch.cat([first, second, (first - second).abs(), first * second])
    torch.testing.assert_close(values(encoded, "pair")[0], expected)
    apart = FeatureEncoding(path=encoder_folder, as_pairs=True).encode(tasks.select(["text"]))
    assert torch.equal(values(apart), values(encoded))


def test_tasks_that_runs_share_are_the_same_tensors(encoder_folder: str) -> None:
    tasks = TaskSet(
        tuple(task(name, "text", train=split({"text": [name, "we"]})) for name in ("go", "play"))
    )
    encoding = FeatureEncoding(path=encoder_folder)
    both, one = encoding.encode(tasks), encoding.encode(tasks.select(["play"]))
    assert both["play"].splits["train"].inputs is one["play"].splits["train"].inputs


def test_what_is_in_the_cache_is_not_computed_again(
    encoder_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding = FeatureEncoding(path=encoder_folder)
    told: list[tuple[int, int]] = []
    first = encoding.encode(
        texts("we go", "we go", "play"),
        cache=tmp_path,
        on_progress=lambda *counts: told.append(counts),
    )
    assert told[-1] == (2, 2), "a text that comes twice is computed once"

    def refuse(path: str) -> None:
        raise AssertionError("the encoder was loaded")

    monkeypatch.setattr("taskmix.tasks._encoding._features.load_network", refuse)
    again = encoding.encode(texts("we go", "we go", "play"), cache=tmp_path)
    assert torch.equal(values(again), values(first))
    with pytest.raises(AssertionError, match="was loaded"):
        encoding.encode(texts("we go", "play"), cache=tmp_path)


def test_a_split_without_rows_has_none(encoder_folder: str) -> None:
    nothing = split({"text": pa.array([], pa.string())})
    tasks = TaskSet((task("text", "text", train=nothing),))
    assert values(FeatureEncoding(path=encoder_folder).encode(tasks)).shape == (0, 8)


def test_what_cannot_be_encoded_is_told(
    encoder_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding = FeatureEncoding(path=encoder_folder)
    words = TaskSet((tagging("ner", {"train": [["we"]]}, {"train": [0]}),))
    with pytest.raises(InputError, match="Use `TableEncoding` for tables"):
        encoding.encode(words)
    with pytest.raises(InputError, match="should be a folder with a tokenizer"):
        FeatureEncoding(path=str(tmp_path)).encode(texts("we"))
    with pytest.raises(OptionError, match="mean or first"):
        FeatureEncoding(path="x", pooling="last")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="`max_length`"):
        FeatureEncoding(path="x", max_length=1)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match="taskmix"):
        encoding.encode(texts("another text"))


def test_what_was_made_of_a_table_is_forgotten_with_it() -> None:
    kept: KeptByTable[str] = KeptByTable()
    table, other = pa.table({"a": [1]}), pa.table({"a": [1]})
    kept.put(table, "x", "made")
    assert kept.get(table, "x") == "made"
    assert kept.get(table, "y") is None
    assert kept.get(other, "x") is None
    del table
    gc.collect()
    assert len(kept) == 0
