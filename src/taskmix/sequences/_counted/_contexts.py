"""Contexts of symbols as numbers.

A context is a number whose digits to the base of the alphabet plus one are its symbols plus one, the
latest in the lowest place; zero is the empty context at the beginning of a sequence. In a model of
order 0 there are two contexts, the beginning (0) and everywhere else (1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.sequences._observed import Sequences

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Transitions:
    """Everything observed, ends among them, observation by observation and then end by end."""

    contexts: Codes  # what came before
    symbol: Codes  # the size of the alphabet stands for the end
    owner: Codes  # the sequence


def longest_order(symbols: int) -> int:
    """The longest contexts that can still be numbered."""
    return int(61 // np.log2(symbols + 1))


def context_codes(sequences: Sequences, order: int, *, after: bool) -> Codes:
    """[observation], the context before it, or the one it leaves."""
    base = sequences.symbols + 1
    if base ** max(order, 1) >= 2**62:
        raise OptionError(
            f"`order` {order} over {sequences.symbols} symbols should have fewer contexts than 2^62. "
            "Lower the order."
        )
    place = np.arange(len(sequences.values)) - np.repeat(sequences.starts[:-1], sequences.lengths)
    if order == 0:
        return (place >= (0 if after else 1)).astype(np.int64)
    contexts = np.zeros(len(place), np.int64)
    for back in range(order):
        shift = back if after else back + 1
        digit = np.zeros(len(place), np.int64)
        digit[shift:] = sequences.values[: max(len(place) - shift, 0)] + 1
        digit[place < shift] = 0
        contexts += digit * base**back
    return contexts


def find_transitions(sequences: Sequences, order: int, *, halting: bool) -> Transitions:
    """What followed what; missing symbols are left out."""
    contexts = context_codes(sequences, order, after=False)
    symbol = sequences.values.astype(np.int64)
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    seen = symbol >= 0
    parts = [(contexts[seen], symbol[seen], owner[seen])]
    if halting:
        begun = np.flatnonzero(sequences.lengths)  # a prefix may be empty
        last = context_codes(sequences, order, after=True)[sequences.starts[begun + 1] - 1]
        parts.append((last, np.full(len(begun), sequences.symbols), begun))
    return Transitions(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def context_of(symbols: list[int], order: int, base: int) -> int:
    """The context after these symbols."""
    if order == 0:
        return int(len(symbols) > 0)
    recent = symbols[-order:][::-1]
    return sum((int(symbol) + 1) * base**back for back, symbol in enumerate(recent))
