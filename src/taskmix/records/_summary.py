"""`run.json`: everything that determines a run, how far it is and what came of it."""

from __future__ import annotations

import contextlib
import json
import math
import platform
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import taskmix
from taskmix.errors import RecordError
from taskmix.files import read_plain, write_bytes
from taskmix.records._checkpoint import CheckpointEntry, parse_checkpoint_entry
from taskmix.records._damage import DamageError
from taskmix.records._labels import read_labels

FORMAT = 1
NAME = "run.json"
NAMED_WITH_LABEL = {"format", "tasks", "architecture", "optimization", "seed", "label"}
NO_SUM = "00000000"  # stands for the checksum while it is taken; it is the last entry of the file

_INT64 = 2**63

RunStatus = Literal["running", "finished", "failed", "stopped"]  # a killed run still says `running`


class NewerFormatError(RecordError):
    """A record that only a newer taskmix can read: there is nothing wrong with it."""


class FinalScore(NamedTuple):
    """A score of the finished run.

    >>> FinalScore("sentiment", "dev", "accuracy", 0.9).value
    0.9
    """

    task: str
    split: str
    metric: str
    value: float


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """A run as `run.json` has it.

    >>> study = Study("study")
    >>> with study.run({"rate": 0.1}).claim() as claim:
    ...     claim.writer.start(
    ...         specification={"rate": 0.1}, seed=7, label="fast", tasks=[{"name": "a"}], steps=1
    ...     )
    ...     claim.writer.finish(scores=[("a", "dev", "f1", 0.5)], best_step=None)
    >>> study.run({"rate": 0.1}, label="slow").keep_label()
    >>> (summary,) = study.summaries()
    >>> (summary.status, summary.labels, [each.label for each in summary.under_each_label()])
    ('finished', ('fast', 'slow'), ['fast', 'slow'])
    """

    name: str  # the hash of the specification, which is the folder's name
    status: RunStatus
    label: str  # the first one it was asked for under, or the one that the reader asks with
    seed: int
    step: int  # of the last commit
    steps: int  # planned
    seconds: float  # in training so far, over all sessions
    best_step: int | None
    error: str | None
    created: str  # ISO times in UTC
    updated: str
    scores: tuple[FinalScore, ...]
    tasks: list[dict[str, Any]]  # one for each task, in order: its name, kind, metric, sizes, ...
    versions: dict[str, str]
    specification: dict[str, Any]
    kept: CheckpointEntry | None  # the files a finished run keeps
    lean: bool = False  # by design without a record of its steps
    other_labels: tuple[
        str, ...
    ] = ()  # that it was asked for under as well; files beside `run.json`

    @property
    def task_names(self) -> tuple[str, ...]:
        return tuple(task["name"] for task in self.tasks)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, `label` first."""
        return (self.label, *self.other_labels)

    def under(self, label: str) -> RunSummary:
        """The run as one of this label."""
        others = tuple(each for each in self.labels if each != label)
        return replace(self, label=label, other_labels=others)

    def under_each_label(self) -> tuple[RunSummary, ...]:
        """The run once for each of its labels, for whatever groups runs by them."""
        return tuple(self.under(label) for label in self.labels)


class FinalScores(NamedTuple):
    """The scores of a finished run, in columns."""

    run: str
    label: str
    seed: int
    step: int  # the best one where there is one, else the last
    tasks: list[str]
    splits: list[str]
    metrics: list[str]
    values: list[float]


def write_summary(folder: Path, summary: RunSummary, *, sync: bool = True) -> None:
    """Replaces a run's `run.json`."""
    document = {field.name: getattr(summary, field.name) for field in fields(summary)}
    document["scores"] = [
        score._asdict() | {"value": _finite(score.value)} for score in summary.scores
    ]
    document["kept"] = None if summary.kept is None else asdict(summary.kept)
    del document["other_labels"]
    if not summary.lean:
        del document["lean"]
    text = _readable({"format": FORMAT} | document | {"crc32": NO_SUM})
    data = text.encode("utf-8", "surrogatepass")
    write_bytes(folder / NAME, _with_sum(data, f"{zlib.crc32(data):08x}"), sync=sync)


def _with_sum(data: bytes, total: str, *, found: str = NO_SUM) -> bytes:
    """The file with another checksum in the place of the one in it."""
    before, _, after = data.rpartition(found.encode())
    return before + total.encode() + after


def _readable(document: Mapping[str, Any]) -> str:
    """Indented JSON with a line for each task and each score."""

    def dump(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)

    lines = []
    for key, value in document.items():
        if key in ("scores", "tasks") and value:
            items = ",\n".join(f"    {dump(item)}" for item in value)
            lines.append(f"  {dump(key)}: [\n{items}\n  ]")
        else:
            lines.append(f"  {dump(key)}: " + dump(value, indent=2).replace("\n", "\n  "))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_summary(folder: Path) -> RunSummary | None:
    """A run's `run.json`, checked, and its labels; None where there is none."""
    try:
        data = read_plain(folder / NAME)
    except FileNotFoundError:
        return None
    summary = parse_summary(data, folder / NAME)
    return with_labels(summary, read_labels(folder))


def with_labels(summary: RunSummary, labels: Iterable[str]) -> RunSummary:
    """The run with the labels that lie beside its `run.json`."""
    others = tuple(label for label in labels if label != summary.label)
    return replace(summary, other_labels=others) if others else summary


def parse_summary(data: bytes, path: Path) -> RunSummary:
    """The content of a `run.json`, checked."""
    return _summary_of(read_run_document(data, path), path)


def parse_final_scores(data: bytes, path: Path) -> FinalScores | None:
    """Only what the table of a study needs; None for a run that is not finished."""
    document = read_run_document(data, path)
    if document.get("status") not in get_args(RunStatus):
        raise damaged(path, f"{document.get('status')!r} as `status`")
    if document["status"] != "finished":
        return None
    try:
        run, label, seed, best = (document[key] for key in ("name", "label", "seed", "best_step"))
        scores = document["scores"]
        tasks, splits, metrics = (
            [score[key] for score in scores] for key in ("task", "split", "metric")
        )
        values = [_value_of(score["value"]) for score in scores]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise damaged(path, f"scores in another form ({error})") from error
    step: Any = document.get("step") if best is None else best
    words = [run, label, *tasks, *splits, *metrics]
    if set(map(type, words)) != {str} or not _is_text("".join(words)):
        raise damaged(path, "a name that is no text")
    if {type(seed), type(step)} != {int} or max(abs(seed), abs(step)) >= _INT64:
        raise damaged(path, "a seed or a step that is no number of 64 bits")
    return FinalScores(run, label, seed, step, tasks, splits, metrics, values)


def read_run_document(data: bytes, path: Path) -> dict[str, Any]:
    """A `run.json` as JSON, of our format and with the right checksum."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:  # broken JSON, broken UTF-8, brackets without end
        raise damaged(path, f"no JSON ({error})") from error
    if not isinstance(document, dict) or "format" not in document:
        raise damaged(path, "JSON of another kind")
    if isinstance(document["format"], int) and document["format"] > FORMAT:
        raise NewerFormatError(
            f"`{path}` should be of format {FORMAT}. Found {document['format']}, which a newer "
            f"taskmix than this one ({taskmix.__version__}) wrote. Update it with `pip install "
            "--upgrade taskmix`."
        )
    if document["format"] != FORMAT:
        raise RecordError(
            f"`{path}` should be of format {FORMAT}. Found {document['format']!r}, of another "
            "version of taskmix. Read it with that version."
        )
    total = document.get("crc32")  # who changes one by hand takes it out
    if total is not None and not _fits(data, total):
        raise damaged(path, "a checksum that does not fit (who changes it by hand takes it out)")
    specification = document.get("specification")
    if isinstance(specification, dict) and specification.keys() >= NAMED_WITH_LABEL:
        raise RecordError(
            f"`{path}` should be of a run that is named without its label. Found one of version 0.1. "
            "Read it with taskmix 0.1, or ask for the run again."
        )
    return document


def _fits(data: bytes, total: object) -> bool:
    if not isinstance(total, str) or len(total) != len(NO_SUM) or not total.isascii():
        return False
    return f"{zlib.crc32(_with_sum(data, NO_SUM, found=total)):08x}" == total


def _summary_of(document: Mapping[str, Any], path: Path) -> RunSummary:
    def take(key: str, kind: type | tuple[type, ...]) -> Any:
        value = document.get(key)
        is_huge = isinstance(value, int) and abs(value) >= _INT64
        if not isinstance(value, kind) or isinstance(value, bool) or is_huge:
            raise damaged(path, f"{value!r:.60} as `{key}`")
        return value

    status = take("status", str)
    if status not in get_args(RunStatus):
        raise damaged(path, f"{status!r} as `status`")
    tasks = take("tasks", list)
    if not all(isinstance(task, dict) and _is_text(task.get("name")) for task in tasks):
        raise damaged(path, "a task without a name")
    try:
        scores = tuple(_score_of(row) for row in take("scores", list))
        kept = None if document.get("kept") is None else parse_checkpoint_entry(document["kept"])
        seconds = float(take("seconds", (int, float)))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise damaged(path, f"scores, files or seconds in another form ({error})") from error
    return RunSummary(
        name=take("name", str),
        status=cast("RunStatus", status),
        label=take("label", str),
        seed=take("seed", int),
        step=take("step", int),
        steps=take("steps", int),
        seconds=seconds,
        best_step=take("best_step", (int, type(None))),
        error=take("error", (str, type(None))),
        created=take("created", str),
        updated=take("updated", str),
        scores=scores,
        tasks=tasks,
        versions=take("versions", dict),
        specification=take("specification", dict),
        kept=kept,
        lean=document.get("lean") is True,
    )


def _score_of(row: Mapping[str, Any]) -> FinalScore:
    task, split, metric, value = row["task"], row["split"], row["metric"], row["value"]
    if not (isinstance(task, str) and isinstance(split, str) and isinstance(metric, str)):
        raise TypeError("a score should name its task, split and metric")
    # The same few words come in every run of a study.
    return FinalScore(sys.intern(task), sys.intern(split), sys.intern(metric), _value_of(value))


def _is_text(value: object) -> bool:
    """Whether Arrow takes it: not so half of a surrogate pair."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _value_of(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


@cache
def installed_versions() -> dict[str, str]:
    """What a run's bits may depend on; nothing is imported to find out."""
    versions = {"python": platform.python_version(), "taskmix": taskmix.__version__}
    for package in ("torch", "numpy", "pyarrow", "safetensors"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def version_note(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    names = sorted(before.keys() | after.keys())
    changes = ", ".join(
        f"{name} from {before.get(name, 'none')} to {after.get(name, 'none')}"
        for name in names
        if before.get(name) != after.get(name)
    )
    return f"The run goes on under other versions, so its last bits may differ: {changes}."


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _finite(value: float) -> float | str | None:
    """JSON has neither NaN nor infinity: an undefined score is null, an infinite one its name."""
    value = float(value)
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else repr(value)


def damaged(path: Path, found: str) -> DamageError:
    return DamageError(
        f"`{path}` should describe a run. Found {found}. Restore the file from a copy, or ask for "
        "the run again: it goes on from its last checkpoint."
    )
