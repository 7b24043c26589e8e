from __future__ import annotations

import json
from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest

from taskmix.numerics import Interval
from taskmix.sequences import (
    Compared,
    HeldOutFigures,
    Judgement,
    MixtureComparison,
    held_out_figures,
    held_out_verdict,
    mixture_table,
)

SYMBOLS = HeldOutFigures("one pooled model", 6.54321, 0.25, None, Interval(0.2, 0.1, 0.3, 9))
VECTORS = HeldOutFigures("shared generators", 12.0, None, 0.123456, None)


def test_a_gain_without_an_interval_is_written_as_json_and_read_again() -> None:
    row = HeldOutFigures("one pooled model", 6.5, 0.3, None, Interval(0.2, nan, nan, n=1))
    written = json.loads(json.dumps(row.to_json(), allow_nan=False))
    again = HeldOutFigures.from_json(written)
    assert again.gain is not None
    assert isnan(again.gain.low)
    assert mixture_table([again]).rows[0][-1] == "+0.200"
    assert held_out_verdict([again]) == ""


@pytest.mark.parametrize("row", [SYMBOLS, VECTORS])
def test_a_row_comes_back_from_its_json(row: HeldOutFigures) -> None:
    assert HeldOutFigures.from_json(json.loads(json.dumps(row.to_json()))) == row


def test_the_verdict_tells_better_from_worse_from_neither() -> None:
    rows = [
        replace(SYMBOLS, model=name, gain=Interval(0.0, low, high, 9))
        for name, low, high in (("a", 0.1, 0.2), ("b", -0.2, -0.1), ("c", -0.1, 0.1), ("d", 0, 1))
    ]
    assert held_out_verdict([VECTORS, *rows]) == (
        "Shared generators predict held-out sequences significantly better (95 %) than a. "
        "They are significantly worse (95 %) than b. "
        "They do not differ significantly (95 %) from c and d."
    )
    assert held_out_verdict([VECTORS]) == held_out_verdict([]) == ""


def test_figures_of_a_comparison_are_over_all_observations_and_none_where_there_are_none() -> None:
    judgement = Judgement(
        log_likelihood=np.log([0.25, 0.5]),
        symbols=np.array([2, 1]),
        correct=np.array([1.0, 1.0]),
        squared_error=np.full(2, np.nan),
    )
    row = Compared("shared generators", judgement, np.array([-0.5]), None)
    (found,) = held_out_figures(MixtureComparison((row,), {}))
    # (1/4 · 1/2)^(-1/3) = 2, and two of three are right.
    assert found.perplexity == pytest.approx(2.0)
    assert found.accuracy == pytest.approx(2 / 3)
    assert (found.error, found.gain) == (None, None)
