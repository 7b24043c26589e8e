from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_advice import TRAIN, advice_document, comparison_document
from synthetic_study import synthetic_data, task_names, write_study

from taskmix.adviser._candidates import baselines
from taskmix.errors import InputError
from taskmix.plans import (
    AdviceDocument,
    ComparisonDocument,
    Plan,
    race_rows,
    save_advice,
    save_comparison,
)
from taskmix.report import ReportData, gather_report, report_html, write_report
from taskmix.report._advice._contents import advice_contents
from taskmix.report._advice._figures import (
    budget_figure,
    gap_figure,
    law_figure,
)
from taskmix.report._advice._promises import delivered_figure, expected_figure
from taskmix.report._study import explain_way
from taskmix.report._study._scoreboard import scoreboard
from taskmix.tasks import digits_tasks

LABELS = ("proportional", "uniform", "single")
NAMES = task_names(4)


@pytest.fixture
def document() -> AdviceDocument:
    return advice_document(NAMES, LABELS)


@pytest.fixture(scope="module")
def study_data() -> ReportData:
    return synthetic_data(NAMES, LABELS, steps=120)


def test_the_leader_stands_at_zero_and_the_others_left_of_it(document: AdviceDocument) -> None:
    figure = gap_figure(document)
    assert figure is not None
    columns = figure.panels[0].columns
    assert columns["row"] == list(LABELS)
    assert columns["mean"] == [0.0, -0.01, -0.02]
    assert columns["low"] == [0.0, -0.025, -0.035]
    assert columns["high"] == [0.0, 0.005, -0.005]
    assert columns["series"] == ["leads", "may be the best", "out"]
    assert "single: out, 0.020 behind" in figure.panels[0].description


@pytest.mark.parametrize(
    ("level", "words"), [(0.9, "(90 %)"), (0.95, "(95 %)"), (0.995, "(99.5 %)")]
)
def test_who_is_behind_is_said_with_the_level_of_the_comparison(
    document: AdviceDocument, level: float, words: str
) -> None:
    figure = gap_figure(replace(document, level=level))
    assert figure is not None
    assert figure.caption.endswith(f"grey is significantly behind {words}.")
    assert " minus that of proportional" in figure.caption


def test_one_candidate_has_nothing_to_compare(document: AdviceDocument) -> None:
    assert gap_figure(replace(document, candidates=document.candidates[:1])) is None


def test_a_candidate_of_one_seed_has_a_dot_without_a_bar(document: AdviceDocument) -> None:
    first, second, _ = document.candidates
    alone = replace(second, behind=replace(second.behind, low=math.nan, high=math.nan))
    figure = gap_figure(replace(document, candidates=(first, alone)))
    assert figure is not None
    columns = figure.panels[0].columns
    assert columns["low"][1] == columns["mean"][1] == columns["high"][1]


def test_metrics_that_differ_have_panels_of_their_own(document: AdviceDocument) -> None:
    one, two, three, four = document.expected
    three = replace(three, metric="rmse", value=4.0, low=3.0, high=5.0)
    rows = (one, two, three, replace(four, test=None))
    figure = expected_figure(replace(document, expected=rows))
    assert figure is not None
    assert [panel.title for panel in figure.panels] == ["accuracy", "rmse"]
    assert figure.panels[0].columns["found"] == [0.91, 0.91, None]
    assert figure.panels[0].columns["came"][-1] == "nothing on test"


def test_a_score_outside_its_interval_is_marked_and_counted(
    study_data: ReportData, document: AdviceDocument
) -> None:
    one, two, *others = document.expected
    assert one.test is not None
    rows = (
        replace(one, test=replace(one.test, mean=0.7)),
        replace(two, test=replace(one.test, mean=0.99)),
        *others,
    )
    advice = replace(document, expected=rows)
    figure = expected_figure(advice)
    assert figure is not None
    assert figure.panels[0].columns["series"] == ["outside", "outside", "inside", "inside"]
    assert figure.panels[0].columns["came"][:2] == [
        "0.700 on test, below it",
        "0.990 on test, above it",
    ]
    assert "below its interval" in figure.panels[0].description
    found = advice_contents(replace(study_data, advice=advice))
    assert found is not None
    assert found.outside == (
        f"2 of 4 lie outside their 90 % intervals: {NAMES[0]} (below) and {NAMES[1]} (above). By "
        "chance alone it would be about 0.4."
    )
    page = report_html(replace(study_data, advice=advice))
    assert page.count('<span class="flag">') == 2
    held = advice_contents(replace(study_data, advice=document))
    assert held is not None
    assert held.outside == "None of 4 lies outside its 90 % interval."


def test_intervals_beyond_a_metric_are_drawn_to_its_end(document: AdviceDocument) -> None:
    rows = tuple(replace(row, low=-0.2, high=1.1) for row in document.expected)
    figure = expected_figure(replace(document, expected=rows))
    assert figure is not None
    columns = figure.panels[0].columns
    assert set(columns["low"]) == {0.0}
    assert set(columns["high"]) == {1.0}


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
    figure = delivered_figure(data.comparison)
    assert figure is not None
    assert figure.panels[0].columns["series"] == ["outside", "inside", "inside", "inside"]


def test_a_score_that_never_came_is_neither_inside_nor_outside() -> None:
    figure = delivered_figure(comparison(None))
    assert figure is not None
    assert figure.panels[0].columns["found"][0] is None
    assert figure.panels[0].columns["series"][0] == "inside"
    assert figure.panels[0].columns["came"][0] == "nothing on test"


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
    study_data: ReportData, document: AdviceDocument
) -> None:
    page = report_html(replace(study_data, advice=document))
    for label in LABELS:
        assert f'<span class="what">{explain_way(label)}</span>' in page
    assert f"The way chosen is proportional. {explain_way('proportional')}" in page
    plain = report_html(study_data)
    for label in LABELS:
        assert f"<dt>{label}</dt><dd>{explain_way(label)}</dd>" in plain


@pytest.mark.parametrize("plan", baselines(digits_tasks(), digits_tasks().names))
def test_what_anyone_would_try_first_is_explained(plan: Plan) -> None:
    assert explain_way(plan.name), plan.name


def test_a_way_that_was_made_for_these_tasks_is_explained_by_its_own_words() -> None:
    assert explain_way("groups", "a model for each group: a, b; c") == (
        "a model for each group: a, b; c."
    )
    assert explain_way("tempered:2") == explain_way("tempered")
    assert explain_way("mine") == ""


def test_stages_stand_one_after_the_other(document: AdviceDocument) -> None:
    figure = budget_figure(document)
    assert figure is not None
    columns = figure.panels[0].columns
    assert columns["begin"] == [0, 2000, 4000, 6000]
    assert columns["step"] == [2000, 4000, 6000, 7500]
    assert "7\u2009500 of 10\u2009000 batches were spent." in figure.caption


def test_the_law_is_drawn_to_the_end_of_the_data_and_broken_beyond(
    document: AdviceDocument,
) -> None:
    figure = law_figure(document)
    assert figure is not None
    columns = figure.panels[0].columns
    at: dict[str, list[int]] = {}
    for series, step in zip(columns["series"], columns["step"], strict=True):
        at.setdefault(series, []).append(step)
    assert len(at["evaluation"]) == 8
    assert max(at["law"]) == 400
    assert (min(at["beyond the data"]), max(at["beyond the data"])) == (400, 800)
    assert columns["mean"][-1] == pytest.approx(0.9375)
    assert (columns["low"][-1], columns["high"][-1]) == pytest.approx((0.935, 0.94))


def test_without_a_law_its_place_says_why(study_data: ReportData, document: AdviceDocument) -> None:
    assert document.outlook is not None
    words = "Too few evaluations to fit a law."
    lawless = replace(document, outlook=replace(document.outlook, law=None, words=words))
    assert law_figure(lawless) is None
    assert words in report_html(replace(study_data, advice=lawless))
    stopped = replace(document, outlook=None)  # the adviser was, before it came to that
    assert 'id="outlook"' not in report_html(replace(study_data, advice=stopped))


def test_nothing_is_drawn_where_there_is_no_advice() -> None:
    makers = (gap_figure, expected_figure, budget_figure, law_figure)
    assert [make(None) for make in makers] == [None] * 4


def test_rounds_of_the_race_are_one_row_and_a_loser_says_when_it_was_out(
    study_data: ReportData, document: AdviceDocument
) -> None:
    first, second, third = document.candidates
    rows = (first, second, replace(third, out_after=3))
    found = advice_contents(replace(study_data, advice=replace(document, candidates=rows)))
    assert found is not None
    assert [row.name for row in found.stages] == ["baselines", "transfer", "race, 2 rounds"]
    assert [row.cost for row in found.stages] == ["2\u2009000", "2\u2009000", "3\u2009500"]
    assert [row.share for row in found.stages] == ["20%", "20%", "35%"]
    assert [way.row.standing for way in found.candidates] == [
        "leads",
        "may be the best",
        "out after race, round 2",
    ]
    tiles = {name: (value, note) for name, value, note in found.tiles}
    assert tiles["test gain over equal shares"] == ("+0.015", "\u22120.005 to +0.035")
    assert tiles["budget spent"] == ("75%", "of 10\u2009000 batches")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (540.0, ("90%", "of 10 min")),
        (606.0, ("all", "of 10 min, and 1% more for what was under way")),
    ],
)
def test_a_budget_of_time_is_compared_with_time_however_many_batches_it_paid_for(
    study_data: ReportData, document: AdviceDocument, seconds: float, shown: tuple[str, str]
) -> None:
    timed = replace(document, budget_seconds=600.0, seconds=seconds, batches_spent=15_300)
    found = advice_contents(replace(study_data, advice=timed))
    assert found is not None
    assert {name: (value, note) for name, value, note in found.tiles}["budget spent"] == shown
    assert "153" not in " ".join(row.share for row in found.stages)
    figure = budget_figure(timed)
    assert figure is not None
    assert "15\u2009300 batches were spent in" in figure.caption


def test_a_way_shows_its_batches_and_its_seconds(
    study_data: ReportData, document: AdviceDocument
) -> None:
    first, *others = document.candidates
    rows = (replace(first, cost=1250.0, seconds=12.3), *others)
    shown = race_rows(replace(document, candidates=rows))
    assert (shown[0].cost, shown[0].seconds) == ("1,250", "12")
    assert (shown[1].cost, shown[1].seconds) == ("", ""), "of an earlier version nothing is known"
    page = report_html(replace(study_data, advice=replace(document, candidates=rows)))
    assert '<td class="num">1,250</td><td class="num">12</td>' in page


def test_the_page_has_every_part_of_the_advice(
    study_data: ReportData, document: AdviceDocument
) -> None:
    page = report_html(replace(study_data, advice=document))
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
        assert part in page
    assert page.index('id="repeat"') < page.index('id="scores"'), "details come last"
    assert report_html(study_data).count("<details>") < page.count("<details>")


def test_every_chart_about_advice_is_valid_vega_lite(document: AdviceDocument) -> None:
    altair = pytest.importorskip("altair")
    for make in (gap_figure, expected_figure, budget_figure, law_figure):
        figure = make(document)
        assert figure is not None
        for spec in figure.specs.values():
            altair.LayerChart.from_dict({"data": {"values": []}, **spec}, validate=True)


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
    board = scoreboard(replace(study_data, advice=advice))
    assert board.compared == tuple(NAMES[:2])
    assert len(board.rows) == 4


def test_the_comparison_has_the_rows_of_the_terminal(
    study_data: ReportData, document: AdviceDocument
) -> None:
    page = report_html(replace(study_data, advice=document))
    for row in race_rows(document):
        for words in (row.name, row.score, row.behind, row.interval, row.standing):
            assert words.replace("-", "\N{MINUS SIGN}") in page


def test_a_number_that_is_not_known_costs_no_figure_its_page(
    study_data: ReportData, document: AdviceDocument
) -> None:
    assert document.outlook is not None
    assert document.outlook.law is not None
    lost = {"spent": math.nan, "score": math.nan}
    law = replace(document.outlook.law, batches=math.nan)
    evaluations = tuple(replace(each, batches=math.nan) for each in document.outlook.evaluations)
    advice = replace(
        document,
        milestones=tuple(replace(each, **lost) for each in document.milestones),
        outlook=replace(document.outlook, law=law),
    )
    assert law_figure(advice) is None, "there is no axis to draw it on"
    figure = budget_figure(advice)
    assert figure is not None
    assert figure.panels[0].columns["step"] == [None] * 4
    assert 'id="spending"' in report_html(replace(study_data, advice=advice))
    some = replace(document, outlook=replace(document.outlook, evaluations=evaluations))
    figure = law_figure(some)
    assert figure is not None
    assert figure.panels[0].columns["batches"][0] == "\N{EN DASH}"


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
