"""A document about mixtures with made-up numbers, and everything in it that a page can show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taskmix.mixtures import (
    CarryRow,
    ComparedMixture,
    DomainRow,
    ForecastValue,
    FrontPoint,
    LawWeight,
    LeftOutMetric,
    MixtureFront,
    MixtureReport,
    PredictedMixture,
    RunsToDo,
    RunToDo,
)

DOMAINS = ("web", "code", "books", "mathematics", "wikipedia")
METRICS = ("prose", "python", "proofs")


def around(value: float, wide: float = 0.02) -> ForecastValue:
    return ForecastValue(value, value - wide, value + wide)


def mixtures_document(
    domains: Sequence[str] = DOMAINS, metrics: Sequence[str] = METRICS, *, runs: int = 40
) -> MixtureReport:
    """Seven mixtures and a law, none of them real."""
    random = np.random.default_rng(0)
    shares = np.sort(random.dirichlet(np.ones(len(domains))))[::-1]
    named = dict(zip(domains, shares.tolist(), strict=True))
    equal = dict.fromkeys(domains, 1 / len(domains))

    def forecast(level: float) -> dict[str, ForecastValue]:
        return {name: around(level + 0.2 * place) for place, name in enumerate(metrics)}

    def left_out(name: str, level: float) -> LeftOutMetric:
        observed = level + random.normal(size=runs)
        predicted = observed + 0.2 * random.normal(size=runs)
        return LeftOutMetric(
            name=name,
            larger_is_better=False,
            runs=tuple(f"run {place}" for place in range(runs)),
            predicted=tuple(predicted.tolist()),
            observed=tuple(observed.tolist()),
            low=tuple((predicted - 0.3).tolist()),
            high=tuple((predicted + 0.3).tolist()),
            rank_correlation=0.96,
            r_squared=0.94,
            coverage=float("nan") if name == "target" else 0.9,
            error=0.2,
            noise=0.05,
        )

    return MixtureReport(
        command="taskmix mix ratios.csv metrics.csv",
        mixtures=f"{runs} runs, {len(domains)} domains, {len(metrics)} metrics",
        target=f"the mean of {len(metrics)} metrics",
        larger_is_better=False,
        runs=runs,
        sizes=(1e6, 6e7),
        size=6e7,
        answer=f"Train on {domains[0]} {100 * shares[0]:.0f} % and others: it will be 2.5 (2.4 to 2.6).",
        trust=(
            f"For {runs} runs that the law had not seen, the target is ranked well.",
            "The mixture lies among the runs, and the nearest run, `run 3`, differs in 8 %.",
        ),
        warnings=(f"Never varied, so their effect cannot be told: `{domains[-1]}` (0.1).",),
        notes=("The shares of 3 of 40 runs are rounded and were divided by their sums.",),
        domains=tuple(
            DomainRow(
                domain=name,
                share=share,
                low=max(share - 0.05, 0.0),
                high=min(share + 0.08, 1.0),
                seen_low=0.0,
                seen_high=0.6,
                effect=None if name == domains[-1] else around(0.001 * (place - 1), 0.0008),
                fixed=name == domains[-1],
                passes=share * 3,
            )
            for place, (name, share) in enumerate(named.items())
        ),
        compared=(
            ComparedMixture(
                name="advised",
                shares=named,
                target=around(2.5),
                gain=ForecastValue(0.0, 0.0, 0.0),
                better=0.5,
                metrics=forecast(2.4),
            ),
            ComparedMixture(
                name="best run (run 3)",
                shares=named,
                target=around(2.55),
                gain=around(0.05),
                better=0.97,
                metrics=forecast(2.5),
            ),
            ComparedMixture(
                name="equal shares",
                shares=equal,
                target=around(2.7),
                gain=around(0.2),
                better=1.0,
                metrics=forecast(2.6),
            ),
        ),
        left_out=tuple(left_out(name, 3.0) for name in ("target", *metrics)),
        extrapolated=False,
        distance="The mixture lies among the runs, and the nearest run, `run 3`, differs in 8 %.",
        regret=0.004,
        spread=0.3,
        laws=tuple(
            LawWeight(name, law, weight)
            for name in metrics
            for law, weight in (("effective data", 0.8), ("boosted trees", 0.2))
        ),
        next=RunsToDo(
            runs=(RunToDo(shares=equal, words="the laws disagree most there"),),
            regret=0.004,
            regret_after=0.003,
            enough=False,
            words="Go on: the expected regret is 0.004, and 1 more run is expected to leave 0.003.",
        ),
        front=MixtureFront(
            first=metrics[0],
            second=metrics[1],
            points=tuple(
                FrontPoint(shares=named, first=around(2 + step / 10), second=around(3 - step / 9))
                for step in range(6)
            ),
        ),
        carry=tuple(
            CarryRow(
                name=name,
                small=1e6,
                large=6e7,
                correlation=0.9,
                low=0.8,
                high=0.95,
                verdict="carries over",
                words=f"{name}, 1 M to 60 M: carries over.",
            )
            for name in ("target", *metrics)
        ),
        predictions=(
            PredictedMixture(
                name="half and half", shares=equal, target=around(2.6), metrics=forecast(2.5)
            ),
        ),
        seconds=3.2,
    )
