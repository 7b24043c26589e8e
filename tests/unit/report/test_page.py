from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from read_page import Page, check_charts
from synthetic_study import synthetic_data, task_names, write_study

import taskmix.report
from taskmix.errors import InputError, MissingExtraError
from taskmix.report import ReportData, report_html, write_report

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'


@pytest.fixture(scope="module")
def data() -> ReportData:
    return synthetic_data(labels=("single", "uniform", "proportional", "weighted"), steps=400)


@pytest.fixture(scope="module")
def page(data: ReportData) -> Page:
    return Page(report_html(data))


def vega(page: Page) -> str:
    """The largest script of a page, which is not ours."""
    return max((body for tag, _, body in page.blocks if tag == "script"), key=len)


def test_the_page_names_no_outside_place_to_fetch_from(page: Page) -> None:
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "srcset", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, name, value)
    own = page.source.replace(vega(page), "")
    # A schema's name is a name: the loader never asks for it.
    assert set(re.findall(r"https?://[^\"'\s<]+", own)) == {
        "https://vega.github.io/schema/vega-lite/v6.json"
    }


def test_only_the_scripts_and_styles_the_policy_knows_may_run(page: Page) -> None:
    policy = next(
        attributes["content"] or ""
        for tag, attributes in page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, attributes, body in page.blocks:
        if attributes.get("type") != "application/json":
            digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy, tag
    assert not any("style" in attributes for _, attributes in page.tags)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_a_page_of_eight_tasks_is_about_a_megabyte_and_one_of_sixty_below_two(
    data: ReportData,
) -> None:
    sixty = synthetic_data(count=60, labels=("uniform", "proportional", "weighted"), steps=2000)
    assert len(report_html(data).encode()) < 1.15e6
    assert len(report_html(sixty).encode()) < 2.0e6


def test_names_from_the_data_are_text_wherever_they_stand() -> None:
    hostile = synthetic_data([HOSTILE, "b"], labels=(HOSTILE, "uniform"), steps=60)
    run = replace(
        hostile.runs[0],
        status="failed",
        error=HOSTILE,
        versions={HOSTILE: HOSTILE},
        specification={HOSTILE: HOSTILE},
    )
    hostile = replace(
        hostile, title=HOSTILE, runs=(run, *hostile.runs[1:]), notes=(HOSTILE,), command=HOSTILE
    )
    text = report_html(hostile)
    page = Page(text)
    assert "<script>alert" not in text
    assert "<img" not in text.replace(vega(page), "")
    assert not any(tag == "img" for tag, _ in page.tags)
    assert html.escape(HOSTILE, quote=False) in text.replace("&#34;", '"')
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    assert HOSTILE in page.payload()["charts"]["chart-curve-0"]["columns"]["series"]["of"]


def test_every_chart_of_the_page_is_valid_vega_lite(page: Page) -> None:
    check_charts(page)


def test_every_line_has_at_most_a_few_hundred_points() -> None:
    long = synthetic_data(count=3, labels=("uniform", "weighted"), steps=20_000)
    for chart in Page(report_html(long)).payload()["charts"].values():
        series = chart["columns"]["series"]["at"]
        assert max(np.bincount(series)) <= 200
    assert "Each point is a mean over up to 400 steps." in Page(report_html(long)).text


def test_shares_of_every_step_add_up_to_one(page: Page) -> None:
    charts = page.payload()["charts"]
    shares = [chart for name, chart in charts.items() if name.startswith("chart-share")]
    assert len(shares) == 3, "all labels but the one that trains tasks alone"
    for chart in shares:
        totals: dict[int, float] = {}
        for step, share in zip(chart["columns"]["step"], chart["columns"]["mean"], strict=True):
            totals[step] = totals.get(step, 0.0) + share
        assert len(totals) == 50
        assert list(totals.values()) == pytest.approx([1.0] * 50, abs=1e-3)


def test_one_task_with_one_label_has_a_page() -> None:
    page = Page(report_html(synthetic_data(count=1, labels=("uniform",), seeds=1, steps=50)))
    assert "uniform reaches a test score of" in page.text
    assert "chart-scores-0" not in page.ids()  # one dot says no more than the table
    assert "variance" not in page.ids()
    assert "shares" not in page.ids()


def test_gaps_in_the_records_are_gaps_in_the_charts(data: ReportData) -> None:
    traces = []
    for trace in data.traces:
        losses = trace.losses.copy()
        losses[:, 3:9] = np.nan
        scores = {
            task: (steps, np.where(steps % 3 == 0, np.nan, values))
            for task, (steps, values) in trace.scores.items()
        }
        traces.append(replace(trace, losses=losses, scores=scores))
    payload = Page(report_html(replace(data, traces=tuple(traces)))).payload()
    charts = payload["charts"]
    assert len(charts["chart-losses-3"]["columns"]["step"]) == 8 * 44
    assert "NaN" not in json.dumps(charts)


def test_differences_to_the_best_label_are_paired_and_point_right_where_better(
    data: ReportData,
) -> None:
    tasks = tuple(replace(task, metric="rmse", higher_is_better=False) for task in data.tasks)
    for case, best in ((data, "proportional"), (replace(data, tasks=tasks), "single")):
        columns = Page(report_html(case)).payload()["charts"]["chart-differences-0"]["columns"]
        series = [columns["series"]["of"][place] for place in columns["series"]["at"]]
        assert set(series) == set(data.labels) - {best}
        rows = [columns["row"]["of"][place] for place in columns["row"]["at"]]
        overall = [mean for row, mean in zip(rows, columns["mean"], strict=True) if "8" in row]
        assert len(overall) == 3
        assert max(overall) < 0  # nobody is better than the best


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_stand_out_from_the_paper(scheme: str) -> None:
    css = (Path(taskmix.report.__file__).parent / "page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light if scheme == "light" else dark))
    paper = _luminance(colours["paper"])

    def contrast(name: str) -> float:
        high, low = sorted((paper, _luminance(colours[name])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for name in colours:
        if name.startswith(("label-", "task-", "other")):
            assert contrast(name) >= 3.0, name  # WCAG 2.2, graphics
    for name in ("ink", "ink-soft", "accent"):
        assert contrast(name) >= 4.5, name  # WCAG 2.2, text


def test_a_missing_extra_says_what_to_install(
    data: ReportData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"taskmix\[report\]"):
        report_html(data)


def test_the_report_is_written_whole_with_its_folder(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", count=2, labels=("uniform",), steps=40)
    out = tmp_path / "pages" / "report.html"
    assert write_report(study.path, out) == out
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]  # nothing left aside
    text = Page(out.read_text(encoding="utf-8")).text
    assert f"taskmix report {study.path}" in text
    assert task_names(2)[0] in text


def test_a_report_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", count=1, labels=("uniform",), seeds=1, steps=10)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="should be written into a folder"):
        write_report(study, tmp_path / "file" / "report.html")


def test_a_name_that_is_no_unicode_does_not_stop_the_page(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", count=1, labels=("uniform",), steps=40)
    out = write_report(study, tmp_path / "report.html", title="bad \udcff name")
    assert "<h1>bad ? name</h1>" in out.read_text(encoding="utf-8")
