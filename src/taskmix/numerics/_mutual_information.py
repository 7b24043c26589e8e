r"""Adjusted mutual information of two labellings of the same rows.

    Vinh, Epps and Bailey, "Information Theoretic Measures for Clusterings Comparison", JMLR 11, 2010,
    Eq. 24a for the expectation, and its normaliser max{H(U), H(V)}:

    AMI = (I(U, V) - E[I(U, V)]) / (max{H(U), H(V)} - E[I(U, V)])

The expectation is over all ways to permute one labelling. In it every pair of classes with sizes a and b
contributes the mean of (n/N) log(N n / (a b)) over the hypergeometric distribution of their overlap n.
Pairs of equal sizes contribute alike and are computed once. The distribution itself comes from the ratio
of neighbouring probabilities, summed from its mode and normalised, so there are no logarithms of huge
factorials to lose digits in; its tails are cut where nothing is left in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import ShapeError

# Beyond so many standard deviations and overlaps from the mode, probabilities are below the last bit of
# a float64; with fewer the sum would lose digits.
_REACH_DEVIATIONS = 13.0
_REACH_OVERLAPS = 90
_OVERLAPS_AT_ONCE = 2_000_000  # bounds the memory


def adjusted_mutual_information(first: ArrayLike, second: ArrayLike) -> float:
    """1 for the same classes under any names, about 0 for independent ones; [row] and [row].

    >>> adjusted_mutual_information([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    >>> round(adjusted_mutual_information([0, 0, 1, 1], [0, 1, 0, 1]), 3)
    -0.5
    """
    table = contingency(first, second)
    return adjusted_mutual_information_of(table)


def contingency(first: ArrayLike, second: ArrayLike) -> NDArray[np.int64]:
    """How many rows have each class of the one and of the other [class, class]."""
    one, other = np.asarray(first), np.asarray(second)
    if one.ndim != 1 or one.shape != other.shape or len(one) == 0:
        raise ShapeError(
            "The two labellings should have one label for each of the same rows, at least one. Found "
            f"shapes {one.shape} and {other.shape}."
        )
    (rows, row_count), (columns, column_count) = _codes(one), _codes(other)
    cells = np.bincount(rows * column_count + columns, minlength=row_count * column_count)
    return np.asarray(cells.reshape(row_count, column_count), dtype=np.int64)


def adjusted_mutual_information_of(table: NDArray[np.int64]) -> float:
    """The same of a contingency table without empty rows or columns."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    total = int(rows.sum())
    # One class each, or only classes of one row each: nothing can differ.
    if table.shape == (1, 1) or table.shape == (total, total):
        return 1.0
    information = _mutual_information(table, rows, columns, total)
    expected = expected_mutual_information(rows, columns)
    normaliser = max(_entropy(rows, total), _entropy(columns, total))
    below = normaliser - expected
    below = min(below, -np.finfo(float).eps) if below < 0 else max(below, np.finfo(float).eps)
    return float((information - expected) / below)  # the equation at the top of this file


def expected_mutual_information(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> float:
    """E[I] over all ways to permute a labelling, by the sizes of the classes of the two.

    >>> round(expected_mutual_information(np.array([1, 1]), np.array([1, 1])), 4)  # all of log 2
    0.6931
    """
    total = int(rows.sum())
    sizes, times = np.unique(rows, return_counts=True)
    others, other_times = np.unique(columns, return_counts=True)
    a = np.repeat(sizes, len(others)).astype(np.float64)
    b = np.tile(others, len(sizes)).astype(np.float64)
    weight = np.outer(times, other_times).ravel().astype(np.float64)
    low, high = _window(a, b, total)
    result, begin = 0.0, 0
    counts = (high - low + 1).astype(np.int64)
    ends = np.cumsum(counts)
    while begin < len(a):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _OVERLAPS_AT_ONCE, side="right")), begin + 1)
        part = slice(begin, end)
        result += float(
            weight[part] @ _pair_means(a[part], b[part], low[part], counts[part], total)
        )
        begin = end
    return result


def _window(
    a: NDArray[np.float64], b: NDArray[np.float64], total: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The overlaps that matter, the least and the most for each pair."""
    mean = a * b / total
    variance = mean * (total - a) * (total - b) / (total * max(total - 1, 1))
    reach = np.ceil(_REACH_DEVIATIONS * np.sqrt(variance)) + _REACH_OVERLAPS
    low = np.maximum(np.maximum(0.0, a + b - total), np.floor(mean) - reach)
    high = np.minimum(np.minimum(a, b), np.ceil(mean) + reach)
    return low, high


def _pair_means(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    low: NDArray[np.float64],
    counts: NDArray[np.int64],
    total: int,
) -> NDArray[np.float64]:
    """[pair], the mean of (n/N) log(N n / (a b)) over the overlaps n of two classes."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    pair = np.repeat(np.arange(len(a)), counts)
    overlap = low[pair] + (np.arange(len(pair)) - starts[pair])
    size, other = a[pair], b[pair]
    # log of p(n) / p(n - 1), and 0 for the first of each pair
    above = (size - overlap + 1) * (other - overlap + 1)
    below = overlap * (total - size - other + overlap)
    first = np.zeros(len(pair), dtype=np.bool_)
    first[starts] = True
    steps = np.zeros(len(pair))
    np.log(np.divide(above, below, where=~first, out=np.ones(len(pair))), out=steps)
    logs = np.cumsum(steps)
    logs -= logs[starts][pair]
    probability = np.exp(logs - np.maximum.reduceat(logs, starts)[pair])
    gain = np.zeros(len(pair))
    there = overlap > 0
    gain[there] = overlap[there] / total * np.log(total * overlap[there] / (size * other)[there])
    return np.asarray(
        np.add.reduceat(probability * gain, starts) / np.add.reduceat(probability, starts)
    )


def _mutual_information(
    table: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64], total: int
) -> float:
    i, j = np.nonzero(table)
    joint = table[i, j].astype(np.float64)
    sizes = rows[i].astype(np.float64) * columns[j]
    return float(np.sum(joint / total * np.log(joint * total / sizes)))


def _entropy(counts: NDArray[np.int64], total: int) -> float:
    shares = counts / total
    return float(-np.sum(shares * np.log(shares)))


def _codes(labels: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Labels as 0, 1, ... without gaps, and how many there are."""
    if labels.dtype.kind in "iu":
        lowest, highest = int(labels.min()), int(labels.max())
        if highest - lowest <= 4 * len(labels) + 1000:  # counting is faster than sorting
            shifted = labels.astype(np.int64) - lowest
            there = np.bincount(shifted, minlength=highest - lowest + 1) > 0
            if there.all():
                return shifted, len(there)
            return (np.cumsum(there) - 1)[shifted], int(there.sum())
    if labels.dtype.kind in "OUS":
        import pyarrow as pa

        encoded = pa.array(labels.astype(str) if labels.dtype.kind == "O" else labels)
        indices = encoded.dictionary_encode()
        return np.asarray(indices.indices, dtype=np.int64), len(indices.dictionary)
    distinct, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64), len(distinct)
