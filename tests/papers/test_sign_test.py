"""F1 of telling which subsets help, and the ceiling that noise sets."""

from __future__ import annotations

import numpy as np
import pytest

from papers.transfer_studies import f1, oracle_f1, sign_test
from taskmix.transfer import SubsetOutcomes, fit_linear_surrogate, gather_outcomes

SOURCES = ("a", "b", "c")


def outcomes(losses: list[list[float]], alone: list[float]) -> SubsetOutcomes:
    """The subsets {a}, {b}, {c} and {a, b}, some runs of each, and the target alone."""
    members = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], dtype=bool)
    runs = np.repeat(members, [len(some) for some in losses], axis=0)
    whole = np.concatenate([runs, np.zeros((len(alone), 3), dtype=bool)])
    values = [value for some in losses for value in some] + alone
    return gather_outcomes(whole, values, target="t", sources=SOURCES)


def test_f1_by_hand() -> None:
    truth, said = np.array([1, 1, 0, 0], dtype=bool), np.array([1, 0, 1, 0], dtype=bool)
    assert f1(truth, said) == 0.5
    assert np.isnan(f1(np.zeros(2, dtype=bool), np.zeros(2, dtype=bool)))


def test_signs_are_counted_against_the_target_alone() -> None:
    fitted = outcomes([[0.8], [0.9], [1.3], [0.7]], [1.0, 1.0])
    surrogate = fit_linear_surrogate(fitted)
    # Of those measured, the first and the last help; said to help are the first, second and last.
    held = outcomes([[0.9, 0.9], [1.1, 1.1], [1.2, 1.2], [0.6, 0.6]], [1.0, 1.0])
    found = sign_test(surrogate, held, generator=np.random.default_rng(0))
    assert found.helps == pytest.approx(2 * 2 / (2 + 3))
    assert found.harms == pytest.approx(2 * 1 / (2 + 1))
    assert found.right == 0.75
    assert found.always == pytest.approx(2 * 2 / (2 + 4))
    assert found.share == 0.5
    assert found.ceiling == 1.0, "without noise everything can be known"
    assert found.spearman == pytest.approx(1.0)
    assert found.subsets == 4


def test_the_ceiling_is_what_an_oracle_reaches_in_a_world_that_is_known() -> None:
    generator = np.random.default_rng(3)
    truth = generator.normal(-0.1, 0.3, size=400)
    subsets = np.array(
        [[int(bit) for bit in f"{number:010b}"] for number in range(401, 801)], dtype=bool
    )
    repeats = 3
    runs = np.repeat(subsets, repeats, axis=0)
    values = 1 + np.repeat(truth, repeats) + generator.normal(0, 0.4, size=400 * repeats)
    whole = np.concatenate([runs, np.zeros((20, 10), dtype=bool)])
    losses = np.concatenate([values, 1 + generator.normal(0, 0.4, size=20)])
    table = gather_outcomes(whole, losses, target="t", sources=[str(s) for s in range(10)])
    reached = f1(table.losses < table.anchor, truth < 0)
    assert oracle_f1(table, generator=generator) == pytest.approx(reached, abs=0.05)
