from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import InputError, OptionError
from taskmix.transfer import (
    all_size_subsets,
    balanced_subsets,
    fixed_size_subsets,
    leave_one_out_subsets,
)

shapes = st.integers(3, 9).flatmap(
    lambda sources: st.tuples(st.just(sources), st.integers(1, sources), st.integers(1, 60))
)


def repeats(subsets: np.ndarray) -> Counter[bytes]:
    return Counter(row.tobytes() for row in subsets)


@settings(deadline=None)
@given(shapes, st.integers(0, 1000))
def test_subsets_of_one_size_have_it_and_repeat_only_when_all_are_spent(
    shape: tuple[int, int, int], seed: int
) -> None:
    sources, size, count = shape
    found = fixed_size_subsets(sources, size, count, generator=np.random.default_rng(seed))
    assert found.shape == (count, sources)
    assert (found.sum(axis=1) == size).all()
    assert max(repeats(found).values()) == -(-count // comb(sources, size))


@given(shapes, st.integers(0, 1000))
@settings(deadline=None)
def test_in_a_balanced_design_sources_occur_equally_often_up_to_one(
    shape: tuple[int, int, int], seed: int
) -> None:
    sources, size, count = shape
    found = balanced_subsets(sources, size, count, generator=np.random.default_rng(seed))
    assert found.shape == (count, sources)
    assert (found.sum(axis=1) == size).all()
    assert np.ptp(found.sum(axis=0)) <= 1
    assert max(repeats(found).values()) == -(-count // comb(sources, size))


def test_all_sizes_occur_equally_often_where_they_can() -> None:
    found = all_size_subsets(6, 24, generator=np.random.default_rng(0))
    sizes = Counter(found.sum(axis=1).tolist())
    # Of size 6 there is one subset; the other 23 are shared by the five sizes left.
    assert sizes[6] == 1
    assert sorted(sizes[size] for size in range(1, 6)) == [4, 4, 5, 5, 5]
    assert max(repeats(found).values()) == 1
    every = all_size_subsets(4, 15, generator=np.random.default_rng(0))
    assert len(repeats(every)) == 15
    twice = all_size_subsets(4, 30, generator=np.random.default_rng(0))
    assert set(repeats(twice).values()) == {2}
    few = all_size_subsets(5, 9, generator=np.random.default_rng(1), smallest=2, largest=4)
    assert Counter(few.sum(axis=1).tolist()) == {2: 3, 3: 3, 4: 3}


def test_leave_one_out_is_everything_and_everything_minus_one() -> None:
    assert leave_one_out_subsets(3).tolist() == [
        [True, True, True],
        [False, True, True],
        [True, False, True],
        [True, True, False],
    ]


def test_designs_that_cannot_be_are_refused() -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"at least 3 source tasks\. Found 2"):
        fixed_size_subsets(2, 1, 5, generator=generator)
    with pytest.raises(InputError, match="at least 3 source tasks"):
        leave_one_out_subsets(1)
    with pytest.raises(OptionError, match=r"between 1 and the number of sources, 5\. Found 6"):
        balanced_subsets(5, 6, 5, generator=generator)
    with pytest.raises(OptionError, match="`count` should be at least 1"):
        fixed_size_subsets(5, 2, 0, generator=generator)
    with pytest.raises(OptionError, match="`smallest` should not be above"):
        all_size_subsets(5, 4, generator=generator, smallest=3, largest=2)
