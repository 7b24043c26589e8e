"""Which short runs of bytes a text has: hashed n-grams, as a distribution."""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._domains._byte_model import codes_of
from taskmix.mixtures._table import Floats

LONGEST = 4  # bytes
BUCKETS = 256  # for each length above 1; single bytes are not hashed
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hashing: 2**64 / golden ratio


def byte_distribution(text: bytes, *, longest: int = LONGEST, buckets: int = BUCKETS) -> Floats:
    """[256 + (longest - 1) * buckets]: n-grams of each length, which has 1/longest of it."""
    parts = []
    for length in range(1, longest + 1):
        codes = codes_of(text, length - 1)[length - 1 :].astype(np.uint64)
        if length == 1:
            counts = np.bincount(codes.astype(np.int64), minlength=256)
        else:  # the upper half of the product depends on all bytes
            places = ((codes * MULTIPLIER) >> np.uint64(32)) % np.uint64(buckets)
            counts = np.bincount(places.astype(np.int64), minlength=buckets)
        parts.append(counts / max(int(counts.sum()), 1) / longest)
    return np.concatenate(parts)
