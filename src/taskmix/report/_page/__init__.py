"""The page of a study: everything above as words for its template, as HTML, as a file."""

from taskmix.report._page._html import report_html
from taskmix.report._page._write import write_report

__all__ = ["report_html", "write_report"]
