"""What was learned from a table of mixtures: the forecast, the advised mixture, and a plan of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._learning._answer import predict_named
from taskmix.mixtures._learning._document import MixtureReport, PredictedMixture
from taskmix.mixtures._learning._fit import PredictedRuns
from taskmix.mixtures._learning._shown import MixtureLines, describe_mixtures, mixtures_html
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._optimum import MixtureOptimum
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget
from taskmix.mixtures._table import Floats, MixtureTable, rounding_of
from taskmix.plans import Part, Plan, Shares

LEAST_SHARE = 5e-4  # a smaller one rounds to 0.0 % and is left out of a plan


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureLessons:
    """The forecast of a table, the mixture that it advises, and the document that says so.

    `learn_mixtures` makes them.
    """

    table: MixtureTable
    forecast: Forecast
    target: MixtureTarget
    limits: MixtureLimits
    optimum: MixtureOptimum
    left_out: PredictedRuns  # predictions of runs that were not seen
    document: MixtureReport

    @property
    def shares(self) -> Mapping[str, float]:
        """The advised mixture."""
        return self.optimum.shares

    def predict(self, shares: Mapping[str, float], name: str = "asked") -> PredictedMixture:
        """What a run on a mixture will give; shares by domain, those left out being 0."""
        return self.predict_all({name: shares})[0]

    def predict_all(
        self, mixtures: Mapping[str, Mapping[str, float]]
    ) -> tuple[PredictedMixture, ...]:
        """The same for many, each by its name."""
        rows = [
            as_row(shares, self.forecast.table.domains, name) for name, shares in mixtures.items()
        ]
        judged = JudgedMixtures(forecast=self.forecast, target=self.target, limits=self.limits)
        return predict_named(judged, list(mixtures), np.stack(rows))

    def plan(self) -> Plan:
        """One model on the advised shares, for `taskmix train --plan` and `taskmix plan export`.

        Domains with next to nothing are left out.
        """
        kept = {name: share for name, share in self.shares.items() if share >= LEAST_SHARE}
        total = sum(kept.values())
        part = Part(
            tasks=tuple(kept),
            scored=tuple(kept),
            share=1.0,
            division=Shares(probabilities=tuple(share / total for share in kept.values())),
        )
        return Plan(
            parts=(part,), name="mixture", words=self.document.answer, evidence=self._evidence()
        )

    def _evidence(self) -> dict[str, Any]:
        """Words and finite numbers, as a plan's file takes them."""
        told = self.document
        advised = told.compared[0]
        return {
            "from": told.mixtures,
            "target": told.target,
            "expected": {
                name: _finite(value.value, value.low, value.high)
                for name, value in {told.target: advised.target, **advised.metrics}.items()
            },
            "left out of the plan": [n for n, share in self.shares.items() if share < LEAST_SHARE],
            "trust": list(told.trust),
            "warnings": list(told.warnings),
        }

    def __repr__(self) -> str:
        parts: Sequence[str | MixtureLines] = list(describe_mixtures(self.document))
        return "\n".join(part for part in parts if isinstance(part, str))

    def _repr_html_(self) -> str:
        """For notebooks: what the command prints."""
        return mixtures_html(self.document)


def as_row(shares: Mapping[str, float], domains: Sequence[str], name: str) -> Floats:
    """[domain], in the order of the table."""
    unknown = [domain for domain in shares if domain not in domains]
    if unknown:
        raise InputError(
            f"A mixture should have shares of the table's domains. Found `{unknown[0]}` in `{name}`; "
            f"there are {', '.join(f'`{domain}`' for domain in domains[:12])}."
        )
    row = np.array([float(shares.get(domain, 0.0)) for domain in domains])
    total, near = float(row.sum()), rounding_of(row[None])
    if not np.isfinite(row).all() or (row < 0).any() or abs(total - 1) > near:
        raise InputError(
            f"The shares of a mixture should be at least 0 and sum to 1. Found a sum of {total:.4g} in "
            f"`{name}`. Divide them by their sum."
        )
    return row / total


def _finite(*numbers: float) -> list[float | None]:
    return [number if np.isfinite(number) else None for number in numbers]
