"""A run is what determines it: its label is beside it, and studies of version 0.1 are still read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from older import make_older, older_name

from taskmix.engine import Auto, DigitsSource, Fleet, Here, Observers, Run, execute
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.report import gather_report
from taskmix.training import StepEvent
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


def until(step: int) -> tuple[Callable[[], bool], Callable[[Any], None]]:
    """Stops a run after so many steps."""
    seen: list[int] = []

    def listen(event: object) -> None:
        if isinstance(event, StepEvent):
            seen.append(event.step)

    return lambda: len(seen) >= step, listen


def stop_after(run: Run, study: Study, step: int) -> None:
    should_stop, listen = until(step)
    assert execute(run, study, should_stop=should_stop, listener=listen).outcome == "stopped"


def must_be_alike(one: Study, two: Study, run: Run) -> None:
    first, second = run.folder(one), run.folder(two)
    drop = ["seconds", "probabilities"]
    assert first.steps().drop_columns(drop).equals(second.steps().drop_columns(drop))
    assert first.scores().equals(second.scores())
    weights: Any = first.best()
    others: Any = second.best()
    assert all(weights[name].equal(others[name]) for name in weights | others)


def test_a_label_is_no_part_of_what_determines_a_run() -> None:
    assert "label" not in RUN.specification()
    assert RUN.specification() == OTHER.specification()


def test_a_run_is_trained_once_whatever_it_is_called(tmp_path: Path) -> None:
    study = Study(tmp_path)
    first, second = execute(RUN, study), execute(OTHER, study)
    assert (first.outcome, second.outcome) == ("finished", "already finished")
    assert first.summary is not None
    assert second.summary is not None
    assert (first.summary.label, second.summary.label) == ("first", "second")
    assert first.summary.name == second.summary.name
    assert set(study.scores()["label"].to_pylist()) == {"first", "second"}


@pytest.mark.parametrize(
    ("executor", "workers", "fresh"),
    [(Here, 1, False), (Here, 2, False), (Fleet, 1, False), (Auto, 1, True)],
)
def test_equal_runs_of_one_call_are_done_once(
    tmp_path: Path, executor: Any, workers: int, fresh: bool
) -> None:
    study, told = Study(tmp_path), []
    runs = [RUN, OTHER, replace(RUN, seed=1), RUN, replace(OTHER, seed=1)]
    observers = Observers.telling(
        lambda progress: told.append(progress.run) if progress.done else None
    )
    results = executor(workers=workers, observers=observers).run(runs, study, fresh=fresh)
    assert [result.outcome for result in results] == [
        "finished",
        "already finished",
        "finished",
        "finished",  # the very result of the first
        "already finished",
    ]
    labels = [result.summary.label for result in results if result.summary is not None]
    assert labels == [run.label for run in runs]
    assert sorted(told) == list(range(5))
    assert [run.labels for run in study.summaries()] == [("first", "second")] * 2


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


# Studies of version 0.1.


@pytest.fixture
def older(tmp_path: Path) -> Study:
    """One finished run of version 0.1, labelled `first`."""
    execute(RUN, Study(tmp_path / "older"))
    make_older(RUN.folder(Study(tmp_path / "older")), RUN)
    return Study(tmp_path / "older")


def names(study: Study) -> set[str]:
    return {folder.name for folder in study.runs()}


def test_a_run_of_version_0_1_is_found_under_its_label_and_under_another(older: Study) -> None:
    before = {path: path.read_bytes() for path in older.path.rglob("*") if path.is_file()}
    for run in (RUN, OTHER):
        result = execute(run, older)
        assert result.outcome == "already finished"
        assert result.summary is not None
        assert (result.summary.name, result.summary.label) == (older_name(RUN), run.label)
    assert names(older) == {older_name(RUN)}
    assert all(path.read_bytes() == data for path, data in before.items()), "as it was"
    assert set(Study(older.path).scores()["label"].to_pylist()) == {"first", "second"}
    assert gather_report(older.path).labels == ("first", "second")


@pytest.mark.parametrize("executor", [Here, Fleet])
@pytest.mark.parametrize("run", [RUN, OTHER], ids=["its label", "another label"])
@pytest.mark.parametrize("lean", [False, True])
def test_a_run_that_version_0_1_began_goes_on_with_the_same_bits(
    tmp_path: Path, run: Run, executor: Any, lean: bool
) -> None:
    stop_after(RUN, Study(tmp_path / "older", lean=lean), 12)
    make_older(RUN.folder(Study(tmp_path / "older")), RUN)
    study, whole = Study(tmp_path / "older", lean=lean), Study(tmp_path / "whole")
    begun = RUN.folder(study).checkpoint()
    assert begun is not None
    assert begun.step == 12
    (result,) = executor(workers=1).run([run], study)
    assert result.outcome == "finished"
    assert names(study) == {older_name(RUN)}
    executor(workers=1).run([run], whole)
    if lean:
        rows = [row for row in study.scores().to_pylist() if row["label"] == run.label]
        assert [row["value"] for row in rows] == whole.scores()["value"].to_pylist()
    else:
        must_be_alike(study, whole, run)
    summary = run.folder(study).summary()
    assert summary is not None
    assert summary.specification["label"] == "first", "so that it is still what names the folder"
    assert execute(run, study).outcome == "already finished"


def test_a_run_of_version_0_1_starts_over_in_its_own_folder(older: Study) -> None:
    assert execute(OTHER, older, fresh=True).outcome == "finished"
    assert names(older) == {older_name(RUN)}
    (summary,) = older.summaries()
    assert summary.labels == ("first", "second")


def test_a_run_of_version_0_1_whose_description_is_damaged_goes_on_from_its_checkpoint(
    tmp_path: Path,
) -> None:
    stop_after(RUN, Study(tmp_path), 12)
    folder = make_older(RUN.folder(Study(tmp_path)), RUN)
    (folder / "run.json").write_text("{")
    steps: list[int] = []

    def listen(event: object) -> None:
        if isinstance(event, StepEvent):
            steps.append(event.step)

    assert execute(RUN, Study(tmp_path), listener=listen).outcome == "finished"
    assert steps == list(range(13, 21))
    assert names(Study(tmp_path)) == {older_name(RUN)}


def test_of_two_that_version_0_1_trained_for_their_labels_the_finished_one_is_taken(
    older: Study, tmp_path: Path
) -> None:
    stop_after(OTHER, Study(tmp_path / "begun"), 5)
    begun = make_older(OTHER.folder(Study(tmp_path / "begun")), OTHER)
    shutil.move(begun, older.path / begun.name)
    assert execute(OTHER, Study(older.path)).outcome == "already finished"
    assert RUN.folder(Study(older.path)).name == OTHER.folder(Study(older.path)).name
    assert names(Study(older.path)) == {older_name(RUN), older_name(OTHER)}, "both stay"
    shutil.rmtree(older.path / older_name(RUN))
    assert OTHER.folder(Study(older.path)).name == older_name(OTHER)


def test_a_study_in_another_process_knows_the_older_runs_without_looking(
    older: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pickle

    assert older.look_for_older_runs()
    there = pickle.loads(pickle.dumps(older))
    monkeypatch.setattr(Study, "_find_older", lambda self: pytest.fail("it looked again"))
    assert OTHER.folder(there).name == older_name(RUN)


def test_settings_of_ones_own_that_are_called_label_still_tell_runs_apart(tmp_path: Path) -> None:
    study = Study(tmp_path)
    mine = {"label": "a", "x": 1}
    with study.run(mine).claim() as claim:
        assert claim.writer is not None
        claim.writer.start(specification=mine, seed=0, label="a", tasks=[{"name": "t"}], steps=1)
        claim.writer.finish(scores=[], best_step=None)
    assert not Study(tmp_path).run({"x": 1}, label="a").is_finished
    assert Study(tmp_path).run(mine).is_finished


def test_older_runs_are_looked_for_once_by_threads_too(older: Study) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda run: run.folder(older).name, [RUN, OTHER] * 8))
    assert set(found) == {older_name(RUN)}
