"""What the benchmark of advice makes of scores; its trainings are not repeated here."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from taskmix.engine import DigitsSource, Run
from taskmix.models import Perceptron
from taskmix.policies import Scheduled
from taskmix.tasks import digits_tasks, load_tasks

ROOT = Path(__file__).parents[2]


@pytest.fixture
def measures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("_advice_measures")


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("_advice_cases")


def test_regret_is_against_the_baseline_that_is_best_on_dev(measures: ModuleType) -> None:
    plan = measures.Scores(dev=(0.8, 0.8), test=(0.70, 0.72))
    baselines = {
        "lucky on test": measures.Scores(dev=(0.5, 0.5), test=(0.9, 0.9)),
        "best on dev": measures.Scores(dev=(0.7, 0.7), test=(0.60, 0.61)),
    }
    by_dev = measures.regret_by_dev(plan, baselines)
    assert by_dev.baseline == "best on dev"
    assert by_dev.difference.mean == pytest.approx(0.105)
    assert measures.regret_by_test(plan, baselines).baseline == "lucky on test"


def test_a_plan_that_is_one_of_the_baselines_is_neither_better_nor_worse(
    measures: ModuleType,
) -> None:
    same = measures.Scores(dev=(0.5, 0.6, 0.7), test=(0.5, 0.6, 0.7))
    worse = measures.Scores(dev=(0.1, 0.2, 0.3), test=(0.1, 0.2, 0.3))
    for regret in (measures.regret_by_dev, measures.regret_by_test):
        assert regret(same, {"same": same, "worse": worse}).verdict == "neither"


def test_the_best_of_many_baselines_has_to_be_further_off_to_be_called_better_than_the_plan(
    measures: ModuleType,
) -> None:
    # A mean of -1 with a standard error of 1/3 and 2 degrees: t = 3, between the points for 90 %
    # (2.92) and for 90 % of one among six (7.65).
    spread = np.array([-1.0, 0.0, 1.0]) / np.sqrt(3)
    plan = measures.Scores(dev=(0.0,) * 3, test=tuple(spread - 1.0))
    zero = measures.Scores(dev=(0.0,) * 3, test=(0.0,) * 3)
    assert measures.regret_by_test(plan, {"one": zero}).verdict == "significantly worse"
    many = {f"baseline {place}": zero for place in range(6)}
    assert measures.regret_by_test(plan, many).verdict == "neither"


def test_coverage_counts_scores_inside_and_leaves_out_tasks_without_one(
    measures: ModuleType,
) -> None:
    expected = [
        {"task": "a", "low": 0.4, "high": 0.6},
        {"task": "b", "low": 0.4, "high": 0.8},
        {"task": "never scored", "low": 0.0, "high": 1.0},
    ]
    came = measures.coverage(expected, [{"a": 0.5, "b": 0.9}, {"a": 0.6, "b": 0.3}])
    assert (came.inside, came.scores, came.tasks) == (2, 4, 2)
    assert came.share == 0.5
    assert came.width == pytest.approx(0.3)


def test_a_settled_pair_is_overturned_where_the_way_is_better_after_all(
    measures: ModuleType,
) -> None:
    leader = measures.Scores(dev=(0.5, 0.7), test=(0.5, 0.5))
    out = {
        "behind": measures.Scores(dev=(0.6, 0.5), test=(0.6, 0.6)),
        "ahead": measures.Scores(dev=(0.7, 0.6), test=(0.4, 0.4)),
    }
    came = measures.settled(leader, out, ["merged"])
    assert (came.pairs, came.stay_on_dev, came.stay_on_test) == (2, 1, 1)
    assert came.overturned == ("ahead",)
    assert came.unchecked == ("merged",)


def test_drawn_shares_are_probabilities_and_the_same_every_time(measures: ModuleType) -> None:
    drawn = measures.random_shares(5, 40)
    assert drawn == measures.random_shares(5, 40)
    assert len(set(drawn)) == 40
    assert np.allclose(np.sum(drawn, axis=1), 1.0)
    assert np.min(drawn) > 0


def test_rows_that_some_task_trains_on_are_in_no_dev_or_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    folders = importlib.import_module("_advice_folders")
    texts = {"train": "abcd", "dev": "aefg", "test": "hijk"}
    rows = {
        split: [{"text": f"text {letter}", "label": place % 2} for place, letter in enumerate(some)]
        for split, some in texts.items()
    }
    others = {**rows, "train": [{"text": f"text {letter}", "label": "yes"} for letter in "hlmn"]}
    tasks = folders.without_seen({"one": rows, "other": others}, lambda row: row["text"])
    assert [row["text"][-1] for row in tasks["one"]["dev"]] == ["e", "f", "g"]  # a is trained on
    assert [row["text"][-1] for row in tasks["one"]["test"]] == ["i", "j", "k"]  # h by the other
    folders.write(tmp_path / "folder", {"one": tasks["one"]}, 'metric = "auc"\n')
    (read,) = load_tasks(tmp_path / "folder")
    assert read.sizes == {"train": 4, "dev": 3, "test": 3}
    assert read.metric == "auc"


def test_folders_put_aside_are_refused_until_the_end(cases: ModuleType) -> None:
    with pytest.raises(
        SystemExit, match="votes is put aside: nothing may be chosen by its results"
    ):
        cases.refuse_put_aside("somewhere/votes", final=False)
    cases.refuse_put_aside("somewhere/votes", final=True)
    cases.refuse_put_aside("somewhere/incomes", final=False)


def test_the_usual_cases_are_of_one_side_only(cases: ModuleType) -> None:
    aside = {case.folder for case in cases.usual_cases(final=True, with_encoder=True)}
    tuning = {case.folder for case in cases.usual_cases(final=False, with_encoder=True)}
    assert aside == set(cases.PUT_ASIDE)
    assert not aside & tuning


def test_four_harmful_tasks_are_added_and_asked_for_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    harm = importlib.import_module("_advice_harm")
    tasks = digits_tasks()
    spoiled = harm.spoil(tasks, seed=0)
    assert len(spoiled.tasks) == len(tasks) + 4
    (short,) = spoiled.names["few rows"]
    assert spoiled.tasks[short].size == harm.FEW
    (leaking,) = spoiled.names["leaking"]
    dev = spoiled.tasks[leaking].splits["dev"]
    told = dev.inputs.column("outcome").to_pylist()
    labels = spoiled.tasks[leaking].labels
    assert told == [f"answer{labels[int(target)]}" for target in dev.targets]

    (wrong,) = spoiled.names["shuffled"]
    findings = [{"kind": "leak", "tasks": [leaking]}, {"kind": "few rows", "tasks": ["another"]}]
    advice = {"unlearned": [wrong], "plan": {"tasks": []}, "findings": findings}
    assert harm.named(advice, spoiled) == {
        "shuffled": True,
        "copy": False,
        "leaking": True,
        "few rows": False,
    }


def test_the_models_of_a_recorded_way_are_lengthened_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    as_long = importlib.import_module("_advice_settled").as_long
    stages = Scheduled(((0, (0.5, 0.5)), (15, (0.1, 0.9))))
    first = Run(
        label="way",
        source=DigitsSource(),
        architecture=Perceptron(),
        tasks=("parity", "half"),
        policy=stages,
        steps=30,
        seed=0,
    )
    runs = as_long([first, replace(first, tasks=("prime",), policy=None, steps=10)], batches=80)
    assert [run.steps for run in runs] == [60, 20]
    assert [start for start, _ in runs[0].policy.stages] == [0, 30]


def test_a_table_has_a_line_for_each_file(cases: ModuleType, tmp_path: Path) -> None:
    regret = {
        "what": "regret",
        "way": "plan",
        "picked": "dev",
        "peer_name": "size",
        "batches": 500,
        "difference": 0.01,
        "low": 0.005,
        "high": 0.015,
        "verdict": "significantly better",
    }
    advice = {"what": "advice", "ours": 12.0, "chosen": "apart"}
    rows = [advice, regret, regret | {"picked": "test"}]
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"case": "incomes, scratch", "rows": rows}))
    line = cases.table([path]).splitlines()[2]
    assert "incomes, scratch | 12 | apart | 500 | size | +0.0100 (+0.0050 to +0.0150)" in line
    assert "**better**" in line
