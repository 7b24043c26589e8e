from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.report._drawing._names import LINE, row_names


def test_a_short_name_stays_as_it_is() -> None:
    assert row_names(["parity", "ten_digits"]) == {"parity": "parity", "ten_digits": "ten_digits"}


def test_a_longer_name_goes_on_on_a_second_line_behind_a_space_or_a_sign() -> None:
    assert row_names(["reviews of kitchen appliances"])["reviews of kitchen appliances"] == (
        "reviews of kitchen\nappliances"
    )
    assert row_names(["customer_reviews_of_books"]) == {
        "customer_reviews_of_books": "customer_reviews_\nof_books"
    }


@pytest.mark.parametrize("length", [40, 200])
def test_a_long_name_keeps_its_begin_and_its_end(length: int) -> None:
    first, second = ("begin " + "x" * length + end for end in (" in 2023", " in 2024"))
    shown = row_names([first, second])
    assert shown[first] != shown[second]
    assert shown[first].startswith("begin x")
    assert shown[first].endswith("in 2023")


@given(st.lists(st.text(min_size=1, max_size=90), max_size=30, unique=True))
def test_names_stay_different_and_have_two_lines_at_most(names: list[str]) -> None:
    shown = row_names(names)
    assert list(shown) == names
    assert len(set(shown.values())) == len(names)
    for words in shown.values():
        lines = words.split("\n")
        assert len(lines) <= 2
        assert all(len(line) <= LINE + 1 for line in lines)
