"""`taskmix report`: the page of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._options._completing import study_folders
from taskmix.cli._printing._display import echo, note
from taskmix.errors import InputError, OptionError, RecordError
from taskmix.extras import require


def report(
    study: Annotated[
        Path,
        typer.Argument(
            help="A folder of runs, as `train --out` or `advise --out` writes it.",
            autocompletion=study_folders,
        ),
    ],
    page: Annotated[
        Path | None, typer.Option("--page", help="The file to write [STUDY/report.html].")
    ] = None,
    delivered: Annotated[
        Path | None,
        typer.Option("--delivered", help="A study trained by its plan: shown beside the promise."),
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Serve the page while the study runs, to this machine alone."),
    ] = False,
    port: Annotated[
        int, typer.Option("--port", help="With --live: of this machine; 0: any that is free.")
    ] = 8765,
    json_: Annotated[bool, typer.Option("--json", help="Print the final scores as JSON.")] = False,
) -> None:
    """Write one self-contained HTML page about a study, or show it while the study runs.

    With --live nothing is written; Ctrl-C ends it, and the study goes on.

    Examples:

        taskmix report study --page report.html

        taskmix report advice --delivered trained

        taskmix report study --live
    """
    from taskmix.cli._printing._display import print_json
    from taskmix.cli._printing._tables import score_table
    from taskmix.records import Study
    from taskmix.report import PAGE_PACKAGES, ReportServer, write_report

    require(*PAGE_PACKAGES, purpose="`taskmix report`")
    if live:
        if page is not None or json_:
            raise OptionError(
                "`--live` should come without `--page` and `--json`: it writes nothing. Found one of "
                "them. Leave it out, or leave out `--live`."
            )
        with ReportServer(study, port=port, delivered=delivered) as server:
            echo(f"{study} is shown at {server.address} (Ctrl-C ends it).")
            server.serve_forever()
        return
    records = Study(study)
    unread: list[str] = []
    summaries = records.summaries(note=unread.append) if study.is_dir() else []
    if unread and not summaries:
        raise RecordError(f"No run of `{study}` can be read. {unread[0]}")
    if not summaries:
        raise InputError(
            f"`{study}` should be a study, a folder with runs in it. Found no run there. "
            "Make one with `taskmix train FOLDER --out STUDY`."
        )
    written = write_report(
        records, page or study / "report.html", delivered=delivered, on_note=note
    )
    if json_:
        shown = [each for summary in summaries for each in summary.under_each_label()]
        rows = [row for split in ("dev", "test") for row in score_table(shown, split).rows()]
        print_json(
            {"study": str(study), "page": str(written), "runs": len(summaries), "rows": rows}
        )
    else:
        echo(f"Wrote {written} about {len(summaries)} runs.")
