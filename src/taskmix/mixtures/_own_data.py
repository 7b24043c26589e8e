r"""Own data: what a mixture of tasks gives, where each metric is the score of one of them.

    L_t = c_t + b_t · (1 + r_t d_t / a)^−a,    d_t = w_t + Σ_{j≠t} s_tj w_j,    log s_tj = κ + σ_j + δ_tj

A task learns most from its own batches, and a batch of another task is worth a part s of one (after
Hernandez et al., "Scaling Laws for Transfer", 2021). The power law of data has its start at d = 0: a
loss is no higher than that of a guess. A study has few runs, ten or twenty over as many tasks, so what
tasks have in common is learned from all of them: the exponent a, the rate r, how much a batch of others
is worth (κ), and which tasks are good for others (σ_j). What sets a task or a pair apart is shrunk.

How far tasks are apart, nobody knows before: it is taken to be little, some or much, and each has the
weight of its evidence (MacKay, "Bayesian Interpolation", 1992). All constants have normal priors, and
their posterior is taken as normal around the most likely ones (Laplace's approximation, with the slopes
of all values for the curvature). Its draws are equally likely laws. A metric that has not the name of a
domain learns from all domains as from others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import softmax
from scipy.stats import norm
from torch import Tensor

from taskmix.mixtures._table import Floats, MixtureTable

STEPS = 300  # of the search at most; most fits take fewer than 100
MOST_PAIRS = 1000  # of a metric and a domain: more would take minutes, and runs are too few to tell
NEAR = 1e-4  # of a constant, by which slopes are measured
APART = (0.1, 0.3, 1.0)  # how far tasks may be apart: parts of the deviations of those in `OF_ONE`

# Mean and deviation of each constant before anything is seen. Values have a deviation of 1, and data is
# counted in even shares.
PRIORS: Mapping[str, tuple[float, float]] = {
    "exponent": (0.0, 0.7),  # log a
    "others": (-2.0, 1.0),  # κ
    "rate": (0.5, 1.0),  # log r, over all metrics
    "fall": (0.0, 1.5),  # log b, over all metrics
    "noise": (-1.0, 1.0),  # its logarithm, over all metrics
    "source": (0.0, 0.5),  # σ, of each domain
    "pair": (0.0, 0.5),  # δ, of each metric and domain
    "own rate": (0.0, 0.7),  # of each metric, around that of all
    "own fall": (0.0, 0.7),
    "own noise": (0.0, 0.5),
    "level": (0.0, 3.0),  # of even shares
}
OF_ALL = ("exponent", "others", "rate", "fall", "noise")
OF_ONE = ("source", "pair", "own rate", "own fall")


@dataclass(frozen=True, eq=False)
class OwnDataForecast:
    """A `Forecast` by the law of own data."""

    table: MixtureTable
    spread: float  # of all values around the means of their metrics
    center: Floats  # [metric], as losses
    constants: Tensor  # [law, constant], the most likely ones for each of `APART`
    weights: Tensor  # [law], by their evidence
    drawn: Tensor  # [draw, constant]

    def predict(self, shares: Floats) -> Floats:
        """[mixture, metric], the mean of the most likely laws."""
        each = _losses(self.table, self.constants, _tensor(shares))
        return self._as_values(torch.einsum("l,lsm->sm", self.weights, each))

    def draws(self, shares: Floats) -> Floats:
        """[draw, mixture, metric]."""
        return self._as_values(_losses(self.table, self.drawn, _tensor(shares)))

    def noise(self, shares: Floats) -> Floats:
        """[mixture, metric], the same for all mixtures."""
        each = torch.exp(_log_noise(self.table, self.constants))
        noise = (self.weights @ each).numpy() * self.spread
        return np.tile(noise, (len(shares), 1))

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        """Normal, of the laws' spread and the noise of a run."""
        wide = float(norm.ppf(0.5 + level / 2))
        spread = wide * np.hypot(self.draws(shares).std(axis=0), self.noise(shares))
        middle = self.predict(shares)
        return middle - spread, middle + spread

    def _as_values(self, losses: Tensor) -> Floats:
        return np.asarray((losses.numpy() * self.spread + self.center) * self.table.signs)


def forecast_own_data(table: MixtureTable, *, draws: int = 64, seed: int = 0) -> OwnDataForecast:
    """The law fitted to runs of one size, whose metrics are called as the domains they are scores of.

    Metrics should be of one kind, such as accuracies or bits per byte: they are scaled together.

    >>> shares = np.array([[0.5, 0.5], [0.9, 0.1], [0.1, 0.9], [0.3, 0.7]])
    >>> table = MixtureTable(
    ...     domains=("a", "b"), metrics=("a", "b"), runs=tuple("uvwx"), shares=shares,
    ...     values=(1 + 4 * shares) ** -0.5,
    ... )
    >>> bool(abs(forecast_own_data(table).predict(np.array([[0.7, 0.3]]))[0, 0] - 3.8**-0.5) < 0.02)
    True
    """
    losses = table.values * table.signs
    known = np.isfinite(losses)
    center = np.where(known, losses, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    apart = np.where(known, losses - center, 0.0)
    spread = max(float(np.sqrt((apart**2).sum() / max(known.sum(), 1))), 1e-12)
    fits = [_fit(table, _tensor(apart / spread), _tensor(known), part) for part in APART]
    weights = softmax([fit.evidence for fit in fits])
    # Each law has as many draws as its weight says.
    owners = np.searchsorted(np.cumsum(weights), (np.arange(draws) + 0.5) / draws)
    generator = np.random.default_rng(seed)
    drawn = [
        fits[owner].draw(generator.standard_normal(len(fits[owner].constants)))
        for owner in np.minimum(owners, len(fits) - 1)
    ]
    return OwnDataForecast(
        table=table,
        spread=spread,
        center=center,
        constants=torch.stack([fit.constants for fit in fits]),
        weights=_tensor(weights),
        drawn=torch.stack(drawn),
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    """The law where tasks may be so far apart."""

    constants: Tensor  # the most likely ones, all in a row
    root: Tensor  # of the curvature of minus the log posterior there, lower triangular
    evidence: float  # the logarithm of how likely the values were before, up to what all fits share

    def draw(self, random: Floats) -> Tensor:
        moved: Tensor = torch.linalg.solve_triangular(
            self.root.T, _tensor(random)[:, None], upper=True
        )
        return self.constants + moved[:, 0]


def _fit(table: MixtureTable, values: Tensor, known: Tensor, part: float) -> _Fit:
    rows, sizes = _tensor(table.shares), _sizes(table)
    means = torch.cat([torch.full((n,), PRIORS[kind][0]) for kind, n in sizes.items()]).double()
    scales = {kind: PRIORS[kind][1] * (part if kind in OF_ONE else 1.0) for kind in sizes}
    deviations = torch.cat([torch.full((n,), scales[kind]) for kind, n in sizes.items()]).double()
    constants = means.clone()[None].requires_grad_(True)  # as one of several laws
    search = torch.optim.LBFGS(
        [constants], max_iter=STEPS, line_search_fn="strong_wolfe", history_size=20
    )

    def misfit() -> Tensor:
        noise = _log_noise(table, constants).expand_as(values)
        left = (values - _losses(table, constants, rows)[0]).square() * torch.exp(-2 * noise)
        found = (known * (0.5 * left + noise)).sum()
        return found + 0.5 * ((constants - means) / deviations).square().sum()

    def step() -> Tensor:
        search.zero_grad()
        found = misfit()
        found.backward()  # type: ignore[no-untyped-call]
        return found

    search.step(step)  # type: ignore[no-untyped-call]
    constants.requires_grad_(False)
    moved = NEAR * torch.eye(len(means), dtype=torch.float64)
    slopes = _losses(table, constants + moved, rows) - _losses(table, constants - moved, rows)
    weights = known.sqrt() * torch.exp(-_log_noise(table, constants))
    slopes = (weights * slopes / (2 * NEAR)).flatten(1)  # [constant, value]
    root = torch.linalg.cholesky(slopes @ slopes.T + torch.diag(deviations**-2))
    evidence = -misfit() - torch.log(torch.diagonal(root)).sum() - torch.log(deviations).sum()
    return _Fit(constants[0], root, float(evidence))


def _sizes(table: MixtureTable) -> dict[str, int]:
    """How many constants there are of each kind."""
    metrics, domains = len(table.metrics), len(table.domains)
    pairs = metrics * domains
    of_each = {"source": domains, "pair": pairs if pairs <= MOST_PAIRS else 0}
    return {kind: 1 if kind in OF_ALL else of_each.get(kind, metrics) for kind in PRIORS}


def _parts(table: MixtureTable, laws: Tensor) -> dict[str, Tensor]:
    """[law, constant] by kind."""
    sizes = _sizes(table)
    return dict(zip(sizes, torch.split(laws, list(sizes.values()), dim=1), strict=True))


def _log_noise(table: MixtureTable, laws: Tensor) -> Tensor:
    """[law, metric]"""
    parts = _parts(table, laws)
    return parts["noise"] + parts["own noise"]


def _losses(table: MixtureTable, laws: Tensor, shares: Tensor) -> Tensor:
    """[law, mixture, metric], of deviation 1."""
    parts = _parts(table, laws)
    metrics, domains = len(table.metrics), len(table.domains)
    log_worth = (parts["others"] + parts["source"])[:, None].expand(-1, metrics, -1)
    if parts["pair"].shape[1]:
        log_worth = log_worth + parts["pair"].reshape(-1, metrics, domains)
    own = torch.tensor([[metric == domain for domain in table.domains] for metric in table.metrics])
    worth = torch.where(own, 1.0, torch.exp(log_worth))  # [law, metric, domain]
    rate = torch.exp(parts["rate"] + parts["own rate"])[:, None]
    power = torch.exp(parts["exponent"])[:, None]

    def lack(data: Tensor) -> Tensor:
        return (1 + rate * data / power) ** -power

    # Beside even shares, so that the level does not depend on how steep the fall is.
    data = domains * torch.einsum("sd,lmd->lsm", shares, worth)
    fallen = lack(data) - lack(worth.sum(dim=2)[:, None])
    fall = torch.exp(parts["fall"] + parts["own fall"])[:, None]
    return parts["level"][:, None] + fall * fallen


def _tensor(values: np.ndarray) -> Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float64))
