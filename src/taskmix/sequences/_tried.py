"""What was tried, with intervals, and what was chosen."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from taskmix.numerics import Interval, mean_interval
from taskmix.sequences._generator import Floats, Generator
from taskmix.sequences._own_chains import OwnStrengths
from taskmix.sequences._own_generators import AdaptedStrengths


@dataclass(frozen=True, eq=False)
class TriedMixture:
    """One mixture on sequences that were left out."""

    generator: Generator
    generators: int
    own: bool | OwnStrengths | AdaptedStrengths
    scores: Floats  # [sequence], log-likelihoods
    symbols: int  # observations of all of them
    behind: Interval | None = None  # the chosen one's gain, for a sequence; None for that one

    @property
    def name(self) -> str:
        """In words."""
        shared = "1 generator" if self.generators == 1 else f"{self.generators} generators"
        own = "nothing of its own" if self.own is False else "own part"
        return f"{generator_words(self.generator)}, {shared}, {own}"

    @property
    def log_likelihood(self) -> float:
        """Of an observation."""
        return float(self.scores.sum() / self.symbols)

    def to_json(self) -> dict[str, object]:
        """As it is written."""
        behind = self.behind
        return {
            "mixture": self.name,
            "log_likelihood": self.log_likelihood,
            "behind": None
            if behind is None
            else {"value": behind.mean, "low": behind.low, "high": behind.high, "n": behind.n},
        }


@dataclass(frozen=True, eq=False)
class MixtureChoice:
    """What was tried, in this order, and what was chosen."""

    tried: tuple[TriedMixture, ...]
    best: TriedMixture
    refused: tuple[str, ...] = ()  # kinds that could not be fitted, and why
    spent: bool = False  # whether the budget ended it

    def words(self) -> tuple[str, ...]:
        """A line for each that was tried, and for what could not be."""
        lines = []
        for each in self.tried:
            gap = "chosen"
            if each.behind is not None:
                behind = each.behind
                gap = f"behind by {behind.mean:.3f} ({behind.low:+.3f} to {behind.high:+.3f}) a sequence"
            lines.append(f"{each.name}: {each.log_likelihood:.4f} an observation, {gap}")
        return (*lines, *(f"Left out: {words}" for words in self.refused))

    @property
    def interval(self) -> Interval:
        """Of the log-likelihood of a sequence under the best."""
        return mean_interval(self.best.scores)


def generator_words(generator: Any) -> str:
    """A kind with the options that are not its usual ones."""
    usual = type(generator)()
    said = [
        f"{each.name}={getattr(generator, each.name)!r}"
        for each in fields(generator)
        if getattr(generator, each.name) != getattr(usual, each.name)
    ]
    return f"{type(generator).__name__}({', '.join(said)})"
