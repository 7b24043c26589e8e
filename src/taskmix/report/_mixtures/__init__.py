"""The page of a mixture: the shares, what they will give, and how far to trust that."""

from taskmix.report._mixtures._page import (
    check_mixtures_page,
    mixtures_page_html,
    write_mixtures_page,
)

__all__ = ["check_mixtures_page", "mixtures_page_html", "write_mixtures_page"]
