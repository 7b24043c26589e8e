"""What domains are like, in numbers: vectors of features, and how much one tells of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._table import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class DomainFeatures:
    """Domains by name, each with a vector, and a similarity of each pair.

    `similarity[i, j]` is 1 for a domain and itself, and near 0 where a model of domain j knows
    nothing of domain i; it need not be the same both ways.

    >>> features = DomainFeatures.of_vectors(("a", "b", "c"), np.array([[0.0], [0.1], [5.0]]))
    >>> features.neighbours("a")[0][0]
    'b'
    """

    names: tuple[str, ...]
    vectors: Floats  # [domain, feature]
    similarity: Floats  # [domain, domain]
    made_of: str = "features that were given"

    def __post_init__(self) -> None:
        count = len(self.names)
        if self.vectors.ndim != 2 or len(self.vectors) != count:
            raise InputError(
                "Features of domains should have one row a domain. Found "
                f"{count} names and an array of the shape {self.vectors.shape}."
            )
        if self.similarity.shape != (count, count):
            raise InputError(
                f"A similarity of domains should have a row and a column for each of the {count} "
                f"domains. Found the shape {self.similarity.shape}."
            )
        if len(set(self.names)) < count:
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InputError(
                f"Features should have each domain once. Found {twice!r} twice. Keep one of the two."
            )
        for what, array in (("features", self.vectors), ("similarities", self.similarity)):
            wrong = ~np.isfinite(array)
            if wrong.any():
                name = self.names[int(np.flatnonzero(wrong.any(axis=1))[0])]
                raise InputError(
                    f"The {what} of domains should be finite numbers. Found another value for "
                    f"{name!r}. Fill it in, or leave the column out."
                )

    @classmethod
    def of_vectors(
        cls, names: Sequence[str], vectors: Floats, *, made_of: str = "features that were given"
    ) -> DomainFeatures:
        """Similar by how near the vectors are: a Gaussian of the distance, its width the median one.

        Each feature counts alike: it is divided by its standard deviation over the domains.
        """
        vectors = np.asarray(vectors, dtype=np.float64)
        spread = vectors.std(axis=0) if len(vectors) else np.ones(vectors.shape[1:])
        even = vectors / np.where(spread > 0, spread, 1.0)
        squares = ((even[:, None, :] - even[None, :, :]) ** 2).sum(axis=2)
        apart = squares[np.triu_indices(len(vectors), 1)]
        apart = apart[apart > 0]
        width = float(np.median(apart)) if len(apart) else 1.0
        return cls(
            names=tuple(names),
            vectors=vectors,
            similarity=np.exp(-squares / width),
            made_of=made_of,
        )

    def place(self, name: str) -> int:
        """The row of a domain."""
        if name not in self.names:
            raise InputError(
                f"Features should be there for every domain. Found none for {name!r}; there are "
                f"{', '.join(map(repr, self.names))}. Add a row for it."
            )
        return self.names.index(name)

    def only(self, names: Sequence[str]) -> DomainFeatures:
        """Some of the domains, in this order."""
        places = [self.place(name) for name in names]
        return replace(
            self,
            names=tuple(names),
            vectors=self.vectors[places],
            similarity=self.similarity[np.ix_(places, places)],
        )

    def neighbours(self, name: str) -> tuple[tuple[str, float], ...]:
        """The other domains, the most similar first, each with the mean similarity of both ways."""
        here = self.place(name)
        both = (self.similarity[here] + self.similarity[:, here]) / 2
        order = sorted(
            (place for place in range(len(self.names)) if place != here),
            key=lambda each: -both[each],
        )
        return tuple((self.names[place], float(both[place])) for place in order)
