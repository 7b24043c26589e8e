r"""A forecast over more domains than any run had: the old forecast, and a prior for the new part.

A mixture $w$ with a share $w_n$ of a new domain is first read as an old mixture in which that share went
to the new domain's neighbours; the old forecast says what comes of it. Then what the
new domain's own worth changes is added, by the law of effective data of `_law`:

$$L(w) = \hat L(w_{near}) + f(\sum_j s_j w_j + s_n w_n) - f(\sum_j s_j w_{near, j})$$

$s_n$ is drawn from the prior of `_prior`, once for each of the equally likely laws. Where $w_n = 0$ both
changes vanish, and the forecast is the old one. A domain that all runs had the same share of is
treated the same way: its worth is unknown, and the forecast is the old one at that share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._domains._features import DomainFeatures
from taskmix.mixtures._domains._law import HEAD, worth_law
from taskmix.mixtures._domains._measured import measured_domains
from taskmix.mixtures._domains._prior import WorthPrior, worth_prior
from taskmix.mixtures._domains._worth import Worths, fit_worths
from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._table import Floats, MixtureTable

ROUNDED = 1e-9  # shares that differ less are the same
LAWS = 256  # equally likely ones that quantiles are taken of


def forecast_with_new_domain(
    forecast: Forecast,
    features: DomainFeatures | None = None,
    *,
    new: Sequence[str] | None = None,
    measured: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Forecast:
    """The forecast over more domains: wide along the new ones, and as it was without them.

    New are the domains of `features` that the forecast does not have and those that never varied in
    its table, or the ones named in `new`. What they may be worth is learned from the worths
    of the known ones and the similarities in `features`, and from the metric that bears the new domain's
    name, if there is one (`measured` says which metric is of which domain where names do not).

    >>> shares = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    >>> table = MixtureTable(
    ...     domains=("a", "b", "c"), metrics=("loss",), runs=tuple(map(str, range(40))), shares=shares,
    ...     values=3 - np.log(0.1 + shares @ np.array([[1.0], [0.5], [0.2]])),
    ... )
    >>> wider = forecast_with_new_domain(forecast_mixtures(table), new=["d"])
    >>> wider.table.domains
    ('a', 'b', 'c', 'd')
    >>> low, high = wider.interval(np.array([[0.5, 0.5, 0.0, 0.0], [0.3, 0.3, 0.0, 0.4]]))
    >>> bool((high - low)[1] > 2 * (high - low)[0])
    True
    """
    table = forecast.table
    constant = [
        name
        for place, name in enumerate(table.domains)
        if np.ptp(table.shares[:, place]) <= ROUNDED
    ]
    if new is None:
        described = features.names if features is not None else ()
        new = [*constant, *(name for name in described if name not in table.domains)]
    _check_new(table, constant, new, features)
    return widen(forecast, features, tuple(new), measured, seed) if new else forecast


def widen(
    forecast: Forecast,
    features: DomainFeatures | None,
    new: tuple[str, ...],
    measured: Mapping[str, str] | None,
    seed: int,
    worths: Worths | None = None,  # of the known domains, where they were fitted before
) -> NewDomainForecast:
    """The forecast with new domains, which were checked."""
    table = forecast.table
    known = tuple(name for name in table.domains if name not in new)
    names = (*table.domains, *(name for name in new if name not in table.domains))
    measures = measured_domains(table.metrics, names, measured)
    worths = worths or fit_worths(over_domains(table, known), measures)
    prior = worth_prior(worths, known, new, measures, features)
    return NewDomainForecast(forecast, names, new, worths, prior, features, seed)


class NewDomainForecast:
    """A `Forecast`; made by `forecast_with_new_domain`."""

    def __init__(
        self,
        forecast: Forecast,
        names: tuple[str, ...],
        new: tuple[str, ...],
        worths: Worths,
        prior: WorthPrior,
        features: DomainFeatures | None,
        seed: int,
    ) -> None:
        old = forecast.table
        self.table = over_domains(old, names)
        self.prior = prior
        self.new = new
        self._forecast = forecast
        self._new = np.array([names.index(name) for name in new])
        self._known = np.array([place for place, name in enumerate(names) if name not in new])
        self._old = np.array([names.index(name) for name in old.domains])
        self._usual = self.table.shares[:, self._new].mean(axis=0)  # 0, or what all runs had
        known = tuple(names[place] for place in self._known)
        self._near = _neighbour_mixtures(old, known, new, features)  # [new, known]
        random = np.random.default_rng(seed)
        self._theta = np.stack([fit.sample(LAWS, random) for fit in worths.fits], axis=1)
        self._worth = np.exp(prior.sample(LAWS, random))  # [law, new, metric]
        self._signs = old.signs

    def predict(self, shares: Floats) -> Floats:
        near = self._as_old(shares)
        return np.asarray(self._forecast.predict(near) + self._changes(shares, near).mean(axis=0))

    def draws(self, shares: Floats) -> Floats:
        near = self._as_old(shares)
        laws = self._forecast.draws(near)
        return np.asarray(laws + self._changes(shares, near)[np.arange(len(laws)) % LAWS])

    def noise(self, shares: Floats) -> Floats:
        return self._forecast.noise(self._as_old(shares))

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        near = self._as_old(shares)
        low, high = self._forecast.interval(near, level)
        middle = self._forecast.predict(near)
        changes = self._changes(shares, near)
        outside = (1 - level) / 2
        below, centre, above = np.quantile(changes, [outside, 0.5, 1 - outside], axis=0)
        # What the old forecast leaves open and what the new worth does are independent.
        return (
            middle + centre - np.hypot(middle - low, centre - below),
            middle + centre + np.hypot(high - middle, above - centre),
        )

    def _more(self, shares: Floats) -> Floats:
        """[mixture, new], shares beyond the usual."""
        more = shares[:, self._new] - self._usual
        return np.where(np.abs(more) <= ROUNDED, 0.0, more)

    def _as_old(self, shares: Floats) -> Floats:
        """[mixture, old domain]: shares of new domains, beyond the usual, go to their neighbours."""
        more = self._more(shares)
        whole = np.array(shares, dtype=np.float64)
        whole[:, self._new] = self._usual
        known = np.maximum(shares[:, self._known] + more @ self._near, 0.0)
        total = shares.sum(axis=1) - self._usual.sum()
        scale = np.maximum(total, 0.0) / np.maximum(known.sum(axis=1), 1e-300)
        whole[:, self._known] = np.where(
            (more != 0).any(axis=1)[:, None], known * scale[:, None], shares[:, self._known]
        )
        return whole[:, self._old]

    def _changes(self, shares: Floats, near: Floats) -> Floats:
        """[law, mixture, metric]: what the new domains' worth changes against their neighbours'."""
        back = np.zeros(shares.shape)
        back[:, self._old] = near
        worth = np.exp(self._theta[:, :, HEAD:])  # [law, metric, known]
        more = self._more(shares)
        with_new = np.einsum("lmk,nk->lmn", worth, shares[:, self._known])
        with_new = np.maximum(with_new + np.einsum("lim,ni->lmn", self._worth, more), 0.0)
        without = np.einsum("lmk,nk->lmn", worth, back[:, self._known])
        change = worth_law(self._theta, with_new) - worth_law(self._theta, without)
        moved = (more != 0).any(axis=1)  # else 0 exactly, whatever the sums above were rounded to
        return np.asarray(change.transpose(0, 2, 1) * self._signs * moved[:, None])


def over_domains(table: MixtureTable, names: Sequence[str]) -> MixtureTable:
    """The table with these domains, in this order: others are left out, and new ones have share 0."""
    shares = np.zeros((len(table), len(names)))
    for place, name in enumerate(names):
        if name in table.domains:
            shares[:, place] = table.shares[:, table.domains.index(name)]
    return replace(table, domains=tuple(names), shares=shares)


def _neighbour_mixtures(
    table: MixtureTable, known: Sequence[str], new: Sequence[str], features: DomainFeatures | None
) -> Floats:
    """[new, known], rows that sum to 1: by similarity, or as the mean run where nothing is known."""
    places = [table.domains.index(name) for name in known]
    usual = table.shares[:, places].mean(axis=0)
    mixtures = np.tile(usual / usual.sum(), (len(new), 1))
    for row, name in enumerate(new):
        if features is not None and name in features.names:
            near = dict(features.neighbours(name))
            weights = np.array([max(near.get(other, 0.0), 0.0) ** 2 for other in known])
            if weights.sum() > 0:
                mixtures[row] = weights / weights.sum()
    return mixtures


def _check_new(
    table: MixtureTable,
    constant: Sequence[str],
    new: Sequence[str],
    features: DomainFeatures | None,
) -> None:
    varied = [name for name in new if name in table.domains and name not in constant]
    if varied:
        raise InputError(
            f"A new domain should be one that no run varied. Found {varied[0]!r}, whose share differs "
            "between runs of the table. What it is worth is learned from them: leave it out."
        )
    if len(table.domains) - sum(name in table.domains for name in new) < 2:
        raise InputError(
            "A new domain should have at least two known ones to learn from. Found "
            f"{len(table.domains)} domains in the table, and {len(new)} without evidence. Add runs."
        )
    if features is not None:
        for name in new:
            features.place(name)
