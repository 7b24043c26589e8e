from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import InputError, ShapeError
from taskmix.sequences import (
    UNKNOWN,
    Alphabet,
    Markov,
    SequenceMixture,
    flatten_sequences,
    gather_corpus,
)


def test_a_list_and_a_flat_array_with_lengths_are_the_same() -> None:
    parts = [[0, 1, 2], [2], [1, 1]]
    one = flatten_sequences(parts)
    other = flatten_sequences(np.array([0, 1, 2, 2, 1, 1]), [3, 1, 2])
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.starts, other.starts)
    assert one.symbols == other.symbols == 3
    assert one.lengths.tolist() == [3, 1, 2]


def test_missing_symbols_are_minus_one_none_or_nan() -> None:
    found = flatten_sequences([[0, None, 2], [np.nan, 1.0], [-1]])
    assert found.values.tolist() == [0, -1, 2, -1, 1, -1]
    assert found.has_missing
    assert Alphabet(("a", "b")).codes(["b", None, float("nan"), "a"]).tolist() == [1, -1, -1, 0]


def test_words_and_letters_get_codes_and_whole_numbers_keep_theirs() -> None:
    def learn_alphabet(sequences: list[Any]) -> Alphabet | None:
        model = SequenceMixture(Markov(), 1, max_iter=1, random_state=0)
        return model.fit(sequences).alphabet_

    alphabet = learn_alphabet(["anna", "bob"])
    assert alphabet is not None
    assert alphabet.symbols == ("a", "b", "n", "o", UNKNOWN)
    assert alphabet.codes("bx").tolist() == [1, 4]
    assert learn_alphabet([[3, 1], [0]]) is None
    words = learn_alphabet([["ls", "cd"], ["ls"]])
    assert words is not None
    assert flatten_sequences([["cd", "ls"]], alphabet=words).values.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("given_", "options", "error", "sentence"),
    [
        ([[0, 1], []], {}, InputError, "at least one observation. Found none in sequence 1"),
        ([[0, 5]], {"symbols": 3}, InputError, "from 0 to 2, or -1 where missing. Found 5"),
        ([[0, -2]], {"symbols": 3}, InputError, "Found -2"),
        ([[0.5, 1.0]], {}, InputError, "whole numbers or words"),
        ([["a"]], {}, InputError, "gives them codes"),
        ([[[0, 1]]], {}, ShapeError, "one row of codes"),
        ([["c"]], {"alphabet": Alphabet(("a", "b"))}, InputError, "Found 'c'"),
        ([[[1.0, np.inf]]], {"observes": "vectors"}, InputError, "finite"),
        ([[[1.0, 2.0]], [[1.0]]], {"observes": "vectors"}, ShapeError, "one dimension for all"),
    ],
)
def test_bad_sequences_are_refused_in_a_sentence(
    given_: Any, options: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        flatten_sequences(given_, **options)


@pytest.mark.parametrize("lengths", [[2, 2], [5], [-1, 4], [[3]]])
def test_lengths_that_do_not_add_up_are_refused(lengths: Any) -> None:
    with pytest.raises(ShapeError, match="add up to the observations"):
        flatten_sequences(np.array([0, 1, 2]), lengths)


@given(
    st.lists(st.lists(st.integers(-1, 2), min_size=1, max_size=4), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_distinct_sequences_are_exactly_the_different_ones(
    parts: list[list[int]], random: Any
) -> None:
    sequences = flatten_sequences(parts, symbols=3)
    tasks = [random.randrange(3) for _ in parts]
    weights = np.array([random.choice([0.5, 1.0, 2.0]) for _ in parts])
    corpus = gather_corpus(sequences, tasks, weights)
    assert len(corpus.sequences) == len({tuple(part) for part in parts})
    assert corpus.total == pytest.approx(weights.sum())
    for place, part in enumerate(parts):
        entry = corpus.entry_of[place]
        assert corpus.sequences[corpus.item[entry]].tolist() == part
        assert corpus.tasks[corpus.task_of[entry]] == tasks[place]
    for name, total in zip(corpus.tasks, corpus.weight_of_tasks(), strict=True):
        mine = np.array([task == name for task in tasks])
        assert total == pytest.approx(weights[mine].sum())


def test_tasks_and_weights_that_do_not_fit_are_refused_in_a_sentence() -> None:
    sequences = flatten_sequences([[0], [1]])
    with pytest.raises(ShapeError, match=r"each of the 2 sequences. Found 1"):
        gather_corpus(sequences, ["a"])
    with pytest.raises(ShapeError, match="not negative"):
        gather_corpus(sequences, ["a", "b"], [1.0, -1.0])
    with pytest.raises(InputError, match="all those of task 'b' have weight zero"):
        gather_corpus(sequences, ["a", "b"], [1.0, 0.0])
    with pytest.raises(InputError, match="at least one sequence"):
        gather_corpus(sequences.select(np.arange(0)), [])
