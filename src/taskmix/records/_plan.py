"""A plan: what the lessons of earlier runs advise for the next one, as a small JSON file.

`plan.json` says how likely each task is to be trained on (by stages of the run where that helps),
which tasks to train together, what score to expect, and what it all rests on. Its probabilities go
straight into `datasets.interleave_datasets`, into a batch sampler, or into `taskmix train --plan`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.files import UnreadableError, check_output, has_keys, read_plain, write_bytes

VERSION = 1
_LARGEST = 64 << 20  # bytes; a plan for 100,000 tasks has a few


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The probabilities from a share of the run on."""

    begin: float  # 0 is the start, 0.5 half-way
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not _is_number(self.begin):
            raise InputError(
                "The `begin` of a plan's stage should be a share of the run. Found "
                f"{self.begin!r}. The first stage begins at 0."
            )


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A score to expect for a task, with its interval."""

    task: str
    metric: str
    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        words, numbers = (self.task, self.metric), (self.value, self.low, self.high)
        if not (all(isinstance(w, str) for w in words) and all(_is_number(n) for n in numbers)):
            raise InputError(
                "What a plan expects should name a task and a metric, with finite numbers for `value`, "
                f"`low` and `high`. Found {words} and {numbers}."
            )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to divide the next run's budget; `probabilities` are in the order of `tasks`."""

    tasks: tuple[str, ...]
    probabilities: tuple[float, ...]
    stages: tuple[Stage, ...] = ()  # where the probabilities should change over the run
    groups: tuple[tuple[str, ...], ...] = ()  # tasks to train together; empty: all of them
    weighting: Mapping[str, Any] | None = None  # a method and its options
    expected: tuple[Expected, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)  # what it rests on

    def __post_init__(self) -> None:
        _check_names(self.tasks)
        for where, probabilities in [
            ("probabilities", self.probabilities),
            *((f"stages[{place}]", stage.probabilities) for place, stage in enumerate(self.stages)),
        ]:
            _check_probabilities(where, probabilities, len(self.tasks))
        begins = [stage.begin for stage in self.stages]
        if begins and (begins != sorted(set(begins)) or begins[0] != 0 or begins[-1] >= 1):
            raise InputError(
                "The `begin` of a plan's stages should rise from 0 and stay below 1. Found "
                f"{begins}."
            )
        known = set(self.tasks)
        for name in [name for group in self.groups for name in group]:
            if name not in known:
                raise InputError(
                    f"A plan's groups should name its tasks. Found `{name}`, which is none of them."
                )
        for item in self.expected:
            if item.task not in known:
                raise InputError(
                    f"A plan should expect scores of its tasks. Found `{item.task}`, which is none of "
                    "them."
                )

    def save(self, path: Path | str) -> Path:
        """Writes the plan, whole or not at all."""
        document = {
            "version": VERSION,
            "tasks": list(self.tasks),
            "probabilities": list(self.probabilities),
            "stages": [
                {"begin": stage.begin, "probabilities": list(stage.probabilities)}
                for stage in self.stages
            ],
            "groups": [list(group) for group in self.groups],
            "weighting": self.weighting,
            "expected": [asdict(item) for item in self.expected],
            "evidence": dict(self.evidence),
        }
        try:
            text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                "A plan's `evidence` and `weighting` should be words, finite numbers, lists and "
                f"mappings of them. Found something else ({error}). Turn arrays into lists."
            ) from error
        check_plan_path(Path(path))
        write_bytes(Path(path), (text + "\n").encode())
        return Path(path)

    @classmethod
    def load(cls, path: Path | str) -> Plan:
        """Reads a plan; a file that is none is told in one sentence."""
        return _read(Path(path))

    def for_tasks(self, names: Sequence[str]) -> Plan:
        """The same plan in the order of `names`, which must be its tasks."""
        if set(names) != set(self.tasks):
            missing = sorted(set(self.tasks) - set(names))
            extra = sorted(set(names) - set(self.tasks))
            raise InputError(
                "The plan should be for the tasks at hand. Found "
                f"{_listed(extra)} without a place in the plan and {_listed(missing)} only in it. "
                "Choose the plan's tasks with --only."
            )
        places = {name: place for place, name in enumerate(self.tasks)}
        order = [places[name] for name in names]
        return Plan(
            tasks=tuple(names),
            probabilities=tuple(self.probabilities[place] for place in order),
            stages=tuple(
                Stage(
                    begin=stage.begin,
                    probabilities=tuple(stage.probabilities[place] for place in order),
                )
                for stage in self.stages
            ),
            groups=self.groups,
            weighting=self.weighting,
            expected=self.expected,
            evidence=self.evidence,
        )


def _listed(names: Sequence[str]) -> str:
    return (
        ", ".join(f"`{name}`" for name in names[:5]) + (" ..." if len(names) > 5 else "") or "none"
    )


def _is_number(value: object) -> bool:
    # A whole number too large for a float is no share and no score.
    if not isinstance(value, float | int) or isinstance(value, bool):
        return False
    return -1e308 < value < 1e308


def _check_names(names: Sequence[str]) -> None:
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise InputError(
            f"A plan's `tasks` should be names that differ, at least one. Found {list(names)[:10]}."
        )


def _check_probabilities(where: str, probabilities: Sequence[float], count: int) -> None:
    fine = (
        len(probabilities) == count
        and all(_is_number(p) and p >= 0 for p in probabilities)
        and abs(sum(probabilities) - 1.0) < 1e-6
    )
    if not fine:
        raise InputError(
            f"A plan's `{where}` should be {count} numbers from 0 up that sum to 1, one for each "
            f"task. Found {list(probabilities)[:10]}."
        )


def check_plan_path(path: Path) -> None:
    """Raises where no plan can be written to a path, before any work is done for it."""
    check_output(path, is_ours=has_keys("version", "tasks", "probabilities"), what="the plan")


def _read(path: Path) -> Plan:
    def bad(found: str) -> InputError:
        return InputError(
            f"`{path}` should be a plan, a JSON file of version {VERSION}. Found {found}. "
            "`taskmix improve STUDY --out plan.json` writes one."
        )

    try:
        document = json.loads(read_plain(path, limit=_LARGEST))
    except OSError as error:
        raise bad(f"no readable file ({error.strerror})") from error
    except UnreadableError as error:
        raise bad(error.found) from error
    except (ValueError, RecursionError) as error:
        raise bad("something that is no JSON") from error
    if not isinstance(document, dict):
        raise bad(f"a JSON {type(document).__name__}")
    if document.get("version") != VERSION:
        raise bad(f"version {document.get('version')!r}")
    known = {
        "version",
        "tasks",
        "probabilities",
        "stages",
        "groups",
        "weighting",
        "expected",
        "evidence",
    }
    if unknown := sorted(set(document) - known):
        raise bad(f"the unknown entry {unknown[0]!r}")
    try:
        return Plan(
            tasks=tuple(_listing(document["tasks"])),
            probabilities=tuple(_listing(document["probabilities"])),
            stages=tuple(
                Stage(begin=stage["begin"], probabilities=tuple(_listing(stage["probabilities"])))
                for stage in _listing(document.get("stages"))
            ),
            groups=tuple(tuple(_listing(group)) for group in _listing(document.get("groups"))),
            weighting=_mapping(document.get("weighting")),
            expected=tuple(Expected(**item) for item in _listing(document.get("expected"))),
            evidence=_mapping(document.get("evidence")) or {},
        )
    except InputError as error:
        raise InputError(f"`{path}`: {error}") from error
    except KeyError as error:
        raise bad(f"no entry {error}") from error
    except (TypeError, ValueError) as error:
        raise bad(f"an entry of the wrong form ({error})") from error


def _listing(value: object) -> list[Any]:
    """A list; nothing stands for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__} where a list should be")
    return value


def _mapping(value: object) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"a {type(value).__name__} where a mapping should be")
    return value
