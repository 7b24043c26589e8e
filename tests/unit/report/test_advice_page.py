from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from read_page import Page, check_charts
from synthetic_advice import TRAIN, WORDS, advice_document, comparison_document
from synthetic_study import synthetic_data, task_names, write_study

from taskmix.errors import InputError
from taskmix.numerics import Interval
from taskmix.plans import (
    AdviceDocument,
    ComparisonDocument,
    DeliveredRow,
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


def delivered(document: AdviceDocument) -> DeliveredRow:
    assert document.delivered is not None
    return document.delivered


def cells(page: Page, section: str) -> list[list[str]]:
    """The words of a table, without its head."""
    return [[words for _, words in row] for row in page.rows(section)[1:]]


def head(page: Page, section: str) -> list[str]:
    """What stands above the columns of the section's tables."""
    part = page.source.partition(f'<section id="{section}"')[2].partition("</section>")[0]
    return re.findall(r'<th scope="col".*?>(.*?)</th>', part)


def tiles(page: Page) -> dict[str, str]:
    found = page.source.partition('class="tiles"')[2].partition("</dl>")[0]
    tile = re.compile(r"<dt>(.*?)</dt><dd>(.*?)</dd><dd class=\"soft\">(.*?)</dd>")
    plain = found.replace("<small>", "").replace("</small>", "")
    return {name: f"{value} {note}" for name, value, note in tile.findall(plain)}


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


def test_every_candidate_is_explained_where_it_stands(
    study_data: ReportData, document: AdviceDocument, page: Page
) -> None:
    plain = report_html(study_data)
    for label in LABELS:
        (words,) = re.findall(f"<dt>{label}</dt><dd>(.+?)</dd>", plain)
        assert f'<span class="what">{words}</span>' in page.source
        assert f"Chosen: {label}. {words}" in page.source or label != "proportional"
    first, second, third = document.candidates
    renamed = (
        replace(first, name="groups", words="a model for each group: a, b; c"),
        replace(second, name="tempered:2"),
        replace(third, name="mine", words=""),
    )
    found = cells(page_of(replace(document, candidates=renamed)), "divide")
    names = [row[0] for row in found if len(row) == 7]
    assert names[0] == "groups a model for each group: a, b; c."
    assert "the root of its rows" in names[1]
    assert names[2] == "mine"


def test_a_gain_that_may_be_chance_is_called_level_and_one_below_zero_says_what_to_take(
    document: AdviceDocument, page: Page
) -> None:
    shown = tiles(page)
    assert shown["test gain over the best plain way, single"] == (
        "+1.9 points +1.1 to +2.7 over rows (90 %)"
    )
    assert shown[f"test gain over the best shallow model, {WORDS}"] == (
        "level \u22120.1 points, \u22120.8 to +0.6 over rows (90 %)"
    )
    gains = {"plain": Interval(-0.02, -0.03, -0.01, 4, 0.9)}
    worse = tiles(page_of(replace(document, delivered=replace(delivered(document), gains=gains))))
    assert worse["test gain over the best plain way, single"] == (
        "\u22122.0 points \u22123.0 to \u22121.0 over rows (90 %). These rows refute the choice: "
        "take single"
    )


def test_gains_of_tasks_with_errors_are_no_points(document: AdviceDocument) -> None:
    first, *others = delivered(document).tasks
    rows = (replace(first, metric="rmse", delivered=3.5), *others)
    promised = (replace(document.expected[0], metric="rmse"), *document.expected[1:])
    found = page_of(
        replace(document, delivered=replace(delivered(document), tasks=rows), expected=promised)
    )
    shown = tiles(found)
    assert shown["test gain over each task alone"].startswith("+0.034 +0.024 to +0.044")
    assert not any(name.startswith("mean") for name in shown), "no mean of accuracy and error"
    assert "Errors count in deviations" in found.text


def test_a_shallow_model_that_is_delivered_is_not_compared_with_itself(
    document: AdviceDocument,
) -> None:
    alone = replace(delivered(document), members=(WORDS,), batches=0)
    found = page_of(replace(document, delivered=alone))
    assert not any("shallow" in name for name in tiles(found))
    assert f"What you take home is {WORDS}, trained again on train and dev rows." in found.text
    assert "It has no network." in found.text


def test_before_a_model_is_delivered_the_gain_is_that_of_the_network(
    document: AdviceDocument,
) -> None:
    found = page_of(replace(document, delivered=None))
    shown = tiles(found)
    assert shown["test gain over equal shares"] == (
        "level +1.5 points, \u22120.5 to +3.5 over seeds (90 %)"
    )
    assert shown["mean dev score of 4 tasks"] == "0.900 proportional"
    assert "The scores to expect" in found.text
    assert cells(found, "model")[0] == [NAMES[0], "0.910", "0.900 0.850 to 0.950", "accuracy"]


def test_each_task_has_its_scores_and_the_weights_of_the_members(
    document: AdviceDocument, page: Page
) -> None:
    first = cells(page, "model")[0]
    assert head(page, "model") == [
        *("task", "delivered", "checked", "expected"),
        *("network proportional", WORDS, "metric"),
    ]
    assert first == [
        *(NAMES[0], "0.950", "0.910", "0.900 0.850 to 0.950", "75%", "25%", "accuracy"),
    ]
    one, *others = delivered(document).tasks
    turned = replace(
        delivered(document), tasks=(replace(one, delivered=0.5, weights={WORDS: 1.0}), *others)
    )
    rows = cells(page_of(replace(document, delivered=turned)), "model")
    assert [row[1] for row in rows] == ["0.940", "0.930", "0.920", "0.500"]
    assert rows[-1][4:6] == ["\N{EN DASH}", "100%"]


def test_a_model_that_was_trained_on_the_dev_rows_has_no_score_on_them(
    document: AdviceDocument,
) -> None:
    found = page_of(replace(document, delivered=replace(delivered(document), split="dev")))
    assert head(found, "model")[:3] == ["task", "checked", "expected"]
    assert "there being no test rows" in found.text
    assert "over rows that its weights did not see" in tiles(found)["dev gain over each task alone"]


def test_what_is_alike_is_said_with_its_bound(document: AdviceDocument, page: Page) -> None:
    words = (
        "Alike within 3.0 points (90 %), so that it hardly matters which: proportional and uniform."
    )
    assert words in page.text
    assert "Alike" not in page_of(replace(document, alike=(), within=math.nan)).text


def test_without_a_network_the_shallow_models_are_shown_and_the_plan_is_a_placeholder(
    tmp_path: Path, document: AdviceDocument
) -> None:
    bare = replace(document, candidates=(), alike=(), within=math.nan, chosen="uniform")
    save_advice(tmp_path, bare)
    found = Page(write_report(tmp_path, tmp_path / "report.html").read_text())
    assert "The budget paid for no shared network" in found.text
    assert "a placeholder, not a recommendation" in found.text
    assert cells(found, "divide") == [
        [WORDS, "0.875", "yes"],
        ["words, one model for all", "0.850", "no"],
    ]
    assert "This study has no runs yet." not in found.text
    assert {"scores", "runs"}.isdisjoint(found.ids())


def test_the_plan_has_a_share_for_each_task_and_a_row_says_what_a_seed_costs(
    document: AdviceDocument,
) -> None:
    first, *others = document.candidates
    plan = replace(
        document.plan,
        probabilities=(0.1, 0.4, 0.3, 0.2),
        groups=(tuple(NAMES[:2]), tuple(NAMES[2:])),
    )
    found = page_of(
        replace(
            document, plan=plan, candidates=(replace(first, cost=1250.0, seconds=12.3), *others)
        )
    )
    rows = cells(found, "divide")
    assert rows[:4] == [
        [NAMES[1], "1", "40.0%"],
        [NAMES[0], "1", "10.0%"],
        [NAMES[2], "2", "30.0%"],
        [NAMES[3], "2", "20.0%"],
    ]
    race = [row for row in rows if len(row) == 7]
    assert [row[6] for row in race] == ["leads, chosen", "may be the best", "out"]
    assert race[0][4:6] == ["1,250", "12"]
    assert race[1][4:6] == ["\N{EN DASH}"] * 2, "it is not known"
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
    of_time = replace(document, batches=None, budget_seconds=600.0)
    found = page_of(replace(of_time, seconds=seconds, batches_spent=15_300))
    assert tiles(found)["budget spent"] == shown


def test_the_page_has_every_part_of_the_advice(study_data: ReportData, page: Page) -> None:
    for part in (
        "Draw them equally often.",
        'id="model"',
        'id="divide"',
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


@pytest.mark.parametrize(
    "damage",
    [
        "no json",
        json.dumps({"version": 2}),
        json.dumps({"version": 1}),
        json.dumps({"version": 2, "title": "x", "lines": 3}),
    ],
)
def test_an_advice_that_is_none_is_told(damage: str, tmp_path: Path) -> None:
    write_study(tmp_path, NAMES[:2], ("uniform",), steps=40, seeds=1)
    (tmp_path / "advice.json").write_text(damage)
    with pytest.raises(InputError, match="`taskmix advise` wrote"):
        gather_report(tmp_path)
