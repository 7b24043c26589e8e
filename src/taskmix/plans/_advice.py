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
from typing import Any

from taskmix.errors import InputError
from taskmix.numerics import Interval
from taskmix.records import read_document, write_document

ADVICE_VERSION = 2
NAME = "advice.json"


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
    """A candidate and where it stands in the race."""

    name: str
    words: str
    seeds: int
    dev: float  # mean over its own seeds
    behind: Interval  # the leader minus it, on rows not seen
    open: bool  # whether it may still be the best
    batches: float = math.nan  # until its best score
    cost: float = math.nan  # of a seed, in batches of a plain step
    seconds: float = math.nan  # of a seed's steps, on the device that took them
    runs: tuple[str, ...] = ()  # names of their folders
    chance: float = math.nan  # that it is the best


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
    best: float  # the mean over seeds of the best candidate
    guess: float
    words: str
    rows_needed: int | None = None  # of dev, so that it could be told


@dataclass(frozen=True, kw_only=True)
class BlendRow:
    """How one task is answered."""

    task: str
    weights: Mapping[str, float]  # of members, by name
    metric: str
    delivered: float  # its score on `split`
    checked: float  # that of the model trained on train rows alone


@dataclass(frozen=True, kw_only=True)
class DeliveredRow:
    """The model that people take home, and how it did on rows that nothing was chosen by."""

    members: tuple[str, ...]  # the best first
    refitted: bool  # whether it was trained again on train and dev rows
    batches: int  # of its network; 0: it has none
    split: str  # of all scores here: test, or dev where there is no test
    tasks: tuple[BlendRow, ...]
    gains: Mapping[str, Interval] = field(
        default_factory=dict
    )  # over plain, alone and peer, over rows
    plain: str = ""  # the plain candidate that is best on dev
    peer: str = ""  # the shallow model that is best on dev
    peers: Mapping[str, float] = field(default_factory=dict)  # mean dev score of each shallow model


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
    learned: tuple[LearnedRow, ...] = ()  # whether anything was learned of each target
    alike: tuple[str, ...] = ()  # candidates of which none is far from another
    within: float = math.nan  # how far apart those may be
    rung: str = ""  # the cheaper model that candidates were tried on first
    row_error: float = math.nan  # of a difference of two candidates, because dev rows are a sample
    settled: bool | None = None  # whether one is known to be the best, or all that may be are alike
    batches: int | None  # the budget; None: it is one of seconds
    batches_spent: int
    budget_seconds: float | None = None  # None: the budget is one of batches
    candidates: tuple[CandidateRow, ...]  # the leader first; none where no network was trained
    delivered: DeliveredRow | None = None  # None before the end, and where nothing is blended
    dev_gain: Mapping[str, Interval] = field(default_factory=dict)  # over each baseline, by seed
    test_gain: Mapping[str, Interval] = field(default_factory=dict)
    expected: tuple[ExpectedRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    notes: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)  # what each is for, and the line

    def __post_init__(self) -> None:
        if not self.candidates and self.delivered is None:
            raise InputError("Advice should have a candidate or a model at least. Found none.")

    @property
    def leader(self) -> CandidateRow | None:
        return self.candidates[0] if self.candidates else None

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
    >>> _ = Path("advice.json").write_text('{"version": 2, "title": 3}')
    >>> load_advice(Path("."))
    Traceback (most recent call last):
    taskmix.errors.InputError: ... (AdviceDocument.title should be words, and is 3). Run the command...
    """
    return read_document(
        folder / NAME, AdviceDocument, version=ADVICE_VERSION, command="taskmix advise"
    )
