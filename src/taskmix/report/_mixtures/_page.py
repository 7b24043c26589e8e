"""The page about a mixture, from its document alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from taskmix.extras import require
from taskmix.files import check_output
from taskmix.report._files import is_our_page, write_whole
from taskmix.report._mixtures._contents import mixtures_contents
from taskmix.report._mixtures._figures import (
    compared_figure,
    front_of_metrics,
    left_out_figure,
    mixture_figure,
    sensitivity_figure,
)
from taskmix.report._shell import CHART_PACKAGES, PURPOSE, render_page

if TYPE_CHECKING:
    from taskmix.mixtures import MixturesDocument


def mixtures_page_html(document: MixturesDocument) -> str:
    """The page as text. It asks for nothing from outside and runs no script but its own.

    `taskmix mix RATIOS METRICS --page mix.html` writes it; it takes seconds.
    """
    found = (
        mixture_figure(document),
        compared_figure(document),
        left_out_figure(document),
        sensitivity_figure(document),
        front_of_metrics(document),
    )
    figures = {figure.id: figure for figure in found if figure is not None}
    contents = vars(mixtures_contents(document, figures))
    return render_page("mixtures.html.j2", contents, figures=figures)


def check_mixtures_page(path: Path) -> None:
    """Raises where the page cannot be written to that file, before any work is done.

    >>> from pathlib import Path
    >>> check_mixtures_page(Path("mix.html"))
    """
    check_output(path, is_ours=is_our_page, what="the page")
    require(*CHART_PACKAGES, purpose=PURPOSE)


def write_mixtures_page(document: MixturesDocument, path: Path | str) -> Path:
    """Writes the page and gives its path; `read_mixtures_document` reads a document that was kept.

    `taskmix mix RATIOS METRICS --page mix.html` does it.
    """
    check_mixtures_page(Path(path))
    page = mixtures_page_html(document).encode("utf-8", "replace")
    return write_whole(Path(path), page, "the page")
