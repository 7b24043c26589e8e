from __future__ import annotations

from pathlib import Path

import pytest
from encoding_toys import everything, split, tagging, task

from taskmix.errors import InputError
from taskmix.tasks import (
    MISSING,
    SubwordEncoding,
    TaskSet,
)


def test_texts_and_pairs_become_padded_pieces(tokenizer_folder: str) -> None:
    tasks = TaskSet(
        (
            task("text", "text", train=split({"text": ["We play", "", "playing zebra."]})),
            task("pair", "pair", train=split({"text": ["go"], "text2": ["we go"]})),
        )
    )
    encoded = SubwordEncoding(path=tokenizer_folder).encode(tasks)
    batch = encoded["text"].splits["train"].inputs.batch(everything(3))
    assert batch["input_ids"].tolist() == [
        [2, 8, 4, 3, 0, 0],
        [2, 3, 0, 0, 0, 0],
        [2, 4, 5, 1, 9, 3],
    ]
    assert batch["attention_mask"].sum(dim=1).tolist() == [4, 2, 6]
    assert "word_starts" not in batch
    pair = encoded["pair"].splits["train"].inputs.batch(everything(1))
    assert pair["input_ids"].tolist() == [[2, 7, 3, 8, 7, 3]]
    assert pair["token_type_ids"].tolist() == [[0, 0, 0, 1, 1, 1]]
    assert encoded.extra["vocabulary_size"] == 10


def test_words_to_tag_are_read_at_their_first_piece(tokenizer_folder: str) -> None:
    sentences = [["We", "played", "playing"], ["go"]]
    tasks = TaskSet((tagging("ner", {"train": sentences}, {"train": [0, 1, 2, 1]}),))
    encoded = SubwordEncoding(path=tokenizer_folder).encode(tasks)
    train = encoded["ner"].splits["train"]
    batch = train.inputs.batch(everything(2))
    assert batch["input_ids"].tolist() == [[2, 8, 4, 6, 4, 5, 3], [2, 7, 3, 0, 0, 0, 0]]
    assert batch["word_starts"].tolist() == [[1, 2, 4], [1, 0, 0]]
    assert train.targets.tolist() == [[0, 1, 2], [1, MISSING, MISSING]]
    assert len(train) == 2


def test_words_that_are_cut_off_count_against_the_model_but_do_not_train_it(
    tokenizer_folder: str,
) -> None:
    sentences = {"train": [["we", "go", "go", "\u200d"]], "test": [["we", "go", "go", "\u200d"]]}
    tasks = TaskSet((tagging("ner", sentences, {"train": [0, 1, 2, 1], "test": [0, 1, 2, 1]}),))
    encoded = SubwordEncoding(path=tokenizer_folder, max_length=4).encode(tasks)
    batch = encoded["ner"].splits["test"].inputs.batch(everything(1))
    assert batch["input_ids"].tolist() == [[2, 8, 7, 3]]
    assert batch["word_starts"].tolist() == [[1, 2, 3, 3]]
    assert encoded["ner"].splits["train"].targets.tolist() == [[0, 1, MISSING, MISSING]]
    assert encoded["ner"].splits["test"].targets.tolist() == [[0, 1, 2, 1]]
    assert encoded.extra["lost_words"] == {"ner": 4}


def test_a_path_without_a_tokenizer_is_refused(
    tmp_path: Path, tokenizer_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    tasks = TaskSet((task("a", "text", train=split({"text": ["a"]})),))
    with pytest.raises(InputError, match="nowhere` should be a folder with a Hugging Face model"):
        SubwordEncoding(path=str(tmp_path / "nowhere")).encode(tasks)
    # Of a configuration alone transformers makes a tokenizer that knows no word.
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="should have a tokenizer beside its model"):
        SubwordEncoding(path=str(tmp_path)).encode(tasks)
