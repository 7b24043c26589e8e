"""Across sizes of model: how ranks carry over, and what few large runs add.

`rows_across_scales` is a part of `mixtures.py`. It reads two tables of $TASKMIX_DATA. RegMix: 256
mixtures trained at 1 M and at 60 M, and 512 other proxies at 1 M. domain_mixture (of SLDBench): 80 runs
of four sizes, and 24 others, which are scored as SLDBench does: R² over all test rows, in the mean over
the five losses; "pooled" is one R² over all of them. Its published human law has 0.671.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from _common import DATA, row
from taskmix.mixtures import (
    MixtureTable,
    MixtureTarget,
    choose_large_runs,
    forecast_at_size,
    forecast_mixtures,
    rank_agreement,
)

Floats = NDArray[np.float64]
PROXIES, TEST_1M, TEST_60M = "proxies_1m", "test_1m", "test_60m"
SMALL, LARGE = 1e6, 6e7
LARGE_RUNS = (0, 4, 8, 16, 32, 64)
HUMAN_LAW = 0.671  # SLDBench, domain mixture


def rows_across_scales(*, draws: int = 5, quick: bool = False) -> list[dict[str, Any]]:
    """All of it."""
    small, large, proxies = regmix(TEST_1M, SMALL), regmix(TEST_60M, LARGE), regmix(PROXIES, SMALL)
    return [
        *rows_of_carrying(_stacked(small, large)),
        *rows_of_few_large_runs(proxies, large, draws=1 if quick else draws, quick=quick),
        *rows_of_domain_mixture(),
    ]


def rows_of_carrying(both: MixtureTable) -> list[dict[str, Any]]:
    """Rank correlations between two sizes on the same mixtures, of each loss and of their mean."""
    carried = rank_agreement(both, target=MixtureTarget())
    return [
        {
            **row(f"1 M to 60 M: {each.name}", each.observed.value, unit="rank correlation"),
            "interval": [round(each.observed.low, 3), round(each.observed.high, 3)],
        }
        for each in carried.rows
        if each.observed is not None
    ]


def rows_of_few_large_runs(
    small: MixtureTable, large: MixtureTable, *, draws: int, quick: bool
) -> list[dict[str, Any]]:
    """Ranks of large runs that were left out, from all small runs and a few large ones.

    The peers are the small forecast alone, and a forecast of the large runs alone.
    """
    rows = []
    base = forecast_mixtures(small)
    for count in LARGE_RUNS[1::2] if quick else LARGE_RUNS:
        found = []
        for draw in range(draws if count else 1):
            order = np.random.default_rng((count, draw)).permutation(len(large))
            some, rest = large.only(order[:count]), large.only(order[count:])
            both = _stacked(small, some)
            ours = forecast_at_size(both, LARGE, seed=draw)
            low, high = ours.interval(rest.shares)
            inside = float(((low <= rest.values) & (rest.values <= high)).mean())
            alone = forecast_mixtures(replace(some, sizes=None), seed=draw) if count >= 8 else None
            found.append(
                [
                    *_ranked(ours.predict(rest.shares), rest.values),
                    *_ranked(base.predict(rest.shares), rest.values),
                    *(
                        (np.nan, np.nan)
                        if alone is None
                        else _ranked(alone.predict(rest.shares), rest.values)
                    ),
                    inside,
                ]
            )
        means = [round(float(each), 4) for each in np.mean(found, axis=0)]
        case = f"512 at 1 M and {count} at 60 M: rank correlation of"
        more = {"draws": len(found), "in 90 % intervals": means[6]}
        for place, name in enumerate(("losses", "the mean")):
            alone_has = None if np.isnan(means[4 + place]) else means[4 + place]
            rows.append(
                {
                    **row(f"{case} {name}", means[place], means[2 + place], "1 M alone", ""),
                    "60 M alone": alone_has,
                    **more,
                }
            )
    settling = choose_large_runs(_stacked(small, large.only(range(8))), LARGE, MixtureTarget())
    case = "8 runs at 60 M with 512 at 1 M are worth"
    return [*rows, row(case, settling.worth, unit="runs at 60 M")]


def rows_of_domain_mixture() -> list[dict[str, Any]]:
    """R² on the test rows of domain_mixture, each size by the joint forecast of all.

    As SLDBench scores: R² of each loss over all rows, then their mean; and pooled.
    """
    train, test = (_domain_mixture(name) for name in ("train", "test"))
    assert test.sizes is not None
    left = np.empty_like(test.values)
    for size in test.known_sizes:
        rows = test.sizes == size
        left[rows] = forecast_at_size(train, size).predict(test.shares[rows]) - test.values[rows]
    mean = float(np.mean(1 - (left**2).mean(axis=0) / test.values.var(axis=0)))
    pooled = float(1 - (left**2).mean() / test.values.var())
    case = f"domain_mixture, {len(test)} test rows"
    return [
        row(f"{case}: R², mean over losses", mean, HUMAN_LAW, "human law", "R²"),
        row(f"{case}: R², pooled", pooled, unit="R²"),
    ]


def _ranked(predicted: Floats, values: Floats) -> tuple[float, float]:
    """Rank correlation in the mean over losses, and of their mean."""
    each = [
        spearmanr(predicted[:, place], values[:, place]).statistic
        for place in range(values.shape[1])
    ]
    return float(np.mean(each)), float(
        spearmanr(predicted.mean(axis=1), values.mean(axis=1)).statistic
    )


def _stacked(small: MixtureTable, large: MixtureTable) -> MixtureTable:
    """Runs of both, under names of their own."""
    assert small.sizes is not None
    assert large.sizes is not None
    return replace(
        small,
        runs=tuple(f"small {run}" for run in small.runs)
        + tuple(f"large {run}" for run in large.runs),
        shares=np.concatenate([small.shares, large.shares]),
        values=np.concatenate([small.values, large.values]),
        sizes=np.concatenate([small.sizes, large.sizes]),
    )


def _domain_mixture(name: str) -> MixtureTable:
    with (DATA / "scaling_laws" / "domain_mixture" / f"{name}.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    units = {"M": 1e6, "B": 1e9}
    domains = tuple(key for key in rows[0] if key.startswith("share_"))
    metrics = tuple(key for key in rows[0] if key.startswith("loss_"))
    return MixtureTable(
        domains=domains,
        metrics=metrics,
        runs=tuple(str(place) for place in range(len(rows))),
        shares=np.array([[float(each[key]) for key in domains] for each in rows]),
        values=np.array([[float(each[key]) for key in metrics] for each in rows]),
        sizes=np.array([float(each["model"][:-1]) * units[each["model"][-1]] for each in rows]),
    )


def regmix(name: str, size: float | None = None) -> MixtureTable:
    """One of the tables, all of it of one size of model."""
    domains, shares = _read(f"{name}_ratios.csv")
    metrics, values = _read(f"{name}_metrics.csv")
    return MixtureTable(
        domains=domains,
        metrics=metrics,
        runs=tuple(str(place) for place in range(len(shares))),
        shares=shares / shares.sum(axis=1, keepdims=True),
        values=values,
        sizes=None if size is None else np.full(len(shares), size),
    )


def _read(name: str) -> tuple[tuple[str, ...], Floats]:
    """The names of the columns and the numbers, without those of the runs."""
    with (DATA / "regmix" / name).open(newline="") as lines:
        head, *rows = csv.reader(lines)
    return tuple(head[1:]), np.array([[float(cell) for cell in row[1:]] for row in rows])
