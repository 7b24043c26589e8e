"""The report page as a reader sees it, in a real browser and from a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opened_page import DARK, LIGHT, PHONE, SCRIPT_NAME, Open
from synthetic_study import synthetic_data, task_names, write_study
from synthetic_transfer import transfer_document

from taskmix.report import report_html, write_report
from taskmix.transfer import save_transfer

pytestmark = pytest.mark.browser

LABELS = ("single", "uniform", "proportional", "weighted")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records on disk, and the page written from them."""
    folder = tmp_path_factory.mktemp("report")
    study = write_study(folder / "study", labels=LABELS, steps=400, failing=[("uniform", 2)])
    return write_report(study, folder / "report.html", labels=LABELS)


@pytest.fixture(scope="session")
def transfer_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with lessons of transfer beside its runs."""
    folder = tmp_path_factory.mktemp("transfer")
    study = write_study(folder / "study", labels=("alone", "4 together"), steps=40)
    save_transfer(folder / "study", transfer_document(task_names(8)))
    return write_report(study, folder / "report.html")


@pytest.fixture(scope="session")
def large_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "report.html"
    data = synthetic_data(count=60, labels=("uniform", "proportional"), steps=600)
    path.write_text(report_html(data), encoding="utf-8")
    return path


def test_every_chart_is_drawn_without_a_complaint_or_a_request(report: Path, opened: Open) -> None:
    view = opened(report, LIGHT)
    charts = view.all_drawn()
    # scores and differences; 8 tasks and their mean; 3 shares; 4 of losses; variance; weights
    assert len(charts) == 20
    for chart in charts:
        box = view.page.locator(f"#{chart} svg").bounding_box()
        assert box is not None
        assert box["width"] > 200, chart
        assert box["height"] > 120, chart
        marks = view.page.locator(
            f"#{chart} .role-mark.mark-line path, #{chart} .role-mark.mark-area path, "
            f"#{chart} .role-mark.mark-symbol path"
        )
        assert marks.count() > 0, chart
    assert view.requests == [report.as_uri()]
    assert view.complaints == []


def test_a_line_of_each_label_is_drawn_in_its_colour(report: Path, opened: Open) -> None:
    view = opened(report, LIGHT)
    view.drawn("#chart-curve-0")
    strokes = view.page.evaluate(
        "[...document.querySelectorAll('#chart-curve-0 .mark-line path')]"
        ".map(path => getComputedStyle(path).stroke)"
    )
    chips = view.page.evaluate(
        "[...document.querySelectorAll('#curves .chip i')]"
        ".map(dot => getComputedStyle(dot).backgroundColor)"
    )
    assert len(strokes) == len(set(strokes)) == len(LABELS)
    assert set(strokes) == set(chips)


@pytest.mark.parametrize(
    ("chart", "words"),
    [
        ("#chart-curve-0", r"step \d+.*uniform\s*0\.\d{3}\s*0\.\d{3} to 0\.\d{3}"),
        ("#chart-share-1", r"step \d+.*which digit\s*12\.5 %"),
        ("#chart-variance", r"step \d+.*proportional\s*\d\.\d{3}"),
    ],
)
def test_hovering_over_a_chart_shows_the_values_there(
    chart: str, words: str, report: Path, opened: Open
) -> None:
    view = opened(report, LIGHT)
    assert view.page.locator("#tip").is_hidden()
    tip = view.hovered(chart)
    assert re.search(words, tip.words, re.DOTALL)
    assert 0 <= tip.left < tip.right <= 1200
    view.page.mouse.move(2, 2)
    view.page.locator("#tip").wait_for(state="hidden", timeout=5000)
    assert view.complaints == []


COLOURS = """() => [
  getComputedStyle(document.body).backgroundColor,
  getComputedStyle(document.body).color,
  getComputedStyle(document.querySelector('#chart-curve-0 .mark-line path')).stroke,
  getComputedStyle(document.querySelector('#chart-curve-0 .role-axis-label text')).fill,
]"""


def test_page_and_charts_follow_dark_mode_even_while_open(report: Path, opened: Open) -> None:
    view = opened(report, LIGHT)
    view.drawn("#chart-curve-0")
    light = view.page.evaluate(COLOURS)
    view.page.emulate_media(color_scheme="dark")
    dark = view.page.evaluate(COLOURS)
    assert all(before != after for before, after in zip(light, dark, strict=True))
    view.page.emulate_media(media="print", color_scheme="dark")
    assert view.page.evaluate(COLOURS) == light  # paper is white

    other = opened(report, DARK)
    other.drawn("#chart-curve-0")
    assert other.page.evaluate(COLOURS) == dark


def test_a_tap_shows_values_on_a_phone(report: Path, opened: Open) -> None:
    view = opened(report, PHONE)

    def tap() -> None:
        box = view.drawn("#chart-curve-0").bounding_box()
        view.page.touchscreen.tap(box["x"] + 0.6 * box["width"], box["y"] + 0.4 * box["height"])

    assert "uniform" in view.tip_after(tap).words


def test_a_task_named_like_a_script_is_text(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "report.html"
    names = [SCRIPT_NAME, '"><img src=x onerror=alert(2)>', "plain.name['x']"]
    data = synthetic_data(names, labels=("uniform", SCRIPT_NAME), steps=120)
    path.write_text(report_html(data), encoding="utf-8")
    view = opened(path, LIGHT)
    view.all_drawn()
    assert SCRIPT_NAME in view.hovered("#chart-curve-0").words
    headings = view.page.locator("#curves h3").all_inner_texts()
    assert headings == ["Mean of 3 tasks", *names]
    axis = view.page.locator("#chart-scores-0 .role-axis-label text").all_text_contents()
    assert any(text.startswith(SCRIPT_NAME[:12]) for text in axis)  # the rest is cut: too long
    assert view.page.locator("img").count() == 0
    assert view.page.locator("script").count() == 3
    assert view.requests == [path.as_uri()]
    assert view.complaints == []


def test_a_chip_of_the_legend_singles_out_its_line(report: Path, opened: Open) -> None:
    view = opened(report, LIGHT)
    view.drawn("#chart-curve-0")
    chip = view.page.locator("#curves .chip", has_text="uniform")
    chip.click()
    opacity = (
        "[...document.querySelectorAll('#chart-curve-0 .mark-line path')]"
        ".filter(path => +getComputedStyle(path).opacity > 0.5).length"
    )
    for _ in range(50):
        if view.page.evaluate(opacity) == 1:
            break
        view.page.wait_for_timeout(100)
    assert view.page.evaluate(opacity) == 1
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    for _ in range(50):
        if view.page.evaluate(opacity) == len(LABELS):
            break
        view.page.wait_for_timeout(100)
    assert view.page.evaluate(opacity) == len(LABELS)


def test_sixty_tasks_can_be_found_and_shown(large_report: Path, opened: Open) -> None:
    view = opened(large_report, PHONE)
    panels = view.page.locator("#curves .panel:visible")
    assert panels.count() == 12
    view.page.get_by_label("Find a task").fill("task 47")
    assert panels.locator("h3").all_inner_texts() == ["task 47"]
    view.drawn("#chart-curve-47")
    view.page.get_by_label("Find a task").fill("")
    assert panels.count() == 12
    view.page.get_by_role("button", name="Show all 61").click()
    assert panels.count() == 61
    view.drawn("#chart-curve-59")
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert view.complaints == []


def test_the_tables_need_no_script(report: Path, opened: Open) -> None:
    view = opened(report, LIGHT | {"java_script_enabled": False})
    assert view.page.locator("#scores tbody tr").count() == 9
    assert view.page.get_by_text("should be finite").is_visible()


def test_the_map_has_a_cell_a_pair_and_marks_what_cannot_be_told(
    transfer_report: Path, opened: Open
) -> None:
    view = opened(transfer_report, LIGHT)
    cells = view.page.locator("#transfer .map")
    # Of 8 targets all but one gain from the first task and all but one lose by the last.
    assert cells.locator("td.helps").count() == 7
    assert cells.locator("td.harms").count() == 7
    assert cells.locator("td.untold").count() == 56 - 14
    assert all(words.endswith("?") for words in cells.locator("td.untold").all_inner_texts())
    outline = cells.locator("td.untold").first.evaluate(
        "cell => getComputedStyle(cell).outlineStyle"
    )
    assert outline == "dashed"
    paints = [
        cells.locator(f"td.{kind}").evaluate_all(
            "cells => [...new Set(cells.map(cell => getComputedStyle(cell).backgroundColor))]"
        )
        for kind in ("helps", "harms")
    ]
    assert [len(paint) for paint in paints] == [1, 1]
    assert paints[0] != paints[1]
    assert view.complaints == []
