from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taskmix.errors import InputError, ShapeError
from taskmix.mixtures import (
    Forecast,
    MixtureTable,
    effective_tokens,
    forecast_mixtures,
    learn_repetition,
)

from .known_forecasts import Floats, KnownForecast, table_of

SUPPLY = {"d0": 5.0, "d1": 8.0, "d2": 1000.0}


def saturating(shares: Floats) -> Floats:
    return -np.log(0.05 + shares[:, :2])


def runs_that_repeat(worth: float, noise: float, *, runs: int = 60, seed: int = 0) -> MixtureTable:
    table = table_of(saturating, runs=runs, seed=seed)
    taught = effective_tokens(100 * table.shares, np.array(list(SUPPLY.values())), worth) / 100
    random = np.random.default_rng(seed)
    values = saturating(taught) + noise * random.standard_normal((runs, 2))
    return replace(table, values=values)


def fit_scale(table: MixtureTable) -> Forecast:
    """The law is known up to a factor and a level, as good laws nearly know it."""
    inputs = saturating(table.shares)
    lines = [
        np.polyfit(inputs[:, place], table.values[:, place], 1) for place in range(inputs.shape[1])
    ]
    return KnownForecast(
        table,
        (lambda shares: np.column_stack([
            np.polyval(line, column) for line, column in zip(lines, saturating(shares).T, strict=True)
        ]),),
    )  # fmt: skip


@pytest.mark.parametrize("worth", [2.0, 6.0])
def test_the_worth_that_made_the_runs_is_found_and_its_interval_holds_it(worth: float) -> None:
    found = learn_repetition(
        runs_that_repeat(worth, 0.02), np.full(60, 100.0), SUPPLY, fit=fit_scale
    )
    assert found.known
    assert found.low <= worth <= found.high
    assert found.worth == pytest.approx(worth, rel=0.3)
    assert "published: 15.4" in found.words


def test_more_noise_makes_the_interval_wider() -> None:
    widths = []
    for noise in (0.01, 0.1):
        table = runs_that_repeat(4.0, noise)
        found = learn_repetition(table, np.full(60, 100.0), SUPPLY, fit=fit_scale)
        widths.append(np.log(found.high / found.low))
    assert widths[0] < widths[1]


def test_nothing_is_known_where_noise_hides_it() -> None:
    table = runs_that_repeat(4.0, 20.0)
    found = learn_repetition(table, np.full(60, 100.0), SUPPLY, fit=fit_scale)
    assert not found.known
    assert (found.worth, found.low, found.high) == (15.4, 0.5, 128.0)
    assert "cannot be told: all values predict" in found.words


def test_nothing_is_known_where_no_run_repeated() -> None:
    table = runs_that_repeat(4.0, 0.01)
    found = learn_repetition(table, np.full(60, 4.0), SUPPLY, fit=fit_scale)
    assert not found.known
    assert found.words.endswith("no run read any domain twice.")


def test_runs_of_several_lengths_may_be_in_one_table() -> None:
    table = runs_that_repeat(4.0, 0.0)
    tokens = np.where(np.arange(60) % 2, 100.0, 50.0)
    taught = (
        effective_tokens(tokens[:, None] * table.shares, np.array(list(SUPPLY.values())), 4.0) / 100
    )
    table = replace(table, values=saturating(taught))
    found = learn_repetition(table, tokens, SUPPLY, fit=fit_scale)
    assert found.worth == pytest.approx(4.0, rel=0.2)


def test_a_metric_that_was_not_measured_is_left_out() -> None:
    table = runs_that_repeat(4.0, 0.01)
    values = table.values.copy()
    values[::7, 1] = np.nan

    def fit(part: MixtureTable) -> Forecast:
        return fit_scale(replace(part, values=np.nan_to_num(part.values, nan=1.0)))

    found = learn_repetition(replace(table, values=values), np.full(60, 100.0), SUPPLY, fit=fit)
    assert np.isfinite(found.errors).all()


def test_the_forecast_of_the_house_can_be_used() -> None:
    found = learn_repetition(
        runs_that_repeat(2.0, 0.01, runs=24),
        np.full(24, 100.0),
        SUPPLY,
        folds=2,
        worths=(1, 8, 64),
        fit=lambda table: forecast_mixtures(table, laws=()),
    )
    assert len(found.errors) == len(found.worths) == len(set(found.worths)) >= 5
    assert found.low <= found.worth <= found.high


@pytest.mark.parametrize(
    ("runs", "options", "error", "words"),
    [
        (5, {}, InputError, "at least 8 runs .* Found 5 runs and 5 folds"),
        (20, {"folds": 1}, InputError, "Found 20 runs and 1 folds"),
        (20, {"tokens": np.ones(3)}, ShapeError, "Found shape \\(3,\\) for 20 runs"),
        (20, {"tokens": np.zeros(20)}, ShapeError, "one number above 0 for each run"),
        (20, {"supply": {"d0": 1.0}}, InputError, "Found nothing for `d1`"),
        (20, {"worths": (4.0, 2.0, 1.0)}, InputError, "each above the last"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused(
    runs: int, options: dict[str, object], error: type[Exception], words: str
) -> None:
    given = {"tokens": np.full(runs, 100.0), "supply": SUPPLY, "fit": fit_scale, **options}
    with pytest.raises(error, match=words):
        learn_repetition(runs_that_repeat(4.0, 0.0, runs=runs), **given)  # type: ignore[arg-type]
