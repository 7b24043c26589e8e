"""The report of a study, as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taskmix.records import Study
from taskmix.report._file import write_whole
from taskmix.report._gather import gather
from taskmix.report._page import report_html


def write_report(
    study: Study | Path,
    out: Path,
    *,
    labels: Sequence[str] | None = None,
    title: str | None = None,
    command: str = "",
    notes: Sequence[str] = (),
) -> Path:
    """Writes the page of a study to `out` and gives its path."""
    command = command or f"taskmix report {study.path if isinstance(study, Study) else study}"
    data = gather(study, labels=labels, title=title, command=command, notes=notes)
    # Names may come from file names that are no Unicode; those characters show as `?`.
    page = report_html(data).encode("utf-8", "replace")
    return write_whole(out, page, "the report")
