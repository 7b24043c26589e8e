"""The experiments of the BanditMTL paper: on texts made here, and a few steps on the real ones."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path

import numpy as np
import pytest

from papers.text_measures import Curves, text_figure
from papers.texts import (
    DOMAINS,
    NEWSGROUPS_SETTINGS,
    TextOptions,
    reproduce_texts,
    text_runs,
)
from taskmix.engine import Here
from taskmix.records import Study

ROOT = Path(__file__).parents[2]
TOPICS = ("comp", "rec", "sci", "talk")


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")


@pytest.fixture
def newsgroups(tmp_path: Path) -> Path:
    """Twelve messages a group that name it, eight of them to train on."""
    tables = tomllib.loads(NEWSGROUPS_SETTINGS.read_text())["task"]
    groups = [group for table in tables for group in table["labels"]]
    chance = random.Random(0)
    for split, count in (("train", 8), ("test", 4)):
        rows: list[dict[str, object]] = [
            {"text": f"{group.split('.')[-1]} {chance.random()} some more words", "group": group}
            for group in groups
            for _ in range(count)
        ]
        write(tmp_path / "newsgroups" / f"{split}.jsonl", rows)
    return tmp_path / "newsgroups"


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """Half of every domain's test rows are in train as well, with the other label."""
    for domain in DOMAINS:
        for split in ("train", "dev", "test"):
            rows: list[dict[str, object]] = [
                {
                    "text": f"{'good' if number % 2 else 'bad'} {domain} {split} number {number}",
                    "label": number % 2,
                }
                for number in range(12)
            ]
            if split == "test":
                rows[:6] = [
                    {
                        "text": f"{'good' if n % 2 else 'bad'} {domain} train number {n}",
                        "label": 1 - n % 2,
                    }
                    for n in range(6)
                ]
            write(tmp_path / "reviews" / domain / f"{split}.jsonl", rows)
    return tmp_path / "reviews"


def test_the_topics_give_accuracies_differences_variances_and_sweeps(
    newsgroups: Path, tmp_path: Path
) -> None:
    options = TextOptions(
        data=newsgroups,
        methods=("single", "equal", "bandit", "adversarial"),
        seeds=2,
        steps=3,
        batch_size=8,
        radii=(0.1,),
        step_sizes=(0.9,),
        sweep_seeds=1,
        evaluations=1,
    )
    study = Study(tmp_path / "study")
    executor = Here(workers=1)
    rows = reproduce_texts(options, study, executor)
    found = {row.quantity: row for row in rows}
    for method in (*options.methods, "radius_0.1", "step_size_0.9"):
        of_tasks = [found[f"newsgroups/{method}/{name}"].ours for name in TOPICS]
        assert found[f"newsgroups/{method}/average"].ours == pytest.approx(np.mean(of_tasks))
        assert 0 < np.mean(of_tasks) < 100
        assert found[f"newsgroups/{method}/task_variance"].ours >= 0
        assert f"newsgroups/{method}/talk" in found
        assert (f"newsgroups/{method}/minus_equal" in found) == (method != "equal")
    assert found["newsgroups/bandit/average"].n == 2
    assert found["newsgroups/radius_0.1/minus_equal"].n == 1
    assert "newsgroups/single/weight_change" not in found
    assert found["newsgroups/equal/weight_change"].ours == 0
    assert found["newsgroups/bandit/weight_change"].ours > 0
    assert len(list(study.runs())) == 2 * (4 + 3) + 2, "one run a task where tasks are alone"
    assert reproduce_texts(options, study, executor) == rows, "asking twice costs once"

    runs = {name: text_runs(options)[name] for name in options.methods}
    variance, weights = text_figure(runs, TOPICS, study)["vconcat"]
    drawn = [each["variance"] for each in variance["data"]["values"] if each["method"] == "bandit"]
    assert np.mean(drawn) == pytest.approx(found["newsgroups/bandit/task_variance_all"].ours)
    assert {each["method"] for each in weights["data"]["values"]} == {"bandit"}, "it alone has some"
    assert sum(each["weight"] for each in weights["data"]["values"]) == pytest.approx(4 * 3)


def test_reviews_that_also_occur_in_train_are_left_out_of_the_second_figures(
    reviews: Path, tmp_path: Path
) -> None:
    options = TextOptions(
        data=reviews,
        texts="reviews",
        methods=("equal", "bandit"),
        seeds=1,
        steps=12,
        batch_size=12,
        evaluations=1,
    )
    rows = reproduce_texts(options, Study(tmp_path / "study"), Here(workers=1))
    found = {row.quantity: row.ours for row in rows}
    # The rows in train have the wrong label in test: a model that has learned fails on them alone.
    assert found["reviews/equal/average"] < 65
    assert found["reviews_not_in_train/equal/average"] > 90
    assert "reviews_not_in_train/bandit/video" in found
    assert "reviews_not_in_train/bandit/minus_equal" in found


def test_measures_of_curves() -> None:
    curves = Curves(
        losses=np.array([[0.0, 4.0], [1.0, 1.0], [2.0, 4.0]]),
        weights=np.array([[1.0, 1.0], [0.5, 1.5], [0.5, 1.5]]),
    )
    assert curves.task_variance() == pytest.approx((4 + 0 + 1) / 3)
    assert curves.task_variance(0.3) == pytest.approx(1.0)
    assert curves.weight_change() == pytest.approx(0.25)
