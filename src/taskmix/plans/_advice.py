"""`advice.json`: a plan and all it rests on, beside the runs and readable without taskmix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taskmix.records import Document, must_have, read_document, write_document

ADVICE_VERSION = 1
NAME = "advice.json"


def save_advice(folder: Path, document: Document) -> Path:
    """Writes `advice.json` into a study, whole or not at all."""
    return write_document(folder / NAME, document)


def load_advice(folder: Path) -> Document | None:
    """What `save_advice` wrote; None where there is none."""
    path = folder / NAME
    return read_document(path, version=ADVICE_VERSION, command="taskmix advise", check=_check)


def _check(document: Document) -> None:
    must_have(document, "title", "seconds", "level", "lines", "chosen", "judged", "batches")
    must_have(document, "batches_of_a_run", "batches_spent", "notes", "unlearned")
    must_have(document["plan"], "tasks", "probabilities", "groups", "weighting")
    _each(document["candidates"], "name", "words", "seeds", "dev", "open", "out_after", "runs")
    _each([each["behind"] for each in document["candidates"]], "mean", "low", "high", "n")
    _each(document["milestones"], "stage", "spent", "leader", "score", "seeds", "open", "out")
    _each(document["expected"], "task", "metric", "value", "low", "high", "test")
    _each(document["findings"], "tasks", "words", "warning")
    for gains in (document["dev_gain"], document["test_gain"]):
        _each(list(gains.values()), "mean", "low", "high", "n")
    if document["outlook"] is not None:
        must_have(document["outlook"], "words", "evaluations", "law")
    for words in ("lines", "judged", "unlearned", "notes"):
        "".join(document[words])
    for pair in document["commands"].items():
        "".join(pair)


def _each(parts: Sequence[Document], *names: str) -> None:
    for part in parts:
        must_have(part, *names)
