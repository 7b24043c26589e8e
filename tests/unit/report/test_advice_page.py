from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from read_page import Page, check_charts
from synthetic_advice import TRAIN, advice_document, comparison_document
from synthetic_study import synthetic_data, task_names, write_study

from taskmix.errors import InputError
from taskmix.plans import (
    AdviceDocument,
    ComparisonDocument,
    race_rows,
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


def test_a_candidate_alone_is_not_drawn_and_one_of_one_seed_has_no_bar(
    document: AdviceDocument,
) -> None:
    first, second, _ = document.candidates
    assert "chart-gaps" not in page_of(replace(document, candidates=(first,))).ids()
    alone = replace(second, behind=replace(second.behind, low=math.nan, high=math.nan))
    found = page_of(replace(document, candidates=(first, alone), level=0.995))
    columns = found.chart("chart-gaps")
    assert columns["low"][1] == columns["mean"][1] == columns["high"][1]
    assert "grey is significantly behind (99.5 %)." in found.text


def test_metrics_that_differ_have_panels_of_their_own(document: AdviceDocument) -> None:
    one, two, three, four = document.expected
    three = replace(three, metric="rmse", value=4.0, low=3.0, high=5.0)
    wide = replace(one, low=-0.2, high=1.1)
    rows = (wide, two, three, replace(four, test=None))
    found = page_of(replace(document, expected=rows))
    first, second = (found.chart(f"chart-expected-{place}") for place in (0, 1))
    assert first["found"] == [0.91, 0.91, None]
    assert first["came"][-1] == "nothing on test"
    assert len(second["found"]) == 1
    assert (first["low"][0], first["high"][0]) == (0.0, 1.0)  # no axis goes beyond a metric


def test_a_score_outside_its_interval_is_marked_and_counted(
    document: AdviceDocument, page: Page
) -> None:
    one, two, *others = document.expected
    assert one.test is not None
    rows = (
        replace(one, test=replace(one.test, mean=0.7)),
        replace(two, test=replace(one.test, mean=0.99)),
        *others,
    )
    found = page_of(replace(document, expected=rows))
    columns = found.chart("chart-expected-0")
    assert columns["series"] == ["outside", "outside", "inside", "inside"]
    assert columns["came"][:2] == ["0.700 on test, below it", "0.990 on test, above it"]
    assert "below its interval" in found.about("chart-expected-0")
    assert (
        f"2 of 4 lie outside their 90 % intervals: {NAMES[0]} (below) and {NAMES[1]} (above). By "
        "chance alone it would be about 0.4."
    ) in found.text
    assert found.source.count('<span class="flag">') == 2
    assert "none of 4 lies outside its 90 % interval." in page.text


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


def test_a_score_that_never_came_is_neither_inside_nor_outside() -> None:
    found = Page(report_html(replace(BARE, comparison=comparison(None))))
    columns = found.chart("chart-delivered-0")
    assert (columns["found"][0], columns["series"][0]) == (None, "inside")
    assert columns["came"][0] == "nothing on test"


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


def test_every_way_of_training_is_explained_where_it_stands(
    study_data: ReportData, document: AdviceDocument, page: Page
) -> None:
    plain = report_html(study_data)
    for label in LABELS:
        (words,) = re.findall(f"<dt>{label}</dt><dd>(.+?)</dd>", plain)
        assert f'<span class="what">{words}</span>' in page.source
        assert f"The way chosen is {label}. {words}" in page.source or label != "proportional"
    first, second, third = document.candidates
    renamed = (
        replace(first, name="groups", words="a model for each group: a, b; c"),
        replace(second, name="tempered:2"),
        replace(third, name="mine", words=""),
    )
    ways = [row[0] for row in cells(page_of(replace(document, candidates=renamed)), "comparison")]
    assert ways[0] == "groups a model for each group: a, b; c."
    assert "the root of its rows" in ways[1]
    assert ways[2] == "mine"


def test_the_law_is_drawn_to_the_end_of_the_data_and_broken_beyond(page: Page) -> None:
    columns = page.chart("chart-law")
    at: dict[str, list[int]] = {}
    for series, step in zip(columns["series"], columns["step"], strict=True):
        at.setdefault(series, []).append(step)
    assert len(at["evaluation"]) == 8
    assert max(at["law"]) == 400
    assert (min(at["beyond the data"]), max(at["beyond the data"])) == (400, 800)
    assert columns["mean"][-1] == pytest.approx(0.9375)
    assert (columns["low"][-1], columns["high"][-1]) == pytest.approx((0.935, 0.94))


def test_without_a_law_its_place_says_why(document: AdviceDocument) -> None:
    assert document.outlook is not None
    words = "Too few evaluations to fit a law."
    lawless = page_of(replace(document, outlook=replace(document.outlook, law=None, words=words)))
    assert "chart-law" not in lawless.ids()
    assert words in lawless.text
    # The adviser was stopped before it came to that.
    assert "outlook" not in page_of(replace(document, outlook=None)).ids()


def test_rounds_of_the_race_are_one_row_and_a_loser_says_when_it_was_out(
    document: AdviceDocument,
) -> None:
    first, second, third = document.candidates
    rows = (replace(first, cost=1250.0, seconds=12.3), second, replace(third, out_after=3))
    found = page_of(replace(document, candidates=rows))
    stages = cells(found, "spending")
    assert [row[1] for row in stages] == ["2\u2009000", "2\u2009000", "3\u2009500"]
    assert [row[2] for row in stages] == ["20%", "20%", "35%"]
    assert stages[2][0].startswith("race, 2 rounds ")
    columns = found.chart("chart-spending")
    assert columns["begin"] == [0, 2000, 4000, 6000]
    assert columns["step"] == [2000, 4000, 6000, 7500]
    assert "7\u2009500 of 10\u2009000 batches were spent." in found.text
    ways = cells(found, "comparison")
    assert [row[6] for row in ways] == [
        "leads, chosen",
        "may be the best",
        "out after race, round 2",
    ]
    assert ways[0][4:6] == ["1,250", "12"]
    assert ways[1][4:6] == ["\N{EN DASH}"] * 2, "of an earlier version nothing is known"
    assert tiles(found)["test gain over equal shares"] == "+0.015 \u22120.005 to +0.035"
    assert tiles(found)["budget spent"] == "75% of 10\u2009000 batches"


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


def test_the_page_has_every_part_of_the_advice(study_data: ReportData, page: Page) -> None:
    for part in (
        "Draw them equally often.",
        'id="expected"',
        'id="comparison"',
        'id="spending"',
        'id="outlook"',
        "score = 0.95 - 10/batches",
        "<code>which digit</code> has only 40 rows",
        TRAIN,
    ):
        assert part in page.source
    assert page.ids().index("repeat") < page.ids().index("scores"), "details come last"
    assert report_html(study_data).count("<details>") < page.source.count("<details>")


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


def test_the_comparison_has_the_rows_of_the_terminal(document: AdviceDocument, page: Page) -> None:
    for row in race_rows(document):
        for words in (row.name, row.score, row.behind, row.interval, row.standing):
            assert words.replace("-", "\N{MINUS SIGN}") in page.source


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
