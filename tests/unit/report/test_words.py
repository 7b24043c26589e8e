from __future__ import annotations

import math

import pytest

from taskmix.report import RunRow
from taskmix.report._study._specification import specifications
from taskmix.report._study._words import counted, decimals_for, duration, listed, number


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [
        (0.9126, 3, "0.913"),
        (-0.0004, 3, "0.000"),  # no minus zero
        (-0.25, 2, "\N{MINUS SIGN}0.25"),
        (1234.5, 1, "1\N{THIN SPACE}234.5"),
        (math.nan, 3, "\N{EN DASH}"),
        (math.inf, 3, "\N{EN DASH}"),
    ],
)
def test_numbers_are_shown_as_a_reader_wants_them(value: float, decimals: int, shown: str) -> None:
    assert number(value, decimals) == shown


def test_large_numbers_have_fewer_places() -> None:
    assert [decimals_for([value]) for value in (0.5, 50, 500, 5000, math.nan)] == [3, 2, 1, 0, 3]


def test_counts_and_lists_are_english() -> None:
    assert counted(1, "run") == "1 run"
    assert counted(1200, "run") == "1\N{THIN SPACE}200 runs"
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdef")) == "a, b, c and 3 more"
    assert [duration(s) for s in (41.2, 600, 7200)] == ["41 s", "10 min", "2.0 h"]


def run(label: str, seed: int = 0, **specification: object) -> RunRow:
    return RunRow(
        name=f"{label}{seed}",
        label=label,
        seed=seed,
        status="finished",
        tasks=("a",),
        specification={"label": label, "seed": seed, **specification},
    )


def test_a_specification_is_told_by_what_is_shared_and_what_differs() -> None:
    found = specifications(
        [
            run("uniform", 0, steps=100, policy={"kind": "Uniform"}),
            run("uniform", 1, steps=100, policy={"kind": "Uniform"}),
            run("exp3", 0, steps=100, policy={"kind": "Exp3", "exploration": 0.1}),
        ],
        ["uniform", "exp3"],
    )
    assert found.shared == (("steps", "100"),)
    assert found.differing == (
        ("policy.kind", ("Uniform", "Exp3")),
        ("policy.exploration", (None, "0.1")),
    )
    assert [example[0] for example in found.examples] == ["uniform", "exp3"]
    assert '"exploration": 0.1' in found.examples[1][2]


def test_a_setting_that_differs_within_a_label_shows_its_values_while_they_are_few() -> None:
    few = specifications([run("single", k, task=f"t{k}") for k in range(3)], ["single"])
    many = specifications([run("single", k, task=f"t{k}") for k in range(8)], ["single"])
    assert few.differing == (("task", ("t0 · t1 · t2",)),)
    assert many.differing == (("task", ("8 values",)),)


def test_long_lists_and_long_texts_are_cut() -> None:
    found = specifications([run("a", tasks=[f"t{k}" for k in range(9)], text="x" * 999)], ["a"])
    values = dict(found.shared)
    assert values["tasks"] == "t0, t1, t2, t3, t4, t5 … (9)"
    assert len(values["text"]) == 160
