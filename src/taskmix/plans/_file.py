"""`plan.json`: a plan as a small JSON file that any program reads.

Version 2 lists the parts. Version 1, which is still read, had one list of probabilities over all tasks,
with groups and a weighting beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import taskmix.models as models
import taskmix.weighting as weightings
from taskmix.engine import from_spec
from taskmix.errors import InputError
from taskmix.files import UnreadableError, check_output, has_keys, read_plain, write_bytes
from taskmix.models import Merge
from taskmix.plans._division import Division, Shares, Stage, Stages, Weighted
from taskmix.plans._json import known, listing, mapping
from taskmix.plans._plan import Expected, Length, Part, Plan
from taskmix.records import describe
from taskmix.weighting import AnyWeighting, GradientWeighting, LossWeighting

VERSION = 2
LARGEST = 64 << 20  # bytes; a plan for 100,000 tasks has a few
DRAWN, STAGED, WEIGHTED = (
    "shares",
    "stages",
    "weighting",
)  # the ways to divide, as the file has them


def check_plan_path(path: Path) -> None:
    """Raises where no plan can be written to a path, before any work is done for it.

    >>> from pathlib import Path
    >>> _ = Path("letter.json").write_text("Dear Sir or Madam")
    >>> check_plan_path(Path("letter.json"))
    Traceback (most recent call last):
    taskmix.errors.InputError: ...
    >>> check_plan_path(Path("plan.json"))
    """

    def is_plan(begin: bytes) -> bool:
        return has_keys("version", "parts")(begin) or has_keys("version", "probabilities")(begin)

    check_output(path, is_ours=is_plan, what="the plan")


def plan_text(plan: Plan) -> str:
    """The plan as JSON; what cannot be one is told."""
    try:
        return json.dumps(plan_document(plan), indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            "A plan's `evidence` should be words, finite numbers, lists and mappings of them. Found "
            f"something else ({error}). Turn arrays into lists."
        ) from error


def save_plan(plan: Plan, path: Path) -> Path:
    """Writes a plan, whole or not at all."""
    text = plan_text(plan)
    check_plan_path(path)
    write_bytes(path, (text + "\n").encode())
    return path


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, as `plan.json` has them.

    >>> from taskmix.plans import Part
    >>> part = Part(tasks=("a",), scored=("a",), share=1.0, division=Shares.equal(1))
    >>> plan_document(Plan(parts=(part,)))["parts"]
    [{'tasks': ['a'], 'scored': ['a'], 'share': 1.0, 'shares': [1.0]}]
    """
    return {
        "version": VERSION,
        "name": plan.name,
        "words": plan.words,
        "parts": [
            {
                "tasks": list(part.tasks),
                "scored": list(part.scored),
                "share": part.share,
                **_division_document(part.division),
                **({} if part.tuning is None else {"tuning": part.tuning}),
            }
            for part in plan.parts
        ],
        "expected": [asdict(item) for item in plan.expected],
        "length": None if plan.length is None else asdict(plan.length),
        **({} if plan.merge is None else {"merge": describe(plan.merge)}),
        "evidence": dict(plan.evidence),
    }


def _division_document(division: Division) -> dict[str, Any]:
    match division:
        case Shares(probabilities=shares):
            return {DRAWN: list(shares)}
        case Stages(stages=stages):
            return {STAGED: [{"begin": s.begin, DRAWN: list(s.probabilities)} for s in stages]}
        case Weighted(method=method):
            return {WEIGHTED: describe(method)}


def load_plan(path: Path) -> Plan:
    """Reads a plan; a file that is none is told in one sentence."""

    def bad(found: str) -> InputError:
        return InputError(
            f"`{path}` should be a plan, a JSON file of version {VERSION}. Found {found}. "
            "`taskmix improve STUDY --write-plan plan.json` writes one."
        )

    try:
        document = json.loads(read_plain(path, limit=LARGEST))
    except OSError as error:
        raise bad(f"no readable file ({error.strerror})") from error
    except UnreadableError as error:
        raise bad(error.found) from error
    except (ValueError, RecursionError) as error:
        raise bad("something that is no JSON") from error
    if not isinstance(document, dict):
        raise bad(f"a JSON {type(document).__name__}")
    try:
        match document.get("version"):
            case 1:
                raise bad("version 1, which taskmix 0.1 reads")
            case 2:
                return _plan(document)
            case other:
                raise bad(f"version {other!r}")
    except InputError as error:
        raise InputError(
            f"`{path}`: {error}" if str(path) not in str(error) else str(error)
        ) from error
    except KeyError as error:
        raise bad(f"no entry {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise bad(f"an entry of the wrong form ({error})") from error


def _plan(document: Mapping[str, Any]) -> Plan:
    known(document, "version", "name", "words", "parts", "expected", "length", "merge", "evidence")
    length = mapping(document.get("length"))
    return Plan(
        parts=tuple(_part(mapping(each)) for each in listing(document["parts"])),
        name=document.get("name", "plan"),
        words=document.get("words", ""),
        expected=tuple(Expected(**mapping(each)) for each in listing(document.get("expected"))),
        length=Length(**length) if length else None,
        merge=_read_merge(mapping(document["merge"])) if "merge" in document else None,
        evidence=mapping(document.get("evidence")),
    )


def _read_merge(description: Mapping[str, Any]) -> Merge:
    """The merge that `records.describe` described; only methods of `taskmix.models` are made."""
    try:
        found = from_spec(description, models)
        if isinstance(found, Merge):
            return found
    except InputError as error:
        raise InputError(
            "The `merge` of a plan should be a Merge with a method of taskmix under `kind`. Found "
            f"{dict(description)} ({error})"
        ) from error
    raise InputError(
        f"The `merge` of a plan should be of the kind Merge. Found {dict(description)}."
    )


def _part(document: Mapping[str, Any]) -> Part:
    known(document, "tasks", "scored", "share", DRAWN, STAGED, WEIGHTED, "tuning", "keep")
    if document.get("keep", "mean") != "mean":  # as some plans had it
        raise InputError(
            "All tasks of a plan's part should be served by the best mean dev score. Found `keep` "
            f"{document['keep']!r}. Leave `keep` out."
        )
    tasks = tuple(listing(document["tasks"]))
    scored = tuple(listing(document["scored"])) if "scored" in document else tasks
    return Part(
        tasks=tasks,
        scored=scored,
        share=document["share"],
        division=_division(document),
        tuning=document.get("tuning"),
    )


def _division(document: Mapping[str, Any]) -> Division:
    given = [way for way in (DRAWN, STAGED, WEIGHTED) if way in document]
    if len(given) != 1:
        raise InputError(
            f"A plan's part should have one of `{DRAWN}`, `{STAGED}` and `{WEIGHTED}`. Found "
            f"{' and '.join(given) or 'none'}."
        )
    if given == [DRAWN]:
        return Shares(probabilities=tuple(listing(document[DRAWN])))
    if given == [WEIGHTED]:
        return Weighted(method=read_weighting(mapping(document[WEIGHTED])))
    stages = [mapping(each) for each in listing(document[STAGED])]
    return Stages(
        stages=tuple(
            Stage(begin=each["begin"], probabilities=tuple(listing(each[DRAWN]))) for each in stages
        )
    )


def read_weighting(description: Mapping[str, Any]) -> AnyWeighting:
    """The method that `records.describe` described; only methods of `taskmix.weighting` are made."""
    try:
        found = from_spec(description, weightings)
    except InputError as error:
        raise InputError(
            "A plan's weighting should be a method of taskmix under `kind`, with options that it "
            f"takes. Found {dict(description)} ({error})"
        ) from error
    if isinstance(found, LossWeighting | GradientWeighting):
        return found
    raise InputError(
        "A plan's weighting should be a method of taskmix under `kind`, with its options. Found "
        f"{dict(description)}."
    )
