"""The documentation as a reader sees it, in a real browser and from files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "site"))

from build import prepare, render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("site") / "docs"
    prepare(work)
    assert render(work) == 0
    return work / "site"


def search(page: Page, words: str) -> list[str]:
    """The addresses that are shown for some words, once they are: every hit names one of them."""
    field = page.locator("input[type=text], input[type=search], input:not([type])").last
    field.fill(words)
    marked = page.locator("a:has(mark)").filter(visible=True)
    marked.filter(has_text=re.compile(words.split()[0], re.IGNORECASE)).first.wait_for(
        timeout=15_000
    )
    page.wait_for_timeout(300)  # the last of several answers while the field was filled
    return [str(link.get_attribute("href")) for link in marked.all()]


def test_search_works_from_a_file_and_asks_nobody(site: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((site / "index.html").as_uri())
    page.locator(".md-search__button").click()
    page.wait_for_timeout(500)
    first = search(page, "gradient surgery")
    between = search(page, "bootstrap")
    again = search(page, "gradient surgery")
    assert any("methods/weightings/pcgrad" in address for address in first)
    assert between != first
    assert again == first  # a search leaves nothing behind that changes the next one
    assert all(url.startswith("file:") for url in requests)
    assert complaints == []
    context.close()


def test_the_site_fits_a_phone(site: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True)
    page = context.new_page()
    for place in (
        "index.html",
        "questions/at-what-weight.html",
        "methods/weightings/banditmtl.html",
        "methods/surrogates/linearsurrogate.html",  # with a long formula
        "commands/train.html",
        "papers/loss-weighting.html",  # with wide tables
    ):
        page.goto((site / place).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, place
    context.close()
