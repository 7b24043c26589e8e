"""The exact solvers beside SciPy's general ones, which are too slow to ship."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls, root

from taskmix.weighting import MGDA, CAGrad, FairGrad, NashMTL, UPGrad
from taskmix.weighting._bandit_mtl import project_onto_ball
from taskmix.weighting._solvers import nonnegative_quadratic, simplex_quadratic

Array = NDArray[np.float64]

SIZES = [(2, 30), (3, 30), (5, 4), (8, 60), (20, 30), (50, 400)]  # tasks, parameters


def gradients(tasks: int, parameters: int, seed: int, *, spread: float = 1.0) -> Array:
    """Random gradients whose norms range over 10 ** (2 * spread)."""
    generator = np.random.default_rng(seed)
    norms = np.logspace(-spread, spread, tasks)
    return np.asarray(generator.standard_normal((tasks, parameters)) * norms[:, None])


def weights_of(method: MGDA | CAGrad | FairGrad | NashMTL | UPGrad, rows: Array) -> Array:
    losses = torch.ones(len(rows), dtype=torch.float64)
    products = torch.from_numpy(rows @ rows.T)
    return np.asarray(method.balance(method.init(losses), losses, products).weights.numpy())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("tasks", "parameters"), SIZES)
def test_mgda_finds_the_shortest_vector_of_the_hull(tasks: int, parameters: int, seed: int) -> None:
    rows = gradients(tasks, parameters, seed)
    weights = weights_of(MGDA(), rows)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    # The shortest vector has no smaller product with any gradient than with itself: that is all
    # there is to optimality, and says how far from the optimum a vector can be.
    shortest = weights @ rows
    slack = shortest @ shortest - (rows @ shortest).min()
    assert slack <= 1e-6 * np.sqrt(shortest @ shortest) * np.linalg.norm(rows, axis=1).max()
    if tasks <= 20:
        found = minimize(
            lambda w: np.sum((w @ rows) ** 2),
            np.full(tasks, 1 / tasks),
            jac=lambda w: 2 * rows @ (w @ rows),
            bounds=[(0, 1)] * tasks,
            constraints={
                "type": "eq",
                "fun": lambda w: w.sum() - 1,
                "jac": lambda w: np.ones(tasks),
            },
            method="SLSQP",
            options={"maxiter": 2000, "ftol": 1e-15},
        )
        assert shortest @ shortest <= found.fun * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("tasks", "parameters"), SIZES)
def test_upgrad_projects_each_gradient_onto_the_cone(
    tasks: int, parameters: int, seed: int
) -> None:
    rows = gradients(tasks, parameters, seed)
    expected = np.zeros(parameters)
    for row in rows:
        # min |J'v| over v >= e_i is nnls of the rows against the one that is to be projected.
        more, _ = nnls(rows.T, -row, maxiter=100 * tasks)
        expected += (row + more @ rows) / tasks
    found = weights_of(UPGrad(), rows) @ rows
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("closeness", [0.1, 0.4, 0.9, 5.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("tasks", "parameters"), SIZES)
def test_cagrad_finds_the_step_whose_worst_gain_is_largest(
    tasks: int, parameters: int, seed: int, closeness: float
) -> None:
    rows = gradients(tasks, parameters, seed, spread=0.5)
    step = weights_of(CAGrad(closeness=closeness), rows) @ rows
    mean = rows.mean(axis=0)
    radius = closeness * np.linalg.norm(mean)
    assert np.linalg.norm(step - mean) == pytest.approx(radius, rel=1e-3)
    worst = (rows @ step).min()

    def dual(w: Array) -> float:
        return float(w @ rows @ mean + radius * np.linalg.norm(w @ rows))

    # Weak duality: no step in the ball gains more than the dual at any point of the simplex, so
    # equality at the weights our step is made of proves both optimal.
    direction = weights_of(CAGrad(closeness=closeness), rows) - 1 / tasks
    assert direction.min() >= -1e-9
    scale = np.linalg.norm(step) * np.linalg.norm(rows, axis=1).max()
    assert worst == pytest.approx(dual(direction / direction.sum()), abs=2e-5 * scale)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("tasks", "parameters"), [(2, 30), (3, 30), (8, 60), (50, 400)])
def test_nash_solves_the_bargaining_equation(tasks: int, parameters: int, seed: int) -> None:
    rows = gradients(tasks, parameters, seed)
    weights = weights_of(NashMTL(), rows)
    assert weights.min() > 0
    np.testing.assert_allclose(rows @ rows.T @ weights * weights, 1.0, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("tasks", "parameters"), [(2, 30), (8, 60), (50, 400)])
def test_fairgrad_solves_its_equation_and_scipy_finds_the_same(
    tasks: int, parameters: int, seed: int, alpha: float
) -> None:
    rows = gradients(tasks, parameters, seed)
    products = rows @ rows.T
    weights = weights_of(FairGrad(alpha=alpha), rows)
    np.testing.assert_allclose(products @ weights * weights ** (1 / alpha), 1.0, atol=1e-5)
    if tasks <= 8:
        found = root(
            lambda y: np.log(np.maximum(products @ np.exp(y), 1e-300)) + y / alpha,
            np.log(weights) + 0.05 * np.random.default_rng(seed).standard_normal(tasks),
            tol=1e-12,
        )
        np.testing.assert_allclose(np.exp(found.x), weights, rtol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_the_projection_onto_the_ball_is_what_a_convex_solver_finds(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(2, 12))
    log_q = generator.standard_normal(count) * generator.choice([0.1, 1.0, 5.0])
    radius = float(generator.uniform(0.05, 0.9)) * np.log(count)
    found = np.exp(project_onto_ball(log_q.tolist(), radius))

    def distance(p: Array) -> float:
        return float(p @ (np.log(np.maximum(p, 1e-300)) - log_q))

    solved = minimize(
        distance,
        np.full(count, 1 / count),
        bounds=[(1e-12, 1)] * count,
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "ineq", "fun": lambda p: radius - p @ np.log(count * p)},
        ],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert distance(found) <= distance(solved.x) + 1e-7
    np.testing.assert_allclose(found, solved.x, atol=2e-3)


@pytest.mark.parametrize("seed", range(10))
def test_nonnegative_programmes_meet_their_conditions(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 40))
    rows = generator.standard_normal((count, int(generator.integers(1, 60))))
    matrix = rows @ rows.T + 1e-8 * np.eye(count)
    linear = generator.standard_normal(count)
    x = nonnegative_quadratic(matrix, linear)
    slope = matrix @ x + linear
    scale = np.abs(matrix).max() * (1 + np.abs(x).max())
    assert x.min() >= 0
    assert slope.min() >= -1e-6 * scale
    assert abs(slope @ x) <= 1e-6 * scale * (1 + np.abs(x).max())


@pytest.mark.parametrize("seed", range(10))
def test_programmes_on_the_simplex_meet_their_conditions(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 40))
    rows = generator.standard_normal((count, int(generator.integers(1, 60))))
    matrix = rows @ rows.T + 1e-6 * np.eye(count)
    linear = generator.standard_normal(count) * generator.choice([0.1, 10.0])
    sums = generator.uniform(0.1, 10, count)
    x = simplex_quadratic(matrix, linear, sums, 1 / (count * sums))
    slope = (matrix @ x + linear) / sums
    assert x.min() >= 0
    assert sums @ x == pytest.approx(1)
    level = slope[x > 0].mean()
    np.testing.assert_allclose(slope[x > 0], level, atol=1e-6 * (1 + np.abs(slope).max()))
    assert slope.min() >= level - 1e-6 * (1 + np.abs(slope).max())
