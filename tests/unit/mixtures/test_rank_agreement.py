"""Whether ranks carry over: told from noise, on matched mixtures or by a forecast."""

from __future__ import annotations

import numpy as np
import pytest
from quick_forecast import use_forecast
from size_worlds import forecast_roots, random_shares, roots_law, table_of

from taskmix.errors import InputError
from taskmix.mixtures import rank_agreement

SMALL, LARGE = 1e6, 6e7


@pytest.fixture(autouse=True)
def _known_form(monkeypatch: pytest.MonkeyPatch) -> None:
    use_forecast(monkeypatch, forecast_roots)


def test_a_loss_that_keeps_its_shape_carries_over_and_a_reversed_one_does_not() -> None:
    random = np.random.default_rng(0)
    shares = random_shares(random, 40)
    small = roots_law(1, metrics=2)(shares)
    table = table_of({SMALL: (shares, small), LARGE: (shares, small * [0.5, -1.0] - 1)})
    first, second = rank_agreement(table).rows
    assert (first.verdict, second.verdict) == ("carries over", "does not carry over")
    assert first.matched
    assert first.mixtures == 40
    assert first.more_runs is None
    assert "1 M to 60 M: carries over (rank correlation 1.00" in first.words
    assert rank_agreement(table).warnings == (second.words,)


def test_noise_alone_cannot_be_told_from_ranks_that_differ() -> None:
    random = np.random.default_rng(1)
    shares = np.repeat(random_shares(random, 30), 2, axis=0)
    table = table_of({size: (shares, random.standard_normal((60, 1))) for size in (SMALL, LARGE)})
    (row,) = rank_agreement(table).rows
    assert row.repeated
    assert row.verdict == "cannot tell"
    assert "too noisy" in row.words or "would tell" in row.words


def test_repeated_runs_tell_what_the_correlation_would_be_without_noise() -> None:
    random = np.random.default_rng(2)
    shares = np.repeat(random_shares(random, 100), 2, axis=0)
    law = roots_law(3, metrics=1)(shares)
    noisy = [
        law + 0.3 * random.standard_normal(law.shape) for _ in range(2)
    ]  # as much as it varies
    table = table_of({SMALL: (shares, noisy[0]), LARGE: (shares, noisy[1])})
    (row,) = rank_agreement(table, threshold=0.7).rows
    # The law varies by 0.3 too: means of two have the reliability 1 / (1 + 1/2), so the correlation is
    # about 2/3, and 1 without noise.
    assert row.observed is not None
    assert row.corrected is not None
    assert row.observed.value == pytest.approx(2 / 3, abs=0.15)
    assert row.corrected.value == pytest.approx(1.0, abs=0.15)
    assert row.verdict == "carries over"
    assert "without noise" in row.words


def test_without_common_mixtures_the_small_forecast_is_compared() -> None:
    random = np.random.default_rng(4)
    few, many = random_shares(random, 20), random_shares(random, 60)
    law = roots_law(5, metrics=2)
    table = table_of(
        {
            SMALL: (many, law(many)),
            LARGE: (few, law(few) * [0.7, 0.0] + random.normal(size=(20, 2)) * [0, 1]),
        }
    )
    same, unrelated = rank_agreement(table).rows
    assert not same.matched
    assert same.mixtures == 20
    assert same.verdict == "carries over"
    assert "against the forecast of the small size" in same.words
    assert unrelated.verdict != "carries over"


def test_three_large_runs_cannot_tell_and_it_says_how_many_would() -> None:
    random = np.random.default_rng(5)
    few, many = random_shares(random, 3), random_shares(random, 60)
    law = roots_law(5, metrics=1)
    (row,) = rank_agreement(table_of({SMALL: (many, law(many)), LARGE: (few, law(few))})).rows
    assert (row.verdict, row.observed, row.more_runs) == ("cannot tell", None, 8)
    assert row.words.endswith("about 8 mixtures at 60 M would tell.")


def test_a_metric_that_the_large_runs_do_not_have_cannot_be_told() -> None:
    random = np.random.default_rng(8)
    shares = random_shares(random, 12)
    values = roots_law(9, metrics=2)(shares)
    table = table_of({SMALL: (shares, values), LARGE: (shares, values * [1.0, np.nan])})
    known, unknown = rank_agreement(table).rows
    assert known.verdict == "carries over"
    assert (unknown.verdict, unknown.mixtures) == ("cannot tell", 0)


def test_one_size_is_refused_with_a_sentence() -> None:
    shares = random_shares(np.random.default_rng(0), 5)
    table = table_of({SMALL: (shares, shares)})
    with pytest.raises(InputError, match="two or more sizes of model"):
        rank_agreement(table)
    with pytest.raises(InputError, match="`threshold`"):
        rank_agreement(table, threshold=1.5)
