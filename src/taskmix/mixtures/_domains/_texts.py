"""Features of domains from samples of their texts, without any pretrained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._domains._byte_counts import byte_distribution
from taskmix.mixtures._domains._byte_model import cross_entropies
from taskmix.mixtures._domains._features import DomainFeatures

SAMPLE_BYTES = 150_000  # of a domain; three times as many hardly change an order of similarity
PIECE_BYTES = 4096  # of a text, lest one long text stand for its domain
READ_PART = 4  # one piece in so many is kept from the model, and read by all models


def domain_features(
    texts: Mapping[str, Sequence[str]], *, sample_bytes: int = SAMPLE_BYTES
) -> DomainFeatures:
    """Features of domains, from some of their texts.

    The vector of a domain are the square roots of its distribution of hashed byte n-grams (1 to 4
    bytes), whose inner products are Bhattacharyya coefficients. `similarity[i, j]` is 2 to the minus
    excess bits: how many more bits a byte of domain i costs a small model of domain j than one of i.

    >>> texts = {"a": ["aaaa bbbb " * 50], "b": ["aaaa bbbb cccc " * 50], "c": ["12345 67890 " * 50]}
    >>> [name for name, _ in domain_features(texts).neighbours("a")]
    ['b', 'c']
    """
    learned, read = [], []
    for name, some in texts.items():
        pieces = _pieces(name, some, sample_bytes)
        kept = set(range(READ_PART - 1, len(pieces), READ_PART))
        learned.append(b"\n".join(each for n, each in enumerate(pieces) if n not in kept))
        read.append(b"\n".join(each for n, each in enumerate(pieces) if n in kept))
    bits = cross_entropies(learned, read)
    excess = np.maximum(bits - np.diag(bits)[:, None], 0.0)
    roots = [np.sqrt(byte_distribution(a + b"\n" + b)) for a, b in zip(learned, read, strict=True)]
    return DomainFeatures(
        names=tuple(texts),
        vectors=np.array(roots),
        similarity=np.exp2(-excess),
        made_of=f"bytes of {sample_bytes:,} a domain",
    )


def _pieces(name: str, texts: Sequence[str], sample_bytes: int) -> list[bytes]:
    """Pieces of texts from all over the domain, at most so many bytes together."""
    wanted = max(sample_bytes // PIECE_BYTES, READ_PART)
    step = max(len(texts) // wanted, 1)
    of_each = max(sample_bytes // max(len(texts), 1), PIECE_BYTES)
    found: list[bytes] = []
    left = sample_bytes
    # Every `step`-th text first, then those between, until there is enough.
    for text in (text for begin in range(step) for text in texts[begin::step]):
        data = text.encode(errors="replace")[: min(of_each, left)]
        found += [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
        left -= len(data)
        if left <= 0:
            break
    if len(found) >= READ_PART:
        return found
    whole = b"\n".join(found)  # little text: cut smaller
    if len(whole) < READ_PART:
        raise InputError(
            f"A domain should have some text to be described by. Found {len(whole)} bytes for "
            f"{name!r}. Give it more, or features of your own."
        )
    size = -(-len(whole) // READ_PART)
    return [whole[at : at + size] for at in range(0, len(whole), size)]
