"""What the page says of transfer in words and tables: the answers, the map and the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmix.report._study import count_of, counted, listed, number
from taskmix.report._transfer._map import TransferMap, transfer_map

if TYPE_CHECKING:
    from taskmix.transfer import GroupAnswer, TargetAnswer, TargetRow, TransferDocument

_NAMED = 8  # tasks of a group, in the header
_SHOWN_ANSWERS = 12  # of targets, until the reader asks for all


@dataclass(frozen=True, kw_only=True)
class TransferContents:
    """Everything the templates show of transfer."""

    context: str
    first: str
    lines: list[str]
    facts: list[tuple[str, str]]
    answers: list[tuple[TargetAnswer, str]]  # with what was measured; first where something is told
    shown_answers: int
    map: TransferMap
    groups: tuple[GroupAnswer, ...]


def transfer_contents(document: TransferDocument | None) -> TransferContents | None:
    """Transfer in words and tables; None where the study has none."""
    if document is None:
        return None
    from taskmix.transfer import transfer_answers  # loaded only where there is transfer

    answers = transfer_answers(document)
    return TransferContents(
        context=_context(document),
        first=answers.first,
        lines=[*answers.further, *_lines(document, answers.groups)],
        facts=_facts(document),
        answers=[
            (answer, _measured(target))
            for answer, target in sorted(
                zip(answers.targets, document.targets, strict=True),
                key=lambda pair: not pair[0].is_told,
            )
        ],
        shown_answers=_SHOWN_ANSWERS,
        map=transfer_map(document),
        groups=answers.groups,
    )


def _context(document: TransferDocument) -> str:
    how = "estimated from gradients" if document.estimate else "trained"
    words = (
        f"{counted(document.runs, 'run')} of subsets of {counted(len(document.tasks), 'task')} were "
        f"{how}. A gain is what a source changes of the target\N{RIGHT SINGLE QUOTATION MARK}s "
        f"{document.split} {document.measure}, against training it alone."
    )
    if document.failed:
        left = "is" if document.failed == 1 else "are"
        words += f" {counted(document.failed, 'run')} failed and {left} left out."
    return words


def _facts(document: TransferDocument) -> list[tuple[str, str]]:
    counts = {"task": len(document.tasks), "target": len(document.targets), "run": document.runs}
    return [(noun if n == 1 else f"{noun}s", count_of(n)) for noun, n in counts.items()]


def _lines(document: TransferDocument, groups: tuple[GroupAnswer, ...]) -> list[str]:
    """What to do: the groups, or what was measured with the sources chosen for one target."""
    if groups:
        together = [_added(group.tasks) for group in groups if len(group.tasks) > 1]
        alone = [group.tasks[0] for group in groups if len(group.tasks) == 1]
        parts = [f"Train together: {'; '.join(together)}."] if together else []
        return [*parts, f"Train alone: {listed(alone, _NAMED)}."] if alone else parts
    return [words for target in document.targets[:1] if (words := _measured(target))]


def _added(names: Sequence[str]) -> str:
    """`a + b + c`; the section about groups has all names of a long list."""
    if len(names) <= _NAMED:
        return " + ".join(names)
    return f"{' + '.join(names[:_NAMED])} + {len(names) - _NAMED} more"


def _measured(target: TargetRow) -> str:
    """The best of the selections that were trained."""
    if target.measured is None:
        return ""
    names = ", ".join(target.chosen) or "no other task"
    found, decimals = target.measured, 3
    ends = (
        f" ({number(found.low, decimals)} to {number(found.high, decimals)})" if found.n > 1 else ""
    )
    return (
        f"The best selection that was trained: with {names}, {number(found.value, decimals)}{ends}; "
        f"alone {number(target.alone, decimals)}."
    )
