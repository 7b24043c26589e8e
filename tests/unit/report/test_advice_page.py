from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from read_page import Page, check_charts
from synthetic_advice import advice_document, comparison_document
from synthetic_study import synthetic_data, task_names, write_study

from taskmix.errors import InputError
from taskmix.plans import (
    AdviceDocument,
    ComparisonDocument,
    save_advice,
    save_comparison,
)
from taskmix.report import ReportData, gather_report, report_html, write_report

LABELS = ("proportional", "uniform", "single")
NAMES = task_names(4)
BARE = ReportData(title="advice", labels=(), tasks=(), runs=())


@pytest.fixture
def document() -> AdviceDocument:
    return advice_document(NAMES, LABELS)


@pytest.fixture(scope="module")
def study_data() -> ReportData:
    return synthetic_data(NAMES, LABELS, steps=120)


@pytest.fixture(scope="module")
def page(study_data: ReportData) -> Page:
    return Page(report_html(replace(study_data, advice=advice_document(NAMES, LABELS))))


def page_of(document: AdviceDocument) -> Page:
    """The page of advice alone, which is made faster than one with all curves."""
    return Page(report_html(replace(BARE, advice=document)))


def cells(page: Page, section: str) -> list[list[str]]:
    """The words of a table, without its head."""
    return [[words for _, words in row] for row in page.rows(section)[1:]]


def tiles(page: Page) -> dict[str, str]:
    found = page.source.partition('class="tiles"')[2].partition("</dl>")[0]
    tile = re.compile(r"<dt>(.*?)</dt><dd>(.*?)</dd><dd class=\"soft\">(.*?)</dd>")
    return {name: f"{value} {note}" for name, value, note in tile.findall(found)}


def test_the_leader_stands_at_zero_and_the_others_left_of_it(page: Page) -> None:
    columns = page.chart("chart-gaps")
    assert columns["row"] == list(LABELS)
    assert columns["mean"] == [0.0, -0.01, -0.02]
    assert columns["low"] == [0.0, -0.025, -0.035]
    assert columns["high"] == [0.0, 0.005, -0.005]
    assert columns["series"] == ["leads", "may be the best", "out"]
    assert "single: out, 0.020 behind" in page.about("chart-gaps")
    assert " minus that of proportional" in page.text
    assert "grey is significantly behind (90 %)." in page.text
    check_charts(page)


def comparison(found: float | None) -> ComparisonDocument:
    whole = comparison_document(advice_document(NAMES, LABELS).expected)
    first, *others = whole.rows
    return replace(whole, rows=(replace(first, found=found), *others))


@pytest.mark.parametrize("has_advice", [True, False])
def test_what_was_delivered_stands_beside_what_was_promised(
    study_data: ReportData, document: AdviceDocument, has_advice: bool
) -> None:
    data = replace(study_data, advice=document if has_advice else None, comparison=comparison(0.8))
    page = report_html(data)
    assert page.count('id="delivered"') == 1
    assert page.index('id="delivered"') < page.index('id="scores"')
    assert 'href="#delivered"' in page
    assert f"worse than promised: <code>{NAMES[0]}</code>." in page
    assert "▼ below" in page
    series = Page(page).chart("chart-delivered-0")["series"]
    assert series == ["outside", "inside", "inside", "inside"]


def test_a_study_trained_by_the_plan_is_found_beside_the_runs_or_where_it_is_said(
    tmp_path: Path,
) -> None:
    write_study(tmp_path / "advice", NAMES, ("uniform",), steps=40, seeds=1)
    (tmp_path / "trained").mkdir()
    save_comparison(tmp_path / "trained", comparison(0.8))
    assert gather_report(tmp_path / "advice").comparison is None
    found = gather_report(tmp_path / "advice", delivered=tmp_path / "trained").comparison
    assert found == comparison(0.8)
    save_comparison(tmp_path / "advice", comparison(0.9))
    assert gather_report(tmp_path / "advice").comparison == comparison(0.9)
    with pytest.raises(InputError, match=r"should be a study that was trained by a plan"):
        gather_report(tmp_path / "advice", delivered=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (540.0, "90% of 10 min"),
        (606.0, "all of 10 min, and 1% more for what was under way"),
    ],
)
def test_a_budget_of_time_is_compared_with_time_however_many_batches_it_paid_for(
    document: AdviceDocument, seconds: float, shown: str
) -> None:
    found = page_of(replace(document, budget_seconds=600.0, seconds=seconds, batches_spent=15_300))
    assert tiles(found)["budget spent"] == shown
    assert "153" not in " ".join(row[2] for row in cells(found, "spending"))
    assert "15\u2009300 batches were spent in" in found.text


def test_a_study_with_advice_shows_its_candidates_and_no_other_run(tmp_path: Path) -> None:
    study = write_study(tmp_path, NAMES, ("uniform", "proportional", "probe"), steps=60)
    runs: dict[str, list[str]] = {}
    for run in study.summaries():
        runs.setdefault(run.label, []).append(run.name)
    runs["uniform"] = runs["uniform"][:2]  # the third is of an earlier question
    document = advice_document(NAMES, ("proportional", "uniform"), runs=runs)
    save_advice(tmp_path, document)
    # Asked for under this label too, but not by the adviser.
    study.run_named(runs["proportional"][0], label="uniform").keep_label()
    data = gather_report(study)
    assert data.title == "Advice for digits"
    assert data.labels == ("proportional", "uniform")
    assert [len(run.labels) for run in data.runs] == [1] * 5
    page = write_report(study, tmp_path / "report.html").read_text()
    assert "Train together" in page


def test_the_mean_over_tasks_leaves_out_what_the_advice_leaves_out(
    study_data: ReportData, document: AdviceDocument
) -> None:
    advice = replace(document, judged=tuple(NAMES[:2]))
    scores = cells(Page(report_html(replace(study_data, advice=advice))), "scores")
    assert [row[0] for row in scores] == ["Mean of 2 tasks", *NAMES]


def test_a_number_that_is_not_known_costs_no_figure_its_page(document: AdviceDocument) -> None:
    assert document.outlook is not None
    assert document.outlook.law is not None
    lost: dict[str, Any] = {"spent": math.nan, "score": math.nan}
    law = replace(document.outlook.law, batches=math.nan)
    evaluations = tuple(replace(each, batches=math.nan) for each in document.outlook.evaluations)
    advice = replace(
        document,
        milestones=tuple(replace(each, **lost) for each in document.milestones),
        outlook=replace(document.outlook, law=law),
    )
    found = page_of(advice)
    assert "chart-law" not in found.ids(), "there is no axis to draw it on"
    assert found.chart("chart-spending")["step"] == [None] * 4
    some = page_of(replace(document, outlook=replace(document.outlook, evaluations=evaluations)))
    assert some.chart("chart-law")["batches"][0] == "\N{EN DASH}"


@pytest.mark.parametrize(
    "damage",
    [
        "no json",
        json.dumps({"version": 2}),
        json.dumps({"version": 1}),
        json.dumps({"version": 1, "title": "x", "lines": 3}),
    ],
)
def test_an_advice_that_is_none_is_told(damage: str, tmp_path: Path) -> None:
    write_study(tmp_path, NAMES[:2], ("uniform",), steps=40, seeds=1)
    (tmp_path / "advice.json").write_text(damage)
    with pytest.raises(InputError, match="`taskmix advise` wrote"):
        gather_report(tmp_path)
