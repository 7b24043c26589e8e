"""Rows of a published data set: JSON lines, plain or gzip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.tasks import text_lines


def read_lines(folder: Path, name: str) -> list[dict[str, Any]] | None:
    """The objects of `name`.jsonl or `name`.jsonl.gz; None where there is no such file."""
    paths = [folder / f"{name}.jsonl{ending}" for ending in ("", ".gz")]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return None
    try:
        lines = [json.loads(line) for line in text_lines(path) if line.strip()]
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path}` should be lines of JSON. Reading it said: {error}.") from error
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise InputError(f"`{path}` should have an object on every line. Found something else.")
    return lines
