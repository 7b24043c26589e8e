r"""A linear surrogate: every source changes the target's loss by a fixed amount.

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Estimating surrogate models": $g(S) = \theta^\top 1_S$ by least
    squares.

The paper's $\theta$ is `effects`, up to the anchor. Subsets of one size α all have the row sum α,
so that a constant added to every loss only adds constant/α to every coefficient: the paper's θ
tells sources apart, and nothing in it says where help ends and harm begins. Here g is anchored in
the runs of the target alone,

$$g(S) = f(\emptyset) + \sum_{i \in S} \theta_i,$$

so `effects` are changes relative to single-task training, and with subsets of one size they are the
paper's coefficients minus f(∅)/α. The mean effect then rests on the line from ∅ to size α being
straight; effects relative to the average source (`centred`) do not, nor on the anchor.

Standard errors are robust to unequal noise (HC3: MacKinnon and White, 1985, with leverages h) and
count the noise of the anchor, which all rows share:

$$\mathrm{Cov}(\hat\theta) =
P\,\mathrm{diag}\big(e^2/(1-h)^2\big)P^\top + \mathrm{Var}(f(\emptyset))\,uu^\top,$$

with $P = (X^\top W X + \rho I)^{-1} X^\top W$ and $u = P 1$.

That is about these dev rows. An effect is linear in the losses of the runs, so each dev row r has an
effect of its own, $\theta_r = P (f_r - f_r(\emptyset))$, and θ is their mean. All runs share the rows:
their luck does not average out over runs. Where losses are known row by row, the covariance of the
mean of the $\theta_r$ is added, and intervals are about fresh rows of the target.

Intervals are Student's with n minus the trace of the hat matrix as degrees of freedom, joined with
those of the anchor's variance and of the dev rows by Satterthwaite's formula. With `ridge` (ρ) above
zero effects are drawn towards zero, and intervals are those of the drawn effects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.numerics import check_level
from taskmix.transfer._outcomes import SubsetOutcomes

# From so many runs of the target alone on, their own variance is used. The variance of fewer is so
# uncertain that intervals of all effects would be far too narrow or too wide by chance.
ENOUGH_SINGLE_RUNS = 5
FULL_LEVERAGE = 1 - 1e-8  # from here on HC3 would divide by rounding errors
FEWEST_ROW_DEGREES = 0.5  # below, residuals are rounding errors, and so would be their variance


@dataclass(frozen=True, kw_only=True)
class LinearSurrogate:
    """Effects of sources on one target; below zero is help, as for every loss."""

    target: str
    sources: tuple[str, ...]
    anchor: float  # f(∅)
    effects: NDArray[np.float64]  # [source]
    covariance: NDArray[np.float64]  # [source, source]; NaN where nothing tells of the noise
    dev_covariance: NDArray[np.float64]  # the part of it that is due to the choice of dev rows
    dev_rows: int  # that it comes from; with 0 of them, all is about the dev rows at hand
    degrees: NDArray[np.float64]  # [source], of freedom
    deviation: float  # the noise σ of one run: over seeds and what is not linear
    subsets: int  # rows it was fitted to
    mean_size: float  # sources in a row, on average
    row_degrees: float  # of freedom of the noise of the rows alone
    anchor_runs: int  # of the target alone; 0 where effects are not relative to it
    row_runs: float = 1.0  # in a row, on average

    @property
    def gains(self) -> NDArray[np.float64]:
        """[source], the improvement of the outcome, whichever way it runs: above zero is help."""
        return -self.effects

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """[source]."""
        return np.sqrt(np.diag(self.covariance))

    def predict(self, subsets: ArrayLike) -> NDArray[np.float64]:
        """The loss of each subset [..., source]."""
        members = np.asarray(subsets, dtype=np.float64)
        if members.ndim == 0 or members.shape[-1] != len(self.effects):
            raise ShapeError(
                f"A subset should have one place for each of the {len(self.effects)} sources. Found "
                f"shape {members.shape}."
            )
        return np.asarray(self.anchor + members @ self.effects)

    def intervals(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of Student's interval of each effect, each [source]."""
        from scipy.special import stdtrit

        check_level(level)
        half = stdtrit(self.degrees, (1 + level) / 2) * self.standard_errors
        return self.effects - half, self.effects + half

    def p_values(self, *, adjusted: bool = False) -> NDArray[np.float64]:
        """[source], of the effect being zero, two-sided; adjusted by Benjamini and Hochberg."""
        from scipy.special import stdtr

        errors = self.standard_errors
        ratio = np.abs(self.effects) / np.where(errors > 0, errors, np.nan)
        values = np.where(errors == 0, (self.effects == 0) * 1.0, 2 * stdtr(self.degrees, -ratio))
        return adjusted_p_values(values) if adjusted else np.asarray(values)

    def centred(self) -> LinearSurrogate:
        """The same relative to the average source instead of to the target alone.

        Effects have the mean effect taken off, and the anchor is the predicted loss of a subset of
        `mean_size` average sources, so predictions for subsets of that size stay as they are. What
        selections and verdicts then say is which sources are better or worse than the average one.
        """
        count = len(self.effects)
        centre = np.eye(count) - 1 / count
        covariance = centre @ self.covariance @ centre
        dev = centre @ self.dev_covariance @ centre
        return replace(
            self,
            anchor=self.anchor + self.mean_size * float(self.effects.mean()),
            effects=centre @ self.effects,
            covariance=covariance,
            degrees=satterthwaite_degrees(
                (np.diag(covariance - dev), self.row_degrees), (np.diag(dev), self.dev_rows - 1)
            ),
            dev_covariance=dev,
            anchor_runs=0,
        )


def fit_linear_surrogate(
    outcomes: SubsetOutcomes,
    *,
    ridge: float = 0.0,
    errors: Literal["robust", "equal"] = "robust",
) -> LinearSurrogate:
    """Least squares (or ridge) from subsets to the loss, anchored in the target alone.

    >>> runs = [[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]]
    >>> losses = [1.0, 0.7, 1.1, 1.0]  # a + b = −0.3, a + c = 0.1, b + c = 0
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=["news", "tweets", "code"])
    >>> fit_linear_surrogate(table).effects.round(6)
    array([-0.1, -0.2,  0.2])
    """
    if not (math.isfinite(ridge) and ridge >= 0):
        raise OptionError(f"`ridge` should be a number of at least zero. Found {ridge}.")
    if errors not in ("robust", "equal"):
        raise OptionError(f"`errors` should be `robust` or `equal`. Found `{errors}`.")
    members = outcomes.subsets.astype(np.float64)
    rows, count = members.shape
    # Weights of mean one, so that `ridge` means the same however many seeds there are.
    mean_weight = float(outcomes.weights.mean())
    root = np.sqrt(outcomes.weights / mean_weight)
    design, changes = root[:, None] * members, root * (outcomes.losses - outcomes.anchor)
    if ridge == 0 and (rank := int(np.linalg.matrix_rank(design))) < count:
        raise InputError(
            f"The subsets should tell {count} sources apart. Found {rows} subsets of rank {rank}. Train "
            "more subsets, or pass `ridge`, such as 1.0.",
            arguments=("ridge",),
        )
    project = np.linalg.solve(design.T @ design + ridge * np.eye(count), design.T)
    # The paper's θ̂_n ("Estimating surrogate models"), of changes from f(∅).
    effects = project @ changes
    residuals = changes - design @ effects
    leverage = np.einsum("nk,kn->n", design, project)
    row_degrees = rows - float(leverage.sum())
    if row_degrees < FEWEST_ROW_DEGREES and outcomes.seed_degrees:
        # The fit passes through every row; what seeds do within a subset is still known.
        variance, row_degrees = outcomes.seed_variance / mean_weight, float(outcomes.seed_degrees)
    elif row_degrees < FEWEST_ROW_DEGREES:
        variance, row_degrees = math.nan, math.nan
    else:
        variance = float(residuals @ residuals) / row_degrees
    squares = np.full(rows, variance)
    if errors == "robust" and math.isfinite(variance):
        # A row the fit must pass through says nothing of its noise; the common variance stands in.
        free = leverage < FULL_LEVERAGE
        squares[free] = (residuals[free] / (1 - leverage[free])) ** 2
    shared = project @ root
    own, own_degrees = _anchor_variance(outcomes, variance * mean_weight, row_degrees)
    from_rows = (project * squares) @ project.T
    from_anchor = own * np.outer(shared, shared)
    by_dev_row = project @ (root[:, None] * (outcomes.dev_parts[1:] - outcomes.dev_parts[0]))
    from_dev, dev_rows = by_dev_row @ by_dev_row.T, by_dev_row.shape[1]
    return LinearSurrogate(
        target=outcomes.target,
        sources=outcomes.sources,
        anchor=outcomes.anchor,
        effects=effects,
        covariance=from_rows + from_anchor + from_dev,
        dev_covariance=from_dev,
        dev_rows=dev_rows,
        degrees=satterthwaite_degrees(
            (np.diag(from_rows), row_degrees),
            (np.diag(from_anchor), own_degrees),
            (np.diag(from_dev), dev_rows - 1),
        ),
        deviation=math.sqrt(variance * mean_weight),
        subsets=rows,
        mean_size=float(members.sum(axis=1).mean()),
        row_degrees=row_degrees,
        anchor_runs=outcomes.anchor_runs,
        row_runs=mean_weight,
    )


def _anchor_variance(
    outcomes: SubsetOutcomes, residual: float, row_degrees: float
) -> tuple[float, float]:
    """The variance of the mean of the single-task runs, and its degrees of freedom.

    Their own from five runs on; else that over seeds anywhere in the table; else that about the
    fit, which is larger, since it has in it what is not linear.
    """
    runs = outcomes.anchor_runs
    if runs >= ENOUGH_SINGLE_RUNS:
        return outcomes.anchor_variance / runs, runs - 1
    if outcomes.seed_degrees >= ENOUGH_SINGLE_RUNS:
        return outcomes.seed_variance / runs, outcomes.seed_degrees
    return residual / runs, row_degrees


def satterthwaite_degrees(*parts: tuple[NDArray[np.float64], float]) -> NDArray[np.float64]:
    """Satterthwaite's degrees of freedom of a sum of variances, of which each has its own."""
    total = np.sum([variance for variance, _ in parts], axis=0)
    below = np.sum([variance**2 / degrees for variance, degrees in parts], axis=0)
    return np.where(below > 0, total**2 / np.where(below > 0, below, 1.0), parts[0][1])


def adjusted_p_values(p_values: ArrayLike) -> NDArray[np.float64]:
    """For each test the smallest false discovery rate at which it is still believed.

    Benjamini and Hochberg, "Controlling the False Discovery Rate", 1995, procedure (1). Of all tests
    with an adjusted value of at most 0.05, an expected share of at most 0.05 is wrong (where tests are
    independent or positively dependent). A NaN is no test: it stays and is not counted.
    """
    given = np.asarray(p_values, dtype=np.float64)
    known = np.isfinite(given)
    values = given[known]
    if np.any((values < 0) | (values > 1)):
        raise OptionError(f"p-values should lie between 0 and 1. Found {values.tolist()}.")
    order = np.argsort(values)
    scaled = values[order] * len(values) / np.arange(1, len(values) + 1)
    # The rule takes the last test that passes and all before it, so smaller ones further on count.
    lowest = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted = np.full(given.shape, np.nan)
    found = np.empty(len(values))
    found[order] = np.minimum(lowest, 1.0)
    adjusted[known] = found
    return adjusted
