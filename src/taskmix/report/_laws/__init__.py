"""The page of a law: the formula, its curves, what else was found, and how far to trust it."""

from taskmix.report._laws._page import check_laws_page, laws_page_html, write_laws_page

__all__ = ["check_laws_page", "laws_page_html", "write_laws_page"]
