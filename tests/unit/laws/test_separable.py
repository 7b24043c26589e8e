from __future__ import annotations

from itertools import product

import numpy as np

from taskmix.laws._searching._scales import ScaledRows
from taskmix.laws._searching._separable import _combined, separable
from taskmix.laws._searching._shapes import factor_features


def test_combinations_are_all_that_are_not_too_far_behind() -> None:
    options = [[None, "a", "b", "c"], [None, "d", "e"], [None, "f", "g", "h"]]
    found = list(_combined(options, 2))  # type: ignore[arg-type]

    def behind(combination: tuple[str | None, ...]) -> int:
        places = [own.index(each) for own, each in zip(options, combination, strict=True)]
        return sum(max(place - 1, 0) for place in places)

    assert found == [each for each in product(*options) if behind(each) <= 2]


def test_the_shapes_of_a_product_are_found_together() -> None:
    generator = np.random.default_rng(0)
    columns = {"x": np.exp(generator.uniform(0, 3, 200)), "z": np.exp(generator.uniform(0, 3, 200))}
    values = np.log(columns["x"] ** 0.5 * columns["z"] / (columns["z"] + 4))
    rows = ScaledRows(columns, values, np.ones(200))
    features = [factor_features(name, column) for name, column in columns.items()]
    (chosen, solved), *_ = separable(rows, features)
    assert [feature.kind for feature in chosen] == ["power", "saturation"]
    np.testing.assert_allclose(solved[1:], [0.5, 1.0], atol=0.2)
