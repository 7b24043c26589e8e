"""Runs of version 0.1, whose label was part of what named them.

Their folders stay where and what they are. A study that has some is asked for a run by the name without
a label, and gives the folder that has the run under whichever label it was trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskmix.records._specification import describe, specification_hash
from taskmix.records._summary import read_run_document

KEYS = {
    "format",
    "tasks",
    "architecture",
    "optimization",
    "seed",
}  # of every run that an engine did


def named_with(specification: Mapping[str, object], label: str) -> str | None:
    """What version 0.1 named a run of this label; None where it is no run of an engine.

    >>> named_with({"x": 1}, "uniform") is None
    True
    """
    if "label" in specification or not specification.keys() >= KEYS:
        return None
    return specification_hash({**specification, "label": label})


def name_without_label(data: bytes, path: Path) -> str | None:
    """From a `run.json`: what the run would be named now; None where it is named so already."""
    if data.count(b'"label"') < 2:  # the run's own is one, that of its specification the other
        return None
    specification = read_run_document(data, path).get("specification")
    if not isinstance(specification, dict) or not specification.keys() >= {"label", *KEYS}:
        return None
    return specification_hash({key: specification[key] for key in specification if key != "label"})


def described_as(
    specification: Mapping[str, object], name: str, labels: tuple[str, ...]
) -> dict[str, Any] | None:
    """The specification in the form whose hash is `name`; None where it has none.

    `labels` are those the name may have been made with.
    """
    described: Any = describe(specification)
    if specification_hash(described) == name:
        return dict(described)
    found = (label for label in labels if named_with(described, label) == name)
    return next(({**described, "label": label} for label in found), None)
