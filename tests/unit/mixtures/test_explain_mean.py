"""Why a mean of losses carries over worse than each of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from size_worlds import forecast_roots, random_shares, roots_law, table_of

from taskmix.errors import InputError
from taskmix.mixtures import MixtureTarget, explain_mean
from taskmix.mixtures._scales import _mean

SMALL, LARGE = 1e6, 1e9


def trade_off(slopes: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two losses on five mixtures: what helps the one costs the other nearly as much."""
    shares = np.array([[x, 1 - x] for x in (0.1, 0.3, 0.5, 0.7, 0.9)])
    small = np.column_stack([2 - shares[:, 0], 2 - 0.95 * shares[:, 1]])
    return shares, small, small * np.array(slopes)


def test_slopes_that_differ_turn_a_mean_around_though_each_loss_keeps_its_order() -> None:
    shares, small, large = trade_off((0.8, 1.0))
    explained = explain_mean(table_of({SMALL: (shares, small), LARGE: (shares, large)}))
    assert explained.single == {"loss 0": 1.0, "loss 1": 1.0}
    assert explained.slopes == pytest.approx({"loss 0": 0.8, "loss 1": 1.0})
    # The small mean falls by 0.025 for a share of 1, the large one rises by (0.95 - 0.8) / 2.
    assert explained.observed == -1.0
    assert explained.slopes_alone == -1.0
    assert explained.equal_slopes == 1.0
    assert explained.reweighted == 1.0
    # The losses spread by 1 and 0.95, the mean by 0.025: 0.025 / 0.975 is left.
    assert explained.cancelled == pytest.approx(1 - 0.025 / 0.975)
    assert "97% cancels" in explained.words
    assert "slopes 0.80 to 1.00" in explained.words


def test_a_mean_whose_losses_share_one_slope_carries_over() -> None:
    shares, small, large = trade_off((0.7, 0.7))
    explained = explain_mean(table_of({SMALL: (shares, small), LARGE: (shares, large)}))
    assert explained.observed == 1.0
    assert explained.words.endswith("The mean carries over as well as its parts.")


@given(st.integers(0, 1000), st.floats(0.1, 3.0))
def test_one_slope_for_all_losses_never_moves_a_rank_of_the_mean(seed: int, slope: float) -> None:
    shares = random_shares(np.random.default_rng(seed), 8)
    small = roots_law(seed)(shares)
    table = table_of({SMALL: (shares, small), LARGE: (shares, slope * small + 1)})
    explained = explain_mean(table)
    assert explained.observed == pytest.approx(1.0)
    assert explained.equal_slopes == pytest.approx(1.0)
    assert explained.slopes_alone == pytest.approx(1.0)


def test_what_is_left_beside_the_slopes_is_told_from_them() -> None:
    # Equal slopes and independent changes: here the slopes are not to blame.
    random = np.random.default_rng(0)
    shares = random_shares(random, 200)
    small = roots_law(2)(shares)
    large = small + 0.1 * random.standard_normal(small.shape)
    explained = explain_mean(table_of({SMALL: (shares, small), LARGE: (shares, large)}))
    assert explained.slopes_alone > 0.97
    assert explained.equal_slopes == pytest.approx(explained.observed, abs=0.03)


def test_a_targets_weights_are_those_of_the_mean() -> None:
    shares, small, large = trade_off((0.8, 1.0))
    table = table_of({SMALL: (shares, small), LARGE: (shares, large)})
    explained = explain_mean(table, target=MixtureTarget(weights={"loss 0": 1.0}))
    assert list(explained.slopes) == ["loss 0"]
    assert explained.observed == 1.0


def test_without_common_mixtures_the_small_forecast_stands_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_mean, "forecast_mixtures", forecast_roots)
    random = np.random.default_rng(1)
    first, second = random_shares(random, 40), random_shares(random, 15)
    law = roots_law(3)
    explained = explain_mean(table_of({SMALL: (first, law(first)), LARGE: (second, law(second))}))
    assert not explained.matched
    assert explained.observed == pytest.approx(1.0)


def test_sizes_that_are_not_there_and_means_that_nobody_knows_are_refused() -> None:
    shares, small, large = trade_off((0.8, 1.0))
    table = table_of({SMALL: (shares, small), LARGE: (shares, large)})
    with pytest.raises(InputError, match="two sizes of the table"):
        explain_mean(table, small=5e6)
    gaps = table_of({SMALL: (shares, small), LARGE: (shares, large * [np.nan, 1.0])})
    with pytest.raises(InputError, match="known for 4 or more mixtures"):
        explain_mean(gaps)
