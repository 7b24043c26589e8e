"""Pages, each one self-contained HTML file: no server, no outside request, readable on a phone."""

from taskmix.report._data import ReportData, ReportScore, RunRow, TaskRow, Trace
from taskmix.report._gather import gather_report
from taskmix.report._laws_figures import front_chart
from taskmix.report._laws_page import check_laws_page, laws_page_html, write_laws_page
from taskmix.report._live import ReportServer
from taskmix.report._mixture_page import mixture_html, write_mixture_page
from taskmix.report._mixtures_page import (
    check_mixtures_page,
    mixtures_page_html,
    write_mixtures_page,
)
from taskmix.report._page import report_html, write_report
from taskmix.report._shell import CHART_PACKAGES as PAGE_PACKAGES
from taskmix.report._shell import PLAIN_PACKAGES as MIXTURE_PAGE_PACKAGES
from taskmix.report._shell import check_chart_path, write_chart

__all__ = [
    "MIXTURE_PAGE_PACKAGES",
    "PAGE_PACKAGES",
    "ReportData",
    "ReportScore",
    "ReportServer",
    "RunRow",
    "TaskRow",
    "Trace",
    "check_chart_path",
    "check_laws_page",
    "check_mixtures_page",
    "front_chart",
    "gather_report",
    "laws_page_html",
    "mixture_html",
    "mixtures_page_html",
    "report_html",
    "write_chart",
    "write_laws_page",
    "write_mixture_page",
    "write_mixtures_page",
    "write_report",
]
