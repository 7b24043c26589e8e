"""The page of a study, from the tables of its report."""

from __future__ import annotations

from taskmix.report._advice import (
    budget_figure,
    delivered_figure,
    expected_figure,
    gap_figure,
    law_figure,
)
from taskmix.report._drawing import (
    Figure,
    curve_figure,
    loss_figure,
    palette,
    score_figure,
    share_figure,
    variance_figure,
    weight_figure,
)
from taskmix.report._page._contents import contents
from taskmix.report._shell import render_page
from taskmix.report._study import ReportData, Scoreboard, scoreboard
from taskmix.report._transfer import effect_figure, prediction_figure


def report_html(data: ReportData) -> str:
    """The page as text. It asks for nothing from outside and runs no script but its own.

    `taskmix report STUDY` makes it; it takes seconds.
    """
    board = scoreboard(data)
    figures = _figures(data, board)
    return render_page("page.html.j2", vars(contents(data, board, figures)), figures=figures)


def _figures(data: ReportData, board: Scoreboard) -> dict[str, Figure]:
    colours = palette(data)
    found = (
        expected_figure(data.advice),
        delivered_figure(data.comparison),
        gap_figure(data.advice),
        budget_figure(data.advice),
        law_figure(data.advice),
        score_figure(data, board),
        effect_figure(data.transfer),
        prediction_figure(data.transfer),
        curve_figure(data),
        share_figure(data, colours),
        loss_figure(data, colours),
        variance_figure(data),
        weight_figure(data, colours),
    )
    return {figure.id: figure for figure in found if figure is not None}
