"""What every surrogate keeps to, whichever function it is."""

from __future__ import annotations

import numpy as np
import pytest

from taskmix.errors import ShapeError
from taskmix.transfer import (
    SubsetOutcomes,
    Surrogate,
    all_size_subsets,
    fit_linear_surrogate,
    fit_shrunken_surrogates,
    gather_outcomes,
)

NAMES = tuple("abcdef")
EFFECTS = np.array([-0.3, -0.1, 0.0, 0.1, 0.2, 0.4])


def shrunken(table: SubsetOutcomes) -> Surrogate:
    return fit_shrunken_surrogates([table]).surrogates[0]


FITS = [fit_linear_surrogate, shrunken]


def a_table(order: np.ndarray | None = None) -> SubsetOutcomes:
    generator = np.random.default_rng(0)
    runs = np.concatenate(
        [all_size_subsets(6, 30, generator=generator), np.zeros((6, 6), dtype=bool)]
    )
    losses = 1 + runs @ EFFECTS + 0.02 * generator.normal(size=36)
    places = np.arange(6) if order is None else order
    return gather_outcomes(
        runs[:, places], losses, target="t", sources=[NAMES[place] for place in places]
    )


@pytest.mark.parametrize("fit", FITS)
def test_a_surrogate_says_what_it_is_about_and_predicts_any_shape_of_subsets(fit) -> None:  # type: ignore[no-untyped-def]
    found = fit(a_table())
    assert (found.target, found.sources) == ("t", NAMES)
    assert np.shape(found.predict(np.ones(6))) == ()
    assert np.shape(found.predict(np.ones((2, 3, 6)))) == (2, 3)
    with pytest.raises(ShapeError):
        found.predict(np.ones(5))


@pytest.mark.parametrize("fit", FITS)
def test_the_anchor_is_near_the_loss_of_the_target_alone(fit) -> None:  # type: ignore[no-untyped-def]
    table = a_table()
    found = fit(table)
    assert found.anchor == pytest.approx(table.anchor, abs=0.02)
    assert float(found.predict(np.zeros(6))) == pytest.approx(found.anchor, abs=0.02)


@pytest.mark.parametrize("fit", FITS)
def test_the_order_of_sources_changes_no_prediction(fit) -> None:  # type: ignore[no-untyped-def]
    order = np.array([3, 0, 5, 1, 4, 2])
    subsets = all_size_subsets(6, 20, generator=np.random.default_rng(2))
    one, other = fit(a_table()), fit(a_table(order))
    np.testing.assert_allclose(one.predict(subsets), other.predict(subsets[:, order]), atol=1e-4)


@pytest.mark.parametrize("fit", FITS)
def test_the_worst_source_is_predicted_to_be_worse_than_the_best(fit) -> None:  # type: ignore[no-untyped-def]
    single = fit(a_table()).predict(np.eye(6))
    assert single[5] > single[0] + 0.2
