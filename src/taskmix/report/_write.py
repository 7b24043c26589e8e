"""The report of a study, as a file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from taskmix.errors import InputError
from taskmix.records import Study
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
    """Writes the page of a study to `out` and gives its path.

    The page is written aside and renamed: whoever has it open or kills us sees a whole one.
    """
    command = command or f"taskmix report {study.path if isinstance(study, Study) else study}"
    data = gather(study, labels=labels, title=title, command=command, notes=notes)
    # Names may come from file names that are no Unicode; those characters show as `?`.
    page = report_html(data).encode("utf-8", "replace")
    aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(page)
        aside.replace(out)
    except OSError as error:
        raise InputError(
            f"`{out}` should be a place to write the report to. Found: {error.strerror}. Choose "
            "another with `--out`."
        ) from error
    finally:
        with contextlib.suppress(OSError):  # gone already, or never there
            aside.unlink()
    return out
