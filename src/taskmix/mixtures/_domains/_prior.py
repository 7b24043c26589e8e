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

import numpy as np
from scipy.optimize import minimize

from taskmix.mixtures._domains._features import DomainFeatures
from taskmix.mixtures._domains._worth import HEAD, Worths
from taskmix.mixtures._table import Floats

SLOPE_SPREAD = 5.0  # of beta: log worths lie within about ten of each other
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
    fits = worths.fits
    old, metrics = len(domains), len(fits)
    worth = np.array([fit.log_worth for fit in fits])  # [metric, old]
    worth = (worth - worth.mean(axis=1, keepdims=True)) * old / max(old - 1, 1)
    doubt = np.array([np.diag(fit.covariance)[HEAD:] for fit in fits])
    own = np.array([[name == domain for domain in names] for name in measured])
    inputs = _inputs(worth, names, measured, own, features)  # [metric, domain, input]
    kernel = _kernel(names, features)
    # Pairs are [domain, metric], so that those of a domain stand together.
    pairs_x = inputs.transpose(1, 0, 2).reshape(len(names) * metrics, -1)
    pairs_own = own.T.ravel().astype(float)
    taught = np.where(own[:, :old] & np.isfinite(worths.own)[:, None], worths.own[:, None], worth)
    y, noise = taught.T.ravel(), doubt.T.ravel()
    known = old * metrics
    which = np.repeat(np.arange(len(names)), metrics)
    metric = np.tile(np.arange(metrics), len(names))

    def covariance(logs: Floats, rows: Floats, columns: Floats) -> Floats:
        of_domain, of_pair, of_own = np.exp(logs)
        similar = kernel[np.ix_(which[rows], which[columns])]
        same = metric[rows][:, None] == metric[columns]
        alike = similar * (of_domain + of_pair * same)
        both_own = pairs_own[rows][:, None] * pairs_own[columns]
        slopes = SLOPE_SPREAD**2 * pairs_x[rows] @ pairs_x[columns].T
        return np.asarray(
            slopes
            + alike
            + of_own * both_own * np.eye(len(names))[np.ix_(which[rows], which[columns])]
        )

    def cost(logs: Floats, rows: Floats) -> float:
        whole = covariance(logs, rows, rows) + np.diag(noise[rows] + 1e-6)
        root = np.linalg.cholesky(whole)
        z = np.linalg.solve(root, y[rows])
        return float(np.log(np.diag(root)).sum() + z @ z / 2 + (((logs + 0.5) / 2) ** 2).sum() / 2)

    rows = np.arange(known)
    if known > MOST_PAIRS:
        rows = np.sort(np.random.default_rng(0).choice(known, MOST_PAIRS, replace=False))
    logs = minimize(
        lambda each: cost(each, rows), np.zeros(3), method="L-BFGS-B", bounds=[(-8, 4)] * 3
    ).x
    here, there = np.arange(known), np.arange(known, len(which))
    inverse = np.linalg.inv(covariance(logs, here, here) + np.diag(noise + 1e-6))
    across = covariance(logs, there, here)
    mean = across @ inverse @ y
    spread = covariance(logs, there, there) - across @ inverse @ across.T
    widened = _widening(inverse, y, metrics)
    return WorthPrior(mean.reshape(len(new), metrics), spread * widened**2, widened)


def _widening(inverse: Floats, y: Floats, metrics: int) -> float:
    """How many times too narrow the predictions of domains left out are, and at least 1."""
    weights = inverse @ y
    squares = []
    for begin in range(0, len(y), metrics):
        part = slice(begin, begin + metrics)
        spread = np.linalg.inv(inverse[part, part])  # of a domain's worths, given all others
        squares.append((spread @ weights[part]) ** 2 / np.diag(spread))
    return max(float(np.sqrt(np.mean(squares))), 1.0)


def _inputs(worth, names, measured, own, features):
    count = len(names)
    metric_of = {name: place for place, name in enumerate(measured) if name is not None}
    place_of = {name: place for place, name in enumerate(names)}
    mutual, similar = np.full(own.shape, np.nan), np.full(own.shape, np.nan)
    for m, name in enumerate(measured):
        for j, domain in enumerate(names):
            if name is None or name == domain:
                continue
            if domain in metric_of and place_of.get(name, count) < worth.shape[1]:
                mutual[m, j] = worth[metric_of[domain], place_of[name]]
            if features is not None and name in features.names and domain in features.names:
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
