r"""What a domain that no run had may be worth, from its neighbours, with the width that they leave.

The worth of domain j for metric m, relative to the mean of the other domains (logarithms, see
`_worth`), is taken as a Gaussian process over all pairs of a metric and a domain:

$$y_{mj} = \beta^\top x_{mj} + \gamma_j + \delta_{mj}, \qquad
\gamma \sim N(0, \sigma_\gamma^2 K), \quad \delta_{m \cdot} \sim N(0, \sigma_\delta^2 K)$$

- $x_{mj}$: 1; whether j is the domain that m measures ("own"); for other pairs the similarity of the
  two domains by their features, and the worth of m's domain for j's metric, which tends to be mutual;
- $K$ is the similarity of domains, made symmetric and positive; without features it is the identity;
- own pairs have a further variance of their own, and every pair that of its fit.

The variances are those of largest likelihood. How far this is right is then asked of the known domains:
each is left out with all its pairs, and if the others predict it worse than they claim, the width grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from taskmix.mixtures._domains._features import DomainFeatures
from taskmix.mixtures._domains._worth import HEAD, Worths
from taskmix.mixtures._table import Floats

SLOPE_SPREAD = 5.0  # of beta: log worths lie within about ten of each other
LOG_VARIANCE = (
    -0.5
)  # of the variances, where little is known of them: about 0.6, give or take a factor
LEAST_DOUBT = 1e-6  # of a log worth, as a variance
MOST_PAIRS = 600  # that the variances are fitted to; more cost minutes and tell little


@dataclass(frozen=True, eq=False)
class WorthPrior:
    """Log worths of new domains, relative to the mean of the old ones."""

    mean: Floats  # [new domain, metric]
    covariance: Floats  # [new domain * metric, the same]
    widened: float  # how many times the width was enlarged, for what leaving domains out said

    def sample(self, count: int, random: np.random.Generator) -> Floats:
        """[draw, new domain, metric]."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        flat = self.mean.ravel() + random.standard_normal((count, len(root))) @ root.T
        return np.asarray(flat.reshape(count, *self.mean.shape))


def worth_prior(
    worths: Worths,
    domains: Sequence[str],  # of the worths
    new: Sequence[str],
    measured: Sequence[str | None],  # [metric], the domain that it measures, where it is one
    features: DomainFeatures | None,
) -> WorthPrior:
    """The prior of new domains, from the worths of the old ones."""
    names = (*domains, *new)
    old, metrics = len(domains), len(worths.fits)
    worth = np.array([fit.log_worth for fit in worths.fits])  # [metric, old]
    worth = (worth - worth.mean(axis=1, keepdims=True)) * old / max(old - 1, 1)
    doubt = np.array([np.diag(fit.covariance)[HEAD:] for fit in worths.fits])
    own = np.array([[name == domain for domain in names] for name in measured])
    pairs = _Pairs(
        # Pairs are [domain, metric], so that those of a domain stand together.
        inputs=_inputs(worth, names, measured, features).transpose(1, 0, 2).reshape(own.size, -1),
        own=own.T.ravel(),
        domain=np.repeat(np.arange(len(names)), metrics),
        metric=np.tile(np.arange(metrics), len(names)),
        kernel=_kernel(names, features),
    )
    seen = np.where(own[:, :old] & np.isfinite(worths.own)[:, None], worths.own[:, None], worth)
    y, noise = seen.T.ravel(), doubt.T.ravel() + LEAST_DOUBT
    here, there = np.arange(old * metrics), np.arange(old * metrics, own.size)
    logs = _likeliest(pairs, y, noise)
    inverse: Floats = np.asarray(np.linalg.inv(pairs.covariance(logs, here, here) + np.diag(noise)))
    across = pairs.covariance(logs, there, here)
    mean = across @ inverse @ y
    spread = pairs.covariance(logs, there, there) - across @ inverse @ across.T
    widened = _widening(inverse, y, metrics)
    return WorthPrior(mean.reshape(len(new), metrics), spread * widened**2, widened)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All pairs of a domain and a metric, those of old domains first."""

    inputs: Floats  # [pair, input]
    own: NDArray[np.bool_]  # [pair]
    domain: NDArray[np.int64]  # [pair]
    metric: NDArray[np.int64]  # [pair]
    kernel: Floats  # [domain, domain]

    def covariance(self, logs: Floats, rows: NDArray[Any], columns: NDArray[Any]) -> Floats:
        """Of the worths of some pairs and of others, by the logarithms of the three variances."""
        of_domain, of_pair, of_own = np.exp(logs)
        similar = self.kernel[np.ix_(self.domain[rows], self.domain[columns])]
        same_metric = self.metric[rows][:, None] == self.metric[columns]
        same = same_metric & (self.domain[rows][:, None] == self.domain[columns])
        slopes = SLOPE_SPREAD**2 * self.inputs[rows] @ self.inputs[columns].T
        alike = similar * (of_domain + of_pair * same_metric)
        return np.asarray(slopes + alike + of_own * (same & self.own[rows][:, None]))


def _likeliest(pairs: _Pairs, y: Floats, noise: Floats) -> Floats:
    """The logarithms of the variances, of largest likelihood; a wide prior keeps them from 0."""
    rows = np.arange(len(y))
    if len(y) > MOST_PAIRS:
        rows = np.sort(np.random.default_rng(0).choice(len(y), MOST_PAIRS, replace=False))

    def cost(logs: Floats) -> float:
        root = np.linalg.cholesky(pairs.covariance(logs, rows, rows) + np.diag(noise[rows]))
        z = solve_triangular(root, y[rows], lower=True)
        unlikely = (((logs - LOG_VARIANCE) / 2) ** 2).sum()
        return float(np.log(np.diag(root)).sum() + z @ z / 2 + unlikely / 2)

    start = np.zeros(3)
    return np.asarray(minimize(cost, start, method="L-BFGS-B", bounds=[(-8, 4)] * 3).x)


def _widening(inverse: Floats, y: Floats, metrics: int) -> float:
    """How many times too narrow the predictions of domains left out are, and at least 1."""
    weights = inverse @ y
    squares = []
    for begin in range(0, len(y), metrics):
        part = slice(begin, begin + metrics)
        spread = np.linalg.inv(inverse[part, part])  # of a domain's worths, given all others
        squares.append((spread @ weights[part]) ** 2 / np.diag(spread))
    return max(float(np.sqrt(np.mean(squares))), 1.0)


def _inputs(
    worth: Floats,  # [metric, old domain]
    names: Sequence[str],
    measured: Sequence[str | None],
    features: DomainFeatures | None,
) -> Floats:
    """[metric, domain, input]: 1, own, how mutual worth is, how similar the domains are."""
    metric_of = {name: place for place, name in enumerate(measured) if name is not None}
    old = {name: place for place, name in enumerate(names[: worth.shape[1]])}
    described = frozenset(features.names) if features is not None else frozenset()
    own, mutual, similar = np.full((3, len(measured), len(names)), np.nan)
    for m, name in enumerate(measured):
        for j, domain in enumerate(names):
            own[m, j] = name == domain
            if name is None or name == domain:
                continue
            if domain in metric_of and name in old:
                mutual[m, j] = worth[metric_of[domain], old[name]]
            if features is not None and name in described and domain in described:
                similar[m, j] = features.similarity[features.place(name), features.place(domain)]
    return np.stack([np.ones(own.shape), own, _even(mutual), _even(similar)], axis=2)


def _even(values: Floats) -> Floats:
    """With mean 0 and spread 1 over what is known; what is not known is as the mean."""
    known = np.isfinite(values)
    if not known.any():
        return np.zeros(values.shape)
    spread = float(values[known].std())
    return np.where(known, (values - values[known].mean()) / (spread or 1.0), 0.0)


def _kernel(names: Sequence[str], features: DomainFeatures | None) -> Floats:
    if features is None:
        return np.eye(len(names))
    similarity = np.eye(len(names))
    known = [place for place, name in enumerate(names) if name in features.names]
    some = features.only([names[place] for place in known]).similarity
    similarity[np.ix_(known, known)] = (some + some.T) / 2
    values, vectors = np.linalg.eigh(similarity)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.sqrt(np.maximum(np.diag(positive), 1e-9))
    return np.asarray(positive / scale[:, None] / scale)
