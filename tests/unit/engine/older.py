"""Studies as version 0.1 left them: the label is part of what names a run."""

from __future__ import annotations

import json
from pathlib import Path

from taskmix.engine import Run
from taskmix.records import RunFolder, specification_hash


def older_name(run: Run) -> str:
    return specification_hash({**run.specification(), "label": run.label})


def make_older(folder: RunFolder, run: Run) -> Path:
    """Makes of a record what version 0.1 would have written."""
    document = json.loads((folder.path / "run.json").read_text())
    document["specification"] = {"format": 1, "label": run.label} | document["specification"]
    document["name"] = name = older_name(run)
    del document["crc32"]
    (folder.path / "run.json").write_text(json.dumps(document, indent=2))
    return folder.path.rename(folder.path.with_name(name))
