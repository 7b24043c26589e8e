"""The page of an adviser's study as a reader sees it, in a real browser and from a file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from opened_page import DARK, LIGHT, PHONE, SCRIPT_NAME, Open
from synthetic_advice import TRAIN, advice_document
from synthetic_study import synthetic_data, task_names
from synthetic_transfer import transfer_document

from taskmix.report import report_html

pytestmark = pytest.mark.browser

LABELS = ("proportional", "uniform", "weighted", "single")
SHOWN = ["chart-expected-0", "chart-gaps"]


@pytest.fixture(scope="session")
def advice_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("advice") / "report.html"
    names = task_names(8)
    data = synthetic_data(names, LABELS, steps=240)
    advice, transfer = advice_document(names, LABELS), transfer_document(names)
    path.write_text(report_html(replace(data, advice=advice, transfer=transfer)), encoding="utf-8")
    return path


def test_the_answer_comes_first_and_the_details_are_folded(
    advice_report: Path, opened: Open
) -> None:
    view = opened(advice_report, LIGHT)
    assert view.all_drawn() == SHOWN
    assert view.page.locator("header .verdict").inner_text().startswith("The delivered model is")
    assert view.page.locator(".tiles dd").first.inner_text() == "+1.9 points"
    assert view.page.locator("#curves .chart").first.is_hidden()
    assert view.requests == [advice_report.as_uri()]
    assert view.complaints == []


def test_a_link_to_a_folded_section_opens_it_and_draws_its_charts(
    advice_report: Path, opened: Open
) -> None:
    view = opened(advice_report, LIGHT)
    view.page.get_by_role("navigation", name="Details").get_by_role("link", name="Weights").click()
    view.drawn("#chart-weights-2")
    view.page.get_by_role("button", name="Unfold everything").click()
    assert len(view.all_drawn()) > 20
    view.page.get_by_role("button", name="Fold everything").click()
    assert view.page.locator("#curves .chart").first.is_hidden()
    assert view.complaints == []


def test_every_command_can_be_copied(advice_report: Path, opened: Open) -> None:
    view = opened(advice_report, LIGHT | {"permissions": ["clipboard-read", "clipboard-write"]})
    view.page.get_by_role("button", name="Copy: Train by the plan").click()
    view.page.locator("#copied", has_text="Copied.").wait_for(timeout=5000)
    assert view.page.evaluate("navigator.clipboard.readText()") == TRAIN


@pytest.mark.parametrize(
    ("chart", "mark", "words"),
    [
        ("#chart-gaps", ".mark-symbol path", r"standing\s*leads"),
        ("#chart-expected-0", ".mark-symbol path", r"expected\s*0\.900 \(0\.850 to 0\.950\)"),
    ],
)
def test_hovering_over_a_mark_says_what_it_is(
    chart: str, mark: str, words: str, advice_report: Path, opened: Open
) -> None:
    view = opened(advice_report, LIGHT)
    tip = view.tip_after(lambda: view.drawn(chart).locator(mark).first.hover(force=True))
    assert re.search(words, tip.words)


def test_the_map_scrolls_in_its_own_box_and_its_sources_stay_in_sight(
    advice_report: Path, opened: Open
) -> None:
    view = opened(advice_report, PHONE)
    view.all_drawn()
    box = view.page.get_by_role("region", name="Which tasks help which")
    inside, shown = box.evaluate("box => [box.scrollWidth, box.clientWidth]")
    assert inside > shown
    source = box.locator("tbody tr").nth(1).locator("th")
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    assert 0 <= source.bounding_box()["x"] <= 20, "it is sticky"
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_words_from_data_are_text_wherever_they_stand(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "report.html"
    image = '"><img src=x onerror=alert(2)>'
    names = [SCRIPT_NAME, image, "`x`", "plain"]
    labels = (SCRIPT_NAME, "uniform")
    advice = advice_document(names, labels, words=f"Task `{SCRIPT_NAME}` and `{image}` are one.")
    assert advice.delivered is not None
    delivered = replace(advice.delivered, plain=SCRIPT_NAME, peer=image, peers={image: 0.5})
    advice = replace(
        advice,
        title=SCRIPT_NAME,
        lines=(f"Train together: {SCRIPT_NAME}, {image}.",) * 5,
        commands={image: f"taskmix train '{SCRIPT_NAME}'"},
        delivered=delivered,
    )
    data = replace(
        synthetic_data(names, labels, steps=120),
        advice=advice,
        transfer=transfer_document(names),
        title=SCRIPT_NAME,
    )
    path.write_text(report_html(data), encoding="utf-8")
    view = opened(path, LIGHT)
    view.page.get_by_role("button", name="Unfold everything").click()
    view.all_drawn()
    assert view.page.locator("h1").inner_text() == SCRIPT_NAME
    assert view.page.locator(".warnings code").all_inner_texts() == [SCRIPT_NAME, image]
    assert view.page.locator("#command-1").inner_text() == f"taskmix train '{SCRIPT_NAME}'"
    assert view.page.locator("img").count() == 0
    assert view.page.locator("script").count() == 3
    assert view.requests == [path.as_uri()]
    assert view.complaints == []


def test_on_paper_charts_are_as_wide_as_the_page_and_buttons_are_gone(
    advice_report: Path, opened: Open
) -> None:
    view = opened(advice_report, DARK)
    view.all_drawn()
    before = view.drawn("#chart-gaps").locator("svg").bounding_box()["width"]
    view.page.emulate_media(media="print")
    view.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    view.page.wait_for_timeout(200)
    paper = view.page.evaluate("+document.querySelector('#chart-gaps svg').getAttribute('width')")
    assert 600 < paper < 720 < before
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )
    for hidden in ("[data-copy]", "nav", "[data-unfold]", "#curves"):
        assert view.page.locator(hidden).first.is_hidden(), hidden
    view.page.emulate_media(media="screen")
    view.page.evaluate("dispatchEvent(new Event('afterprint'))")
    view.page.wait_for_timeout(200)
    after = view.page.evaluate("+document.querySelector('#chart-gaps svg').getAttribute('width')")
    assert after == pytest.approx(before, abs=2)
    assert view.page.pdf(format="A4").startswith(b"%PDF")


def test_the_page_can_be_walked_by_keyboard_and_heard(advice_report: Path, opened: Open) -> None:
    view = opened(advice_report, LIGHT)
    view.all_drawn()
    view.must_be_heard()
    summary = view.page.locator("#variance > details > summary")
    summary.focus()
    view.page.keyboard.press("Enter")
    view.drawn("#chart-variance")
    for region in view.page.locator("[role=region]").all():
        assert region.get_attribute("aria-label")
    for button in view.page.locator("button").all():
        name = button.get_attribute("aria-label") or button.text_content() or ""
        assert name.strip()


def test_the_answer_needs_no_script(advice_report: Path, opened: Open) -> None:
    view = opened(advice_report, LIGHT | {"java_script_enabled": False})
    assert view.page.get_by_text("Draw them equally often.").is_visible()
    assert view.page.locator("table.ways tbody tr").count() == len(LABELS)
    assert view.page.get_by_text(TRAIN).is_visible()
