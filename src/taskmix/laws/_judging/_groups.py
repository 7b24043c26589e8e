r"""One form for several groups of rows, constants of each, shrunk towards each other.

Each group's constants θ_g are fitted alone, with their covariance V_g; over groups they are taken to
vary normally about a common mean, θ_g ~ N(μ, diag(τ²)). EM finds μ and τ (Dempster, Rubin and Tsutakawa,
JASA 76, 1981), and a group's constants become what its own rows and all others' say together,
(V_g⁻¹ + τ⁻²)⁻¹ (V_g⁻¹ θ_g + τ⁻² μ): few rows lean on the others, many speak for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taskmix.errors import InputError, ShapeError
from taskmix.laws._fitting import Observations, as_columns, fit_constants, row_weights
from taskmix.laws._forms import Array, Program
from taskmix.laws._judging._law import Law, law_of
from taskmix.laws._judging._rows import GroupRow, fitted_constants

EM_STEPS = 500  # at most
EM_TOLERANCE = 1e-10  # relative, of the common mean, for EM to stop


@dataclass(frozen=True, eq=False)
class GroupedLaw:
    """The same formula with constants of each group."""

    common: Law  # constants are the means over groups
    groups: dict[str, Law]  # shrunk
    alone: dict[str, Law]  # from the group's own rows only; the common law where these are too few
    between: Array  # [constant], the standard deviation between groups

    def predict(self, table: Any, groups: Sequence[Any]) -> Array:
        """Values [row]; a group that was not there has the common law's."""
        columns = as_columns(table, sorted(self.common.expression.variables))
        labels = np.array([str(group) for group in groups])
        result = np.empty(len(labels))
        for label in np.unique(labels):
            places = np.flatnonzero(labels == label)
            law = self.groups.get(str(label), self.common)
            here = {name: column[places] for name, column in columns.items()}
            result[places] = Program(law.expression).values(here)
        return result

    def rows(self) -> list[GroupRow]:
        """The groups as plain rows."""
        return [
            GroupRow(
                group=name,
                rows=law.rows,
                formula=law.text,
                constants=fitted_constants(law.constants()),
                alone=self.alone[name].expression.constants,
            )
            for name, law in self.groups.items()
        ]


def fit_groups(law: Law, X: Any, y: Any, groups: Iterable[Any]) -> GroupedLaw:
    """Gives the law constants of each group of rows, drawn a little towards the common ones.

    >>> X, y = {"n": [1, 2, 3, 4, 1, 2, 3, 4]}, [2.0, 4.1, 6.0, 7.9, 3.0, 5.9, 9.1, 12.0]
    >>> grouped = fit_groups(fit_formula("n", X, y), X, y, ["a"] * 4 + ["b"] * 4)
    >>> [round(law.expression.constants[0], 1) for law in grouped.groups.values()]
    [2.1, 2.9]
    """
    columns = as_columns(X)
    target = as_columns({law.target: y})[law.target]
    labels = np.array([str(group) for group in groups])
    if len(labels) != len(target):
        raise ShapeError(
            f"`groups` should name a group for each of the {len(target)} rows. Found {len(labels)}."
        )
    names = [str(name) for name in np.unique(labels)]
    if len(names) < 2:
        raise InputError(f"There should be at least two groups. Found {len(names)}.")
    count = len(law.expression.constants)
    if count == 0:
        raise InputError("The law should have constants to fit to groups. Found none.")
    guess = Program(law.expression).values(columns)
    data = Observations(columns, target, row_weights(columns, target, law.noise, guess))
    alone, means, precisions = {}, [], []
    for name in names:
        rows = data.rows(np.flatnonzero(labels == name))
        own, precision = law, np.zeros((count, count))
        fit = fit_constants(law.expression, rows) if len(rows) > count else None
        if fit is not None and fit.is_usable(rows):
            own = law_of(
                fit, rows, target=law.target, length=np.nan, noise=law.noise, errors=law.errors
            )
            precision = _precision(own, rows, law.deviation)
        alone[name] = own
        means.append(own.expression.constants)
        precisions.append(precision)
    mean, variance, shrunk, covariances = _shrink(np.array(means), np.array(precisions))
    made = {
        name: replace(
            alone[name],
            expression=law.expression.with_constants(shrunk[place].tolist()),
            covariance=covariances[place],
            rows=int((labels == name).sum()),
        )
        for place, name in enumerate(names)
    }
    common = replace(law, expression=law.expression.with_constants(mean.tolist()))
    return GroupedLaw(common, made, alone, np.sqrt(variance))


def _precision(law: Law, rows: Observations, deviation: float) -> Array:
    """The information of a group's rows about the constants, at the noise of all rows."""
    program = Program(law.expression)
    _, jacobian = program.jacobian(rows.columns, program.start)
    weighted = jacobian * rows.weight[:, None]
    unit = deviation * (float(rows.weight[0]) if law.noise == "absolute" else 1.0)
    # Where the law is exact but for rounding, it is known no better than that.
    return np.asarray(weighted.T @ weighted / max(unit**2, rows.floor))


def _shrink(means: Array, precisions: Array) -> tuple[Array, Array, Array, Array]:
    """EM: the common mean, the variance between groups, the groups' means and covariances."""
    mean = means.mean(axis=0)
    variance = means.var(axis=0) + 1e-12 * (1 + mean**2)
    told = np.einsum("gkl,gl->gk", precisions, means)
    for _ in range(EM_STEPS):
        covariances = _inverses(precisions + np.diag(1 / variance))
        shrunk = np.einsum("gkl,gl->gk", covariances, told + mean / variance)
        new_mean = shrunk.mean(axis=0)
        spread = (shrunk - new_mean) ** 2 + np.einsum("gkk->gk", covariances)
        new_variance = spread.mean(axis=0) + 1e-14 * (1 + mean**2)
        done = np.allclose(new_mean, mean, rtol=EM_TOLERANCE) and np.allclose(
            new_variance, variance, rtol=1e-6
        )
        mean, variance = new_mean, new_variance
        if done:
            break
    return mean, variance, shrunk, np.asarray(covariances, dtype=np.float64)


def _inverses(
    matrices: Array,  # [group, constant, constant], symmetric
) -> Array:
    """Inverses of matrices whose constants may differ in size by any factor."""
    units = np.sqrt(np.einsum("gkk->gk", matrices))
    levelled = matrices / units[:, :, None] / units[:, None, :]
    found = np.linalg.pinv(levelled, rcond=1e-14, hermitian=True)
    return np.asarray(found / units[:, :, None] / units[:, None, :])
