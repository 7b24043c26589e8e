"""A study in progress, from its records alone: which runs there are, how they go, what was drawn.

Records are read while others write them. A run whose record cannot be read at this moment is left out
of this look and told, and found again at the next.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taskmix.errors import InputError, TaskmixError
from taskmix.files import read_plain
from taskmix.plans import load_advice
from taskmix.records import RunSummary, Study

RUNS_SHOWN = 200  # in the list
RUNS_DRAWN = 40  # as lines, and in the shares: the last ones that were begun
POINTS = 60  # of a line
TASKS_DRAWN = 12  # charts
SILENT_AFTER = (
    300.0  # seconds without a commit: a run that was killed still says that it is running
)
LONGEST_ERROR = 300  # characters


@dataclass(frozen=True, kw_only=True)
class WatchedRun:
    """A run as it stands.

    >>> run = WatchedRun(
    ...     name="1b84", label="uniform", seed=0, status="running", step=50, steps=200, seconds=3.0,
    ...     quiet=2.0)
    >>> run.step / run.steps
    0.25
    """

    name: str
    label: str
    seed: int
    status: str  # running, finished, failed, stopped, or silent: running without a word for minutes
    step: int  # of its last commit
    steps: int
    seconds: float  # in training
    quiet: float  # seconds since its last commit, while it runs
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class WatchedCurve:
    """The dev scores of a run on a task.

    >>> WatchedCurve(run="1b84", label="uniform", task="a", metric="f1", points=((5, 0.5),)).points
    ((5, 0.5),)
    """

    run: str
    label: str
    task: str
    metric: str
    points: tuple[tuple[int, float], ...]  # step and score


@dataclass(frozen=True, kw_only=True)
class WatchedAdvice:
    """Where an adviser stands.

    >>> WatchedAdvice(lines=(), stage="race", spent=50.0, budget=200.0, unit="batches").stage
    'race'
    """

    lines: tuple[str, ...]  # its answer as of now; none before the first
    stage: str | None  # that was the last to end
    spent: float | None
    budget: float | None
    unit: str  # seconds or batches


@dataclass(frozen=True, kw_only=True)
class StudyState:
    """All that the page shows.

    >>> StudyState(title="study", counts={"finished": 3}).counts["finished"]
    3
    """

    title: str
    counts: dict[str, int] = field(default_factory=dict)  # runs by status
    steps: int = 0  # done, over all runs
    seconds: float = 0.0  # in training, over all runs
    runs: tuple[WatchedRun, ...] = ()  # the last ones first
    curves: tuple[WatchedCurve, ...] = ()
    shares: dict[str, dict[str, float]] = field(default_factory=dict)  # drawn, by label and task
    advice: WatchedAdvice | None = None
    notes: tuple[str, ...] = ()


class StudyWatcher:
    """Looks at a study again and again; what has not changed is not read again.

    >>> from pathlib import Path
    >>> StudyWatcher(Path("no-study")).look()
    Traceback (most recent call last):
    taskmix.errors.InputError: `no-study` should be a study, a folder with runs in it. Found no ...
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, tuple[tuple[object, ...], _Read]] = {}

    def look(self) -> StudyState:
        """The study as it is now."""
        if not self.path.is_dir():
            raise _no_study(self.path, "no folder")
        notes: list[str] = []
        summaries = Study(self.path).summaries(note=notes.append)
        begun = any((self.path / name).is_file() for name in ("study.json", "ledger.json"))
        if not summaries and not begun and not notes:
            raise _no_study(self.path, "no run")
        now = datetime.now(UTC)
        summaries.sort(key=lambda run: (run.created, run.name), reverse=True)
        runs = [_watched(run, now) for run in summaries]
        drawn = [(run, self._read(run, notes)) for run in summaries[:RUNS_DRAWN]]
        return StudyState(
            title=self.path.resolve().name,
            counts=dict(Counter(run.status for run in runs)),
            steps=sum(run.step for run in runs),
            seconds=sum(run.seconds for run in runs),
            runs=tuple(runs[:RUNS_SHOWN]),
            curves=tuple(curve for _, read in drawn for curve in read.curves),
            shares=_shares([(run.label, read.drawn) for run, read in drawn]),
            advice=self._advice(notes),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _read(self, run: RunSummary, notes: list[str]) -> _Read:
        stamp = (run.status, run.step, run.updated)
        known = self._known.get(run.name)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            read = _read_run(self.path, run)
        except (TaskmixError, OSError) as error:
            notes.append(f"Run {run.name} cannot be read now: {error}")
            return known[1] if known is not None else _Read()
        self._known[run.name] = (stamp, read)
        return read

    def _advice(self, notes: list[str]) -> WatchedAdvice | None:
        try:
            advice = load_advice(self.path)
        except (TaskmixError, OSError) as error:
            notes.append(str(error))
            advice = None
        ledger = _ledger(self.path)
        if advice is None and ledger is None:
            return None
        asked = (ledger or {}).get("asked", {})
        budget = asked.get("budget") if isinstance(asked, dict) else None
        seconds = budget.get("seconds") if isinstance(budget, dict) else None
        if isinstance(seconds, int | float):
            return _advised(advice, (ledger or {}).get("seconds"), seconds, "seconds")
        batches = budget.get("batches") if isinstance(budget, dict) else None
        spent = None if advice is None else advice.batches_spent
        return _advised(advice, spent, batches or (advice and advice.batches), "batches")


@dataclass(frozen=True)
class _Read:
    """What is drawn of a run."""

    curves: tuple[WatchedCurve, ...] = ()
    drawn: Counter[str] = field(default_factory=Counter)  # steps of each task


def _no_study(path: Path, found: str) -> InputError:
    return InputError(
        f"`{path}` should be a study, a folder with runs in it. Found {found} there. Begin one with "
        "`taskmix train FOLDER --out STUDY` or `taskmix advise FOLDER --out STUDY`."
    )


def _watched(run: RunSummary, now: datetime) -> WatchedRun:
    quiet = 0.0
    try:
        if run.status == "running":
            quiet = max((now - datetime.fromisoformat(run.updated)).total_seconds(), 0.0)
    except (ValueError, TypeError):  # a time of another form, or without a zone
        pass
    return WatchedRun(
        name=run.name,
        label=", ".join(run.labels),
        seed=run.seed,
        status="silent" if quiet > SILENT_AFTER else run.status,
        step=run.step,
        steps=run.steps,
        seconds=run.seconds,
        quiet=quiet,
        error=None if run.error is None else run.error[:LONGEST_ERROR],
    )


def _read_run(study: Path, run: RunSummary) -> _Read:
    folder = Study(study).run_named(run.name)
    metrics = {task["name"]: task.get("metric") for task in run.tasks}
    points: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in folder.scores().to_pylist():
        task, metric, value = row["task"], row["metric"], row["value"]
        # Losses and other metrics are recorded too; a task is judged by its own.
        if row["split"] == "dev" and metric == metrics.get(task) and value is not None:
            points.setdefault((task, metric), []).append((row["step"], value))
    curves = tuple(
        WatchedCurve(run=run.name, label=run.label, task=task, metric=metric, points=_thin(line))
        for (task, metric), line in list(points.items())[:TASKS_DRAWN]
    )
    drawn: Counter[str] = Counter()
    for batch in folder.iter_step_batches(["task"]):
        for each in batch.column(0).value_counts().to_pylist():
            drawn[str(each["values"])] += each["counts"]
    return _Read(curves, drawn)


def _thin(points: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """At most so many points, the last one among them."""
    if len(points) <= POINTS:
        return tuple(points)
    places = {round(n * (len(points) - 1) / (POINTS - 1)) for n in range(POINTS)}
    return tuple(points[place] for place in sorted(places))


def _shares(drawn: Sequence[tuple[str, Counter[str]]]) -> dict[str, dict[str, float]]:
    by_label: dict[str, Counter[str]] = {}
    for label, counts in drawn:
        by_label.setdefault(label, Counter()).update(counts)
    return {
        label: {task: count / counts.total() for task, count in counts.most_common()}
        for label, counts in by_label.items()
        if counts
    }


def _ledger(path: Path) -> dict[str, Any] | None:
    """What an adviser has written down of its time, if there is one."""
    try:
        document = json.loads(read_plain(path / "ledger.json"))
    except (OSError, TaskmixError, ValueError, RecursionError):
        return None  # none, or none that tells anything
    return document if isinstance(document, dict) else None


def _advised(advice: Any, spent: object, budget: object, unit: str) -> WatchedAdvice:
    return WatchedAdvice(
        lines=() if advice is None else advice.lines,
        stage=advice.milestones[-1].stage if advice is not None and advice.milestones else None,
        spent=float(spent) if isinstance(spent, int | float) else None,
        budget=float(budget) if isinstance(budget, int | float) else None,
        unit=unit,
    )
