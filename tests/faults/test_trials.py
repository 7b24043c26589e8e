"""What the harness of faults tells of a difference and of a traceback."""

from __future__ import annotations

import copy

import pytest

from .trials import Row, differences

WHOLE = {"runs": {"ab12": {"step": 60, "steps": {"loss": [0.5, float("nan")]}}}, "page": True}


def test_equal_results_have_no_difference_even_where_a_value_is_not_a_number() -> None:
    assert list(differences(copy.deepcopy(WHOLE), WHOLE)) == []


def test_each_value_that_differs_is_named_by_its_place() -> None:
    found = copy.deepcopy(WHOLE)
    found["runs"]["ab12"]["steps"]["loss"][0] = 0.25  # type: ignore[index]
    del found["page"]
    found["plan"] = {}
    assert list(differences(found, WHOLE)) == [
        "the result, page: missing",
        "the result, plan: should not be there",
        "the result, runs, ab12, steps, loss[0]: 0.25 instead of 0.5",
    ]


def test_only_numbers_within_the_tolerance_are_the_same() -> None:
    found = list(differences([1.0 + 1e-9, 1.1, 2], [1.0, 1.0, 1], tolerance=1e-5))
    assert found == ["the result[1]: 1.1 instead of 1.0", "the result[2]: 2 instead of 1"]


def test_rows_that_are_missing_at_the_end_are_counted() -> None:
    assert list(differences([1], [1, 2])) == ["the result: 1 values instead of 2"]


def test_the_words_of_every_traceback_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    row = Row("train")
    for number in range(30):
        row.note("SIGKILL to the command: a traceback", f"Traceback: error {number}")
    assert row.found[29] == "SIGKILL to the command: a traceback\nTraceback: error 29"
    assert "error 29" in capsys.readouterr().err
