r"""One form for several groups of rows: constants that all share, and constants of each, shrunk.

Which is which is chosen by evidence (`_sharing.py`). Constants of a group are drawn towards their
mean over groups as far as its own rows leave them open: few rows lean on the others, many speak for
themselves (Dempster, Rubin and Tsutakawa, JASA 76, 1981). A group that was not there has the mean,
with an interval that holds the spread between groups, and a few rows of it move its constants from
there (`GroupedLaw.adapt`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taskmix.errors import InputError
from taskmix.laws._evaluate import Array, Program
from taskmix.laws._factors import TARGET, GroupFactors
from taskmix.laws._fit import Observations, fit_constants
from taskmix.laws._group_constants import (
    adapted_to,
    freedom_of,
    law_in_unit,
    posterior_of,
    prior_of,
    spread_of,
)
from taskmix.laws._group_levels import level_groups
from taskmix.laws._law import Law, LawPrediction, law_of
from taskmix.laws._noise import row_weights
from taskmix.laws._pool import Describer
from taskmix.laws._rows import GroupRow, SharedRow, fitted_constants
from taskmix.laws._sharing import SharedFit, share_constants
from taskmix.laws._table import as_columns, check_lengths


@dataclass(frozen=True, eq=False)
class GroupedLaw:
    """The same formula with constants of each group.

    >>> n = np.tile([1.0, 4.0, 9.0, 16.0, 25.0, 36.0], 2)
    >>> y = 2 * np.sqrt(n) + np.repeat([1.0, 5.0], 6) + np.tile([0.1, -0.1], 6)
    >>> law = fit_formula("2*sqrt(n) + 3", {"n": n}, y)
    >>> found = fit_groups(law, {"n": n}, y, ["a"] * 6 + ["b"] * 6)
    >>> found.predict({"n": [49.0, 49.0]}, ["a", "b"]).round()
    array([15., 19.])
    >>> [row.shared for row in found.shared_rows()]
    [True, False]
    """

    common: Law  # constants are the means over groups
    groups: dict[str, Law]  # shrunk
    alone: dict[str, Law]  # from the group's own rows only; the common law where these are too few
    between: Array  # [constant], the standard deviation between groups; 0 where all share it
    own: tuple[tuple[str, ...], ...]  # [constant], the columns by which it varies; none if shared
    counts: dict[str, int]  # rows of each group
    fit: SharedFit
    # Of each column to explain, where several of them are groups and differ in unit.
    units: Mapping[str, float] = field(default_factory=dict)

    def predict(self, table: Any, groups: Any) -> Array:
        """Values [row]; a group that was not there has the common law's."""
        columns, codes = self._rows(table, groups)
        return self.fit.values(columns, codes) * self._unit(codes)

    def law(self, group: str | dict[str, str]) -> Law:
        """The law of a group; of one that was not there, an interval holds the spread between groups.

        With several columns of groups, those that are known count: a new model has what is known of
        its data set.
        """
        if isinstance(group, str) and group in self.groups:
            return self.groups[group]
        labels = (
            {name: [each] for name, each in group.items()} if isinstance(group, dict) else [group]
        )
        codes = self.fit.factors.named(labels, 1)
        if codes.cell[0] >= 0:
            return self.groups[self.fit.factors.cells[codes.cell[0]]]
        told, covariance = prior_of(self.fit, codes)
        noise = 1.0
        if self.fit.noise_column and (code := codes.codes[self.fit.noise_column][0]) >= 0:
            cells = self.fit.factors.codes[self.fit.noise_column] == code
            noise = float(self.fit.noises[self.fit.factors.cell[cells][0]])
        return self._made(told, covariance, noise, codes, freedom=freedom_of(self.fit, codes))

    def predict_group(
        self,
        table: Any,
        group: str | dict[str, str],
        *,
        level: float = 0.95,
        measurement: bool = False,
    ) -> LawPrediction:
        """Values of one group with intervals, known or new."""
        return self.law(group).predict(table, level=level, measurement=measurement)

    def adapt(self, X: Any, y: Any, group: Mapping[str, str] | None = None) -> Law:
        """The law of a new group of which a few rows are known, from what the others tell of it.

        With several columns of groups, `group` gives those that are known, such as the data set.
        """
        columns = as_columns(X, sorted(self.fit.written.expression.variables) or None)
        target = as_columns({self.common.target: y})[self.common.target]
        check_lengths(columns, target)
        labels = {name: [(group or {}).get(name, "")] for name in self.fit.factors.columns}
        codes = self.fit.factors.named(labels, 1)
        prior, spread = prior_of(self.fit, codes)
        levelled = target / self._unit(codes)[0]
        told, covariance = adapted_to(self.fit, prior, spread, columns, levelled, self._noise)
        return self._made(told, covariance, 1.0, codes, freedom=None)

    def levelled(self, table: Any, y: Any, groups: Any) -> Array:
        """Each row's target as the mean group would have it, with the deviation the row has."""
        columns, codes = self._rows(table, groups)
        target = as_columns({self.common.target: y})[self.common.target]
        common = Program(self.common.expression).values(columns)
        target = target / self._unit(codes)
        own = self.fit.values(columns, codes)
        share = np.where(own != 0, common / np.where(own == 0, 1.0, own), 1.0)
        scale = share if self.common.noise == "relative" else np.ones(len(target))
        return np.asarray(common + (target - own) * scale)

    def rows(self) -> list[GroupRow]:
        """The groups as plain rows."""
        return [
            GroupRow(
                group=name,
                rows=self.counts[name],
                formula=law.text,
                constants=fitted_constants(law.constants()),
                alone=self.alone[name].expression.constants,
                deviation=law.deviation,
            )
            for name, law in self.groups.items()
        ]

    def shared_rows(self) -> list[SharedRow]:
        """The constants as plain rows: the mean, whether all groups share it, how far they differ."""
        return [
            SharedRow(
                value=value,
                shared=not columns,
                by=columns,
                between=float(spread),
                by_factor=bool(by_factor and columns),
            )
            for value, columns, spread, by_factor in zip(
                self.common.expression.constants,
                self.own,
                self.between,
                self.fit.written.by_factor,
                strict=True,
            )
        ]

    def _rows(self, table: Any, groups: Any) -> tuple[dict[str, Array], GroupFactors]:
        columns = as_columns(table, sorted(self.common.expression.variables) or None)
        count = max(len(column) for column in columns.values())
        return columns, self.fit.factors.named(groups, count)

    def _made(
        self,
        told: Array,
        covariance: Array,
        noise: float,
        codes: GroupFactors,
        *,
        freedom: int | None,
    ) -> Law:
        found = _law_at(self.fit, self.common, told, covariance, noise, freedom)
        return law_in_unit(found, float(self._unit(codes)[0]))

    def _unit(self, codes: GroupFactors) -> Array:
        """[row], of the column a row explains."""
        if not self.units:
            return np.ones(len(codes))
        names = np.array([*(self.units[name] for name in codes.levels[TARGET]), 1.0])
        return np.asarray(names[codes.codes[TARGET]])

    def in_units(self, units: Mapping[str, float]) -> GroupedLaw:
        """The laws of columns that were divided by their units, as the columns were."""
        if all(unit == 1 for unit in units.values()):
            return self
        factors = self.fit.factors
        unit = {
            cell: units[factors.levels[TARGET][factors.of_cell(cell)[TARGET]]]
            for cell in self.groups
        }
        return replace(
            self,
            groups={cell: law_in_unit(law, unit[cell]) for cell, law in self.groups.items()},
            alone={cell: law_in_unit(law, unit[cell]) for cell, law in self.alone.items()},
            units=dict(units),
        )

    def _noise(self, values: Array) -> Array:
        """[row], the standard deviation of one measurement."""
        size = np.abs(values) if self.common.noise == "relative" else np.ones(len(values))
        return np.asarray(self.common.deviation * size)


def fit_groups(law: Law, X: Any, y: Any, groups: Any) -> GroupedLaw:
    """Gives the law constants that groups of rows share, or have of their own where the rows say so.

    `groups` has one name for each row; a mapping has several columns of them (a model and a data set).

    >>> n = np.tile([1.0, 2, 3, 4, 5, 6], 2)
    >>> kind = np.repeat(["a", "b"], 6)
    >>> y = 2 * n + np.where(kind == "a", 1, 5) + np.tile([0.01, -0.01], 6)
    >>> found = fit_groups(fit_formula("2*n + 3", {"n": n}, y), {"n": n}, y, kind)
    >>> found.groups["b"], [row.shared for row in found.shared_rows()]
    (Law('y = 1.998*n + 5.006'), [True, False])
    """
    columns = as_columns(X)
    target = as_columns({law.target: y})[law.target]
    factors = GroupFactors.of(groups, len(target))
    if len(law.expression.constants) == 0:
        raise InputError("The law should have constants to fit to groups. Found none.")
    # Deviations are in proportion to a row's own value, so its group's level has to be known first.
    flat = level_groups(columns, target, factors.cell)
    start = Observations(columns, flat.target, row_weights(columns, flat.target, law.noise))
    pooled = Observations(columns, target, row_weights(columns, target, law.noise, flat.values))
    describer = Describer.of(pooled)
    found = []
    for expression in (law.expression, fit_constants(law.expression, start).expression):
        fit = share_constants(expression, pooled, factors, describer)
        if fit is not None:
            found.append(fit)
    if not found:
        raise InputError("The law should have a value on every row. Found rows where it has none.")
    best = min(found, key=lambda each: each.length(describer))
    return grouped_law(best, pooled, law)


def grouped_law(fit: SharedFit, data: Observations, law: Law) -> GroupedLaw:
    """The laws of all groups from a fit to their rows; `law` says what else a law has."""
    factors = fit.factors
    unit = data.unit or (float(data.weight[0]) if law.noise == "absolute" else 1.0)
    deviation = float(np.sqrt(fit.mixed.variance)) / unit
    count = len(fit.mixed.mean)
    mean_covariance = fit.mixed.covariance[:count, :count]
    template = replace(law, deviation=deviation, rows=len(data))
    common = _law_at(fit, template, fit.mixed.mean, mean_covariance, 1.0, None)
    groups, alone, counts = {}, {}, {}
    for place, cell in enumerate(factors.cells):
        here = np.flatnonzero(factors.cell == place)
        codes = factors.rows(here[:1])
        told, covariance = posterior_of(fit, codes)
        counts[cell] = len(here)
        groups[cell] = _law_at(fit, common, told, covariance, float(fit.noises[place]), None)
        rows = data.rows(here)
        own = fit_constants(groups[cell].expression, rows) if len(rows) > count else None
        alone[cell] = (
            law_of(own, rows, target=law.target, length=np.nan, noise=law.noise, errors=law.errors)
            if own is not None and own.is_usable(rows)
            else common
        )
    slopes = fit.written.slopes(np.array(common.expression.constants))
    varying = spread_of(fit, None)
    between = np.sqrt(np.maximum(np.diag(slopes @ varying @ slopes.T), 0.0))
    own_by = tuple(
        tuple(column for at, column in fit.blocks if at == place) for place in range(count)
    )
    return GroupedLaw(common, groups, alone, between, own_by, counts, fit)


def _law_at(
    fit: SharedFit,
    law: Law,
    told: Array,
    covariance: Array,
    noise: float,
    freedom: int | None,
) -> Law:
    constants = fit.written.constants(told)
    slopes = fit.written.slopes(constants)
    return replace(
        law,
        expression=fit.written.expression.with_constants(constants.tolist()),
        covariance=slopes @ covariance @ slopes.T,
        deviation=law.deviation * noise,
        freedom=freedom,
    )
