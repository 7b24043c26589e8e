"""Allowed mixtures of every kind: around natural shares and far from them, even and sparse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._optimum import FeasibleShares
from taskmix.mixtures._table import Floats

# Per domain. Mixtures of few domains tell more about each: designs drawn with (0.3, 1, 3) leave 1.5 to 3
# times the regret (effective-data laws of 6 and 17 domains, two to four runs a domain).
CONCENTRATIONS = (0.15, 0.5)
TEMPERS = (1.0, 0.5, 0.0)  # natural shares as they are, flattened by a root, not at all


def crowd_of(
    feasible: FeasibleShares, center: Floats, count: int, random: np.random.Generator
) -> Floats:
    """`count` allowed mixtures [mixture, domain] from Dirichlets around `center` [domain] and evenly.

    Where limits leave little room, drawing until a mixture keeps them takes forever (with seven domains
    already, Ax#3867). Here every draw counts: it fills the room above the lower bounds, and goes to the
    nearest allowed mixture if it is not one.
    """
    kinds = [(each, temper) for temper in TEMPERS for each in CONCENTRATIONS]
    even = count // 4
    places = np.arange(count - even) % len(kinds)
    bases = np.maximum(center, 1e-3 / len(center)) ** np.array([[kind[1]] for kind in kinds])
    bases = bases / bases.sum(axis=1, keepdims=True) * len(center)
    weights = np.array([[kind[0]] for kind in kinds]) * bases  # [kind, domain]
    parts = np.maximum(random.standard_gamma(weights[places]), 1e-12)
    parts /= parts.sum(axis=1, keepdims=True)
    room = max(1.0 - float(feasible.lower.sum()), 0.0)
    drawn = feasible.project(feasible.lower + room * parts)
    return np.concatenate([drawn, feasible.sample(even, random)])


def center_of(
    feasible: FeasibleShares,
    domains: Sequence[str],
    prior: Mapping[str, float] | Sequence[float] | Floats | None,
) -> Floats:
    """The allowed mixture [domain] nearest to natural shares, or to even ones where none are given."""
    if prior is None:
        return np.asarray(feasible.project(np.full((1, len(domains)), 1 / len(domains)))[0])
    if isinstance(prior, Mapping):
        unknown = [name for name in prior if name not in domains]
        missing = [name for name in domains if name not in prior]
        if unknown or missing:
            raise InputError(
                "`prior` should have a natural share, or a number of tokens, for each domain. Found "
                + (f"`{unknown[0]}`, which is none." if unknown else f"none for `{missing[0]}`."),
                arguments=("prior",),
            )
        prior = [float(prior[name]) for name in domains]
    natural = np.asarray(prior, dtype=np.float64)
    if natural.shape != (len(domains),):
        raise InputError(
            f"`prior` should have a number for each of the {len(domains)} domains. Found the shape "
            f"{natural.shape}.",
            arguments=("prior",),
        )
    if not np.isfinite(natural).all() or (natural < 0).any() or natural.sum() <= 0:
        raise InputError(
            "`prior` should have natural shares, or numbers of tokens, none below 0 and some above. "
            f"Found {natural.tolist()[:8]}.",
            arguments=("prior",),
        )
    return np.asarray(feasible.project((natural / natural.sum())[None])[0])


def random_of(seed: int, purpose: int) -> np.random.Generator:
    """A generator of its own for each purpose, so that asking for more of one changes no other."""
    return np.random.default_rng([seed, purpose])
