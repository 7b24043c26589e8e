"""`taskmix watch` in a browser: the page changes while a study is written, and trusts no word of it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opened_page import LIGHT, PHONE, SCRIPT_NAME, WIDTHS, screen
from photographs import Photographer

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "watch"))  # the study being written

from written import writing

from taskmix.engine import DigitsSource, Here, Run
from taskmix.models import Perceptron
from taskmix.policies import Fixed, Uniform
from taskmix.records import Study
from taskmix.watch import StudyServer, StudyWatcher

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


DIGITS = ("ten_digits", "parity", "half", "remainder")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text("{}")
    with StudyServer(StudyWatcher(tmp_path / "study"), port=0) as server:
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
        page.get_by_text("1 run: 1 running; 8 steps").wait_for()
        run.go_on(8, 0.75)
        page.get_by_text("1 run: 1 running; 16 steps").wait_for()
        assert page.locator("#charts svg").count() == 2
        assert page.get_by_role("img", name="from 0.500 to 0.750 in 16 steps").count() == 2
        assert page.get_by_text("75.0%").is_visible()
        stroke = page.locator("#charts .curve").first.evaluate("e => getComputedStyle(e).stroke")
        assert stroke == "rgb(0, 114, 178)"  # a colour of the style sheet was found
        run.writer.finish(scores=[("books", "dev", "accuracy", 0.75)], best_step=None)
    page.get_by_text("1 run: 1 finished; 16 steps").wait_for()
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


@pytest.mark.parametrize("width", WIDTHS)
def test_the_live_page_of_the_documentation_reads_well(
    width: str, browser: Browser, address: str, tmp_path: Path, photographer: Photographer
) -> None:
    study = Study(tmp_path / "study")
    template = Run(
        label="uniform",
        source=DigitsSource(tasks=DIGITS),
        architecture=Perceptron(),
        policy=Uniform(),
        steps=120,
        evaluate_every=12,
        checkpoint_every=12,
        seed=0,
    )
    other = replace(template, label="mostly ten_digits", policy=Fixed((0.55, 0.15, 0.15, 0.15)))
    Here().run([template, replace(template, seed=1), other], study)
    with writing(tmp_path / "study", label="uniform", seed=2, tasks=DIGITS) as run:
        run.writer.add_scores(12, [(name, "dev", "accuracy", 0.5) for name in DIGITS])
        run.writer.add_scores(24, [(name, "dev", "accuracy", 0.6) for name in DIGITS])
        run.writer.commit(24, {"x": 1}, best=None, best_step=None)
        across, down, fineness = WIDTHS[width]
        options = {**LIGHT, **screen(across), "device_scale_factor": fineness}
        page, complaints = opened(browser, address, options)
        page.get_by_text("4 runs: 3 finished, 1 running").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert complaints == []
        photographer.take(page, f"watch-{width}", height=down)
