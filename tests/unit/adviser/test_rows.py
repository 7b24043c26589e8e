from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up_advice import TASKS, TEMPLATE, MadeUpRun, _entry, candidates

from taskmix.adviser._rows import row_noise
from taskmix.adviser._scores import Entry

WAYS = ("uniform", "size")
Credits = Mapping[str, list[float]]  # of each task


@dataclass(frozen=True)
class CreditStudy:
    """Has the credits of each run."""

    known: Mapping[str, Credits]

    def run(self, specification: Mapping[str, Any]) -> MadeUpRun:
        found = self.known.get(json.dumps(specification), {})
        return MadeUpRun({}, {name: np.array(some) for name, some in found.items()})


def entries_and_study(**ways: list[Credits]) -> tuple[dict[str, list[Entry]], Any]:
    """Of each way the credits of its runs, a seed each."""
    known, entries = {}, {}
    for way, seeds in ways.items():
        some = [_entry(candidates()[way], seed, 0.5, 10) for seed in range(len(seeds))]
        for entry, found in zip(some, seeds, strict=True):
            known[json.dumps(entry.runs[0].specification())] = found
        entries[way] = some
    return entries, CreditStudy(known)


def tasks_of(inputs: Mapping[str, object], metric: str = "accuracy") -> Any:
    """Tasks with these inputs; two that have one object share their rows."""
    return {
        name: SimpleNamespace(
            metric=metric,
            splits={
                "dev": SimpleNamespace(inputs=found),
                "train": SimpleNamespace(targets=np.array([0.0, 4.0])),
            },
        )
        for name, found in inputs.items()
    }


SHARED = tasks_of(dict.fromkeys(TASKS, "the same"))
APART = tasks_of({"parity": [1], "half": [2]})
FIRST: Credits = {"parity": [0.0, 1.0, 1.0, 0.0], "half": [0.0, 1.0, 1.0, 1.0]}
SECOND: Credits = {"parity": [1.0, 1.0, 0.0, 0.0], "half": [0.0, 0.0, 1.0, 1.0]}


def matrix_of(rows: dict[str, Any] | None) -> Any:
    assert rows is not None
    return np.array([rows[way] for way in WAYS])


def test_tasks_with_rows_of_their_own_add_up() -> None:
    entries, study = entries_and_study(uniform=[FIRST], size=[SECOND])
    # Halves of the credits: parity of uniform has variance 1/12 and half 1/16, over four rows each.
    found = matrix_of(row_noise(entries, APART, TASKS, study))
    assert found[0, 0] == pytest.approx((1 / 12 + 1 / 16) / 4)
    assert found[1, 1] == pytest.approx((1 / 12 + 1 / 12) / 4)
    parity = np.cov(FIRST["parity"], SECOND["parity"])[0, 1]
    half = np.cov(FIRST["half"], SECOND["half"])[0, 1]
    assert found[0, 1] == found[1, 0] == pytest.approx((parity + half) / 4 / 4)


def test_tasks_that_share_their_rows_are_right_and_wrong_together() -> None:
    entries, study = entries_and_study(uniform=[FIRST], size=[SECOND])
    # The means over tasks of uniform are 0, 1, 1, 1/2: variance 11/48. Of size 1/2, 1/2, 1/2, 1/2.
    found = matrix_of(row_noise(entries, SHARED, TASKS, study))
    assert found[0, 0] == pytest.approx(11 / 48 / 4)
    assert found[1, 1] == pytest.approx(0.0)
    assert found[0, 1] == pytest.approx(0.0)


def test_luck_of_seeds_is_averaged_before() -> None:
    other: Credits = {"parity": [1.0, 0.0, 0.0, 1.0], "half": [1.0, 0.0, 0.0, 0.0]}
    entries, study = entries_and_study(uniform=[FIRST, other], size=[SECOND, SECOND])
    found = matrix_of(row_noise(entries, SHARED, TASKS, study))
    assert found[0, 0] == pytest.approx(0.0), "every row is half right"


def test_errors_count_in_deviations_of_their_targets() -> None:
    entries, study = entries_and_study(uniform=[FIRST], size=[SECOND])
    plain = matrix_of(row_noise(entries, APART, TASKS, study))
    error = matrix_of(
        row_noise(entries, tasks_of({"parity": [1], "half": [2]}, "rmse"), TASKS, study)
    )
    assert error == pytest.approx(plain / 2**2)  # the targets 0 and 4 have a deviation of 2


def test_only_tasks_that_are_judged_count() -> None:
    entries, study = entries_and_study(uniform=[FIRST], size=[SECOND])
    found = matrix_of(row_noise(entries, APART, ["half"], study))
    assert found[0, 0] == pytest.approx(np.var(FIRST["half"], ddof=1) / 4)


def test_rows_that_some_task_has_no_target_for_count_for_the_others() -> None:
    nan = float("nan")
    first: Credits = {"parity": [0.0, 1.0, nan, nan], "half": [nan, nan, 0.0, 1.0]}
    entries, study = entries_and_study(uniform=[first], size=[first])
    found = matrix_of(row_noise(entries, SHARED, TASKS, study))
    # Each score is a mean of two rows: as if the tasks had rows of their own.
    assert found[0, 0] == pytest.approx(2 * (0.5 / 2) / 4)
    assert found[0, 1] == pytest.approx(found[0, 0])


@pytest.mark.parametrize(
    "size", [[], [{}], [{"parity": [0.0, 1.0, 1.0, 0.0]}], [SECOND, {"parity": [1.0] * 4}]]
)
def test_nothing_is_known_where_a_record_lacks_credits(size: list[Credits]) -> None:
    entries, study = entries_and_study(uniform=[FIRST], size=size)
    assert row_noise(entries, APART, TASKS, study) is None


def test_of_no_ways_nothing_is_known() -> None:
    assert row_noise({}, TEMPLATE.load(), TASKS, CreditStudy({})) is None  # type: ignore[arg-type]


def test_credits_of_other_rows_are_not_compared() -> None:
    short: Credits = {"parity": [0.0, 1.0], "half": [0.0, 1.0]}
    entries, study = entries_and_study(uniform=[FIRST], size=[short])
    assert row_noise(entries, APART, TASKS, study) is None
