"""What options of generators should be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from taskmix.errors import InputError, OptionError
from taskmix.sequences._observed import Observed, Sequences


def check_whole(least: int = 1, **given: Any) -> None:
    """Each of these is a whole number of at least so much."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise OptionError(
                f"`{name}` should be a whole number of at least {least}. Found {value!r}."
            )


def check_amount(**given: float) -> None:
    """Each of these is a number that is not negative."""
    for name, value in given.items():
        if not 0 <= value < float("inf"):
            raise OptionError(f"`{name}` should be a number of at least 0. Found {value!r}.")


def check_fixed(fixed: Sequence[str], names: Collection[str]) -> None:
    """Parameters that are not to be learned are named as they are called."""
    if isinstance(fixed, str) or not set(fixed) <= set(names):
        raise OptionError(
            f"`fixed` should have names of parameters: {', '.join(names)}. Found {fixed!r}."
        )


def check_observes(generator: object, wanted: Observed, sequences: Sequences) -> None:
    if sequences.observes != wanted:
        raise InputError(
            f"{type(generator).__name__} should be given sequences of {wanted}. Found sequences of "
            f"{sequences.observes}. Choose a generator of {sequences.observes}."
        )


def check_complete(generator: object, sequences: Sequences) -> None:
    """For generators that say nothing of sequences with gaps."""
    if sequences.has_missing:
        raise InputError(
            f"{type(generator).__name__} should be given every observation: it has no model for "
            "missing ones. Found some missing. Choose HiddenMarkov or Recurrent, or cut the "
            "sequences at the gaps."
        )
