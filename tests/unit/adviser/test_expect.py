from __future__ import annotations

import math

import numpy as np
import pytest

from taskmix.adviser._expect import expect_score, sampling_error
from taskmix.errors import InputError
from taskmix.numerics import Interval, student_quantile
from taskmix.tasks import evaluate_outputs


def test_an_expectation_worked_out_by_hand() -> None:
    # Deviation 0.02 over 4 seeds; the share 0.8 of 100 and of 400 rows has errors 0.04 and 0.02.
    scores = [0.78, 0.8, 0.8, 0.82]
    spread = np.std(scores, ddof=1)
    found = expect_score(scores, "accuracy", dev_rows=100, test_rows=400)
    seeds = spread**2 * 1.25
    variance = seeds + 0.04**2 + 0.02**2
    # Welch and Satterthwaite: the errors of rows are known, that of four seeds has three degrees.
    degrees = variance**2 / (seeds**2 / 3)
    assert degrees > 100
    assert found.mean == pytest.approx(0.8)
    assert found.high == pytest.approx(0.8 + student_quantile(0.9, degrees) * math.sqrt(variance))


def test_where_seeds_are_most_of_it_their_few_degrees_count() -> None:
    found = expect_score([-0.1, 0.0, 0.1], "pearson", dev_rows=10**9, test_rows=10**9)
    assert found.high == pytest.approx(student_quantile(0.9, 3) * 0.1 * math.sqrt(4 / 3), rel=1e-3)


def test_growth_moves_what_is_expected_and_its_error_widens_it() -> None:
    def expected(**growth: float) -> Interval:
        return expect_score([0.7] * 4, "accuracy", dev_rows=100, test_rows=100, **growth)  # type: ignore[arg-type]

    assert expected(gain=0.05).mean == pytest.approx(0.75)
    assert expected(gain=0.5).mean == 1.0, "no score is above what the metric can be"
    # Rows have a variance of 2 · 0.21 / 100, and the growth, of four degrees, adds its own.
    variance = 2 * 0.21 / 100 + 0.1**2
    reach = student_quantile(0.9, variance**2 / (0.1**4 / 4)) * math.sqrt(variance)
    assert expected(gain_error=0.1).low == pytest.approx(0.7 - reach)


def test_credits_of_rows_say_how_far_scores_scatter_over_rows() -> None:
    found = expect_score([0.5] * 4, "f1", dev_rows=100, test_rows=400, row_deviation=0.2)
    assert found.high == pytest.approx(0.5 + student_quantile(0.9, 1e6) * math.hypot(0.02, 0.01))
    alike = expect_score([1.0] * 4, "accuracy", dev_rows=50, test_rows=50, row_deviation=0.0)
    assert alike.low < 0.99, "the next row may be another"


@pytest.mark.parametrize("spread", [0.003, 0.01, 0.03])
@pytest.mark.parametrize("seeds", [4, 8])
def test_intervals_hold_as_many_new_scores_as_they_say(spread: float, seeds: int) -> None:
    generator = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        truth = generator.normal(
            0.7, spread, size=seeds + 1
        )  # those that were trained, and a new one
        # Dev rows are common to all seeds: what they favour, they favour in all.
        common = generator.normal(0, math.sqrt(0.7 * 0.3 / 300))
        dev = truth[:seeds] + common
        test = generator.binomial(500, truth[seeds]) / 500
        found = expect_score(dev.tolist(), "accuracy", dev_rows=300, test_rows=500)
        inside.append(found.low <= test <= found.high)
    assert 0.87 < np.mean(inside) < 0.93


@pytest.mark.parametrize(
    ("metric", "draw"),
    [
        ("accuracy", lambda g: float(g.binomial(200, 0.7)) / 200),
        ("rmse", lambda g: float(np.sqrt((g.normal(0, 2, size=200) ** 2).mean()))),
        ("pearson", lambda g: float(np.corrcoef(_pair(g, 0.6))[0, 1])),
    ],
)
def test_sampling_errors_are_those_of_repeated_samples(metric: str, draw: object) -> None:
    generator = np.random.default_rng(1)
    values = [draw(generator) for _ in range(4000)]  # type: ignore[operator]
    expected = float(np.std(values))
    assert sampling_error(metric, float(np.mean(values)), 200) == pytest.approx(expected, rel=0.06)


def _pair(generator: np.random.Generator, r: float) -> np.ndarray:  # type: ignore[type-arg]
    x = generator.normal(size=200)
    return np.stack([x, r * x + math.sqrt(1 - r * r) * generator.normal(size=200)])


def test_more_rows_and_more_seeds_make_it_narrower() -> None:
    few = expect_score([0.7, 0.8], "accuracy", dev_rows=100, test_rows=100)
    rows = expect_score([0.7, 0.8], "accuracy", dev_rows=1000, test_rows=1000)
    seeds = expect_score([0.7, 0.8] * 4, "accuracy", dev_rows=100, test_rows=100)
    assert rows.half_width < few.half_width
    assert seeds.half_width < few.half_width


def test_one_seed_rests_on_the_spread_known_from_others() -> None:
    alone = expect_score([0.7], "accuracy", dev_rows=100, test_rows=100)
    known = expect_score([0.7], "accuracy", dev_rows=100, test_rows=100, spread=0.1)
    assert known.half_width > alone.half_width


def test_scores_that_are_none_are_refused() -> None:
    for scores in ([], [float("nan")]):
        with pytest.raises(InputError):
            expect_score(scores, "accuracy", dev_rows=1, test_rows=1)
    with pytest.raises(InputError):
        sampling_error("accuracy", 0.5, 0)


@pytest.mark.parametrize(
    ("metric", "score", "least", "most"),
    [("accuracy", 0.98, 0.0, 1.0), ("matthews", -0.9, -1.0, 1.0), ("rmse", 0.01, 0.0, np.inf)],
)
def test_no_score_is_expected_that_the_metric_cannot_have(
    metric: str, score: float, least: float, most: float
) -> None:
    found = expect_score([score, score], metric, dev_rows=4, test_rows=4, spread=1.0)
    assert least <= found.low < score < found.high <= most
    assert found.low == least, "cut where the metric ends"
    assert found.high == (most if np.isfinite(most) else pytest.approx(2.892, abs=0.001))


@pytest.mark.parametrize("separation", [0.0, 1.0])
@pytest.mark.parametrize(("metric", "tolerance"), [("auc", 0.15), ("average_precision", None)])
def test_errors_of_rankings_rest_on_the_positives(
    metric: str, tolerance: float | None, separation: float
) -> None:
    """60 positives among 1000 rows; of average precision the error is never too small."""
    generator = np.random.default_rng(2)
    targets = (np.arange(1000) < 60).astype(np.int64)
    values = []
    for _ in range(600):
        scores = generator.normal(size=1000) + separation * targets
        outputs = np.stack([-scores, scores], axis=1)
        values.append(
            evaluate_outputs(metric, outputs=outputs, targets=targets, labels=("no", "yes"))
        )
    expected, mean = float(np.std(values)), float(np.mean(values))
    found = sampling_error(metric, mean, 1000, positives=60)
    if tolerance is None:
        assert expected < found < 4 * expected
    else:
        assert found == pytest.approx(expected, rel=tolerance)
        assert sampling_error(metric, mean, 1000) < 0.5 * found, "500 positives would do better"
