"""Entity F1 against the figures of the CoNLL script, a slow reading of its rules, and nervaluate.

The expected texts were printed for the same tags by Perl, running a copy of `conlleval` (version of
2004-01-26) typed off without its options and its LaTeX table. The script itself is not kept here.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nervaluate import Evaluator
from numpy.typing import NDArray

from taskmix.errors import ShapeError
from taskmix.tasks import (
    MISSING,
    conlleval_report,
    entity_counts,
    io_to_iob2,
)

DATA = Path(os.environ.get("TASKMIX_DATA", Path(__file__).parents[3] / "shared" / "data"))
IOB2 = ("O", "B-X", "I-X", "B-Y", "I-Y")
ALL_LETTERS = ("O", *(f"{letter}-{kind}" for letter in "BIE" for kind in ("X", "Y-Z")))


def numbered(
    sentences: Sequence[Sequence[str]], labels: Sequence[str]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Label numbers of all tokens, and where sentences begin."""
    flat = [labels.index(tag) for sentence in sentences for tag in sentence]
    return np.array(flat, dtype=np.int64), np.cumsum([0, *map(len, sentences)])


def chunks_of(sentence: Sequence[str]) -> set[tuple[int, int, str]]:
    """(first token, last token, type), token by token from the rules as they are written down."""
    result = set()
    opened: int | None = None
    tags = [("O", ""), *(tuple(tag.split("-", 1)) if "-" in tag else (tag, "") for tag in sentence)]
    tags.append(("O", ""))
    for place in range(1, len(tags)):
        (former, former_type), (letter, kind) = tags[place - 1], tags[place]
        other_type = former_type != kind
        ends = (
            (former in ("B", "I") and letter in ("B", "O"))
            or (former == "E" and letter in ("E", "I", "O"))
            or (former != "O" and other_type)
        )
        starts = (
            (letter == "B" and former in ("B", "I", "O"))
            or (letter in ("I", "E") and former in ("O", "E"))
            or (letter != "O" and other_type)
        )
        if ends and opened is not None:
            result.add((opened, place - 1, former_type))
            opened = None
        if starts:
            opened = place
    return result


def tagged(labels: Sequence[str]) -> st.SearchStrategy[list[list[tuple[str, str]]]]:
    """Sentences of pairs: the true tag, and a prediction that is often the same."""
    tag = st.sampled_from(labels)
    pair = st.one_of(tag.map(lambda one: (one, one)), st.tuples(tag, tag))
    return st.lists(st.lists(pair, min_size=1, max_size=12), min_size=1, max_size=5)


@pytest.mark.parametrize("labels", [IOB2, ALL_LETTERS], ids=["IOB2", "all letters"])
def test_counts_agree_with_a_slow_reading_of_the_rules(labels: tuple[str, ...]) -> None:
    @given(tagged(labels))
    def agrees(sentences: list[list[tuple[str, str]]]) -> None:
        gold = [[true for true, _ in sentence] for sentence in sentences]
        guess = [[predicted for _, predicted in sentence] for sentence in sentences]
        true_chunks = [(i, *chunk) for i, tags in enumerate(gold) for chunk in chunks_of(tags)]
        found_chunks = [(i, *chunk) for i, tags in enumerate(guess) for chunk in chunks_of(tags)]
        targets, offsets = numbered(gold, labels)
        counts = entity_counts(numbered(guess, labels)[0], targets, labels, offsets)
        assert sum(counts.gold.values()) == len(true_chunks)
        assert sum(counts.found.values()) == len(found_chunks)
        assert sum(counts.correct.values()) == len(set(true_chunks) & set(found_chunks))

    agrees()


@given(tagged(IOB2))
def test_counts_agree_with_nervaluate_strict_where_tags_are_iob2(
    sentences: list[list[tuple[str, str]]],
) -> None:
    # On tags that IOB2 allows, both mean the same chunks; an `I-` without a `B-` is repaired first.
    gold = [io_to_iob2([true for true, _ in sentence]) for sentence in sentences]
    guess = [io_to_iob2([predicted for _, predicted in sentence]) for sentence in sentences]
    targets, offsets = numbered(gold, IOB2)
    counts = entity_counts(numbered(guess, IOB2)[0], targets, IOB2, offsets)
    strict = Evaluator(gold, guess, tags=["X", "Y"], loader="list").evaluate()["overall"]["strict"]
    assert sum(counts.correct.values()) == strict.correct
    assert sum(counts.gold.values()) == strict.possible
    assert sum(counts.found.values()) == strict.actual
    assert counts.f1 == pytest.approx(strict.f1)


def test_the_report_has_the_figures_of_the_script_for_a_small_example() -> None:
    gold = [
        ["B-NP", "I-NP", "B-VP", "B-NP", "O", "B-PP"],
        ["I-NP", "I-NP", "B-NP", "O", "I-ADJP"],
    ]
    guess = [
        ["B-NP", "I-NP", "I-VP", "I-NP", "B-PP", "B-PP"],
        ["B-NP", "I-NP", "I-NP", "O", "B-ADVP"],
    ]
    labels = sorted({tag for sentence in (*gold, *guess) for tag in sentence})
    targets, offsets = numbered(gold, labels)
    assert conlleval_report(numbered(guess, labels)[0], targets, labels, offsets) == (
        "processed 11 tokens with 7 phrases; found: 7 phrases; correct: 4.\n"
        "accuracy:  45.45%; precision:  57.14%; recall:  57.14%; FB1:  57.14\n"
        "             ADJP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0\n"
        "             ADVP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1\n"
        "               NP: precision:  66.67%; recall:  50.00%; FB1:  57.14  3\n"
        "               PP: precision:  50.00%; recall: 100.00%; FB1:  66.67  2\n"
        "               VP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1\n"
    )


def conll2003_test() -> list[list[str]]:
    path = DATA / "conll2003" / "test.conll.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here; TASKMIX_DATA names another folder of data")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    return [[line.split("\t")[3] for line in block.split("\n")] for block in blocks]


def test_the_report_has_the_figures_of_the_script_for_conll_2003() -> None:
    gold = conll2003_test()
    labels = sorted({tag for sentence in gold for tag in sentence})
    targets, offsets = numbered(gold, labels)
    # Every tenth token is mistagged, with each tag in turn.
    predicted = targets.copy()
    tenth = np.arange(9, len(targets), 10)
    predicted[tenth] = (tenth // 10) % len(labels)
    assert conlleval_report(predicted, targets, labels, offsets) == (
        "processed 46435 tokens with 5648 phrases; found: 9303 phrases; correct: 4948.\n"
        "accuracy:  91.12%; precision:  53.19%; recall:  87.61%; FB1:  66.19\n"
        "              LOC: precision:  59.40%; recall:  89.75%; FB1:  71.49  2520\n"
        "             MISC: precision:  37.58%; recall:  89.03%; FB1:  52.85  1663\n"
        "              ORG: precision:  55.96%; recall:  86.51%; FB1:  67.96  2568\n"
        "              PER: precision:  54.43%; recall:  85.90%; FB1:  66.63  2552\n"
    )
    # The same predictions with `B-` and `I-` not told apart, as after training on IO tags.
    inside = np.array(
        [labels.index(f"I{tag[1:]}") if tag[0] == "B" else i for i, tag in enumerate(labels)]
    )
    assert conlleval_report(inside[predicted], targets, labels, offsets) == (
        "processed 46435 tokens with 5648 phrases; found: 9119 phrases; correct: 4791.\n"
        "accuracy:  80.08%; precision:  52.54%; recall:  84.83%; FB1:  64.89\n"
        "              LOC: precision:  58.63%; recall:  86.75%; FB1:  69.97  2468\n"
        "             MISC: precision:  36.44%; recall:  84.76%; FB1:  50.96  1633\n"
        "              ORG: precision:  55.51%; recall:  84.29%; FB1:  66.94  2522\n"
        "              PER: precision:  54.05%; recall:  83.43%; FB1:  65.60  2496\n"
    )


def test_an_i_without_a_b_starts_a_chunk_and_sentences_part_chunks() -> None:
    labels = ("O", "I-X", "B-X")
    joined = np.array([1, 1, 1, 1])
    one = entity_counts(joined, joined, labels)
    two = entity_counts(joined, joined, labels, np.array([0, 2, 4]))
    assert (one.gold, two.gold) == ({"X": 1}, {"X": 2})
    assert (one.f1, two.f1) == (1.0, 1.0)


def test_nothing_found_and_nothing_there_score_zero() -> None:
    outside, found = np.zeros(3, dtype=np.int64), np.array([0, 1, 2])
    for predicted, targets in ((outside, found), (found, outside), (outside, outside)):
        counts = entity_counts(predicted, targets, IOB2)
        assert (counts.precision, counts.recall, counts.f1) == (0.0, 0.0, 0.0)


def test_tokens_without_a_target_are_taken_out_of_their_sentence() -> None:
    labels = IOB2
    targets = np.array([1, MISSING, 2, MISSING, 3])
    predicted = np.array([1, 4, 2, 4, 3])
    counts = entity_counts(predicted, targets, labels, np.array([0, 4, 5]))
    assert (counts.tokens, counts.gold, counts.correct) == (3, {"X": 1, "Y": 1}, {"X": 1, "Y": 1})


def test_offsets_that_do_not_cover_the_tokens_are_refused() -> None:
    tags = np.zeros(3, dtype=np.int64)
    with pytest.raises(ShapeError, match="should run from 0 to the number of tokens, 3"):
        entity_counts(tags, tags, IOB2, np.array([0, 2]))
    with pytest.raises(ShapeError, match="Found 2 and 3"):
        entity_counts(tags[:2], tags, IOB2)


@given(st.lists(st.sampled_from(["O", "I-X", "I-Y"]), max_size=12))
def test_io_tags_mean_the_same_chunks_after_conversion(tags: list[str]) -> None:
    converted = io_to_iob2(tags)
    assert chunks_of(converted) == chunks_of(tags)
    assert all(tag[0] in "BIO" for tag in converted)
    assert all(
        tag[0] != "I" or converted[place - 1].partition("-")[2] == tag.partition("-")[2]
        for place, tag in enumerate(converted)
    )
