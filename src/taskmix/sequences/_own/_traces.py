"""What shared generators say of every step of sequences of symbols, as observed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.numerics import log_sum_exp
from taskmix.sequences._generator import Floats, prefix_rows, safe_log
from taskmix.sequences._mixture import Bank
from taskmix.sequences._observed import Sequences

_CELLS = 1 << 24  # numbers that are held at once


@dataclass(frozen=True, eq=False)
class StepTrace:
    """Log-probabilities by each generator."""

    prefix: Floats  # [prefix, generator]
    end: Floats  # [sequence, generator], after the whole


def trace_sequences(bank: Bank, parameters: Sequence[Any], sequences: Sequences) -> StepTrace:
    """In parts, where a generator has to say all that might have followed."""
    parts = [
        bank.trace(parameters, sequences.select(rows)) for rows in rows_at_once(bank, sequences)
    ]
    if len(parts) == 1:
        return StepTrace(*parts[0])
    return StepTrace(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def mixed_steps(
    trace: StepTrace, sequences: Sequences, theta: Floats, *, halting: bool
) -> tuple[Floats, Floats]:
    """Log-probabilities of every observation and then of every end, given what came before, by the
    mixture with shares `theta` [sequence, generator] [transition]; and of every prefix [prefix]."""
    starts, rows = prefix_rows(sequences)
    logs = safe_log(theta)
    total = log_sum_exp(trace.prefix + np.repeat(logs, sequences.lengths + 1, axis=0))
    with np.errstate(invalid="ignore"):
        steps = total[rows] - total[rows - 1]
    parts = [steps[sequences.values >= 0]]
    if halting:
        last = starts[1:] - 1
        begun = sequences.lengths > 0
        ended = log_sum_exp(trace.prefix[last] + trace.end + logs) - total[last]
        parts.append(ended[begun])
    return np.nan_to_num(np.concatenate(parts), nan=-np.inf, neginf=-np.inf), total


def rows_at_once(bank: Bank, sequences: Sequences) -> Iterator[NDArray[np.int64]]:
    """Rows of sequences whose predictions can be held at once, in their order."""
    width = bank.count * max(sequences.symbols + 1, sequences.dimension**2)
    ends = np.cumsum((sequences.lengths + 1) * width)
    part = ends // _CELLS
    for number in np.unique(part):
        yield np.flatnonzero(part == number)
