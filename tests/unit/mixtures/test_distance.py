from __future__ import annotations

import numpy as np
import pytest

from taskmix.mixtures import MixtureTable, measure_distance


def table(shares: list[list[float]]) -> MixtureTable:
    rows = np.array(shares)
    return MixtureTable(
        domains=("web", "code", "wiki"),
        metrics=("loss",),
        runs=tuple("abcdefgh"[: len(rows)]),
        shares=rows,
        values=np.ones((len(rows), 1)),
    )


RUNS = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6], [0.4, 0.4, 0.2], [0.4, 0.4, 0.2]]


def test_a_mixture_among_the_runs_is_not_extrapolated() -> None:
    found = measure_distance(np.array([0.5, 0.3, 0.2]), table(RUNS))
    assert not found.extrapolated
    assert found.distance == pytest.approx(0.1)  # a tenth of the tokens is of another domain
    assert found.usual == pytest.approx(0.2)  # repeated runs are one: a-d and b-d are 0.2, c-d 0.4
    assert found.words.startswith("The mixture lies among the runs")
    assert "`a`" in found.words or "`d`" in found.words


def test_a_share_beyond_what_was_tried_is_named_with_its_range() -> None:
    found = measure_distance(np.array([0.7, 0.1, 0.2]), table(RUNS))
    assert found.extrapolated
    assert found.outside == {"web": (0.2, 0.6), "code": (0.2, 0.6)}
    assert "`web` with 70.0 % is above the largest that was tried (60.0 %)" in found.words
    assert "`code` with 10.0 % is below the least that was tried (20.0 %)" in found.words


def test_a_mixture_far_from_every_run_is_extrapolated_though_each_share_was_tried() -> None:
    runs = [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.1, 0.2, 0.7], [0.1, 0.8, 0.1]]
    runs += [[0.2, 0.7, 0.1]]
    found = measure_distance(np.array([0.34, 0.33, 0.33]), table(runs))
    assert found.outside == {}
    assert found.extrapolated
    assert "more than any run from the one next to it (10 % at the most)" in found.words


def test_one_mixture_run_many_times_has_no_usual_distance() -> None:
    found = measure_distance(np.array([0.6, 0.2, 0.2]), table(RUNS[:1] * 3))
    assert (found.distance, found.usual, found.extrapolated) == (0.0, 0.0, False)
