"""A run is what determines it: its label is beside it, not in it."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from taskmix.engine import DigitsSource, Here, Run, execute
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.report import gather_report
from taskmix.weighting import Equal

RUN = Run(
    label="first",
    source=DigitsSource(),
    tasks=("parity", "half"),
    architecture=Perceptron(hidden=(4,)),
    steps=20,
    batch_size=4,
    evaluate_every=10,
    checkpoint_every=5,
    weighting=Equal(),
    seed=0,
)
OTHER = replace(RUN, label="second")


def _ask(path: str, label: str) -> tuple[str, str]:
    result = execute(replace(RUN, label=label, steps=60), Study(path))
    return label, result.outcome


def test_processes_that_ask_at_once_under_labels_of_their_own_train_once(tmp_path: Path) -> None:
    labels = [f"label {number}" for number in range(4)]
    with get_context("fork").Pool(4) as pool:
        outcomes = dict(pool.starmap(_ask, [(str(tmp_path), label) for label in labels]))
    assert list(outcomes.values()).count("finished") == 1
    assert set(outcomes.values()) <= {"finished", "already finished", "busy"}
    (summary,) = Study(tmp_path).summaries()
    assert sorted(summary.labels) == labels


def test_the_page_shows_a_run_of_two_labels_as_one_run_under_both(tmp_path: Path) -> None:
    Here(workers=1).run([RUN, OTHER, replace(RUN, seed=1), replace(OTHER, seed=1)], Study(tmp_path))
    data = gather_report(Study(tmp_path))
    assert data.labels == ("first", "second")
    assert [run.labels for run in data.runs] == [("first", "second")] * 2
    by_label: dict[str, list[tuple[str, int, float]]] = {"first": [], "second": []}
    for score in data.scores:
        by_label[score.label].append((score.task, score.seed, score.value))
    assert len(by_label["first"]) >= 4, "two tasks, two seeds"
    assert by_label["first"] == by_label["second"]
    assert sorted((trace.label, trace.seed) for trace in data.traces) == [
        ("first", 0),
        ("first", 1),
        ("second", 0),
        ("second", 1),
    ]
    assert [run.labels for run in gather_report(tmp_path, labels=["second"]).runs] == [
        ("second",)
    ] * 2


def test_settings_of_ones_own_that_are_called_label_still_tell_runs_apart(tmp_path: Path) -> None:
    study = Study(tmp_path)
    mine = {"label": "a", "x": 1}
    with study.run(mine).claim() as claim:
        assert claim.writer is not None
        claim.writer.start(specification=mine, seed=0, label="a", tasks=[{"name": "t"}], steps=1)
        claim.writer.finish(scores=[], best_step=None)
    assert not Study(tmp_path).run({"x": 1}, label="a").is_finished
    assert Study(tmp_path).run(mine).is_finished
