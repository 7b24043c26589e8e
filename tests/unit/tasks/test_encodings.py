"""Passages as rows of bytes, or of a tokenizer's pieces."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from encoding_toys import dense, everything, ragged, split, tagging, task, write_vectors
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from taskmix.errors import InputError, TaskFileError
from taskmix.tasks import (
    MISSING,
    EncodedSplit,
    EncodedTasks,
    Encoding,
    KeptByTable,
    PassageEncoding,
    Split,
    SubwordEncoding,
    TableEncoding,
    Task,
    TaskSet,
    WindowEncoding,
    WindowInputs,
    WordEncoding,
    build_vocabulary,
    encode_with,
    read_word_vectors,
    tokenize,
    vectors_for,
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


def test_numbers_are_standardised_by_the_training_rows_of_all_tasks() -> None:
    tasks = TaskSet(
        (
            task("a", "table", train=split({"x": [0.0, 2.0]}), test=split({"x": [4.0]})),
            task("b", "table", train=split({"x": [4, 6]})),
        )
    )
    encoded = TableEncoding().encode(tasks)
    # Mean 3, standard deviation sqrt(5), from the four training rows.
    expected = torch.tensor([[-3.0], [-1.0]]) / 5**0.5
    torch.testing.assert_close(dense(encoded, "a"), expected)
    torch.testing.assert_close(dense(encoded, "a", "test"), torch.tensor([[1.0]]) / 5**0.5)
    assert dense(encoded, "a").dtype == torch.float32
    raw = TableEncoding(standardize=False).encode(tasks)
    assert dense(raw, "b").tolist() == [[4.0], [6.0]]


def test_a_missing_number_becomes_the_mean_and_is_marked() -> None:
    tasks = TaskSet((task("a", "table", train=split({"x": [1.0, None, 3.0], "y": [1, 2, 3]})),))
    encoded = TableEncoding().encode(tasks)
    assert encoded.extra["features"] == ("x", "x is missing", "y")
    assert dense(encoded, "a")[:, :2].tolist() == [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def test_strings_and_booleans_become_indicators() -> None:
    train = split(
        {"colour": ["red", "blue", "red", "green", None], "flag": [True, False] * 2 + [True]}
    )
    test = split({"colour": ["pink"], "flag": [False]})
    encoded = TableEncoding(max_categories=2).encode(
        TaskSet((task("a", "table", train=train, test=test),))
    )
    assert encoded.extra["features"] == (
        "colour = blue",
        "colour = red",
        "colour is another",
        "colour is missing",
        "flag = false",
        "flag = true",
        "flag is another",
    )
    assert encoded.features == 7
    assert dense(encoded, "a").tolist() == [
        [0, 1, 0, 0, 0, 1, 0],
        [1, 0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 0],
        [0, 0, 1, 0, 1, 0, 0],  # green is rarer than max_categories allows
        [0, 0, 0, 1, 0, 1, 0],
    ]
    assert dense(encoded, "a", "test").tolist() == [[0, 0, 1, 0, 1, 0, 0]]


def test_numbers_that_are_codes_are_read_as_names() -> None:
    tasks = TaskSet((task("a", "table", train=split({"job": [10, 20, 10]})),))
    encoded = TableEncoding(codes=("job",)).encode(tasks)
    assert encoded.extra["features"] == ("job = 10", "job = 20", "job is another")


def test_an_infinite_number_is_refused_with_its_row() -> None:
    tasks = TaskSet((task("a", "table", train=split({"x": [1.0, 2.0, float("inf")]})),))
    with pytest.raises(InputError, match=r"should be finite. Found an infinite one in row 3"):
        TableEncoding().encode(tasks)


def test_regression_targets_stay_raw_and_their_scale_is_known() -> None:
    nan = float("nan")
    tasks = TaskSet(
        (
            task("a", "table", train=split({"x": [1, 2, 3]}, [10.0, 30.0, nan])),
            task("b", "table", train=split({"x": [1, 2]}, [5.0, 5.0])),
            task("c", "table", train=split({"x": [1, 2]}, [0, MISSING])),
        )
    )
    encoded = TableEncoding().encode(tasks)
    assert encoded.extra["target_scale"] == {"a": (20.0, 10.0), "b": (5.0, 1.0)}
    targets = encoded["a"].splits["train"].targets
    assert targets.dtype == torch.float32
    assert targets[:2].tolist() == [10.0, 30.0]
    assert targets[2].isnan()
    assert encoded["c"].splits["train"].targets.tolist() == [0, MISSING]


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


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It's 3.14, or 1,000!", ["it", "'s", "3.14", ",", "or", "1,000", "!"]),
        ("Don't; do n't", ["do", "n't", ";", "do", "n't"]),
        ("the '90s and 'quotes'", ["the", "'", "90s", "and", "'", "quotes", "'"]),
        ("mp3 snake_case a--b", ["mp3", "snake", "_", "case", "a", "-", "-", "b"]),
        ("l\u2019\u00e9t\u00e9 na\u00efve", ["l", "'", "\u00e9t\u00e9", "na\u00efve"]),
        ("e.g. 1.2.3", ["e", ".", "g", ".", "1.2.3"]),
        ("", []),
        (" \t\r\n\u00a0", []),
    ],
)
def test_words_numbers_and_marks_are_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@given(st.text())
def test_no_character_but_white_space_is_lost(text: str) -> None:
    kept = "".join(text.lower().replace("\u2019", "'").split())
    assert "".join(tokenize(text)) == kept


def test_words_are_ordered_by_count_and_then_by_the_alphabet() -> None:
    counts = {"rare": 1, "b": 3, "a": 3, "the": 9}
    assert build_vocabulary(counts)[2:] == ("the", "a", "b")
    assert build_vocabulary(counts, min_count=1)[2:] == ("the", "a", "b", "rare")
    assert build_vocabulary(counts, max_words=1)[2:] == ("the",)
    assert build_vocabulary(counts, keep={"rare"})[2:] == ("the", "a", "b", "rare")
    assert len(build_vocabulary({})) == 2, "padding and the unknown word are always there"


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


DATA = Path(os.environ.get("TASKMIX_DATA", Path(__file__).parents[4] / "shared" / "data"))
WORDS = ("the", "cat", "caf\u00e9")
VECTORS = np.array([[0.5, -1.0], [2.0, 0.25], [-0.125, 3.0]], dtype=np.float32)
LINES = "".join(f"{word} {a} {b}\n" for word, (a, b) in zip(WORDS, VECTORS.tolist(), strict=True))
# Without the time: parameters name tests, and every worker must find the same names.
CUT = gzip.compress(LINES.encode() * 50, mtime=0)[:-30]


def glove(path: Path) -> None:
    path.write_text(LINES, encoding="utf-8")


def fasttext(path: Path) -> None:
    path.write_text("3 2\n" + LINES.replace("\n", " \n"), encoding="utf-8")


def zipped(path: Path) -> None:
    path.write_bytes(gzip.compress(LINES.encode()))


def archive(path: Path) -> None:
    joined = np.frombuffer("\n".join(WORDS).encode(), dtype=np.uint8)
    np.savez(path, words=joined, vectors=VECTORS.astype(np.float16))


FORMATS = [
    ("glove.txt", glove),
    ("wiki.vec", fasttext),
    ("glove.txt.gz", zipped),
    ("shared.npz", archive),
]


@pytest.mark.parametrize(("name", "write"), FORMATS)
def test_every_format_gives_the_same_words_and_vectors(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    words, vectors = read_word_vectors(tmp_path / name)
    assert words == WORDS
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, VECTORS)


@pytest.mark.parametrize(
    ("name", "content", "row", "sentence"),
    [
        ("short.txt", b"a 1 2\nb 3\n", 2, "line 2, should have a word and 2 numbers. Found fewer"),
        ("words.txt", b"a 1 2\nb 3 x\n", 2, "line 2, should have numbers after the word"),
        ("nan.txt", b"a 1 2\nb 3 nan\n", 2, "line 2, should have finite numbers"),
        ("bytes.txt", b"a 1 2\n\xff\xfe 3 4\n", 2, "line 2, should have a word in UTF-8"),
        ("empty.txt", b"", 1, "line 1, should have a word and its numbers"),
        ("cut.vec", b"3 2\na 1 2\n", 2, "the 3 words that its first line announces. Found 1"),
        ("cut.txt.gz", CUT, None, "ends early or is damaged"),
        ("not.npz", b"no archive", None, "ends early or is damaged"),
    ],
)
def test_a_bad_file_is_answered_with_its_row_and_a_remedy(
    tmp_path: Path, name: str, content: bytes, row: int | None, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TaskFileError, match=sentence) as caught:
        read_word_vectors(path)
    assert (caught.value.path, caught.value.row) == (path, row)
    assert str(path) in str(caught.value)


def test_unknown_words_get_small_random_vectors_and_padding_gets_zeros(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    glove(path)
    vocabulary = build_vocabulary({"the": 5, "Cat": 4, "zebra": 3})
    placed = vectors_for(vocabulary, path, np.random.default_rng(0))
    assert not placed.vectors[0].any()
    assert placed.known.tolist() == [False, False, True, True, False]
    np.testing.assert_array_equal(placed.vectors[2:4], VECTORS[:2])  # Cat by its lower-case form
    for unknown in (1, 4):
        assert 0.0 < np.abs(placed.vectors[unknown]).max() <= 0.25
    assert placed.coverage == pytest.approx(2 / 3)
    again = vectors_for(vocabulary, path, np.random.default_rng(0))
    np.testing.assert_array_equal(again.vectors, placed.vectors)


# Passages as rows of bytes, or of a tokenizer's pieces.

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


def test_combining_marks_stay_with_their_letters() -> None:
    tamil = "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd"  # with a vowel sign inside and a mark at the end
    yoruba = "e\u0323\u0301ko\u0323"  # has no precomposed form
    assert tokenize(f"{tamil} {yoruba}.") == [tamil, yoruba, "."]
