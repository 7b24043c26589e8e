"""Two sizes of model in one table are noticed, and one size is not taken for two."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from size_worlds import random_shares, roots_law, table_of

from taskmix.mixtures import MixtureTable, suspect_two_sizes

DATA = Path(os.environ.get("TASKMIX_DATA", Path(__file__).parents[4] / "shared" / "data"))


def one_column(shares: np.ndarray, values: np.ndarray) -> MixtureTable:
    return table_of({1e6: (shares, values)}).of_size(1e6)


def mixed(seed: int, count: int, gap: float, part: float) -> tuple[MixtureTable, set[str]]:
    random = np.random.default_rng(seed)
    shares = random_shares(random, count)
    larger = random.permutation(count) < part * count
    values = roots_law(seed)(shares) - gap * larger[:, None] * random.uniform(0.8, 1.2, 6)
    values += 0.01 * random.standard_normal(values.shape)
    found = one_column(shares, values)
    return found, {found.runs[place] for place in np.flatnonzero(larger)}


@pytest.mark.parametrize("part", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("count", [20, 80])
def test_two_sizes_in_one_table_are_told_apart_run_by_run(count: int, part: float) -> None:
    table, larger = mixed(1, count, gap=1.5, part=part)
    found = suspect_two_sizes(table)
    assert found is not None
    assert set(found.better) == larger
    assert set(found.better) | set(found.worse) == set(table.runs)
    assert "looks like two sizes of model in one table" in found.words
    assert "--size-column" in found.words


def test_metrics_that_rise_are_better_when_they_are_high() -> None:
    table, larger = mixed(2, 40, gap=1.5, part=0.5)
    risen = MixtureTable(
        domains=table.domains,
        metrics=table.metrics,
        runs=table.runs,
        shares=table.shares,
        values=-table.values,
        larger_is_better=table.metrics,
    )
    found = suspect_two_sizes(risen)
    assert found is not None
    assert set(found.better) == larger


@given(st.integers(0, 10_000), st.integers(10, 60), st.floats(0.0, 0.5))
def test_one_size_is_not_taken_for_two(seed: int, count: int, noise: float) -> None:
    random = np.random.default_rng(seed)
    shares = random_shares(random, count)
    # Noise that all metrics share makes good and bad runs, but no two groups of them.
    values = roots_law(seed)(shares) + noise * random.standard_normal((count, 1))
    assert suspect_two_sizes(one_column(shares, values)) is None


def test_a_single_run_that_went_wrong_is_no_second_size() -> None:
    random = np.random.default_rng(4)
    shares = random_shares(random, 30)
    values = roots_law(5)(shares)
    values[7] += 5
    assert suspect_two_sizes(one_column(shares, values)) is None


def test_groups_in_some_metrics_only_are_no_second_size() -> None:
    random = np.random.default_rng(6)
    shares = random_shares(random, 40)
    values = roots_law(7)(shares)
    values[random.random(40) < 0.5, :3] -= 2
    assert suspect_two_sizes(one_column(shares, values)) is None


def test_sizes_that_are_given_and_tables_too_small_to_tell_are_left_alone() -> None:
    table, _ = mixed(8, 40, gap=1.5, part=0.5)
    sizes = np.repeat([1e6, 1e9], 20)
    given_sizes = table_of(
        {1e6: (table.shares[:20], table.values[:20]), 1e9: (table.shares[20:], table.values[20:])}
    )
    assert suspect_two_sizes(given_sizes) is None
    assert (given_sizes.sizes == sizes).all()
    assert suspect_two_sizes(table.only(range(8))) is None
    gaps = table.values.copy()
    gaps[:, 0] = np.nan
    assert suspect_two_sizes(one_column(table.shares, gaps)) is None


def _real(name: str) -> np.ndarray:
    path = DATA / "regmix" / name
    if not path.exists():
        pytest.skip(f"{path} is not here; TASKMIX_DATA names another folder of data")
    with path.open() as lines:
        rows = list(csv.reader(lines))
    return np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])


def test_halves_of_real_proxies_of_one_size_raise_no_alarm() -> None:
    shares, values = _real("proxies_1m_ratios.csv"), _real("proxies_1m_metrics.csv")
    shares = shares / shares.sum(axis=1, keepdims=True)
    random = np.random.default_rng(9)
    for count in (16, 32, 64, 256, 256):
        rows = random.choice(len(shares), count, replace=False)
        assert suspect_two_sizes(one_column(shares[rows], values[rows])) is None
