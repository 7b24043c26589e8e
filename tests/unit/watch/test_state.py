from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskmix.errors import InputError
from taskmix.numerics import Interval
from taskmix.plans import AdviceDocument, CandidateRow, Milestone, PlanSummary, save_advice
from taskmix.records import to_plain
from taskmix.watch import StudyWatcher, _state

from .written import writing


def test_a_run_is_seen_as_far_as_its_last_commit(tmp_path: Path) -> None:
    watcher = StudyWatcher(tmp_path)
    with writing(tmp_path) as run:
        assert watcher.look().counts == {"running": 1}
        assert watcher.look().curves == ()
        run.go_on(8, 0.5)
        first = watcher.look()
        run.go_on(8, 0.75)
        run.writer.add_scores(17, [("books", "dev", "accuracy", 0.1)])  # not committed yet
        second = watcher.look()
    assert (first.steps, second.steps) == (8, 16)
    assert first.runs[0].status == "running"
    books, films = second.curves
    assert (books.task, books.points) == ("books", ((8, 0.5), (16, 0.75)))
    assert films.task == "films"
    assert second.shares == {"uniform": {"films": 0.75, "books": 0.25}}


def test_runs_that_ended_are_counted_by_how(tmp_path: Path) -> None:
    with writing(tmp_path, seed=0) as run:
        run.go_on(4, 0.5)
        run.writer.finish(scores=[("books", "dev", "accuracy", 0.5)], best_step=None)
    with writing(tmp_path, seed=1) as run:
        run.writer.fail("the loss was NaN " + "x" * 1000)
    with writing(tmp_path, seed=2) as run:
        run.writer.stop()
    state = StudyWatcher(tmp_path).look()
    assert state.counts == {"finished": 1, "failed": 1, "stopped": 1}
    (failed,) = [run for run in state.runs if run.status == "failed"]
    assert failed.error is not None
    assert len(failed.error) <= 300


def test_a_run_without_a_word_for_minutes_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(tmp_path) as run:
        run.go_on(4, 0.5)
    monkeypatch.setattr(_state, "SILENT_AFTER", -1.0)
    assert StudyWatcher(tmp_path).look().counts == {"silent": 1}


def test_what_has_not_changed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(tmp_path) as run:
        run.go_on(4, 0.5)
    watcher = StudyWatcher(tmp_path)
    before = watcher.look()
    monkeypatch.setattr(_state, "_read_run", lambda *_: pytest.fail("read again"))
    assert watcher.look().curves == before.curves


def test_a_damaged_run_is_told_and_the_others_are_shown(tmp_path: Path) -> None:
    for seed in (0, 1):
        with writing(tmp_path, seed=seed) as run:
            run.go_on(4, 0.5)
            damaged = run.writer
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    (folder / "run.json").write_text('{"format": 1, "na')
    state = StudyWatcher(tmp_path).look()
    assert damaged is not None
    assert state.counts == {"running": 1}
    assert folder.name in state.notes[0]


def test_rows_that_cannot_be_read_now_are_told(tmp_path: Path) -> None:
    with writing(tmp_path) as run:
        run.go_on(4, 0.5)
    for part in tmp_path.rglob("*.parquet"):
        part.write_bytes(b"PAR1 half of it")
    state = StudyWatcher(tmp_path).look()
    assert state.counts == {"running": 1}
    assert state.curves == ()
    assert "cannot be read now" in state.notes[0]


def test_an_adviser_says_what_it_knows_so_far(tmp_path: Path) -> None:
    asked = {"budget": {"seconds": 120.0, "batches": None}}
    ledger = {"version": 2, "asked": asked, "seconds": 30.0, "decisions": {"budget": {}}}
    (tmp_path / "ledger.json").write_text(json.dumps(ledger))
    early = StudyWatcher(tmp_path).look().advice
    assert early is not None
    assert (early.lines, early.spent, early.budget, early.unit) == ((), 30.0, 120.0, "seconds")
    row = CandidateRow(
        name="uniform", words="", seeds=1, dev=0.9, behind=Interval(0.0, 0.0, 0.0, n=2), open=True
    )
    milestone = Milestone(
        stage="race", spent=1.0, leader="uniform", score=0.9, seeds=1, open=("uniform",), out=()
    )
    plan = PlanSummary(tasks=("a",), probabilities=(1.0,), groups=(("a",),))
    document = AdviceDocument(
        title="Advice", seconds=1.0, level=0.9, lines=("Train together.",), chosen="uniform",
        plan=plan, judged=("a",), batches_of_a_run=1, batches=10, batches_spent=5,
        candidates=(row,), milestones=(milestone,),
    )  # fmt: skip
    save_advice(tmp_path, document)
    later = StudyWatcher(tmp_path).look().advice
    assert later is not None
    assert (later.lines, later.stage) == (("Train together.",), "race")
    (tmp_path / "advice.json").write_text('{"version": 1, "ti')
    broken = StudyWatcher(tmp_path).look()
    assert broken.advice is not None  # of the ledger
    assert "advice.json" in broken.notes[0]


def test_a_folder_that_is_no_study_is_told(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    for path, found in ((tmp_path, "no run"), (tmp_path / "none", "no folder")):
        with pytest.raises(InputError, match=found):
            StudyWatcher(path).look()
    (tmp_path / "study.json").write_text("{}")  # a study before its first run
    assert StudyWatcher(tmp_path).look().runs == ()


def test_the_state_is_plain_json_and_bounded(tmp_path: Path) -> None:
    with writing(tmp_path) as run:
        for step in range(1, 70):
            value = float("nan") if step == 3 else 0.5
            run.writer.add_scores(step, [("books", "dev", "accuracy", value)])
        run.go_on(70, 0.5)
    state = StudyWatcher(tmp_path).look()
    json.dumps(to_plain(state), allow_nan=False)
    for curve in state.curves:
        assert len(curve.points) <= 60
        assert curve.points[-1][0] == 70


def test_looking_changes_nothing(tmp_path: Path) -> None:
    with writing(tmp_path) as run:
        run.go_on(4, 0.5)
    before = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}
    StudyWatcher(tmp_path).look()
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == before
