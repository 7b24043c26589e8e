"""A `transfer.json` whose truth is plain: the first task helps, the last one harms."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
        estimate=None,
        design=UsedDesign(),
        runs=60,
        tasks=tuple(names),
        targets=tuple(_target(name, names) for name in wanted),
        groups=(tuple(names[:-1]), (names[-1],)) if len(wanted) == len(names) else (),
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
