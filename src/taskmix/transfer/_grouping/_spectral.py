r"""Groups by the leading eigenvectors of the gains.

If $Z$ [task, group] says who is where, the worth is $\mathrm{tr}(Z^\top A Z)/2$. Without the demand
that $Z$ be zeros and ones its best c columns span the leading eigenvectors of A, so tasks of one
group lie near each other among the rows of these; k-means finds them there, groups that are too
large give tasks away, and moves and exchanges improve the result. Every number of groups the limits
allow is tried.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.transfer._grouping._worth import Grouping, GroupLimits, as_gains, improve_by_moves


def group_spectrally(
    gains: ArrayLike, limits: GroupLimits | None = None, *, generator: np.random.Generator
) -> Grouping:
    """Spectral grouping of `gains` [target, source]; the generator starts k-means.

    >>> gains = np.kron(np.eye(2), np.ones((2, 2))) - 0.1  # two pairs, each harmed a little by the other
    >>> group_spectrally(gains, generator=np.random.default_rng(0)).groups
    ((0, 1), (2, 3))
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    square, bounds = as_gains(gains), limits or GroupLimits()
    count = len(square)
    largest, most = bounds.resolved(count)
    both = square + square.T
    values, vectors = np.linalg.eigh(both)
    leading = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    best: Grouping | None = None
    for number in range(-(-count // largest), most + 1):
        model = KMeans(number, n_init=4, random_state=int(generator.integers(2**31)))
        with warnings.catch_warnings():
            # Fewer places than groups only means that some tasks are alike.
            warnings.simplefilter("ignore", ConvergenceWarning)
            label = model.fit_predict(leading[:, :number])
        groups = _within_largest(
            both, [list(np.flatnonzero(label == one)) for one in range(number)], largest
        )
        found = improve_by_moves(square, groups, bounds)
        if best is None or found.value > best.value:
            best = found
    assert best is not None
    return best


def _within_largest(
    both: NDArray[np.float64], groups: list[list[int]], largest: int
) -> list[list[int]]:
    """Tasks that a full group holds least go where they are welcome and there is room."""
    for group in groups:
        while len(group) > largest:
            task = min(group, key=lambda one: float(both[one, group].sum()))
            group.remove(task)
            room = [other for other in groups if other is not group and len(other) < largest]
            max(room, key=lambda other: float(both[task, other].sum())).append(task)
    return [group for group in groups if group]
