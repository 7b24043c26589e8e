r"""Linear surrogates of all targets at once, from few runs and whatever a cheaper study found.

The effects of the linear surrogate (`_linear`) are drawn towards what other pairs of tasks say,

$$\theta_{ij} = m + t_i + s_j + b\,c_{ij} + u_{ij}, \qquad
  t_i \sim N(0, \nu^2), \; s_j \sim N(0, \omega^2), \; u_{ij} \sim N(0, \tau^2),$$

with i the target and j the source: some targets gain from anybody (t), some sources harm everybody
(s), and $c_{ij}$ is the effect that a cheaper study found, such as one of short runs, of heads on
frozen vectors, or of gradients. Effects and the loss of the target alone, which has a flat prior,
give the losses of subsets with noise of deviation $\sigma_i$. Given τ, ω, ν and σ all is Gaussian,
and what is returned are posterior means and covariances. The slope b has a flat prior: a study that
does not agree gets a slope near zero and costs nothing, one that agrees replaces runs.

    Efron and Morris, "Stein's Estimation Rule and Its Competitors", JASA 1973: empirical Bayes.
    Robinson, "That BLUP Is a Good Thing", Statistical Science 1991: the posterior of mixed models.

The deviations are those of the largest marginal likelihood, the flat parts integrated out. Two priors
keep it from extremes that few runs allow: τ, ω and ν have a Gamma(2, 0) prior, so that none is
exactly zero and intervals stay honest (Chung, Rabe-Hesketh, Dorie, Gelman and Liu, 2013), and the
logarithms of σ lie about their mean with deviation `NOISE_SPREAD`. Losses of a target are measured in
the deviation of its own outcomes, since targets have different units.

Intervals are Student's with the target's runs minus one as degrees of freedom, since its σ is learned
from them. They take τ, ω and ν as known, which makes them slightly too narrow. The error of the
target's own dev rows is added as in `_linear`; that of other targets' is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.transfer._linear import LinearSurrogate, satterthwaite_degrees
from taskmix.transfer._outcomes import SubsetOutcomes

Gains = Mapping[str, Mapping[str, float]]  # by target and source; above zero is help

NOISE_SPREAD = 0.5  # of log σ over targets; much more, and a target of few runs seems free of noise
FLAT = 1e-9  # precision of what has a flat prior, in standard units: only keeps the system solvable
FIRST_GUESS, LEAST, MOST = 0.3, 1e-3, 10.0  # of deviations, as shares of that of the outcomes


@dataclass(frozen=True, kw_only=True)
class EffectScales:
    """Deviations of what effects are made of, in deviations of each target's outcomes."""

    pair: float  # τ
    source: float  # ω
    target: float  # ν
    noise: tuple[float, ...]  # [target], σ of one run


@dataclass(frozen=True, kw_only=True)
class PriorAgreement:
    """How far a cheaper study agreed with the runs."""

    slope: float  # b: what a gain of one in the cheaper study is worth
    low: float  # of its 95 % interval
    high: float
    pairs: int  # of a target and a source that the cheaper study has
    correlation: float  # of ranks within a target, with what the runs say without it; the mean

    @property
    def agrees(self) -> bool:
        """Whether the slope is significantly above zero (95 %)."""
        return self.low > 0


@dataclass(frozen=True, kw_only=True)
class ShrunkenSurrogates:
    """A linear surrogate for each target, whose effects are posterior means."""

    surrogates: tuple[LinearSurrogate, ...]  # in the order of the tables
    scales: EffectScales
    prior: PriorAgreement | None  # None where none was given


def fit_shrunken_surrogates(
    tables: Sequence[SubsetOutcomes],  # one for each target, of the same tasks
    *,
    prior: Gains | None = None,
    scales: EffectScales | None = None,  # learned unless given
) -> ShrunkenSurrogates:
    """Effects drawn towards those of other pairs, and towards a cheaper study as far as it agrees.

    Each of three sources with a target that was measured often alone. The mean effect is 0.1; noise
    and effects have the same deviation, so the others are drawn halfway to it.

    >>> runs = np.concatenate([np.zeros((100, 3)), np.eye(3)])
    >>> losses = [1.0] * 100 + [0.8, 1.1, 1.4]
    >>> table = gather_outcomes(runs, losses, target="a", sources=["b", "c", "d"])
    >>> scales = EffectScales(pair=1.0, source=0.0, target=0.0, noise=(1.0,))
    >>> found = fit_shrunken_surrogates([table], scales=scales)
    >>> found.surrogates[0].effects.round(6)  # −0.2, 0.1 and 0.4 were measured
    array([-0.05,  0.1 ,  0.25])
    """
    problem = _problem(tables, prior)
    found = scales or _learned(problem)
    if len(found.noise) != len(tables):
        raise InputError(
            f"`scales` should have the noise of each of the {len(tables)} targets. Found "
            f"{len(found.noise)}."
        )
    surrogates, slope, error = _posterior(problem, found, tables)
    agreement = None
    if prior is not None:
        without = fit_shrunken_surrogates(tables).surrogates
        agreement = PriorAgreement(
            slope=slope,
            low=slope - 1.959964 * error,
            high=slope + 1.959964 * error,
            pairs=problem.pairs,
            correlation=_correlation(prior, without),
        )
    return ShrunkenSurrogates(surrogates=surrogates, scales=found, prior=agreement)


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """What the tables say, in deviations of each target's outcomes; all that fitting needs of them."""

    products: NDArray[np.float64]  # [target, 1 + source, 1 + source], of the columns 1 and sources
    moments: NDArray[np.float64]  # [target, 1 + source], of the columns with the losses
    squares: NDArray[np.float64]  # [target], of the losses
    runs: NDArray[np.float64]  # [target], rows, and repeated runs beyond them
    units: NDArray[np.float64]  # [target]
    levels: NDArray[np.float64]  # [target], taken off the losses
    places: NDArray[np.int64]  # [target, source], which task a source is
    cheaper: NDArray[np.float64] | None  # [target, source], c about its mean, of deviation one
    cheaper_unit: float
    pairs: int  # that the cheaper study has
    tasks: int

    @property
    def flat(self) -> int:
        """Coefficients with a flat prior: levels, the mean effect, the slope."""
        return len(self.units) + 1 + (self.cheaper is not None)

    def columns(self, scales: EffectScales) -> NDArray[np.float64]:
        """[target, 1 + source, coefficient], from shared coefficients to the level and the effects."""
        targets, sources = self.places.shape
        found = np.zeros((targets, sources + 1, self.flat + targets + self.tasks))
        every = np.arange(targets)
        found[every, 0, every] = 1.0
        found[:, 1:, targets] = 1.0
        if self.cheaper is not None:
            found[:, 1:, targets + 1] = self.cheaper
        found[every, 1:, self.flat + every] = scales.target
        found[every[:, None], 1 + np.arange(sources), self.flat + targets + self.places] = (
            scales.source
        )
        return found


def _problem(tables: Sequence[SubsetOutcomes], prior: Gains | None) -> _Problem:
    if not tables:
        raise InputError("There should be a table for at least one target. Found none.")
    names = sorted({tables[0].target, *tables[0].sources})
    if any(sorted({table.target, *table.sources}) != names for table in tables):
        raise InputError(
            f"All tables should be of the same tasks, {', '.join(names)}. Found others. Gather them "
            "from one study."
        )
    rows = []
    for table in tables:
        root, design = _weighted_design(table)
        weights = root**2
        losses = np.append(table.anchor, table.losses)
        level = float(np.average(losses, weights=weights))
        unit = math.sqrt(float(np.average((losses - level) ** 2, weights=weights))) or 1.0
        wanted = root * (losses - level) / unit
        # What repeated runs say of the noise, beside the means of their subsets.
        repeated = table.seed_degrees
        spread = repeated * table.seed_variance / unit**2 if repeated else 0.0
        square = float(wanted @ wanted) + spread
        rows.append(
            (design.T @ design, design.T @ wanted, square, len(losses) + repeated, unit, level)
        )
    products, moments, squares, runs, units, levels = (
        np.array(each, dtype=np.float64) for each in zip(*rows, strict=True)
    )
    cheaper, unit, pairs = _cheaper(tables, prior, units)
    return _Problem(
        products=products,
        moments=moments,
        squares=squares,
        runs=runs,
        units=units,
        levels=levels,
        places=np.array([[names.index(name) for name in table.sources] for table in tables]),
        cheaper=cheaper,
        cheaper_unit=unit,
        pairs=pairs,
        tasks=len(names),
    )


def _weighted_design(table: SubsetOutcomes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Roots of weights, and the columns 1 and sources times those; first the target alone."""
    members = np.vstack([np.zeros(len(table.sources)), table.subsets])
    root = np.sqrt(np.append(table.anchor_runs, table.weights))
    return root, root[:, None] * np.column_stack([np.ones(len(members)), members])


def _cheaper(
    tables: Sequence[SubsetOutcomes], prior: Gains | None, units: NDArray[np.float64]
) -> tuple[NDArray[np.float64] | None, float, int]:
    """The effects of the cheaper study in standard units, those units, and how many are known."""
    if prior is None:
        return None, 1.0, 0
    effects = -np.array(
        [
            [prior.get(table.target, {}).get(source, math.nan) for source in table.sources]
            for table in tables
        ]
    )
    effects = effects / units[:, None]
    known = np.isfinite(effects)
    pairs = int(known.sum())
    spread = float(effects[known].std()) if pairs else 0.0
    if spread == 0.0:
        raise InputError(
            "The cheaper study should have gains between these tasks, and not all alike. Found "
            f"{pairs} of {effects.size} pairs of a target and a source. Use a study of the same tasks "
            "and targets."
        )
    # A pair that it does not have is taken for an average one.
    return np.where(known, (effects - effects[known].mean()) / spread, 0.0), spread, pairs


def _solved(
    problem: _Problem, scales: EffectScales
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Precision and moments of shared coefficients, the factors of each target, −2 log of the rest."""
    variance = np.square(scales.noise)[:, None, None]
    pair = scales.pair
    sources = problem.places.shape[1]
    inner = variance * np.eye(sources) + pair**2 * problem.products[:, 1:, 1:]
    factors = np.asarray(np.linalg.cholesky(inner), dtype=np.float64)
    # Woodbury: rows of a target share its u, so their covariance is σ² I + τ² X X'.
    reach = pair * np.linalg.solve(factors, problem.products[:, 1:, :])
    found = pair * np.linalg.solve(factors, problem.moments[:, 1:, None])[..., 0]
    products = (problem.products - reach.transpose(0, 2, 1) @ reach) / variance
    moments = (problem.moments - np.einsum("tsk,ts->tk", reach, found)) / variance[..., 0]
    columns = problem.columns(scales)
    priors = np.full(columns.shape[2], 1.0)
    priors[: problem.flat] = FLAT
    precision = np.diag(priors) + np.einsum(
        "tka,tkb->ab", columns, products @ columns, optimize=True
    )
    rest = float(((problem.squares - (found**2).sum(axis=1)) / variance[:, 0, 0]).sum())
    rest += 2 * float(np.log(np.diagonal(factors, axis1=1, axis2=2)).sum())
    rest += float(((problem.runs - sources) * np.log(variance[:, 0, 0])).sum())
    return (
        np.asarray(precision),
        np.asarray(np.einsum("tka,tk->a", columns, moments)),
        factors,
        rest,
    )


def _loss(problem: _Problem, scales: EffectScales) -> float:
    """−log of the marginal likelihood, up to a constant."""
    precision, moments, _, rest = _solved(problem, scales)
    factor = np.linalg.cholesky(precision)
    whole = np.linalg.solve(factor, moments)
    return 0.5 * (rest + 2 * float(np.log(np.diag(factor)).sum()) - float(whole @ whole))


def _learned(problem: _Problem) -> EffectScales:
    from scipy.optimize import minimize

    targets = len(problem.units)
    shared = (
        3 if targets > 1 else 1
    )  # one target cannot tell what is a source's from what is a pair's

    def scales_of(logs: NDArray[np.float64]) -> EffectScales:
        pair, *others = np.exp(logs[:shared]).tolist()
        source, target = others or (0.0, 0.0)
        noise = tuple(np.exp(logs[shared:]).tolist())
        return EffectScales(pair=pair, source=source, target=target, noise=noise)

    def penalised(logs: NDArray[np.float64]) -> float:
        noise = logs[shared:]
        away = float(((noise - noise.mean()) ** 2).sum()) / (2 * NOISE_SPREAD**2)
        return _loss(problem, scales_of(logs)) + away - float(logs[:shared].sum())

    begin = np.full(shared + targets, math.log(FIRST_GUESS))
    bounds = [(math.log(LEAST), math.log(MOST))] * len(begin)
    return scales_of(minimize(penalised, begin, method="L-BFGS-B", bounds=bounds).x)


def _posterior(
    problem: _Problem, scales: EffectScales, tables: Sequence[SubsetOutcomes]
) -> tuple[tuple[LinearSurrogate, ...], float, float]:
    """The surrogates, the slope and its standard error."""
    precision, moments, factors, _ = _solved(problem, scales)
    covariance = np.linalg.inv(precision)
    shared = covariance @ moments
    columns = problem.columns(scales)
    surrogates = []
    for place, table in enumerate(tables):
        unit, noise = float(problem.units[place]), scales.noise[place]
        degrees = float(problem.runs[place]) - 1  # its noise is learned, mostly from its own runs
        halves = np.linalg.solve(factors[place], np.eye(len(table.sources)))
        follow = scales.pair**2 * halves.T @ halves  # from what is left of the moments to u
        sense = columns[place, 1:] - follow @ problem.products[place, 1:] @ columns[place]
        own = follow @ problem.moments[place, 1:]
        spread = unit**2 * (sense @ covariance @ sense.T + noise**2 * follow)
        # Effects are linear in the losses of the target, so each of its dev rows has its own.
        root, design = _weighted_design(table)
        moments = design.T @ (root[:, None] * table.dev_parts)
        own_parts = follow @ moments[1:]
        rest = (moments - problem.products[place][:, 1:] @ own_parts) / noise**2
        parts = sense @ (covariance @ columns[place].T @ rest) + own_parts
        dev, dev_rows = parts @ parts.T, parts.shape[1]
        surrogates.append(
            LinearSurrogate(
                target=table.target,
                sources=table.sources,
                anchor=float(problem.levels[place] + unit * shared[place]),
                effects=unit * (sense @ shared + own),
                covariance=spread + dev,
                dev_covariance=dev,
                dev_rows=dev_rows,
                degrees=satterthwaite_degrees(
                    (np.diag(spread), degrees), (np.diag(dev), dev_rows - 1)
                ),
                deviation=unit * noise,
                subsets=len(table.losses),
                mean_size=float(table.sizes.mean()),
                row_degrees=degrees,
                anchor_runs=table.anchor_runs,
                row_runs=float(table.weights.mean()),
            )
        )
    if problem.cheaper is None:
        return tuple(surrogates), 0.0, 0.0
    slope = len(tables) + 1
    return (
        tuple(surrogates),
        float(shared[slope]) / problem.cheaper_unit,
        math.sqrt(float(covariance[slope, slope])) / problem.cheaper_unit,
    )


def _correlation(prior: Gains, surrogates: Sequence[LinearSurrogate]) -> float:
    """The mean over targets; NaN where no target has three sources that differ in both."""
    from scipy.stats import spearmanr

    found = []
    for one in surrogates:
        cheap = np.array([prior.get(one.target, {}).get(name, math.nan) for name in one.sources])
        known = np.isfinite(cheap)
        if known.sum() > 2 and np.ptp(cheap[known]) > 0 and np.ptp(one.gains[known]) > 0:
            found.append(float(spearmanr(cheap[known], one.gains[known]).statistic))
    return float(np.mean(found)) if found else math.nan
