"""How far the adviser is: lines on standard error, or one line of a notebook that changes.

A notebook is known by IPython, which whoever works in one has imported: it is looked for among the
modules at hand and never imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import Any

from taskmix.adviser._advice import News
from taskmix.adviser._budget import typed_time
from taskmix.errors import printable


def news_shower() -> Callable[[News], None]:
    """What shows the news of one call, in the manner of the place it is called from."""
    display = _display_of_notebook()
    return print_news if display is None else _OneLine(display)


def print_news(news: News) -> None:
    print_lines(f"[{news.spent:4.0%} spent] {news.words}")


def print_lines(*lines: str) -> None:
    for line in lines:
        print(printable(line), file=sys.stderr)  # noqa: T201


class _OneLine:
    """A bar with the last of the news, at one place of a cell's output."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def __call__(self, news: News) -> None:
        left = "" if news.left is None else f", {typed_time(news.left)} left"
        words = printable(f"{news.spent:.0%} spent{left}: {news.words}")
        shown = {
            "text/plain": f"[{words}]",
            "text/html": f'<div><progress max="1" value="{min(max(news.spent, 0.0), 1.0):.3f}">'
            f"</progress> {escape(words)}</div>",
        }
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def _display_of_notebook() -> Callable[..., Any] | None:
    """IPython's `display` where a notebook shows what it is given; None in terminals and programs."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not getattr(ipython.get_ipython(), "kernel", None):
        return None  # only a kernel has a front end that shows HTML
    display: Callable[..., Any] = ipython.display.display
    return display
