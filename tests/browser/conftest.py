"""A real browser for the tests of pages: Debian's chromium, driven by playwright.

Where either is absent the tests skip and say so; in a pipeline that has to have them
(`CI=true TASKMIX_REQUIRE_BROWSER=1`) they fail instead.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "report"))  # the synthetic study

from opened_page import Open, Opened
from photographs import Photographer

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def _absent(reason: str) -> None:
    if os.environ.get("CI") == "true" and os.environ.get("TASKMIX_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason} This pipeline has to test pages in a browser.")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _absent("playwright is not installed: `pip install 'taskmix[dev]'`.")
    executable = shutil.which("chromium")
    if executable is None:
        _absent("chromium is not installed: `apt install chromium`.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--screenshots", metavar="FOLDER", help="write the pictures of the documentation there"
    )


@pytest.fixture
def photographer(request: pytest.FixtureRequest) -> Photographer:
    """Takes pictures where they were asked for: `pytest tests/browser --screenshots docs/pictures`."""
    folder = request.config.getoption("--screenshots", default=None)
    return Photographer(Path(folder) if folder else None)


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    contexts = []

    def open_page(path: Path, options: Mapping[str, Any]) -> Opened:
        context = browser.new_context(**options)
        contexts.append(context)
        result = Opened(context.new_page())
        result.page.on("request", lambda request: result.requests.append(request.url))
        result.page.on("console", lambda message: result.complaints.append(message.text))
        result.page.on("pageerror", lambda error: result.complaints.append(str(error)))
        result.page.on("dialog", lambda dialog: result.complaints.append(dialog.message))
        result.page.goto(path.as_uri())
        return result

    yield open_page
    for context in contexts:
        context.close()
