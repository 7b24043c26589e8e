"""How a sequence that has begun goes on, in plain words and numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import exp

from sklearn.utils.validation import check_is_fitted

from taskmix.errors import InputError
from taskmix.sequences._fitted import FittedMixture

END = "(end)"  # stands among the next symbols for the end of the sequence


@dataclass(frozen=True)
class Continuation:
    """What comes after a prefix of symbols."""

    prefix: tuple[str, ...]
    task: Hashable  # None: a task that is not known
    next: tuple[
        tuple[str, float], ...
    ]  # the most likely symbols and their probabilities, best first
    generators: tuple[float, ...]  # how likely each of them is at work
    completion: tuple[str, ...]  # a most likely whole sequence, with the prefix
    log_probability: float  # of the completion, given the prefix

    @property
    def text(self) -> str:
        """The completion as it is written: letters together, words apart."""
        return ("" if all(len(word) == 1 for word in self.completion) else " ").join(
            self.completion
        )

    @property
    def probability(self) -> float:
        """Of the completion, given the prefix."""
        return exp(self.log_probability)

    def to_json(self) -> dict[str, object]:
        """As `taskmix sequences --predict … --json` prints it."""
        return {
            "prefix": list(self.prefix),
            "task": self.task,
            "next": [{"symbol": symbol, "probability": share} for symbol, share in self.next],
            "generators": list(self.generators),
            "completion": list(self.completion),
            "log_probability": self.log_probability,
        }


def continue_sequence(
    model: FittedMixture, prefix: Sequence[str], task: Hashable = None, *, shown: int = 8
) -> Continuation:
    """The `shown` most likely next symbols and a most likely way on, in a task.

    >>> model = SequenceMixture(Markov(order=2), 1, random_state=0).fit(["aab"] * 9, ["x"] * 9)
    >>> found = continue_sequence(model, "aa", "x")
    >>> found.next[0][0], found.text
    ('b', 'aab')
    """
    check_is_fitted(model, "parameters_")
    if model.alphabet_ is None:
        found = "vectors" if model.bank_.observes == "vectors" else "codes of symbols"
        raise InputError(
            f"`model` should be a mixture of sequences of words or letters. Found {found}. Ask "
            "`predict_next` and `complete` of the model."
        )
    ahead = model.predict_next(prefix, task)
    assert ahead.probabilities is not None
    names = [*map(str, model.alphabet_.symbols), END]
    order = ahead.probabilities.argsort()[::-1][:shown]
    way, level = model.complete(prefix, task)
    return Continuation(
        prefix=tuple(prefix),
        task=task,
        next=tuple((names[place], float(ahead.probabilities[place])) for place in order),
        generators=tuple(ahead.generators.tolist()),
        completion=tuple(str(word) for word in way),
        log_probability=level,
    )
