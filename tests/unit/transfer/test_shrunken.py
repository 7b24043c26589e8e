"""Linear surrogates of all targets at once, drawn towards each other and to a cheaper study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, spearmanr

from taskmix.errors import InputError
from taskmix.transfer import (
    EffectScales,
    ShrunkenSurrogates,
    SubsetOutcomes,
    balanced_subsets,
    fit_linear_surrogate,
    fit_shrunken_surrogates,
    gather_outcomes,
)
from taskmix.transfer._shrunken import _loss, _problem

TASKS = tuple("abcdef")


def a_world(
    seed: int, *, noise: float = 0.1, count: int = 6, tasks: tuple[str, ...] = TASKS
) -> tuple[NDArray[np.float64], list[SubsetOutcomes]]:
    """Effects [target, source] of targets, sources and pairs, and a table of each target."""
    generator = np.random.default_rng(seed)
    number = len(tasks)
    effects = 0.1 * (generator.normal(size=(number, 1)) + generator.normal(size=number))
    effects = effects + 0.15 * generator.normal(size=(number, number))
    np.fill_diagonal(effects, np.nan)
    tables = []
    for place, target in enumerate(tasks):
        others = np.delete(effects[place], place)
        drawn = balanced_subsets(number - 1, 2, count, generator=generator)
        runs = np.concatenate([drawn, drawn[:2], np.zeros((3, number - 1), dtype=bool)])
        losses = 1 + runs @ others + noise * generator.normal(size=len(runs))
        sources = [name for name in tasks if name != target]
        tables.append(gather_outcomes(runs, losses, target=target, sources=sources))
    return effects, tables


def as_gains(
    effects: NDArray[np.float64], tasks: tuple[str, ...] = TASKS
) -> dict[str, dict[str, float]]:
    return {
        target: {name: -float(effects[i, j]) for j, name in enumerate(tasks) if i != j}
        for i, target in enumerate(tasks)
    }


def matrix(found: ShrunkenSurrogates) -> NDArray[np.float64]:
    return np.array([np.insert(one.effects, i, np.nan) for i, one in enumerate(found.surrogates)])


def dense(
    tables: list[SubsetOutcomes], scales: EffectScales, prior: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Means and covariance of all effects, and log marginal likelihood: one Gaussian of everything.

    Flat priors are normal ones of a very large deviation; rows are single means of runs.
    """
    flat, names, number = 1e3, list(TASKS), len(TASKS)
    pairs = [(i, j) for i in range(number) for j in range(number) if i != j]
    units, rows, values, noises = [], [], [], []
    for table in tables:
        losses, weights = (
            np.append(table.anchor, table.losses),
            np.append(table.anchor_runs, table.weights),
        )
        level = np.average(losses, weights=weights)
        units.append(np.sqrt(np.average((losses - level) ** 2, weights=weights)))
        for loss, weight, members in zip(
            losses, weights, np.vstack([np.zeros(number - 1), table.subsets]), strict=True
        ):
            i = names.index(table.target)
            row = np.zeros(number + len(pairs))
            row[i] = 1.0
            for inside, source in zip(members, table.sources, strict=True):
                row[number + pairs.index((i, names.index(source)))] = inside
            rows.append(row)
            values.append((loss - level) / units[-1])
            noises.append(scales.noise[i] ** 2 / weight)
    cheaper = np.array([prior[pair] / units[pair[0]] for pair in pairs])
    cheaper = (cheaper - cheaper.mean()) / cheaper.std()
    covariance = np.zeros((len(rows[0]), len(rows[0])))
    covariance[:number, :number] = flat**2 * np.eye(number)
    for one, (i, j) in enumerate(pairs):
        for other, (k, m) in enumerate(pairs):
            covariance[number + one, number + other] = (
                flat**2 * (1 + cheaper[one] * cheaper[other])
                + scales.target**2 * (i == k)
                + scales.source**2 * (j == m)
                + scales.pair**2 * (one == other)
            )
    design = np.array(rows)
    whole = design @ covariance @ design.T + np.diag(noises)
    gain = np.linalg.solve(whole, design @ covariance).T
    unit = np.array([units[i] for i, _ in pairs])
    means = (gain @ np.array(values))[number:] * unit
    after = (covariance - gain @ design @ covariance)[number:, number:] * np.outer(unit, unit)
    likelihood = float(multivariate_normal(cov=whole).logpdf(values))
    return means, after, likelihood


def test_three_sources_by_hand() -> None:
    # The target alone is known; the mean effect is (−0.2 + 0.1 + 0.4) / 3 = 0.1. Noise σ and pairs τ
    # have one deviation, so what a source is away from the mean is halved: τ² / (τ² + σ²).
    runs = np.concatenate([np.zeros((10**6, 3)), np.eye(3)])
    losses = np.concatenate([np.ones(10**6), [0.8, 1.1, 1.4]])
    table = gather_outcomes(runs, losses, target="a", sources=["b", "c", "d"])
    scales = EffectScales(pair=0.7, source=0.0, target=0.0, noise=(0.7,))
    found = fit_shrunken_surrogates([table], scales=scales).surrogates[0]
    np.testing.assert_allclose(found.effects, [-0.05, 0.1, 0.25], atol=1e-5)
    assert found.anchor == pytest.approx(1.0, abs=1e-5)


def test_means_and_covariances_are_those_of_one_dense_gaussian() -> None:
    effects, tables = a_world(3)
    prior = effects + 0.2 * np.random.default_rng(1).normal(size=effects.shape)
    scales = EffectScales(pair=0.6, source=0.4, target=0.3, noise=(0.5, 0.4, 0.6, 0.5, 0.7, 0.3))
    found = fit_shrunken_surrogates(tables, prior=as_gains(prior), scales=scales)
    means, covariance, _ = dense(tables, scales, prior)
    np.testing.assert_allclose(
        np.concatenate([one.effects for one in found.surrogates]), means, atol=2e-5
    )
    for place, one in enumerate(found.surrogates):
        own = slice(5 * place, 5 * place + 5)
        np.testing.assert_allclose(one.covariance, covariance[own, own], rtol=1e-3, atol=1e-6)


def test_deviations_are_learned_from_the_marginal_likelihood_of_that_gaussian() -> None:
    effects, tables = a_world(4)
    # Single runs only: what repeated ones say beside their means is not in the dense Gaussian.
    tables = [
        gather_outcomes(
            np.vstack([np.zeros(5), t.subsets]),
            np.append(t.anchor, t.losses),
            target=t.target,
            sources=t.sources,
        )
        for t in tables
    ]
    problem = _problem(tables, as_gains(effects))

    def scales(logs: NDArray[np.float64]) -> EffectScales:
        pair, source, target, *noise = np.exp(logs).tolist()
        return EffectScales(pair=pair, source=source, target=target, noise=tuple(noise))

    begin = np.log([0.5, 0.3, 0.4, 0.5, 0.4, 0.6, 0.5, 0.7, 0.3])
    generator = np.random.default_rng(0)
    for _ in range(5):
        other = begin + 0.3 * generator.normal(size=9)
        ours = _loss(problem, scales(other)) - _loss(problem, scales(begin))
        oracle = [dense(tables, scales(logs), effects)[2] for logs in (begin, other)]
        assert ours == pytest.approx(oracle[0] - oracle[1], abs=0.01)


def test_with_few_runs_effects_are_nearer_to_the_truth_than_by_least_squares() -> None:
    ours, theirs = [], []
    for seed in range(10):
        effects, tables = a_world(seed, noise=0.25)
        ours.append(np.nanmean((matrix(fit_shrunken_surrogates(tables)) - effects) ** 2))
        plain = [
            np.insert(fit_linear_surrogate(t, ridge=0.1).effects, i, np.nan)
            for i, t in enumerate(tables)
        ]
        theirs.append(np.nanmean((np.array(plain) - effects) ** 2))
    assert np.mean(ours) < 0.7 * np.mean(theirs)


def test_a_study_that_agrees_replaces_runs_and_one_that_does_not_costs_nothing() -> None:
    ranks: dict[str, list[float]] = {"none": [], "agrees": [], "unrelated": []}
    slopes, agreed = [], 0
    for seed in range(10):
        effects, tables = a_world(seed, noise=0.25)
        generator = np.random.default_rng(seed)
        noise = generator.normal(size=effects.shape)
        priors = {
            "none": None,
            "agrees": as_gains(2 * effects + 0.05 * noise),
            "unrelated": as_gains(noise),
        }
        for name, prior in priors.items():
            found = fit_shrunken_surrogates(tables, prior=prior)
            rows = zip(matrix(found), effects, range(6), strict=True)
            ranks[name].append(
                np.mean([spearmanr(np.delete(a, i), np.delete(b, i)).statistic for a, b, i in rows])
            )
            if name == "agrees":
                assert found.prior is not None
                slopes.append(found.prior.slope)
                agreed += found.prior.agrees
    assert agreed >= 8
    assert np.mean(ranks["agrees"]) > np.mean(ranks["none"]) + 0.1
    assert np.mean(ranks["unrelated"]) > np.mean(ranks["none"]) - 0.05
    assert np.mean(slopes) == pytest.approx(0.5, abs=0.1)  # its gains are twice as large


def test_intervals_cover_the_truth_nearly_as_often_as_they_say() -> None:
    covered = []
    for seed in range(40):
        effects, tables = a_world(seed, noise=0.2)
        for place, one in enumerate(fit_shrunken_surrogates(tables).surrogates):
            low, high = one.intervals()
            truth = np.delete(effects[place], place)
            covered.append((low <= truth) & (truth <= high))
    assert 0.88 < np.mean(covered) < 0.97


def test_the_error_of_dev_rows_follows_the_losses_of_the_target_through_the_fit() -> None:
    _, (table, *others) = a_world(3)
    parts = np.random.default_rng(0).normal(size=(1 + len(table.losses), 4))
    # At right angles to the losses, so that the unit of the target stays as it is.
    weights = np.append(table.anchor_runs, table.weights)
    away = np.append(table.anchor, table.losses)
    away -= np.average(away, weights=weights)
    parts -= np.outer(away, (weights * away) @ parts) / ((weights * away) @ away)
    scales = EffectScales(pair=0.6, source=0.4, target=0.3, noise=(0.5, 0.4, 0.6, 0.5, 0.7, 0.3))

    def effects(place: int, step: float) -> NDArray[np.float64]:
        moved = replace(
            table,
            anchor=table.anchor + step * parts[0, place],
            losses=table.losses + step * parts[1:, place],
        )
        return fit_shrunken_surrogates([moved, *others], scales=scales).surrogates[0].effects

    known = replace(table, dev_parts=parts)
    found = fit_shrunken_surrogates([known, *others], scales=scales).surrogates[0]
    slopes = np.array([(effects(place, 1e-6) - effects(place, -1e-6)) / 2e-6 for place in range(4)])
    np.testing.assert_allclose(found.dev_covariance, slopes.T @ slopes, atol=1e-6)
    assert found.dev_rows == 4


def test_one_target_alone_can_be_fitted_even_with_fewer_subsets_than_sources() -> None:
    runs = [[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    table = gather_outcomes(runs, [1.0, 0.5, 1.1], target="a", sources=list("bcde"))
    found = fit_shrunken_surrogates([table]).surrogates[0]
    assert np.isfinite(found.effects).all()
    np.testing.assert_allclose(found.effects[::2], found.effects[1::2])
    assert found.effects[0] < found.effects[2]


def test_priors_and_tables_that_do_not_fit_are_refused() -> None:
    _, tables = a_world(8)
    with pytest.raises(InputError, match="Found 0 of 30 pairs"):
        fit_shrunken_surrogates(tables, prior={"x": {"y": 1.0}})
    with pytest.raises(InputError, match="not all alike"):
        fit_shrunken_surrogates(tables, prior=as_gains(np.zeros((6, 6))))
    with pytest.raises(InputError, match="at least one target"):
        fit_shrunken_surrogates([])
    _, others = a_world(8, tasks=tuple("uvwxyz"))
    with pytest.raises(InputError, match="of the same tasks"):
        fit_shrunken_surrogates([tables[0], others[1]])
    with pytest.raises(InputError, match="noise of each of the 6 targets"):
        fit_shrunken_surrogates(
            tables, scales=EffectScales(pair=1, source=0, target=0, noise=(1.0,))
        )
