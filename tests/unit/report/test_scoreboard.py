"""Who leads, and whether that is more than chance: scores by hand, read from the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from read_page import Page
from scipy import stats

from taskmix.report import ReportData, ReportScore, RunRow, TaskRow, report_html

Scores = Mapping[str, Mapping[str, Sequence[float]]]  # label, task: one score a seed


def study(scores: Scores, *, metrics: Mapping[str, str] | None = None) -> ReportData:
    names = dict.fromkeys(task for tasks in scores.values() for task in tasks)
    metrics = metrics or {}
    rows = [
        (label, task, seed, value)
        for label, tasks in scores.items()
        for task, values in tasks.items()
        for seed, value in enumerate(values)
    ]
    return ReportData(
        title="study",
        labels=tuple(scores),
        tasks=tuple(
            TaskRow(
                name=name,
                metric=metrics.get(name, "accuracy"),
                higher_is_better=metrics.get(name, "accuracy") not in ("rmse", "log_loss"),
            )
            for name in names
        ),
        runs=tuple(
            RunRow(name=f"{k}", label=label, seed=seed, status="finished", tasks=(task,))
            for k, (label, task, seed, _) in enumerate(rows)
        ),
        scores=tuple(
            ReportScore(task=task, label=label, seed=seed, split="test", value=value)
            for label, task, seed, value in rows
        ),
    )


def page_of(scores: Scores, **metrics: str) -> Page:
    return Page(report_html(study(scores, metrics=metrics)))


def table(page: Page) -> list[list[tuple[str, str]]]:
    """Standing and words of each label's score, a row a task; all tasks together come first."""
    return [row[3:] for row in page.rows("scores")[1:]]


UNIFORM = [0.80, 0.90, 0.70]


@pytest.mark.parametrize(
    ("scores", "words", "standings"),
    [
        pytest.param(
            # The seeds differ widely, but learned is ahead by the same under each.
            {"uniform": {"a": UNIFORM}, "learned": {"a": [0.82, 0.92, 0.721]}},
            [
                "That is 0.020 (0.019 to 0.022) better than the next, uniform",
                "than chance explains",
            ],
            ["num worse", "num best"],
            id="steady",
        ),
        pytest.param(
            {"uniform": {"a": UNIFORM}, "learned": {"a": [0.85, 0.88, 0.72]}},
            ["with 3 seeds we cannot tell which of the two is better"],
            ["num close", "num best"],
            id="of changing sign",
        ),
        pytest.param(
            {"uniform": {"a": [0.8]}, "learned": {"a": [0.9]}},
            ["0.900 (one seed)", "with one seed we cannot tell"],
            None,
            id="one seed",
        ),
        pytest.param(
            {"uniform": {"a": [0.8, 0.8]}, "learned": {"a": [np.nan, np.nan, 0.9]}},
            ["no seed in common: we cannot tell"],
            None,
            id="no common seed",
        ),
        pytest.param(
            {"uniform": {"a": [0.5, 0.6]}, "learned": {"a": [0.4, 0.5, 0.9]}},  # 0.55 against 0.6
            ["Under the seeds both have, the next, uniform, is 0.100 ahead"],
            None,
            id="by a seed of its own",
        ),
    ],
)
def test_a_lead_is_told_with_what_chance_explains(
    scores: Scores, words: list[str], standings: list[str] | None
) -> None:
    page = page_of(scores)
    for part in ("learned has the best test score", *words):
        assert part in page.text
    assert "nan" not in page.text
    if standings is not None:
        assert [kind for kind, _ in table(page)[0]] == standings


def test_metrics_that_cannot_be_averaged_are_ranked() -> None:
    page = page_of(
        {
            "uniform": {"price": [900.0, 910.0, 905.0], "topic": [0.7, 0.7, 0.7]},
            "learned": {"price": [800.0, 805.0, 810.0], "topic": [0.8, 0.8, 0.8]},
        },
        price="rmse",
    )
    assert "learned has the best mean rank by test score: 1.000" in page.text
    assert [words.split()[0] for _, words in table(page)[0]] == ["2.00", "1.00"]
    assert "Lower is better for rmse." in page.text


def test_runs_on_one_task_each_are_one_label_paired_by_seed() -> None:
    page = page_of(
        {
            "single": {"a": [0.5, 0.6], "b": [0.7, 0.8]},
            "uniform": {"a": [0.6, 0.7], "b": [0.8, 0.9]},
        }
    )
    assert table(page)[0][0][1].startswith("0.650 ±")  # seeds: 0.60 and 0.70
    assert "That is 0.100 (0.100 to 0.100) better" in page.text


def test_a_score_that_is_not_a_number_is_left_out_and_said_so() -> None:
    page = page_of({"uniform": {"a": [0.8, np.nan, 0.9], "b": [0.8, 0.7, 0.9]}})
    assert "1 final score is not a number" in page.text
    assert "uniform lacks tasks under seed 1" in page.text
    assert [row[0][1][:5] for row in table(page)] == ["0.850", "0.850", "0.800"]


def test_labels_are_compared_on_the_tasks_they_share() -> None:
    shared = page_of(
        {"all": {"easy": [0.9, 0.9], "hard": [0.1, 0.1]}, "hard only": {"hard": [0.3, 0.4]}}
    )
    assert "hard only has the best test score: 0.350" in shared.text  # not below (0.9 + 0.1) / 2
    assert "1 of 2 tasks" in shared.text
    lacking = page_of(
        {
            "one": {"easy": [0.9, 0.9], "hard": [0.1, 0.1]},
            "two": {"easy": [0.8, 0.9], "hard": [0.1, 0.1]},
            "part": {"easy": [1.0, 1.0]},
        }
    )
    assert table(lacking)[0][2][1] == "\N{EN DASH}"
    assert "one has the best mean test score" in lacking.text
    assert "part has no score on some tasks" in lacking.text


def test_dev_stands_in_where_there_is_no_test_and_only_there() -> None:
    data = study({"uniform": {"a": [0.8, 0.9]}})
    dev = tuple(replace(score, split="dev", value=0.1) for score in data.scores)
    for scores in (data.scores + dev, dev + data.scores):
        page = Page(report_html(replace(data, scores=scores)))
        assert "uniform reaches a test score of 0.850" in page.text
    assert "reaches a dev score of 0.100" in Page(report_html(replace(data, scores=dev))).text


@pytest.mark.parametrize("differences", [[0.01, -0.005, 0.012], [0.1, 0.3, -0.1, 0.2]])
def test_the_number_of_seeds_that_would_tell_is_the_smallest_one(differences: list[float]) -> None:
    base = [0.5] * len(differences)
    ahead = [low + each for low, each in zip(base, differences, strict=True)]
    text = page_of({"uniform": {"a": base}, "learned": {"a": ahead}}).text
    (found,) = re.findall(r"(\d+) seeds would tell a difference of this size", text)
    mean, deviation = np.mean(differences), np.std(differences, ddof=1)

    def tells(seeds: int) -> bool:
        return bool(stats.t.ppf(0.975, seeds - 1) * deviation / seeds**0.5 < mean)

    assert int(found) == next(seeds for seeds in range(2, 1000) if tells(seeds))
