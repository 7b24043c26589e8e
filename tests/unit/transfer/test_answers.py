from __future__ import annotations

import math
from dataclasses import replace

import pytest

from taskmix.transfer import (
    MeasuredValue,
    SourceRow,
    TargetRow,
    TransferDocument,
    UsedDesign,
    transfer_answers,
)

VERDICTS = ("helps", "harms", "negligible", "cannot tell")


def source(name: str, verdict: str, gain: float, width: float = 0.05) -> SourceRow:
    return SourceRow(
        source=name,
        gain=gain,
        low=gain - width,
        high=gain + width,
        p_value=0.01,
        verdict=verdict,  # type: ignore[arg-type]
        relative_gain=gain,
        relative_low=gain - width,
        relative_high=gain + width,
    )


def target(name: str, *sources: SourceRow, alone: float = 0.8) -> TargetRow:
    return TargetRow(
        target=name,
        higher_is_better=True,
        alone=alone,
        alone_runs=10,
        alone_deviation=0.02,
        subsets=30,
        subset_runs=30,
        noise=0.03,
        sources=sources,
        chosen=(),
    )


def document(*targets: TargetRow, groups: tuple[tuple[str, ...], ...] = ()) -> TransferDocument:
    names = [each.target for each in targets]
    others = [row.source for each in targets for row in each.sources]
    return TransferDocument(
        command="taskmix transfer x",
        outcome="metric",
        measure="accuracy",
        budget="per-task",
        steps=10,
        design=UsedDesign(),
        runs=60,
        tasks=tuple(dict.fromkeys([*names, *others])),
        targets=targets,
        groups=groups,
    )


def test_one_target_is_answered_in_one_sentence() -> None:
    found = transfer_answers(
        document(
            target(
                "T",
                source("D", "cannot tell", 0.01),
                source("B", "helps", 0.1),
                source("C", "harms", -0.2),
                source("A", "helps", 0.3),
                source("E", "negligible", 0.0),
            )
        )
    )
    assert found.first == (
        "A by 0.30 (0.25 to 0.35) and B by 0.10 (0.05 to 0.15) help T; "
        "C hurts it by 0.20 (0.15 to 0.25); E makes no difference that matters; D cannot be told."
    )
    assert found.further == ()
    (answer,) = found.targets
    assert (answer.helps, answer.hurts, answer.untold, answer.is_told) == (2, 1, 1, True)


def test_many_targets_are_summed_up_with_the_largest_share_first() -> None:
    found = transfer_answers(
        document(
            target("T", source("A", "helps", 0.3), source("B", "harms", -0.1), alone=0.9),
            target("U", source("A", "helps", 0.2), source("B", "cannot tell", 0.0), alone=0.1),
        )
    )
    assert found.first == (
        "Of 4 pairs of a source and a target, 2 help, 1 hurts and 1 cannot be told."
    )
    most, harm = found.further
    assert most.startswith("Most help: A helps U by 0.20 (0.15 to 0.25) and A helps T"), (
        "0.2 of 0.1 is more than 0.3 of 0.9"
    )
    assert harm == "Most harm: B hurts T by 0.10 (0.05 to 0.15)."


def test_company_is_said_once_and_what_intervals_are_over() -> None:
    company = MeasuredValue(-0.2, -0.3, -0.1, 3)
    rows = [source("B", "as any other", -0.2), source("C", "helps", 0.3)]
    one = replace(target("T", *rows, source("D", "cannot tell", 0.0)), company=company, dev_rows=50)
    alone = transfer_answers(document(one))
    assert alone.first == (
        "Any other task hurts T by 0.20 (0.10 to 0.30); C helps it by 0.30 (0.25 to 0.35); "
        "D cannot be told."
    )
    assert "over runs and dev rows" in alone.basis
    both = transfer_answers(document(one, target("U", source("T", "cannot tell", 0.0))))
    assert both.first == (
        "Of 4 pairs of a source and a target, 1 helps, 0 hurt, 1 does as any other task and "
        "2 cannot be told."
    )
    assert both.further[0] == (
        "Any other task hurts T by 0.20 (0.10 to 0.30): that is company, and not transfer."
    )
    assert both.basis.startswith("Of U: Intervals are over runs alone")
    assert [each.is_told for each in both.targets] == [True, False]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_numbers_that_are_not_known_cost_no_sentence(verdict: str) -> None:
    row = replace(source("A", verdict, 0.1), low=math.nan, high=math.nan)
    lost = replace(source("B", verdict, 0.1), gain=math.nan)
    words = transfer_answers(document(target("T", row, lost, alone=0.0))).first
    assert words.endswith(".")
    assert "A" in words or verdict == "cannot tell"
