"""The report of a study, as a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from taskmix.errors import InputError, TaskmixError
from taskmix.extras import require
from taskmix.records import Study
from taskmix.report._files import write_whole
from taskmix.report._page._html import PACKAGES, PURPOSE, report_html
from taskmix.report._study import gather_report


def write_report(
    study: Study | Path,
    out: Path,
    *,
    labels: Sequence[str] | None = None,
    title: str | None = None,
    command: str = "",
    notes: Sequence[str] = (),
    on_note: Callable[[str], object] = lambda note: None,
) -> Path:
    """Writes the page of a study to `out` and gives its path; its notes are told to `on_note`.

    `taskmix report STUDY` does it.
    """
    require(*PACKAGES, purpose=PURPOSE)  # before everything is read
    command = command or f"taskmix report {study.path if isinstance(study, Study) else study}"
    folder = study.path if isinstance(study, Study) else study
    try:
        data = gather_report(study, labels=labels, title=title, command=command, notes=notes)
        # Names may come from file names that are no Unicode; those characters show as `?`.
        page = report_html(data).encode("utf-8", "replace")
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        if isinstance(error, TaskmixError) or not _has_documents(folder):
            raise
        # What commands have left there is a file like any other, which anyone may have changed.
        raise InputError(
            f"The JSON files beside the runs of `{folder}` should be as taskmix wrote them. Found "
            f"something else ({type(error).__name__}: {error}). Delete them, or run the command that "
            "wrote them again; it trains nothing twice."
        ) from error
    written = write_whole(out, page, "the report")
    for note in data.notes:
        on_note(note)
    return written


def _has_documents(folder: Path) -> bool:
    return any(folder.glob("*.json"))
