"""The page of a law, from its document alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from taskmix.extras import require
from taskmix.files import check_output
from taskmix.report._files import is_our_page, write_whole
from taskmix.report._laws._contents import laws_contents
from taskmix.report._laws._figures import curve_figure_of_laws, front_figure, observed_figure
from taskmix.report._shell import CHART_PACKAGES, PURPOSE, render_page

if TYPE_CHECKING:
    from taskmix.laws import LawsDocument


def laws_page_html(document: LawsDocument) -> str:
    """The page as text. It asks for nothing from outside and runs no script but its own.

    `taskmix laws TABLE --page laws.html` writes it; it takes seconds.
    """
    found = (
        curve_figure_of_laws(document),
        front_figure(document),
        observed_figure(document),
    )
    figures = {figure.id: figure for figure in found if figure is not None}
    return render_page("laws.html.j2", vars(laws_contents(document, figures)), figures=figures)


def check_laws_page(path: Path) -> None:
    """Raises where the page cannot be written to that file, before any work is done.

    >>> from pathlib import Path
    >>> check_laws_page(Path("laws.html"))
    """
    check_output(path, is_ours=is_our_page, what="the page")
    require(*CHART_PACKAGES, purpose=PURPOSE)


def write_laws_page(document: LawsDocument, path: Path | str) -> Path:
    """Writes the page of a law and gives its path; `read_laws` reads a document that was kept.

    `taskmix laws TABLE --page laws.html` does it.
    """
    check_laws_page(Path(path))
    page = laws_page_html(document).encode("utf-8", "replace")
    return write_whole(Path(path), page, "the page")
