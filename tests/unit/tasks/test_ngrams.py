"""N-grams of texts, against scikit-learn's, and the directions in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from taskmix.tasks import (
    NgramEncoding,
    Ngrams,
    Split,
    Task,
    TaskSet,
    encode_with,
    learned_by,
)

TEXTS = [
    "The film was good, good, GOOD!",
    "the book was a_b bad  (very)\tbad",
    "",
    "?! ...",
    "déjà-vu: 12 films & 3 books 😀 x",
    "a",
    "was it good? it was bad",
]


def table(*texts: str | None) -> pa.Table:
    return pa.table({"text": pa.array(texts, pa.string())})


def by_scikit_learn(texts: Sequence[str], rows: Sequence[str]) -> np.ndarray:
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    runs = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    found = [each.fit(texts).transform(rows).toarray() for each in (words, runs)]
    return np.concatenate(found, axis=1)


def test_rows_have_the_inner_products_of_scikit_learns_rows() -> None:
    new = ["a good book", "nothing of it", *TEXTS]
    known = Ngrams.fit([table(*TEXTS[:4]), table(*TEXTS[4:])])  # of two tables together
    rows, oracle = known.matrix(table(*new)), by_scikit_learn(TEXTS, new)
    assert rows.shape == oracle.shape
    np.testing.assert_allclose((rows @ rows.T).toarray(), oracle @ oracle.T, atol=1e-5)


def test_many_rows_read_piece_by_piece_are_those_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(0)
    words = np.array(["one", "two", "three", "four-five", "six"])
    texts = [" ".join(generator.choice(words, size=4)) for _ in range(200)]
    whole = Ngrams.fit([table(*texts)])
    monkeypatch.setattr("taskmix.tasks._encoding._ngrams.AT_ONCE", 100)
    parts = Ngrams.fit([table(*texts)])
    assert np.array_equal(whole.keys, parts.keys)
    assert (whole.matrix(table(*texts)) != parts.matrix(table(*texts))).nnz == 0


def test_long_texts_are_read_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskmix.tasks._encoding._ngrams.LONG", 5)
    known = Ngrams.fit([table("good film", "film")])
    assert known.matrix(table("good film")).nnz == len(known) == 3  # good, film, both


def task(name: str, texts: Sequence[str], others: Sequence[str | None] | None = None) -> Task:
    columns = {"text": list(texts)} | ({} if others is None else {"text2": list(others)})
    split = Split(pa.table(columns), np.arange(len(texts)) % 2)
    return Task(
        name=name,
        kind="classification",
        inputs="text" if others is None else "pair",
        labels=("a", "b"),
        metric="accuracy",
        source=name,
        splits={"train": split, "dev": split},
    )


def test_directions_keep_the_distances_between_training_rows() -> None:
    tasks = TaskSet((task("t", TEXTS),))
    vectors = NgramEncoding(width=7).encode(tasks)["t"].splits["train"].inputs.values
    oracle = torch.from_numpy(by_scikit_learn(TEXTS, TEXTS)).float()
    found, wanted = torch.cdist(vectors, vectors), torch.cdist(oracle, oracle)
    ratio = found[0, 1] / wanted[0, 1]  # one scale for all
    torch.testing.assert_close(found, ratio * wanted, atol=2e-2, rtol=1e-2)


def test_what_it_learned_reads_new_rows_alone_as_it_read_them_in_company() -> None:
    pairs = task("pairs", TEXTS[:3], [*TEXTS[4:6], None])
    tasks = TaskSet((task("single", TEXTS), pairs))
    encoding = NgramEncoding(width=4)
    encoded = encoding.encode(tasks)
    learned = learned_by(encoding, tasks, encoded)
    for each in tasks:
        alone = encode_with(encoding, learned, TaskSet((each,)))
        assert alone.features == encoded.features == 16
        found = alone[0].splits["dev"].inputs.values
        assert torch.equal(found, encoded[each.name].splits["dev"].inputs.values)
    u, v, apart, product = encoded["pairs"].splits["train"].inputs.values.split(4, dim=1)
    torch.testing.assert_close(apart, (u - v).abs())
    torch.testing.assert_close(product, u * v)


def test_texts_without_a_word_are_read_too(tmp_path: Path) -> None:
    encoded = NgramEncoding().encode(TaskSet((task("t", ["", " "]),)), cache=tmp_path)
    assert torch.isfinite(encoded[0].splits["train"].inputs.values).all()
