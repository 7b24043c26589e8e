"""What `taskmix transfer` tells people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from taskmix.cli._printing._display import draw_table, echo, print_json, show
from taskmix.cli._printing._reading import reading_document

if TYPE_CHECKING:
    from taskmix.tasks import TaskSet
    from taskmix.transfer import (
        MeasuredValue,
        NewTaskAnswer,
        PriorAgreement,
        SourceRow,
        TargetRow,
        TransferDocument,
    )

_MOST_FURTHER = 9_999  # subsets; more are no advice
_WIDEST = 10  # tasks; with more, a table for each target takes the place of the matrix


def print_transfer(
    document: TransferDocument, study: Path, plan: Path | None, tasks: TaskSet, *, as_json: bool
) -> None:
    """Everything as JSON, or in words, with the files that were written."""
    from taskmix.records import to_plain

    if as_json:
        print_json(to_plain(document) | reading_document(tasks))
        return
    print_lessons(document)
    echo(f"Wrote {study / 'transfer.json'}. The page with the evidence: taskmix report {study}")
    if plan is not None:
        echo(f"Wrote {plan}.")


def print_new_tasks(
    answers: Sequence[NewTaskAnswer], measure: str, *, model: str | None, texts: bool
) -> None:
    """Who will help each new task, or that it cannot be told, and what that rests on."""
    for answer in answers:
        told = [row for row in answer.sources if row.answer != "cannot tell"]
        helping = [row.source for row in told if row.answer == "helps"]
        harming = [row.source for row in told if row.answer == "harms"]
        said = [f"{', '.join(helping)} should help"] if helping else []
        said += [f"{', '.join(harming)} should harm"] if harming else []
        words = "; ".join(said) or "cannot tell who will help"
        echo(f"{answer.task}: {words}.")
        rows = [
            (row.source, _number(row.gain, signed=True), _ends(row.low, row.high), row.answer)
            for row in answer.sources
        ]
        title = f"Predicted gains in dev {measure}"
        columns = ("source", "gain", "95 % interval", "answer")
        draw_table(columns, rows, title=title, left=("answer",), wide=True)
    if answers:
        first = answers[0]
        worth = "significantly" if first.tells else "not significantly"
        echo(
            "Each known task was left out and predicted from the others: the rank correlation with what "
            f"was measured is {_number(first.correlation, 2)}, {worth} above zero (95 %), and intervals "
            f"hold {first.coverage:.0%} of the gains."
        )
    if texts:
        echo(
            f"Texts were compared by the vectors of {model}."
            if model
            else "Texts were compared by their words; --model compares them by a model's vectors."
        )


def print_lessons(document: TransferDocument) -> None:
    """The answer, gains of sources for each target, what to train with it, and how far to trust that."""
    from taskmix.transfer import transfer_answers

    answers = transfer_answers(document)
    for line in (answers.first, *answers.further):
        echo(line)
    targets = document.targets
    echo(
        f"{document.runs:,} runs: {len(targets)} target{'' if len(targets) == 1 else 's'} of "
        f"{len(document.tasks)} tasks; outcome: dev {document.measure}. {answers.basis}"
    )
    if document.failed:
        first = document.failures[0]
        echo(
            f"{document.failed} failed and are left out; the first: {', '.join(first.tasks)} "
            f"with seed {first.seed}: {first.error}"
        )
    if document.prior is not None:
        echo(_prior(document.prior))
    if document.design.noise is not None:
        echo(
            f"The pilot's noise is {document.design.noise:.3g}, so the precision asked for took "
            f"{targets[0].subset_runs} runs of subsets a target."
        )
    if len(targets) > 1 and len(document.tasks) <= _WIDEST:
        _print_matrix(document)
        for target in targets:
            echo(f"{target.target}:")
            _print_open(target)
            _print_advice(target)
    else:
        for target in targets:
            _print_target(target, document.measure)
            _print_advice(target)
    if answers.groups:
        echo("Groups to train together, by what can be told:")
        for group in answers.groups:
            echo(f"  {', '.join(group.tasks)}: {group.words}")


def _prior(prior: PriorAgreement) -> str:
    """One sentence on how far the cheaper study counts."""
    slope = f"{_number(prior.slope, 2)} ({_number(prior.low, 2)} to {_number(prior.high, 2)})"
    found = (
        f"The prior study agrees: its gains count {slope} times"
        if prior.agrees
        else f"The prior study does not agree, so it hardly counts: its slope is {slope}"
    )
    rank = _number(prior.correlation, 2)
    return f"{found}; rank correlation with these runs within a target {rank}; {prior.pairs} pairs."


def _print_matrix(document: TransferDocument) -> None:
    from rich import box
    from rich.table import Table

    targets = document.targets
    gains = [row.gain for target in targets for row in target.sources]
    decimals = _decimals(gains)
    title = f"Gains in dev {document.measure}: sources down, targets across; ? cannot be told"
    if any(target.company for target in targets):
        title += ", = as any other task"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("source", no_wrap=True)
    for target in targets:
        table.add_column(target.target, justify="right", overflow="fold")
    table.add_row("alone", *(_number(target.alone) for target in targets), end_section=True)
    for name in document.tasks:
        cells = []
        for target in targets:
            found = [row for row in target.sources if row.source == name]
            cells.append(_gain(found[0], decimals) if found else "")
        table.add_row(name, *cells)
    show(table, wide=True)


def _print_target(target: TargetRow, measure: str) -> None:
    title = (
        f"{target.target}: {_number(target.alone)} alone; gains in dev {measure} from "
        f"{target.subset_runs} runs on {target.subsets} subsets"
    )
    rows = [
        (
            row.source,
            _number(row.gain, signed=True),
            _ends(row.low, row.high),
            _company(row),
            _verdict(row),
        )
        for row in target.best_first
    ]
    columns = ("source", "gain", "95 % interval", "than others", "verdict")
    left = ("than others", "verdict")
    draw_table(columns, rows, title=title, left=left, whole=True, wide=True)


def _print_open(target: TargetRow) -> None:
    """What cannot be told, and how many further subsets would tell it."""
    unknown = [row for row in target.best_first if row.verdict == "cannot tell"]
    if unknown:
        words = ", ".join(
            row.source
            + ("" if row.further_subsets is None else f" ({_further(row.further_subsets)})")
            for row in unknown
        )
        echo(f"  cannot tell, with the further subsets that would: {words}")


def _print_advice(target: TargetRow) -> None:
    for selection in target.selections:
        names = ", ".join(selection.sources) or "none, train it alone"
        echo(f"  {selection.rule}: {names}; predicted {_number(selection.predicted)}")
    if target.measured is not None:
        echo(f"  measured with these: {_interval(target.measured)}")
    if target.failed:
        echo(f"  {target.failed} failed runs left out, {len(target.lost)} whole subsets with them")
    if not target.extrapolation:
        echo("  too few subsets finished to try the predictions on others")
        return
    test = target.extrapolation["linear"]
    echo(
        f"  on {test.subsets} held-out subsets: Spearman {_interval(test.spearman)}, "
        f"R² {_interval(test.r_squared)}, F1 of helping {_interval(test.f1_positive)} and of "
        f"harming {_interval(test.f1_negative)}; {test.positive_share:.0%} do help"
    )
    if test.r_squared.value < 0:
        echo(
            "  below zero: gains do not add up over sizes here; trust their order and the measured "
            "selection, not the predicted values"
        )


def _ends(low: float, high: float) -> str:
    return f"{_number(low, signed=True)} to {_number(high, signed=True)}"


def _gain(source: SourceRow, decimals: int) -> str:
    mark = {"cannot tell": "?", "as any other": "="}.get(source.verdict, " ")
    return f"{source.gain:+.{decimals}f}{mark}"


def _decimals(gains: list[float]) -> int:
    """Places after the point that leave the largest gain two digits."""
    largest = max((abs(gain) for gain in gains if math.isfinite(gain)), default=0.0)
    return max(1 - math.floor(math.log10(largest)), 0) if largest > 0 else 0


def _company(source: SourceRow) -> str:
    """How the source compares with the target's average one."""
    if not math.isfinite(source.relative_low):
        return "-"
    if source.relative_low > 0:
        return "better"
    return "worse" if source.relative_high < 0 else "alike"


def _verdict(source: SourceRow) -> str:
    if source.verdict != "cannot tell" or source.further_subsets is None:
        return source.verdict
    return f"cannot tell: {_further(source.further_subsets)} subsets"


def _further(subsets: int) -> str:
    return f"+{subsets:,}" if subsets <= _MOST_FURTHER else f"over {_MOST_FURTHER:,}"


def _interval(measured: MeasuredValue) -> str:
    if not math.isfinite(measured.value):
        return "undefined"
    known = math.isfinite(measured.low)
    ends = f" ({_number(measured.low)} to {_number(measured.high)})" if known else ""
    return f"{_number(measured.value)}{ends}"


def _number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{value:{'+' if signed else ''}.{digits}g}"
