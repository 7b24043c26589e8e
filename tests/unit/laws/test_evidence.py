"""What rows say of a law where its deviations go together."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from taskmix.laws import LawRegressor, fit_formula
from taskmix.laws._fitting import Fit, Observations
from taskmix.laws._judging._evidence import PRICE, Alike, SmoothDeviations, evidence_of
from taskmix.laws._searching import Describer


def grid(rows=9):
    n, m = (each.ravel() for each in np.meshgrid(np.geomspace(1, 100, rows), np.geomspace(2, 8, 5)))
    return {"n": n, "m": m}


def observations(columns, target):
    return Observations(columns, target, np.ones(len(target)))


def evidence(form, columns, target):
    data = observations(columns, target)
    law = fit_formula(form, columns, target)
    fit = Fit(law.expression, data.mean_square(law.predict(columns).values))
    return evidence_of([fit], data, Describer.of(data)), fit


def test_nats_are_those_of_a_dense_gaussian_whose_trends_are_only_noise():
    columns = grid()
    rows = len(columns["n"])
    off = np.random.default_rng(0).normal(size=rows)
    (smooth,) = SmoothDeviations.of(observations(columns, off), Alike(length=0.4), [2.0])
    # By the definition: places in [0, 1], a Gaussian kernel with trends taken out of it.
    x = np.log(columns["n"]) / np.log(100)
    z = (np.log(columns["m"]) - np.log(2)) / np.log(4)
    kernel = np.exp(-((x[:, None] - x) ** 2 + (z[:, None] - z) ** 2) / (2 * 0.4**2))
    trends = [np.ones(rows), x, z, x * x, x * z, z * z]
    assert len(trends) == 3 + len(list(combinations_with_replacement("xz", 2)))
    design = np.column_stack(trends)
    keep = np.eye(rows) - design @ np.linalg.pinv(design)
    covariance = np.eye(rows) + 2.0 * keep @ kernel @ keep
    noise = off @ np.linalg.solve(covariance, off) / rows  # the likeliest
    wanted = 0.5 * np.linalg.slogdet(covariance)[1] + 0.5 * rows * np.log(noise)
    assert smooth.nats(off[None])[0] == pytest.approx(wanted + PRICE)


def test_a_wave_across_the_rows_goes_together_and_noise_does_not():
    columns = grid(30)
    noise = 0.01 * np.random.default_rng(0).normal(size=150)
    truth = 3 + 5 / columns["n"] ** 0.5
    alone, _ = evidence("3 + 5/n^0.5", columns, truth + noise)
    wave = 0.05 * np.sin(8 * np.log(columns["n"]))
    together, _ = evidence("3 + 5/n^0.5", columns, truth + wave + noise)
    assert alone.smooth is None
    assert together.smooth is not None


def test_noise_is_seldom_taken_for_a_wave():
    found = []
    for seed in range(100):
        columns = grid(12 if seed % 4 else 200)  # 60 rows, or 1,000, of which some are looked at
        noise = np.random.default_rng(seed).normal(size=len(columns["n"]))
        target = 3 + 5 / columns["n"] ** 0.5 + noise
        found.append(evidence("3 + 5/n^0.5", columns, target)[0].smooth is not None)
    assert np.mean(found) <= 0.03


def test_independent_rows_are_told_as_before():
    columns = grid(30)
    target = 3 + 5 / columns["n"] ** 0.5 + 0.01 * np.random.default_rng(0).normal(size=150)
    found, fit = evidence("3 + 5/n^0.5", columns, target)
    assert found.lengths([fit]) == [found.describer.length(fit.expression, fit.mean_square)]


def test_a_law_that_misses_a_trend_is_no_better_for_the_wave():
    # The discrepancy has no trends, so it cannot stand in for what a law should say itself.
    columns = grid(30)
    generator = np.random.default_rng(1)
    wave = 0.02 * np.sin(8 * np.log(columns["n"])) + 0.005 * generator.normal(size=150)
    target = 3 + 5 / columns["n"] ** 0.5 + 0.3 * np.log(columns["m"]) + wave
    found, fit = evidence("3 + 5/n^0.5 + 0.3*log(m)", columns, target)
    assert found.smooth is not None
    short = fit_formula("3 + 5/n^0.5", columns, target)
    assert found.lengths([Fit(short.expression, 0.0)])[0] > found.lengths([fit])[0] + 100


def test_a_wave_makes_the_law_no_longer_than_it_has_to_be():
    columns = grid(40)
    n = columns["n"]
    wave = 0.01 * np.sin(7 * np.log(n)) * np.cos(3 * np.log(columns["m"]))
    noise = 0.002 * np.random.default_rng(0).normal(size=200)
    model = LawRegressor().fit(columns, 1 + 2 / np.sqrt(n) + wave + noise)
    assert len(model.law_.expression.constants) <= 4
    assert model.law_.predict({"n": [1000.0], "m": [4.0]}).values[0] == pytest.approx(
        1.06, abs=0.03
    )
    assert any("go together" in note for note in model.notes_)
