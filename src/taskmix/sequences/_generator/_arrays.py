"""Sums over sequences that lie end to end, and logarithms of probabilities that may be zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._generator._contract import Floats
from taskmix.sequences._observed import Sequences


def prefix_rows(sequences: Sequences) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the prefixes of each sequence begin among all [sequence + 1], and, for each prefix that is
    not empty, its row [observation]."""
    starts = sequences.starts + np.arange(len(sequences.starts))
    rows = np.arange(len(sequences.values)) + 1
    return starts, rows + np.repeat(np.arange(len(sequences)), sequences.lengths)


def running_totals(values: Floats, sequences: Sequences) -> Floats:
    """[prefix, ...], sums over the observations [observation, ...] of each prefix.

    >>> running_totals(np.array([1.0, 2.0, 5.0]), flatten_sequences([[0, 0], [0]]))
    array([0., 1., 3., 0., 5.])
    """
    starts, rows = prefix_rows(sequences)
    spread = np.zeros((starts[-1], *values.shape[1:]))
    spread[rows] = values
    total = np.cumsum(spread, axis=0)
    first = starts[:-1]
    return np.asarray(total - np.repeat(total[first], np.diff(starts), axis=0))


def sums_by_sequence(values: Floats, sequences: Sequences) -> Floats:
    """[sequence, ...], sums over the observations of each sequence, none of which is empty.

    >>> sums_by_sequence(np.array([1.0, 2.0, 5.0]), flatten_sequences([[0, 0], [0]]))
    array([3., 5.])
    """
    return np.asarray(np.add.reduceat(values, sequences.starts[:-1], axis=0))


def normalised(counts: Floats, otherwise: Floats) -> Floats:
    """Shares along the last axis; `otherwise` where there is nothing to share out."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), otherwise)


def safe_log(values: Floats) -> Floats:
    """Logarithms; minus infinity of zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def weighted_log(weights: Floats | float, values: Floats) -> Floats:
    """weights · log(values), where a weight of zero counts for nothing whatever the value."""
    counting = np.broadcast_to(np.asarray(weights) > 0, values.shape)
    return np.asarray(weights * safe_log(np.where(counting, values, 1.0)))
