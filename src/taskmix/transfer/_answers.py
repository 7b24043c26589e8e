"""A study of transfer in sentences: who helps a target, who hurts it, and who cannot be told.

Terminal and page show the same ones. They say what the verdicts of the document say, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from taskmix.transfer._document import MeasuredValue, SourceRow, TargetRow, TransferDocument

MOST_NAMED = 6  # names in a sentence; the others are counted
MOST_LETTERS = 120  # of names that only have to be counted
MOST_PAIRS = 3  # that the summary over all targets names

Amount = Callable[[SourceRow | MeasuredValue], str]


@dataclass(frozen=True, kw_only=True)
class TargetAnswer:
    """What was found of one target, in a sentence; and how many sources had which verdict."""

    target: str
    words: str
    helps: int
    hurts: int
    untold: int
    has_company: bool = False  # whether any other task helps or hurts it

    @property
    def is_told(self) -> bool:
        """Whether anything is known to help or to hurt it."""
        return self.helps + self.hurts > 0 or self.has_company


@dataclass(frozen=True, kw_only=True)
class GroupAnswer:
    """Tasks to train together, and why: the verdicts between them."""

    tasks: tuple[str, ...]
    words: str


@dataclass(frozen=True, kw_only=True)
class TransferAnswers:
    """The whole study in sentences; `transfer_answers` makes them."""

    first: str  # the answer where one sentence is enough
    basis: str = ""  # what intervals and verdicts allow for
    further: tuple[str, ...] = ()  # of several targets, the largest gains and losses
    targets: tuple[TargetAnswer, ...]
    groups: tuple[GroupAnswer, ...]


def transfer_answers(document: TransferDocument) -> TransferAnswers:
    """What the document says, in sentences.

    >>> from taskmix.transfer import SourceRow, TargetRow, UsedDesign
    >>> rows = [
    ...     SourceRow(
    ...         source=name, gain=gain, low=gain - 0.1, high=gain + 0.1, p_value=0.01, verdict=verdict,
    ...         relative_gain=gain, relative_low=gain - 0.1, relative_high=gain + 0.1)
    ...     for name, gain, verdict in (("b", -0.2, "harms"), ("c", 0.3, "helps"))]
    >>> target = TargetRow(
    ...     target="a", higher_is_better=False, alone=0.8, alone_runs=10, alone_deviation=0.02,
    ...     subsets=30, subset_runs=30, noise=0.03, sources=tuple(rows), chosen=("c",))
    >>> document = TransferDocument(
    ...     command="taskmix transfer x", outcome="loss", measure="loss", budget="per-task", steps=9,
    ...     design=UsedDesign(), runs=60, tasks=("a", "b", "c"), targets=(target,),
    ...     groups=())
    >>> transfer_answers(document).first
    'c helps a by 0.30 (0.20 to 0.40); b hurts it by 0.20 (0.10 to 0.30).'
    """
    by = _amounts(document)
    targets = tuple(_answer(target, by) for target in document.targets)
    first, *further = [targets[0].words] if len(targets) == 1 else _summary(document, by)
    return TransferAnswers(
        first=first,
        basis=_basis(document),
        further=tuple(further),
        targets=targets,
        groups=tuple(_group(group, document, by) for group in document.groups),
    )


def _basis(document: TransferDocument) -> str:
    """What errors are over; dev rows where all runs recorded what each of them lost."""
    unknown = [target.target for target in document.targets if target.dev_rows is None]
    if not unknown:
        return "Intervals are over runs and dev rows, so verdicts are about fresh rows as well."
    which = "" if len(unknown) == len(document.targets) else f"Of {_listed(unknown)}: "
    return (
        f"{which}Intervals are over runs alone, so verdicts are about these dev rows and may not hold "
        "on others: outcomes were not recorded row by row."
    )


def _amounts(document: TransferDocument) -> Amount:
    """How a gain is written: as many places as leave the largest one two digits."""
    gains = [row.gain for target in document.targets for row in target.sources]
    largest = max((abs(gain) for gain in gains if math.isfinite(gain)), default=0.0)
    places = min(max(1 - math.floor(math.log10(largest)), 0), 9) if largest > 0 else 0

    def by(row: SourceRow | MeasuredValue) -> str:
        gain = row.gain if isinstance(row, SourceRow) else row.value
        sign = 1 if gain >= 0 else -1
        low, high = sorted((sign * row.low, sign * row.high))
        # An interval that excludes zero should not end in what reads as zero.
        digits = places + (0 < low < 0.5 * 10**-places)
        known = math.isfinite(low) and math.isfinite(high)
        interval = f" ({low:.{digits}f} to {high:.{digits}f})" if known else ""
        return f"by {abs(gain):.{digits}f}{interval}".replace("-", "\N{MINUS SIGN}")

    return by


def _answer(target: TargetRow, by: Amount) -> TargetAnswer:
    rows = target.best_first
    company = _company(target, by)
    helps = [row for row in rows if row.verdict == "helps"]
    hurts = [row for row in reversed(rows) if row.verdict == "harms"]
    small = [row.source for row in rows if row.verdict == "negligible"]
    untold = [row.source for row in rows if row.verdict == "cannot tell"]
    it = "it" if helps or company else target.target
    parts = [
        f"Any other task {company}" if company else "",
        _effects(helps, "helps", "help", "it" if company else target.target, by),
        _effects(hurts, "hurts", "hurt", it, by),
        f"{_listed(small)} {'makes' if len(small) == 1 else 'make'} no difference that matters"
        if small
        else "",
        _untold(untold, whole=len(untold) == len(rows) and not company, target=target.target),
    ]
    return TargetAnswer(
        target=target.target,
        words="; ".join(part for part in parts if part) + ".",
        helps=len(helps),
        hurts=len(hurts),
        untold=len(untold),
        has_company=bool(company),
    )


def _company(target: TargetRow, by: Amount) -> str:
    """`hurts t by 0.2 (0.1 to 0.3)`, of any other task; nothing where that is not seen."""
    if target.company is None:
        return ""
    verb = "helps" if target.company.value > 0 else "hurts"
    return f"{verb} {target.target} {by(target.company)}"


def _effects(
    rows: Sequence[SourceRow],
    one: str,
    many: str,
    target: str,
    by: Amount,
) -> str:
    """`a helps t by 0.2 (0.1 to 0.3)`, or `a by 0.2 (...) and b by 0.1 (...) help t`."""
    if len(rows) < 2:
        return "".join(f"{row.source} {one} {target} {by(row)}" for row in rows)
    shown = [f"{row.source} {by(row)}" for row in rows[:MOST_NAMED]]
    more = len(rows) - MOST_NAMED
    return f"{_joined([*shown, f'{more} more'] if more > 0 else shown)} {many} {target}"


def _untold(names: Sequence[str], *, whole: bool, target: str) -> str:
    if not names:
        return ""
    if whole:
        return f"What helps or hurts {target} cannot be told from these runs"
    return f"{_listed(names)} cannot be told"


def _summary(document: TransferDocument, by: Amount) -> list[str]:
    """All targets at once: how many pairs, and the largest helps and hurts."""
    pairs = [(target, row) for target in document.targets for row in target.sources]
    helps = [pair for pair in pairs if pair[1].verdict == "helps"]
    hurts = [pair for pair in pairs if pair[1].verdict == "harms"]
    untold = sum(row.verdict == "cannot tell" for _, row in pairs)
    alike = sum(row.verdict == "as any other" for _, row in pairs)
    small = len(pairs) - len(helps) - len(hurts) - untold - alike
    counts = [
        f"{len(helps)} {'helps' if len(helps) == 1 else 'help'}",
        f"{len(hurts)} {'hurts' if len(hurts) == 1 else 'hurt'}",
        *([f"{alike} {'does' if alike == 1 else 'do'} as any other task"] if alike else []),
        *([f"{small} {'makes' if small == 1 else 'make'} no difference"] if small else []),
        f"{untold} cannot be told",
    ]
    found = [f"Of {len(pairs)} pairs of a source and a target, {_joined(counts)}."]
    company = [words for target in document.targets if (words := _company(target, by))]
    if company:
        found.append(f"Any other task {_listed(company)}: that is company, and not transfer.")
    for rows, verb, most in ((helps, "helps", "Most help"), (hurts, "hurts", "Most harm")):
        largest = sorted(rows, key=lambda pair: -_share(*pair))[:MOST_PAIRS]
        if largest:
            said = [f"{row.source} {verb} {target.target} {by(row)}" for target, row in largest]
            found.append(f"{most}: {_joined(said)}.")
    return found


def _share(target: TargetRow, row: SourceRow) -> float:
    """The size of a gain as a share of the outcome alone, so that targets can be compared."""
    gain = abs(row.gain) / (abs(target.alone) or 1.0)
    return gain if math.isfinite(gain) else 0.0


def _group(group: Sequence[str], document: TransferDocument, by: Amount) -> GroupAnswer:
    pairs = [
        (target, row)
        for target in document.targets
        if target.target in group
        for row in target.sources
    ]
    if len(group) == 1:
        told = [row for _, row in pairs if row.verdict == "helps"]
        why = "what helps it loses more by it" if told else "nothing is known to help it"
        return GroupAnswer(tasks=tuple(group), words=f"Alone: {why}.")
    inside = [(target, row) for target, row in pairs if row.source in group]
    order = sorted(inside, key=lambda pair: -_share(*pair))
    helps = [(target, row) for target, row in order if row.verdict == "helps"]
    hurts = [(target, row) for target, row in order if row.verdict == "harms"]
    said = [f"{row.source} helps {target.target} {by(row)}" for target, row in helps[:MOST_PAIRS]]
    if more := len(helps) - len(said):
        said.append(f"{more} more such pair{'' if more == 1 else 's'}")
    alike = any(row.verdict == "as any other" and row.gain > 0 for _, row in inside)
    nothing = "Any other task helps here" if alike else "No verdict speaks for it"
    words = _joined(said) if said else nothing
    if hurts:
        target, row = hurts[0]
        link = ", which outweighs that" if said else ", and"
        words += f"{link} {row.source} hurts {target.target} {by(row)}"
    return GroupAnswer(tasks=tuple(group), words=f"{words}.")


def _listed(names: Sequence[str]) -> str:
    """All names, or as many as are quick to read and how many more."""
    shown = 1
    while shown < min(len(names), MOST_NAMED) and len("".join(names[: shown + 1])) <= MOST_LETTERS:
        shown += 1
    more = len(names) - shown
    return _joined([*names[:shown], f"{more} more"] if more > 1 else names)


def _joined(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
