"""Kalman filter and smoother over one sequence with missing numbers, whose gains are its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.sequences._dynamics._system import DynamicsStatistics, System
from taskmix.sequences._generator import Floats
from taskmix.sequences._normal import LOG_TWO_PI


@dataclass(frozen=True, eq=False)
class FilterSteps:
    """A filter over one sequence with gaps; one more prediction than observations."""

    predicted: Floats
    spread: Floats
    held: Floats
    held_spread: Floats
    logs: Floats


def filter_one(system: System, values: Floats) -> FilterSteps:
    times, states = len(values), len(system.first)
    predicted, spread = np.empty((times + 1, states)), np.empty((times + 1, states, states))
    held, held_spread = np.empty((times, states)), np.empty((times, states, states))
    logs = np.zeros(times)
    predicted[0], spread[0] = system.first, system.first_covariance
    for t, value in enumerate(values):
        seen = ~np.isnan(value)
        held[t], held_spread[t] = predicted[t], spread[t]
        if seen.any():
            output = system.output[seen]
            crossed = spread[t] @ output.T
            innovation = output @ crossed + system.output_noise[np.ix_(seen, seen)]
            away = value[seen] - system.offset[seen] - output @ predicted[t]
            gain = np.linalg.solve(innovation, crossed.T).T
            held[t] = predicted[t] + gain @ away
            held_spread[t] = spread[t] - gain @ crossed.T
            _, size = np.linalg.slogdet(innovation)
            distance = float(away @ np.linalg.solve(innovation, away))
            logs[t] = -0.5 * (distance + size + seen.sum() * LOG_TWO_PI)
        predicted[t + 1] = system.transition @ held[t]
        spread[t + 1] = system.transition @ held_spread[t] @ system.transition.T + system.noise
    return FilterSteps(predicted, spread, held, held_spread, logs)


def pass_broken(system: System, values: Floats) -> tuple[float, DynamicsStatistics]:
    steps = filter_one(system, values)
    mean, spread = steps.held.copy(), steps.held_spread.copy()
    cross = np.zeros_like(system.transition)
    for t in range(len(values) - 2, -1, -1):
        gain = np.linalg.solve(steps.spread[t + 1], system.transition @ steps.held_spread[t]).T
        mean[t] += gain @ (mean[t + 1] - steps.predicted[t + 1])
        spread[t] += gain @ (spread[t + 1] - steps.spread[t + 1]) @ gain.T
        cross += spread[t + 1] @ gain.T + np.outer(mean[t + 1], mean[t])
    products = spread + mean[:, :, None] * mean[:, None, :]
    seen, made, squares = _filled(system, values, mean, products)
    states = products.sum(axis=0)
    return float(steps.logs.sum()), DynamicsStatistics(
        begin_mass=np.array(1.0),
        begin=mean[0],
        begins=products[0],
        move_mass=np.array(len(values) - 1.0),
        before=states - products[-1],
        after=states - products[0],
        cross=cross,
        mass=np.array(float(len(values))),
        state=mean.sum(axis=0),
        states=states,
        seen=seen,
        made=made,
        squares=squares,
    )


def _filled(
    system: System, values: Floats, mean: Floats, products: Floats
) -> tuple[Floats, Floats, Floats]:
    """Expected Σ y, Σ y xᵀ and Σ y yᵀ where some of y is missing: given the state x and what was
    seen, it is B x + b with a covariance of its own."""
    dimension, states = system.output.shape
    seen_sum, made = np.zeros(dimension), np.zeros((dimension, states))
    squares = np.zeros((dimension, dimension))
    for value, at, product in zip(values, mean, products, strict=True):
        lacking = np.isnan(value)
        slope, level = np.zeros((dimension, states)), np.where(lacking, 0.0, value)
        rest = np.zeros((dimension, dimension))
        if lacking.any():
            seen = ~lacking
            crossed = system.output_noise[np.ix_(lacking, seen)]
            gain = np.linalg.solve(system.output_noise[np.ix_(seen, seen)], crossed.T).T
            slope[lacking] = system.output[lacking] - gain @ system.output[seen]
            level[lacking] = system.offset[lacking] + gain @ (value - system.offset)[seen]
            rest[np.ix_(lacking, lacking)] = (
                system.output_noise[np.ix_(lacking, lacking)] - gain @ crossed.T
            )
        part = np.outer(slope @ at, level)
        seen_sum += slope @ at + level
        made += slope @ product + np.outer(level, at)
        squares += slope @ product @ slope.T + part + part.T + np.outer(level, level) + rest
    return seen_sum, made, squares
