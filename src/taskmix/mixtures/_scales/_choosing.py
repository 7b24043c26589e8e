r"""Runs that tell most about the differences between a few mixtures, one after the other.

A run on mixture $w$ with noise $s^2$ changes the covariance $\Sigma$ of the target over mixtures to
$\Sigma - \Sigma_w \Sigma_w^T / (\Sigma_{ww} + s^2)$, whatever comes out. Each run is the one that
leaves the least weighted variance $\sum_i p_i \mathrm{Var}(t_i - \bar t)$ of the contenders around
their own mean: a level that all share moves no rank.
"""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._table import Floats


def choose_runs(
    options: Floats,  # [draw, option], the target of mixtures that may be run
    contenders: Floats,  # [draw, contender], of those whose order matters
    chances: Floats,  # [contender], sum to 1
    noise: Floats,  # [option], variance of a run
    count: int,
    *,
    level: float = 0.0,  # variance of a level that all share and no run has told yet
) -> tuple[list[int], list[float]]:
    """Places of the options, and after each the part of the variance of differences that is left."""
    options, contenders = options - options.mean(axis=0), contenders - contenders.mean(axis=0)
    if level:
        # One more direction in which nothing is known: a draw's worth of a constant.
        common = np.sqrt(level * len(options))
        options = np.vstack([options, np.full((1, options.shape[1]), common)])
        contenders = np.vstack([contenders, np.full((1, contenders.shape[1]), common)])
    apart = (contenders - (contenders @ chances)[:, None]) * np.sqrt(chances)
    draws = len(options)
    start = remaining = float((apart**2).sum() / draws)
    order: list[int] = []
    left: list[float] = []
    for _ in range(min(count, options.shape[1])):
        scale = (options**2).mean(axis=0) + noise
        gains = ((options.T @ apart / draws) ** 2).sum(axis=1) / np.maximum(scale, 1e-300)
        gains[order] = -1.0  # a repeat tells of noise, not of another mixture
        best = int(np.argmax(gains))
        seen = options[:, best].copy()
        # Conditioning on the run moves every draw; the noise of the run stays in what is left.
        pull = seen / max(float(scale[best]), 1e-300)
        keep = _square_root_factor(float((seen**2).mean()), float(noise[best]))
        options = options - keep * np.outer(seen, pull @ options / draws)
        apart = apart - keep * np.outer(seen, pull @ apart / draws)
        remaining = float((apart**2).sum() / draws)
        order.append(best)
        left.append(min(remaining / start, 1.0) if start > 0 else 0.0)
    return order, left


def _square_root_factor(variance: float, noise: float) -> float:
    """How far draws are moved so that their covariance is the one after the run.

    Moving each by all of the regression would leave no noise in it: the square-root filter of Andrews
    (1968).
    """
    return 1.0 / (1.0 + np.sqrt(noise / (variance + noise))) if variance + noise > 0 else 0.0
