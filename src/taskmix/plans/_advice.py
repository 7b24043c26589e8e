"""`advice.json`: a plan and all it rests on, beside the runs and readable without taskmix.

Scores are dev scores unless they are said to be of test; means over tasks are on the scale of the race:
higher is better, and an error counts in deviations of its target, negative. `docs/report.md` has
every entry. A number that is not known is null in the file and NaN here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from taskmix.errors import InputError
from taskmix.numerics import Interval
from taskmix.records import read_document, write_document

ADVICE_VERSION = 1
NAME = "advice.json"

AdviceStage = Literal["baselines", "transfer", "candidates", "race", "longer"]


@dataclass(frozen=True, kw_only=True)
class PlanSummary:
    """The plan in short; `plan.json` has all of it."""

    tasks: tuple[str, ...]
    probabilities: tuple[float, ...]  # [task], over all groups
    groups: tuple[tuple[str, ...], ...]  # the tasks of each model
    weighting: Mapping[str, Any] | None = None  # the options of a method, where losses are weighted

    def __post_init__(self) -> None:
        if len(self.tasks) != len(self.probabilities):
            raise InputError(
                "A plan should have a probability for each task. Found "
                f"{len(self.probabilities)} for {len(self.tasks)} tasks."
            )


@dataclass(frozen=True, kw_only=True)
class CandidateRow:
    """A way of training and where it stands in the race."""

    name: str
    words: str
    seeds: int
    dev: float  # mean over its own seeds
    behind: Interval  # the leader minus it, at `length` of the document, on rows not seen
    open: bool  # whether it may still be the best
    out_after: int | None = None  # a place among the milestones; None where it never was out
    batches: float = math.nan  # until its best score
    cost: float = math.nan  # of a seed, in batches of a plain step
    seconds: float = math.nan  # of a seed's steps, on the device that took them
    runs: tuple[str, ...] = ()  # names of their folders
    chance: float = math.nan  # that it is the best
    longer: float = math.nan  # mean dev score of its longer runs, where it has any


@dataclass(frozen=True, kw_only=True)
class Milestone:
    """What was known when a stage was over."""

    stage: AdviceStage
    spent: float  # batches, since the beginning
    leader: str
    score: float  # the leader's mean dev score
    seeds: int  # of the leader
    open: tuple[str, ...]  # that may still be the best
    out: tuple[str, ...]  # that are significantly behind


@dataclass(frozen=True, kw_only=True)
class ExpectedRow:
    """The score to expect of one new run on a task, and what the runs at hand have on test."""

    task: str
    metric: str
    value: float
    low: float
    high: float
    test: Interval | None = None  # None without test rows; nothing was chosen by it


@dataclass(frozen=True, kw_only=True)
class FindingRow:
    """What was noticed in the data."""

    kind: str
    tasks: tuple[str, ...]
    words: str
    warning: bool  # whether results may mislead because of it


@dataclass(frozen=True, kw_only=True)
class LearnedRow:
    """Whether anything was learned of a task, and how that is known."""

    task: str
    answer: str  # yes, no, or cannot tell
    best: float  # the mean over seeds of the best way
    guess: float
    words: str
    rows_needed: int | None = None  # of dev, so that it could be told


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The best mean dev score that a seed had reached after so many batches."""

    seed: int
    batches: float
    score: float


@dataclass(frozen=True, kw_only=True)
class FittedLaw:
    """A law of the score against batches, and what it says of more of them."""

    formula: str
    explained: float  # share of the evaluations' variance
    batches: float  # at the end of the data
    more: float  # batches for which `gain` is
    before: float
    gain: Interval  # of the mean dev score, from `batches` to `more`
    predicted: float  # gain of the second half, by the law fitted to the first alone
    observed: float  # what that half really brought
    curve: tuple[tuple[float, float], ...]  # batches and score, up to `more`


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What the records say of more batches, in a sentence or two and in numbers."""

    candidate: str
    words: str
    evaluations: tuple[Evaluation, ...]
    law: FittedLaw | None = None  # None where none could be fitted; `words` say why


@dataclass(frozen=True, kw_only=True)
class AdviceDocument:
    """What `advice.json` says; `load_advice` reads it and `save_advice` writes it."""

    version: int = ADVICE_VERSION
    title: str
    seconds: float
    level: float  # of the intervals
    lines: tuple[str, ...]  # the answer
    chosen: str  # the name of a candidate
    plan: PlanSummary
    targets: tuple[str, ...] = ()
    judged: tuple[str, ...]  # the tasks that means are over
    unlearned: tuple[str, ...] = ()
    batches_of_a_run: int
    length: int | None = (
        None  # batches of the training for which ways are ranked and scores promised
    )
    batches_of_a_longer_run: int | None = None  # of the leaders, where there were any
    learned: tuple[LearnedRow, ...] = ()  # whether anything was learned of each target
    agreement: Mapping[str, Interval] = field(default_factory=dict)  # of cheaper models, by name
    row_error: float = math.nan  # of a difference of two ways, because dev rows are a sample
    settled: bool | None = None  # whether one way is known to be the best; None: not said
    batches: int  # the budget; of one in seconds, what it was foreseen to pay for
    batches_spent: int
    budget_seconds: float | None = None  # None: the budget is one of batches
    candidates: tuple[CandidateRow, ...]  # the leader first
    milestones: tuple[Milestone, ...] = ()
    dev_gain: Mapping[str, Interval] = field(default_factory=dict)  # over each baseline, by seed
    test_gain: Mapping[str, Interval] = field(default_factory=dict)
    expected: tuple[ExpectedRow, ...] = ()
    outlook: Outlook | None = None  # None before the end
    findings: tuple[FindingRow, ...] = ()
    notes: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)  # what each is for, and the line

    def __post_init__(self) -> None:
        if not self.candidates:
            raise InputError("Advice should have a way of training at least. Found none.")

    @property
    def leader(self) -> CandidateRow:
        return self.candidates[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What in the data may mislead."""
        return tuple(each.words for each in self.findings if each.warning)


def save_advice(folder: Path, document: AdviceDocument) -> Path:
    """Writes `advice.json` into a study, whole or not at all.

    >>> from pathlib import Path
    >>> from taskmix.numerics import Interval
    >>> row = CandidateRow(
    ...     name="uniform", words="equal shares", seeds=2, dev=0.9, open=True,
    ...     behind=Interval(0.0, -0.1, 0.1, n=2))
    >>> document = AdviceDocument(
    ...     title="Advice", seconds=1.0, level=0.9, lines=(), chosen="uniform", judged=("a",),
    ...     plan=PlanSummary(tasks=("a",), probabilities=(1.0,), groups=(("a",),)),
    ...     batches_of_a_run=10, batches=100, batches_spent=10, candidates=(row,))
    >>> save_advice(Path("study"), document).name, load_advice(Path("study")) == document
    ('advice.json', True)
    """
    return write_document(folder / NAME, document)


def load_advice(folder: Path) -> AdviceDocument | None:
    """What `save_advice` wrote; None where there is none.

    >>> from pathlib import Path
    >>> load_advice(Path("no-study")) is None
    True
    >>> _ = Path("advice.json").write_text('{"version": 1, "title": 3}')
    >>> load_advice(Path("."))
    Traceback (most recent call last):
    taskmix.errors.InputError: ... (AdviceDocument.title should be words, and is 3). Run the command...
    """
    return read_document(
        folder / NAME, AdviceDocument, version=ADVICE_VERSION, command="taskmix advise"
    )
