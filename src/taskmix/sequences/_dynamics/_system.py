"""A linear dynamical system, and the sums that its M-step needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.sequences._generator import Floats, Statistics


@dataclass(frozen=True, eq=False)
class System:
    """One linear dynamical system: x' = A x + N(0, Q), y = C x + d + N(0, R)."""

    first: Floats  # mean of the first state
    first_covariance: Floats
    transition: Floats  # A
    noise: Floats  # Q
    output: Floats  # C
    offset: Floats  # d
    output_noise: Floats  # R


@dataclass(frozen=True, eq=False)
class DynamicsStatistics(Statistics):
    """Expected weighted sums; x is the state, y the observation. A generator's, or all of them."""

    begin_mass: Floats  # []
    begin: Floats  # Σ x_1
    begins: Floats  # Σ x_1 x_1ᵀ
    move_mass: Floats  # []
    before: Floats  # Σ x_t x_tᵀ, t before the last
    after: Floats  # Σ x_t x_tᵀ, t after the first
    cross: Floats  # Σ x_{t+1} x_tᵀ
    mass: Floats  # []
    state: Floats  # Σ x
    states: Floats  # Σ x xᵀ
    seen: Floats  # Σ y
    made: Floats  # Σ y xᵀ
    squares: Floats  # Σ y yᵀ


def no_statistics(system: System) -> DynamicsStatistics:
    states, dimension = len(system.first), len(system.offset)
    vector, square = np.zeros(states), np.zeros((states, states))
    zero = np.zeros(())
    return DynamicsStatistics(
        zero, vector, square, zero, square, square, square, zero, vector, square,
        np.zeros(dimension), np.zeros((dimension, states)), np.zeros((dimension, dimension)),
    )  # fmt: skip
