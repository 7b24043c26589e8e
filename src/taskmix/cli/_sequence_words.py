"""Words on the command line that stand for sequence generators, their number and a prefix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskmix.errors import OptionError

if TYPE_CHECKING:
    from taskmix.sequences import Generator


@dataclass(frozen=True)
class GeneratorOptions:
    """What the command line says about generators; None is the generator's own default."""

    word: str | None
    order: int
    states: int
    components: int
    hidden: int
    smoothing: float | None
    diagonal: bool
    device: str


def make_generator(options: GeneratorOptions, *, vectors: bool) -> Generator:
    """The generator a word stands for, for the kind of sequences there are."""
    made = _vector_generators(options) if vectors else _symbol_generators(options)
    word = options.word or ("gaussian" if vectors else "markov")
    if word not in made:
        kind = "vectors" if vectors else "symbols"
        raise OptionError(
            f"`--generator` should be one of {', '.join(made)} for sequences of {kind}. Found {word!r}."
        )
    return made[word]()


def cut_prefix(text: str, *, characters: bool) -> list[str]:
    """A prefix as it is typed: words apart, or every character."""
    return list(text) if characters else text.split()


def count_generators(word: str) -> int | None:
    """The number of generators; None where the data are to say it."""
    if word == "auto":
        return None
    if word.isdecimal() and int(word) > 0:
        return int(word)
    raise OptionError(f"`--generators` should be a whole number above 0, or auto. Found {word!r}.")


def _vector_generators(options: GeneratorOptions) -> dict[str, Callable[[], Generator]]:
    from taskmix.sequences import Gaussian, GaussianHiddenMarkov, LinearDynamics, Recurrent

    covariance: Any = "diagonal" if options.diagonal else "full"
    return {
        "gaussian": lambda: _smoothed(
            Gaussian(components=options.components, covariance=covariance), options
        ),
        "hmm": lambda: _smoothed(
            GaussianHiddenMarkov(states=options.states, covariance=covariance), options
        ),
        "lds": lambda: _smoothed(LinearDynamics(states=options.states), options),
        "gru": lambda: Recurrent(observes="vectors", hidden=options.hidden, device=options.device),
    }


def _symbol_generators(options: GeneratorOptions) -> dict[str, Callable[[], Generator]]:
    from taskmix.sequences import HiddenMarkov, Markov, Multinomial, Recurrent

    return {
        "markov": lambda: _smoothed(Markov(order=options.order), options),
        "hmm": lambda: _smoothed(
            HiddenMarkov(states=options.states, device=options.device), options
        ),
        "gru": lambda: Recurrent(hidden=options.hidden, device=options.device),
        "multinomial": lambda: _smoothed(Multinomial(), options),
    }


def _smoothed(generator: Any, options: GeneratorOptions) -> Any:
    """With the pseudo-counts that were asked for, or its own."""
    from dataclasses import replace

    smoothing = options.smoothing
    return generator if smoothing is None else replace(generator, smoothing=smoothing)
