"""What determines a mixture besides its data, and the name that follows from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from taskmix.records import specification_hash
from taskmix.sequences._comparing import BUDGET, find_symbols
from taskmix.sequences._counted import Markov
from taskmix.sequences._estimator import SequenceMixture
from taskmix.sequences._generator import Generator, check_whole
from taskmix.sequences._normal import Gaussian

# Of what names a model's file: another number, and every mixture is learned again. 1: version 0.1.
_FORMAT = 4


@dataclass(frozen=True, kw_only=True)
class MixtureRecipe:
    """The kind of generators, how many of them, and how they are learned.

    >>> recipe = MixtureRecipe(generator=Markov(), generators=4)
    >>> recipe.name("a hash of the data") == MixtureRecipe(generator=Markov()).name("a hash of the data")
    False
    """

    generator: Generator | None = None  # None: the kind is chosen by held-out likelihood
    generators: int | None = None  # None: their number is
    own: bool = True  # whether tasks keep something of their own
    budget: int = BUDGET  # mixtures that are tried where something is to be chosen
    iterations: int = 100
    restarts: int = 3
    annealing: int = 0
    batch_size: int | None = None  # with one, stochastic EM
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(budget=self.budget)
        if self.generators is not None:
            check_whole(generators=self.generators)

    @property
    def chooses(self) -> bool:
        """Whether something is left to held-out likelihood."""
        return self.generator is None or self.generators is None

    def name(self, data: str) -> str:
        """Sixteen hexadecimal digits for what is learned from data of this name."""
        return specification_hash(
            {
                "format": _FORMAT,
                "data": data,
                "generator": "auto" if self.generator is None else self.generator,
                "generators": "auto" if self.generators is None else str(self.generators),
                "own": self.own,
                "budget": self.budget if self.chooses else None,
                "iterations": self.iterations,
                "restarts": self.restarts,
                "annealing": self.annealing,
                "batch_size": self.batch_size,
                "seed": self.seed,
            }
        )

    def model(
        self, sequences: Sequence[Any], *, vectors: bool = False, workers: int = 1
    ) -> SequenceMixture:
        """A mixture that has learned nothing and knows the symbols of all these sequences."""
        usual = Gaussian() if vectors else Markov()
        model = SequenceMixture(
            usual if self.generator is None else self.generator,  # until it is chosen
            self.generators or 1,
            own=self.own,
            max_iter=self.iterations,
            n_init=self.restarts,
            annealing=self.annealing,
            batch_size=self.batch_size,
            n_jobs=workers,
            random_state=self.seed,
        )
        model.set_params(symbols=find_symbols(sequences, model))
        return model
