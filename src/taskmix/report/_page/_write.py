"""The report of a study, as a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from taskmix.extras import require
from taskmix.records import Study
from taskmix.report._files import write_whole
from taskmix.report._page._html import report_html
from taskmix.report._shell import CHART_PACKAGES, PURPOSE
from taskmix.report._study import gather_report


def write_report(
    study: Study | Path,
    out: Path,
    *,
    labels: Sequence[str] | None = None,
    title: str | None = None,
    command: str = "",
    notes: Sequence[str] = (),
    delivered: Path | None = None,
    on_note: Callable[[str], object] = lambda note: None,
) -> Path:
    """Writes the page of a study to `out` and gives its path; its notes are told to `on_note`.

    `delivered` is another study, trained by this one's plan: what came of it stands beside what was
    promised. `taskmix report STUDY` does it.
    """
    require(*CHART_PACKAGES, purpose=PURPOSE)  # before everything is read
    command = command or f"taskmix report {study.path if isinstance(study, Study) else study}"
    data = gather_report(
        study, labels=labels, title=title, command=command, notes=notes, delivered=delivered
    )
    # Names may come from file names that are no Unicode; those characters show as `?`.
    page = report_html(data).encode("utf-8", "replace")
    written = write_whole(out, page, "the report")
    for note in data.notes:
        on_note(note)
    return written
