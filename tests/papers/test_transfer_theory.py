"""The linear setting of Li, Nguyen and Zhang (2023): small always, the whole when asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.transfer_theory import TransferTheoryOptions, reproduce_transfer_theory

SMALL = TransferTheoryOptions(
    related=6,
    unrelated=6,
    rows=200,
    validation_rows=500,
    pilot=40,
    seeds=6,
    error_seeds=2,
    counts=(50, 100, 200),
    reference=495,  # every subset of 4 of 12, so that θ* is exact
)


def test_losses_of_subsets_are_those_of_least_squares_on_their_rows() -> None:
    # With the sums alone the rows cannot be seen, so they are drawn again by the same generator.
    options = replace(SMALL, related=2, unrelated=1, size=2)
    tasks = options.sample(np.random.default_rng(0))
    generator = np.random.default_rng(0)
    centre = generator.normal(size=50)
    vectors = centre + np.array([[0.1], [0.1], [0.5], [0.0]]) * generator.normal(size=(4, 50))
    data = []
    for vector, count in zip(vectors, (200, 200, 200, 100), strict=True):
        inputs = generator.normal(size=(count, 50))
        data.append((inputs, inputs @ vector + generator.normal(size=count)))
    inputs = generator.normal(size=(500, 50))
    outputs = inputs @ centre + generator.normal(size=500)
    for subset in ([False, False, False], [True, False, True]):
        chosen = [data[task] for task in (*np.flatnonzero(subset), 3)]
        solved, *_ = np.linalg.lstsq(
            np.concatenate([one for one, _ in chosen]),
            np.concatenate([other for _, other in chosen]),
            rcond=None,
        )
        expected = ((inputs @ solved - outputs) ** 2).mean()
        assert tasks.losses(np.array([subset]))[0] == pytest.approx(expected)


def test_the_gap_by_hand() -> None:
    # 50 · (0.25 - 0.01) · (500 / 2100)² = 12 · 0.05669.
    assert TransferTheoryOptions().gap == pytest.approx(0.6803, abs=1e-4)


def test_a_small_experiment_has_the_rows_of_the_whole() -> None:
    told: list[str] = []
    rows = reproduce_transfer_theory(SMALL, told.append)
    found = {row.quantity: row for row in rows}
    assert list(rows[0].as_json()) == ["quantity", "paper", "ours", "low", "high", "n"]
    assert found["theorem_2/f1/two_groups"].ours > 0.9
    assert found["theorem_2/f1/best_threshold"].ours >= found["theorem_2/f1/two_groups"].ours
    assert found["theorem_2/gap_found"].ours == pytest.approx(1.0, abs=0.3)
    assert found["theorem_2/subsets"].n == 6
    losses = {name: found[f"theorem_2/loss/{name}"].ours for name in ("none", "all", "two_groups")}
    assert losses["two_groups"] < min(losses["none"], losses["all"])
    assert found["theorem_1/slope"].paper == -0.5
    assert found["theorem_1/error/200"].ours < found["theorem_1/error/50"].ours
    assert told == [f"seed {number}" for number in range(1, 7)]
    assert reproduce_transfer_theory(SMALL) == rows  # the same seed, the same figures


@pytest.mark.paper
def test_forty_sources_are_told_apart_at_the_number_of_subsets_the_formula_asks_for() -> None:
    found = {row.quantity: row for row in reproduce_transfer_theory(TransferTheoryOptions())}
    assert found["theorem_2/f1/two_groups"].n == 20
    assert found["theorem_2/f1/two_groups"].ours >= 0.95
    assert found["theorem_2/f1/least_loss"].ours >= 0.95
    assert found["theorem_2/f1/best_threshold"].ours >= 0.99
    assert found["theorem_2/separated"].ours >= 0.8
    assert found["theorem_1/slope"].ours == pytest.approx(-0.5, abs=0.05)
    for count in TransferTheoryOptions().counts:
        assert found[f"theorem_1/promised/{count}"].ours == pytest.approx(1.0, abs=0.15)
