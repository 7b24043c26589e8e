"""What domains are like: byte models, counts of bytes, vectors of an encoder, and files of them."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import InputError, TaskmixError
from taskmix.mixtures import (
    DomainFeatures,
    domain_features,
    encoder_features,
    features_of_folder,
    read_features,
    write_features,
)
from taskmix.mixtures._domains._byte_counts import byte_distribution
from taskmix.mixtures._domains._byte_model import ByteModel, codes_of, cross_entropies

DATA = Path(os.environ.get("TASKMIX_DATA", Path(__file__).parents[4] / "shared" / "data"))


def after(context: bytes, byte: bytes) -> int:
    return int.from_bytes(context + byte, "big")


def test_a_byte_model_has_the_probabilities_of_witten_and_bell() -> None:
    model = ByteModel.of_codes(codes_of(b"aab", 1), 1)
    # Bytes: a twice, b once, two kinds. After a: a once, b once, two kinds.
    a, b, c = ((count + 2 / 256) / (3 + 2) for count in (2, 1, 0))
    wanted = [
        (1 + 2 * a) / 4,
        (1 + 2 * b) / 4,
        2 * c / 4,
        a,
    ]  # the last after b, which ends the text
    codes = [after(b"a", b"a"), after(b"a", b"b"), after(b"a", b"c"), after(b"b", b"a")]
    np.testing.assert_allclose(model.probabilities(np.array(codes)), wanted, rtol=1e-12)


def test_the_bytes_that_may_follow_have_probabilities_that_sum_to_one() -> None:
    model = ByteModel.of_codes(codes_of(b"the cat sat on the mat"))
    for context in (b"the", b"at ", b"xyz", b"\0\0\0"):
        codes = np.array([after(context, bytes([byte])) for byte in range(256)])
        assert model.probabilities(codes).sum() == pytest.approx(1.0)


def slow_probability(text: bytes, context: bytes, byte: int) -> float:
    """The recursion as it is written, by counting in the text."""
    padded = b"\0" * 3 + text
    following = Counter(
        padded[place]
        for place in range(3, len(padded))
        if padded[place - len(context) : place] == context
    )
    below = slow_probability(text, context[1:], byte) if context else 1 / 256
    total, kinds = sum(following.values()), len(following)
    return (following[byte] + kinds * below) / (total + kinds) if total else below


@settings(max_examples=30, deadline=None)
@given(
    text=st.binary(min_size=1, max_size=30).map(lambda data: bytes(each % 3 + 97 for each in data)),
    context=st.text("abc", min_size=3, max_size=3),
    byte=st.integers(96, 100),
)
def test_a_byte_model_agrees_with_counting_by_hand(text: bytes, context: str, byte: int) -> None:
    code = np.array([after(context.encode(), bytes([byte]))])
    fast = ByteModel.of_codes(codes_of(text)).probabilities(code)[0]
    assert fast == pytest.approx(slow_probability(text, context.encode(), byte), rel=1e-12)


def test_a_cross_entropy_is_the_mean_of_bits_that_bytes_cost() -> None:
    learned, read = b"abababab", b"abba"
    bits = cross_entropies([learned, b"zzzz"], [read])
    slow = [
        -np.log2(slow_probability(learned, (b"\0\0\0" + read)[place : place + 3], byte))
        for place, byte in enumerate(read)
    ]
    assert bits.shape == (1, 2)
    assert bits[0, 0] == pytest.approx(np.mean(slow))
    assert bits[0, 0] < bits[0, 1]


def test_a_distribution_of_bytes_has_each_length_in_equal_parts() -> None:
    found = byte_distribution(b"aab", longest=2, buckets=8)
    assert found[ord("a")] == pytest.approx(2 / 3 / 2)
    assert found[ord("b")] == pytest.approx(1 / 3 / 2)
    assert sorted(found[256:])[-2:] == pytest.approx([0.25, 0.25])  # aa and ab
    assert found.sum() == pytest.approx(1.0)


def test_similar_texts_are_near_and_a_domain_is_like_itself() -> None:
    english = "the cat sat on the mat and looked at the dog. "
    texts = {
        "english": [english * 40] * 8,
        "more": ["a dog looked at the cat and sat on the mat. " * 40] * 8,
        "code": ["for (int i = 0; i < n; i++) { x[i] = i; } " * 40] * 8,
    }
    features = domain_features(texts)
    assert features.neighbours("english")[0][0] == "more"
    assert np.diag(features.similarity) == pytest.approx(1.0)
    assert ((features.similarity > 0) & (features.similarity <= 1)).all()


def test_features_of_texts_are_the_same_each_time_and_need_little_text() -> None:
    texts = {"a": ["some words"], "b": ["other words"]}
    first, second = domain_features(texts), domain_features(texts)
    np.testing.assert_array_equal(first.similarity, second.similarity)
    with pytest.raises(InputError, match="Found 2 bytes for 'b'"):
        domain_features({"a": ["some words"], "b": ["no"]})


def test_similar_by_vectors_does_not_depend_on_the_units_of_a_feature() -> None:
    vectors = np.random.default_rng(0).standard_normal((5, 3))
    names = ("a", "b", "c", "d", "e")
    plain = DomainFeatures.of_vectors(names, vectors)
    scaled = DomainFeatures.of_vectors(names, vectors * np.array([1.0, 1000.0, 0.01]))
    np.testing.assert_allclose(plain.similarity, scaled.similarity)


def test_features_are_read_as_they_were_written(tmp_path: Path) -> None:
    features = domain_features({"a": ["some words here"], "b": ["1234567890"]})
    again = read_features(write_features(tmp_path / "features.json", features))
    assert again.names == features.names
    assert again.made_of == features.made_of
    np.testing.assert_allclose(again.similarity, features.similarity, rtol=1e-5)
    np.testing.assert_allclose(again.vectors, features.vectors, rtol=1e-5)
    write_features(tmp_path / "features.json", again)  # over its own


def test_features_are_not_written_over_another_file(tmp_path: Path) -> None:
    (tmp_path / "thesis.json").write_text("{}")
    features = DomainFeatures.of_vectors(("a", "b"), np.eye(2))
    with pytest.raises(InputError, match="The features should be written to a new file"):
        write_features(tmp_path / "thesis.json", features)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", "{", "Found something that is no JSON"),
        ("a.json", '{"version": 1}', "Found another form (FeatureDocument should have `names`)"),
        ("a.json", '{"version": 9, "names": [], "vectors": []}', "Found version 9"),
        (
            "a.json",
            '{"names": ["a", "b"], "vectors": [[1], [1, 2]]}',
            "vectors of different lengths",
        ),
        (
            "a.json",
            '{"names": ["a", "b"], "vectors": [[1], [2]], "similarity": [[1]]}',
            "a similarity that is not square",
        ),
        ("a.csv", "domain,x\na,1\nb,many\n", "Found 'many' in row 3, column 'x'"),
        ("a.csv", "domain\na\nb\n", "Found a single column"),
        ("a.csv", "domain,x\na,1\na,2\n", "Found 'a' twice"),
        ("a.csv", "domain,x\na,1\nb,nan\n", "Found another value for 'b'"),
    ],
)
def test_a_wrong_file_of_features_gets_a_sentence(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TaskmixError, match=re.escape(sentence)):
        read_features(tmp_path / name)


def test_a_missing_file_of_features_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Found no file in"):
        read_features(tmp_path / "nothing.json")


def test_a_folder_of_domains_is_read_in_the_usual_forms(tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    rows = "".join(json.dumps({"text": f"good film number {n}"}) + "\n" for n in range(30))
    with gzip.open(tmp_path / "packed" / "train.jsonl.gz", "wt") as file:
        file.write(rows)
    (tmp_path / "packed" / "test.jsonl").write_text("this is never read")
    (tmp_path / "lines.txt").write_text("good film\n\nbad film\n" * 20)
    (tmp_path / "table.csv").write_text("text,label\n" + "nice film,1\n" * 20)
    (tmp_path / "README.md").write_text("no domain")
    features = features_of_folder(tmp_path)
    assert features.names == ("lines", "packed", "table")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.jsonl", '{"words": "x"}\n', "Found a row 1 without one"),
        ("a.jsonl", "{\n", "Found a row 1 that is no JSON"),
        ("a.csv", "words,label\nx,1\n", "Found the columns 'words', 'label'"),
        ("a.md", "x", "Found none in"),
    ],
)
def test_a_folder_without_texts_gets_a_sentence(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(sentence)):
        features_of_folder(tmp_path)


def test_a_missing_folder_of_domains_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Found no folder at"):
        features_of_folder(tmp_path / "nothing")


def test_an_encoder_describes_a_domain_by_the_mean_of_its_vectors(
    save_language_model: Callable[..., str],
) -> None:
    path = save_language_model()
    texts = {"a": ["good film", "bad film"], "b": ["12345"], "c": ["good film"]}
    features = encoder_features(texts, path)
    alone = encoder_features({"x": ["good film"], "y": ["bad film"]}, path)
    np.testing.assert_allclose(features.vectors[0], alone.vectors.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(features.vectors[2], alone.vectors[0], atol=1e-3)
    assert "encoder" in features.made_of


def test_real_domains_have_the_neighbours_that_one_expects() -> None:
    folder = DATA / "domains"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here; TASKMIX_DATA names another folder of data")
    features = features_of_folder(folder, sample_bytes=50_000)
    near = {name: [other for other, _ in features.neighbours(name)] for name in features.names}
    assert near["man_fr"][0] == "man_en"  # pages with the same commands and layout
    assert near["reviews"][0] == "newsgroups"  # people's English
    sources = {"c_source", "javascript_source", "python_source"}
    for name in sources:
        assert len(sources.intersection(near[name][:4])) >= 1
    assert near["man_en"].index("man_ja") > near["man_en"].index("man_fr")  # another script
