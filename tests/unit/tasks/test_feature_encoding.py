from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from encoding_toys import split, tagging, task

from taskmix.errors import InputError, MissingExtraError, OptionError
from taskmix.tasks import DenseInputs, FeatureEncoding, TaskSet


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
        torch.testing.assert_close(values(found)[place].float(), expected, atol=3e-3, rtol=0)
    assert torch.equal(values(found)[0], values(found)[4])


def test_a_pair_is_joined_and_a_single_text_beside_it_is_filled_up(encoder_folder: str) -> None:
    tasks = TaskSet(
        (
            task("text", "text", train=split({"text": ["we", "go"]})),
            task("pair", "pair", train=split({"text": ["we"], "text2": ["go"]})),
        )
    )
    encoded = FeatureEncoding(path=encoder_folder).encode(tasks)
    first, second = values(encoded)[:, :8].float()
    assert encoded.features == 32
    assert not values(encoded)[:, 8:].any()
    expected = torch.cat([first, second, (first - second).abs(), first * second])
    torch.testing.assert_close(values(encoded, "pair")[0], expected)
    apart = FeatureEncoding(path=encoder_folder, as_pairs=True).encode(tasks.select(["text"]))
    assert torch.equal(values(apart), values(encoded))


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

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the encoder was loaded")

    monkeypatch.setattr("taskmix.tasks._encoding._frozen.load_pretrained", refuse)
    again = encoding.encode(texts("we go", "we go", "play"), cache=tmp_path)
    assert torch.equal(values(again), values(first))
    with pytest.raises(AssertionError, match="was loaded"):
        encoding.encode(texts("we go", "play"), cache=tmp_path)


def test_what_cannot_be_encoded_is_told(
    encoder_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding = FeatureEncoding(path=encoder_folder)
    numbers = TaskSet((task("numbers", "table", train=split({"x": [1.0]})),))
    with pytest.raises(InputError, match="Use `TableEncoding` for tables"):
        encoding.encode(numbers)
    with pytest.raises(InputError, match="should have a tokenizer beside its model"):
        FeatureEncoding(path=str(tmp_path)).encode(texts("we"))
    with pytest.raises(OptionError, match="mean, first, last, max"):
        FeatureEncoding(path="x", pooling="best")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="`max_length`"):
        FeatureEncoding(path="x", max_length=1)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match="taskmix"):
        encoding.encode(texts("another text"))


def test_a_word_to_be_tagged_is_the_vector_of_its_first_piece(encoder_folder: str) -> None:
    import transformers

    sentences = [["we", "playing"], ["go"], ["we", "go", "play"]]
    tasks = TaskSet((tagging("ner", {"train": sentences}, {"train": [0, 1, 0, 1, 2, 0]}),))
    encoded = FeatureEncoding(path=encoder_folder).encode(tasks)
    found = encoded["ner"].splits["train"]
    assert found.sentences is not None
    assert found.sentences.tolist() == [0, 2, 3, 6]
    assert found.targets.tolist() == [0, 1, 0, 1, 2, 0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder_folder)
    network = transformers.AutoModel.from_pretrained(encoder_folder).eval()
    row = 0
    for words in sentences:
        pieces = tokenizer([words], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            states = network(**pieces).last_hidden_state[0]
        for word in range(len(words)):
            state = states[pieces.word_ids().index(word)]
            expected = state / state.norm() * 8**0.5
            got = values(encoded, "ner")[row].float()
            torch.testing.assert_close(got, expected, atol=3e-3, rtol=0)
            row += 1


def test_a_model_too_large_for_memory_is_told_before_it_is_loaded(
    encoder_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskmix.tasks._encoding._pretrained.free_memory", lambda: 2500)
    told = r"has [\d,]+ parameters, which take .* GB as float32. Found 0.0 GB free. Take a smaller"
    with pytest.raises(InputError, match=told):
        FeatureEncoding(path=encoder_folder).encode(texts("zebra go"))


def test_who_is_stopped_while_it_reads_keeps_the_tables_that_are_done(
    encoder_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskmix.tasks._encoding._features.PORTION_TEXTS", 2)
    rows = {"first": ["we", "go"], "second": ["go", "play", "we play"]}
    tasks = TaskSet(
        tuple(task(name, "text", train=split({"text": some})) for name, some in rows.items())
    )
    encoding = FeatureEncoding(path=encoder_folder)

    class Enough(Exception):  # noqa: N818
        pass

    def stop_in_second(done: int, total: int) -> None:
        assert total == 4, "a text of two tables is read once"
        if done > 2:
            raise Enough

    with pytest.raises(Enough):
        encoding.read(tasks, cache=tmp_path, on_progress=stop_in_second)
    left = encoding.unread(tasks, cache=tmp_path)
    assert [table.column("text").to_pylist() for table in left] == [rows["second"]]
    whole = encoding.encode(tasks, cache=tmp_path)
    apart = FeatureEncoding(path=encoder_folder).encode(tasks.select(["second"]), cache=tmp_path)
    assert torch.equal(values(whole, "second"), values(apart, "second"))
