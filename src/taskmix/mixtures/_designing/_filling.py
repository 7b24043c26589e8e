r"""Mixtures that fill a space evenly, in an order whose every beginning does so too.

The chosen mixtures resemble a crowd of allowed ones as closely as so few can: each step adds the one
that most lowers the energy distance between the chosen and the crowd.

    Székely and Rizzo, "Energy statistics", Journal of Statistical Planning and Inference 2013, Eq. 2.
    Mak and Joseph, "Support points", Annals of Statistics 2018, Eq. 3.
    Chen, Welling and Smola, "Super-samples from kernel herding", UAI 2010, for the greedy order.

A design that keeps its runs as far apart as it can (maximin) has nearly all of them on the border of
the simplex, where the best mixture seldom lies; one that resembles a crowd has them where the crowd is.

Distances are between roots of shares (Hellinger's): 0.01 and 0.04 of a domain are as far apart as 0.49
and 0.64, because the first part of a domain teaches the most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._table import Floats


def distances(one: Floats, other: Floats) -> Floats:
    """[mixture, other mixture], between roots of shares; at most the root of 2."""
    roots, others = np.sqrt(np.maximum(one, 0.0)), np.sqrt(np.maximum(other, 0.0))
    squares = (roots**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * roots @ others.T
    found: Floats = np.sqrt(np.maximum(squares, 0.0))
    return found


def order_by_filling(
    shares: Floats,  # [candidate, domain]
    crowd: Floats,  # [mixture, domain], what the chosen should resemble
    count: int,
    *,
    first: Sequence[int] = (),  # candidates that are chosen already
) -> NDArray[np.int64]:
    """The places of `count` candidates, `first` included, the most telling first; none twice."""
    to_crowd = distances(shares, crowd).mean(axis=1)
    to_chosen = np.zeros(len(shares))
    is_free = np.ones(len(shares), dtype=bool)
    chosen: list[int] = []
    for number in range(min(count, len(shares))):
        if number < len(first):
            place = first[number]
        else:
            energy = to_crowd - to_chosen / (number + 1)
            place = int(np.argmin(np.where(is_free, energy, np.inf)))
        chosen.append(place)
        is_free[place] = False
        to_chosen += distances(shares, shares[place : place + 1])[:, 0]
    return np.array(chosen, dtype=np.int64)
