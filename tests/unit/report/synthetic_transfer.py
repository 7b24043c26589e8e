"""A `transfer.json` whose truth is plain: the first task helps, the last one harms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from taskmix.transfer import (
    HeldOutRow,
    HeldOutTest,
    MeasuredValue,
    SourceRow,
    TargetRow,
    TransferDocument,
    UsedDesign,
)


def transfer_document(
    names: Sequence[str], targets: Sequence[str] | None = None
) -> TransferDocument:
    """Every task a target, unless some are named."""
    wanted = list(targets or names)
    return TransferDocument(
        command="taskmix transfer",
        outcome="loss",
        measure="loss",
        budget="per-task",
        steps=100,
        design=UsedDesign(),
        runs=60,
        tasks=tuple(names),
        targets=tuple(_target(name, names) for name in wanted),
        groups=(tuple(names[:-1]), (names[-1],)) if len(wanted) == len(names) else (),
    )


DIGITS = ("ten_digits", "parity", "half", "prime", "loop", "remainder", "shuffled_ten")
_GAINS = {  # of targets from sources, in accuracy; told where it is larger than its error
    ("parity", "ten_digits"): 0.015,
    ("half", "ten_digits"): 0.038,
    ("half", "shuffled_ten"): -0.018,
    ("half", "loop"): -0.010,
    ("prime", "ten_digits"): 0.044,
    ("prime", "shuffled_ten"): -0.016,
    ("loop", "ten_digits"): 0.071,
    ("loop", "prime"): 0.029,
    ("loop", "half"): 0.029,
    ("loop", "shuffled_ten"): -0.017,
    ("remainder", "ten_digits"): 0.078,
    ("remainder", "parity"): 0.027,
}
_ALONE = dict(zip(DIGITS, (0.958, 0.951, 0.931, 0.916, 0.850, 0.736, 0.104), strict=True))


def digits_transfer() -> TransferDocument:
    """What a study of the digits found, in round numbers; a group of six and one task alone."""
    plain = transfer_document(DIGITS)
    targets = []
    for row in plain.targets:
        alone = _ALONE[row.target]
        error = 0.006 if alone > 0.8 else 0.012
        targets.append(
            replace(
                row,
                higher_is_better=True,
                alone=alone,
                measured=MeasuredValue(alone + 0.03, alone + 0.01, alone + 0.05, 3)
                if row.target != "shuffled_ten"
                else None,
                chosen=("ten_digits",) if row.target != "ten_digits" else ("remainder",),
                sources=tuple(
                    _told(each, _GAINS.get((row.target, each.source), 0.003), error)
                    for each in row.sources
                ),
                held_out=tuple(
                    replace(
                        each, observed=alone + 0.01 * place, predicted=alone + 0.012 * place - 0.004
                    )
                    for place, each in enumerate(row.held_out)
                ),
            )
        )
    return replace(
        plain,
        command="taskmix transfer digits --all --outcome metric",
        outcome="metric",
        measure="accuracy",
        targets=tuple(targets),
        groups=(DIGITS[:-1], DIGITS[-1:]),
    )


def _told(row: SourceRow, gain: float, error: float) -> SourceRow:
    low, high = gain - 1.5 * error, gain + 1.5 * error
    told = low > 0 or high < 0
    return replace(
        row,
        gain=gain,
        low=low,
        high=high,
        verdict="cannot tell" if not told else "helps" if gain > 0 else "harms",
        further_subsets=None if told else 120,
    )


def _target(target: str, names: Sequence[str]) -> TargetRow:
    sources = [name for name in names if name != target]
    unknown = MeasuredValue(math.nan, math.nan, math.nan, 3)
    return TargetRow(
        target=target,
        higher_is_better=False,
        alone=0.8,
        alone_runs=10,
        alone_deviation=0.02,
        subsets=30,
        subset_runs=30,
        noise=0.03,
        sources=tuple(_source(name, names) for name in sources),
        chosen=(names[0],) if target != names[0] else (),
        extrapolation={
            "linear": HeldOutTest(
                spearman=MeasuredValue(0.9, 0.7, 0.98, 3),
                r_squared=unknown,
                f1_positive=unknown,
                f1_negative=unknown,
                positive_share=1.0,
                subsets=3,
            )
        },
        held_out=tuple(
            HeldOutRow(
                sources=tuple(sources[:size]),
                observed=0.8 - 0.05 * size,
                predicted=0.78 - 0.04 * size,
            )
            for size in (1, 2, 3)
        ),
    )


def _source(name: str, names: Sequence[str]) -> SourceRow:
    gain = {names[0]: 0.2, names[-1]: -0.15}.get(name, 0.01)
    told = abs(gain) > 0.05
    return SourceRow(
        source=name,
        gain=gain,
        low=gain - 0.04,
        high=gain + 0.04,
        p_value=0.001 if told else 0.6,
        verdict="cannot tell" if not told else "helps" if gain > 0 else "harms",
        further_subsets=None if told else 120,
        further_single_runs=None if told else 30,
        relative_gain=gain,
        relative_low=gain - 0.04,
        relative_high=gain + 0.04,
    )
