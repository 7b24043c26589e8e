"""`taskmix report --live` in a browser: the page follows the study, and trusts no word of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opened_page import LIGHT, PHONE, SCRIPT_NAME
from written import writing

from taskmix.report import ReportServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text("{}")
    with ReportServer(tmp_path / "study", port=0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.address
        server.shutdown()
        thread.join()


def opened(browser: Browser, address: str, options: dict[str, object]) -> tuple[Page, list[str]]:
    """The page, and everything it should not do."""
    page = browser.new_context(**options).new_page()  # type: ignore[arg-type]
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith((address, "data:")) else complaints.append(asked.url)
        ),
    )
    page.goto(address)
    return page, complaints


def test_the_page_changes_while_a_study_is_written(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    page, complaints = opened(browser, address, LIGHT)
    page.get_by_text("No run has begun yet.").wait_for()
    with writing(tmp_path / "study") as run:
        run.go_on(8, 0.5)
        page.get_by_text("8 / 100").first.wait_for()
        run.go_on(8, 0.75)
        page.get_by_text("16 / 100").first.wait_for()
        page.locator("#curves .chart[data-drawn=yes]").first.wait_for()
        assert page.get_by_text("Live: this page renews itself.").is_visible()
        run.writer.finish(scores=[("books", "dev", "accuracy", 0.75)], best_step=None)
    page.get_by_role("region", name="Final scores").wait_for()
    assert complaints == []


def test_words_of_a_study_are_only_words(browser: Browser, address: str, tmp_path: Path) -> None:
    hostile = '<img src=x onerror="alert(1)">'
    with writing(tmp_path / "study", label=hostile, tasks=(SCRIPT_NAME, "films")) as run:
        run.writer.add_scores(1, [(SCRIPT_NAME, "dev", "accuracy", 0.5)])
        run.writer.add_scores(2, [(SCRIPT_NAME, "dev", "accuracy", 0.6)])
        run.go_on(8, 0.5)
        run.writer.fail(f"failed {hostile}")
    page, complaints = opened(browser, address, PHONE)
    page.get_by_text(f"failed {hostile}").wait_for()
    assert page.get_by_text(SCRIPT_NAME).count() >= 1
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert complaints == []
