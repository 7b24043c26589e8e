"""Features of domains by a pretrained encoder: the mean of the vectors of some texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._domains._features import DomainFeatures
from taskmix.tasks import FeatureEncoding

TEXTS = 64  # of a domain; the mean of so many is known to about an eighth of their spread


def encoder_features(
    texts: Mapping[str, Sequence[str]], encoder: str, *, count: int = TEXTS
) -> DomainFeatures:
    """Domains by the means of an encoder's vectors, of texts from all over each domain.

    `encoder` is a folder or the name of a pretrained model, which stays as it is (extra `text`).

    >>> encoder_features({"a": ["good"], "b": ["1 + 1"]}, "my-encoder").names  # doctest: +SKIP
    ('a', 'b')
    """
    chosen: list[str] = []
    counts: list[int] = []
    for name, some in texts.items():
        if not some:
            raise InputError(
                f"A domain should have some text to be described by. Found none for {name!r}."
            )
        places = np.unique(np.linspace(0, len(some) - 1, min(count, len(some))).astype(int))
        chosen += [some[place] for place in places]
        counts.append(len(places))
    vectors = (
        FeatureEncoding(path=encoder).reader().read_texts(chosen, lambda _: None).float().numpy()
    )
    parts = np.split(vectors.astype(np.float64), np.cumsum(counts)[:-1])
    means = np.array([part.mean(axis=0) for part in parts])
    return DomainFeatures.of_vectors(
        tuple(texts), means, made_of=f"means of {count} vectors of an encoder"
    )
