"""What determines a mixture besides its data, and the name that follows from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from taskmix.records import specification_hash
from taskmix.sequences._comparing import find_symbols
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._generator import Generator, check_whole

# Of what names a model's file: another number, and every mixture is learned again. 1: version 0.1.
_FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class MixtureRecipe:
    """The kind of generators, how many of them, and how they are learned.

    >>> recipe = MixtureRecipe(generator=Markov(), generators=4)
    >>> recipe.name("a hash of the data") == MixtureRecipe(generator=Markov()).name("a hash of the data")
    False
    """

    generator: Generator
    generators: int | None = 8  # None: chosen by held-out likelihood
    iterations: int = 100
    restarts: int = 3
    annealing: int = 0
    batch_size: int | None = None  # with one, stochastic EM
    seed: int = 0

    def __post_init__(self) -> None:
        if self.generators is not None:
            check_whole(generators=self.generators)

    def name(self, data: str) -> str:
        """Sixteen hexadecimal digits for what is learned from data of this name."""
        return specification_hash(
            {
                "format": _FORMAT,
                "data": data,
                "generator": self.generator,
                "generators": "auto" if self.generators is None else str(self.generators),
                "iterations": self.iterations,
                "restarts": self.restarts,
                "annealing": self.annealing,
                "batch_size": self.batch_size,
                "seed": self.seed,
            }
        )

    def model(self, sequences: Sequence[Any], *, workers: int = 1) -> SequenceMixture:
        """A mixture that has learned nothing and knows the symbols of all these sequences."""
        model = SequenceMixture(
            self.generator,
            self.generators or 1,  # until it is chosen
            max_iter=self.iterations,
            n_init=self.restarts,
            annealing=self.annealing,
            batch_size=self.batch_size,
            n_jobs=workers,
            random_state=self.seed,
        )
        model.set_params(symbols=find_symbols(sequences, model))
        return model
