"""Small exact solvers, in float64 on the CPU: quadratic programmes and the fair-allocation equation.

All take matrices of inner products of unit vectors with a ridge (`_gramian`), which are positive
definite, so that every solution here is unique and does not depend on the tasks' order. T is tens:
an exact solution costs less than the iterations of a general solver, and stands still when its
input does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from taskmix.errors import RunError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def solve_positive(matrix: Matrix, right: Matrix | Vector) -> Matrix:
    """The solution of `matrix` @ x = `right`, by Cholesky's factors."""
    _, solution, fault = dposv(matrix, right)
    if fault:
        raise RunError(
            "The tasks' inner products should make a positive definite matrix. Found one that is "
            "not, beyond rounding. Give the Gramian of gradients."
        )
    return np.asarray(solution).reshape(right.shape)


def nonnegative_quadratic(
    matrix: Matrix,  # [task, task], positive definite
    linear: Vector,  # [task]
) -> Vector:
    """The x >= 0 at which x'`matrix`x / 2 + `linear`'x is smallest, by block principal pivoting.

    Júdice and Pires (1994); Kim and Park, "Fast Nonnegative Matrix Factorization", 2011. A guess
    of which numbers are above 0 is solved exactly, and all that break the rules change sides at once.
    Where that does not make them fewer, the last one alone changes: Murty's rule, which ends.
    """
    count = len(linear)
    free = linear < 0
    fewest, patience = count + 1, 3
    tolerance = 1e-12 * max(1.0, float(np.abs(linear).max()))
    for _ in range(100 * count + 1000):
        x = np.zeros(count)
        places = np.flatnonzero(free)
        if len(places):
            x[places] = solve_positive(matrix[np.ix_(places, places)], -linear[places])
        slope = matrix @ x + linear
        wrong = np.flatnonzero(np.where(free, x < 0, slope < -tolerance))
        if not len(wrong):
            return x
        if len(wrong) < fewest:
            fewest, patience = len(wrong), 3
        elif patience:
            patience -= 1
        else:
            wrong = wrong[-1:]
        free[wrong] ^= True
    raise RunError("A quadratic programme of the tasks' gradients did not end. Please report it.")


def simplex_quadratic(
    matrix: Matrix,  # [task, task], positive definite
    linear: Vector,  # [task]
    sums: Vector,  # [task], above 0
    start: Vector,  # [task], a point of the simplex
) -> Vector:
    """The x >= 0 with `sums`'x = 1 at which x'`matrix`x / 2 + `linear`'x is smallest.

    A primal active-set method: solve on the numbers above 0; where a number would turn negative stop
    at its boundary and let it go; where one at 0 wants in, let the keenest in.
    """
    x = start
    free = x > 0
    newest = -1
    for _ in range(50 * len(x) + 100):
        places = np.flatnonzero(free)
        parts = solve_positive(
            matrix[np.ix_(places, places)], np.column_stack([sums[places], linear[places]])
        )
        level = (1 + sums[places] @ parts[:, 1]) / (sums[places] @ parts[:, 0])
        target = level * parts[:, 0] - parts[:, 1]
        if len(places) == 1:
            target = 1 / sums[places]  # exactly: the difference above may have lost it
        falling = target < 0
        if falling.any():
            here = x[places]
            reach = here[falling] / (here[falling] - target[falling])
            if newest in places[falling] and x[newest] == 0:
                return x  # what let it in was rounding
            x = np.zeros(len(x))
            x[places] = np.maximum(here + float(reach.min()) * (target - here), 0.0)
            x[places[np.flatnonzero(falling)[reach <= reach.min()]]] = 0.0
            free = x > 0
            continue
        x = np.zeros(len(x))
        x[places] = target
        # The gradient, measured in each number's own unit: on the free ones it is `level`.
        slope = (matrix @ x + linear) / sums - level
        slope[free] = 0.0
        keenest = int(slope.argmin())
        if slope[keenest] >= -1e-10 * max(
            1e-300, abs(float(level)), float(np.abs(linear / sums).max())
        ):
            return x
        free[keenest] = True
        newest = keenest
    raise RunError("A quadratic programme of the tasks' gradients did not end. Please report it.")


def fair_allocation(
    matrix: Matrix,  # [task, task], positive definite
    alpha: float,
    preference: Vector,  # [task], above 0
) -> Vector:
    """The x > 0 with `matrix` @ x = (x / `preference`) ** (-1 / `alpha`).

    It is where x'`matrix`x / 2 - sum(F(x)) is smallest, F' = (x / preference) ** (-1 / alpha): a
    convex function with one lowest point, found by Newton's method with step halving.
    """
    power = 1 / alpha
    strength = preference**power

    def height(x: Vector) -> float:
        gain = np.log(x) if alpha == 1 else x ** (1 - power) / (1 - power)
        return float(x @ matrix @ x / 2 - (strength * gain).sum())

    # Right for equal gradients and preferences.
    x = (len(matrix) * matrix.diagonal() / strength) ** (-1 / (1 + power))
    now = height(x)
    for _ in range(200):
        pull = strength * x**-power
        slope = matrix @ x - pull
        if float(np.abs(slope / pull).max()) < 1e-11:
            break
        curvature = matrix + np.diag(power * pull / x)
        move = -solve_positive(curvature, slope)
        shrinking = move < 0
        length = 1.0
        if shrinking.any():  # stay inside: x is above 0
            length = min(1.0, 0.95 * float((-x[shrinking] / move[shrinking]).min()))
        decline = float(slope @ move)
        if -decline < 1e-15 * max(1.0, abs(now)):
            return np.asarray(x + length * move)
        while True:
            moved = x + length * move
            then = height(moved)
            if then <= now + 1e-4 * length * decline or length < 1e-12:
                break
            length /= 2
        if not math.isfinite(then) or length < 1e-12:
            break  # as near as float64 comes
        x, now = moved, then
    return x
