from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from toys import NAMES, SPECIFICATION, add_steps, begin

from taskmix.records import RunFolder, Study


def finished_run(study: Study, seed: int, *, finish: bool = True) -> RunFolder:
    specification = {"seed": seed}
    with study.run(specification).claim() as claim:
        writer = begin(claim.writer, specification=specification, seed=seed, steps=7)
        writer.commit(7, {}, best=None, best_step=None)
        if finish:
            scores = [(name, "test", "accuracy", seed + 0.5) for name in NAMES]
            writer.finish(scores=scores, best_step=5 if seed else None)
    return study.run(specification)


def test_asking_for_a_finished_run_costs_nothing(tmp_path: Path) -> None:
    study = Study(tmp_path)
    folder = finished_run(study, 1)
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.path.rglob("*"))
    with study.run({"seed": 1}).claim() as claim:
        assert (claim.outcome, claim.writer) == ("finished", None)
    assert sorted((path, path.stat().st_mtime_ns) for path in folder.path.rglob("*")) == before


def test_a_run_that_is_being_written_is_busy(tmp_path: Path) -> None:
    folder = Study(tmp_path).run({"seed": 1})
    with folder.claim() as first, folder.claim() as second:
        assert first.outcome == "claimed"
        assert (second.outcome, second.writer) == ("busy", None)
    with folder.claim(fresh=True) as third, folder.claim(fresh=True) as fourth:
        assert (third.outcome, fourth.outcome) == ("claimed", "busy")


@pytest.mark.parametrize("finish", [True, False])
def test_a_fresh_claim_starts_over(tmp_path: Path, finish: bool) -> None:
    folder = finished_run(Study(tmp_path), 1, finish=finish)
    with folder.claim(fresh=True) as claim:
        assert claim.writer is not None
        assert claim.writer.resumed is None
        assert claim.writer.notes == []
    summary = folder.summary()
    assert summary is not None
    assert summary.status != "finished"
    assert folder.checkpoint() is None
    assert len(folder.steps()) == 0


def test_the_score_table_has_a_row_for_each_score_of_each_finished_run(tmp_path: Path) -> None:
    study = Study(tmp_path)
    folders = [finished_run(study, seed) for seed in range(3)]
    finished_run(study, 3, finish=False)
    table = study.scores()
    assert table.column_names == [
        *("run", "label", "seed", "task", "split", "metric", "value", "step")
    ]
    rows = {(row["seed"], row["task"]): row for row in table.to_pylist()}
    assert len(rows) == table.num_rows == 6
    assert rows[1, "digits"] == {
        "run": folders[1].name,
        "label": "toy",
        "seed": 1,
        "task": "digits",
        "split": "test",
        "metric": "accuracy",
        "value": 1.5,
        "step": 5,
    }
    assert rows[0, "news"]["step"] == 7
    assert table["run"].to_pylist() == sorted(table["run"].to_pylist())
    assert [summary.name for summary in study.summaries()] == [run.name for run in study.runs()]
    assert len(study.summaries()) == 4


def test_links_and_other_entries_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    study = Study(tmp_path / "study")
    folder = finished_run(study, 1)
    finished_run(Study(tmp_path / "other"), 2).path.rename(tmp_path / "elsewhere")
    (study.path / "link").symlink_to(tmp_path / "elsewhere")
    (study.path / "loop").symlink_to(study.path)
    (study.path / "report.html").touch()
    (study.path / "empty").mkdir()
    (study.path / ".hidden").mkdir()
    (study.path / ".hidden" / "run.json").write_text("{}")
    assert [run.path for run in study.runs()] == [folder.path]
    assert study.scores().num_rows == 2


def test_a_damaged_run_is_left_out_and_told(tmp_path: Path) -> None:
    study = Study(tmp_path)
    for seed in range(6):
        finished_run(study, seed)
    names = [run.path / "run.json" for run in study.runs()]
    names[0].write_text("{")
    names[1].write_text("[]")
    names[2].write_text(names[2].read_text().replace('"finished"', '"ended"'))
    names[3].write_text(names[3].read_text().replace('"seed": ', '"seed": "x", "was": '))
    names[4].write_text(names[4].read_text().replace('"task": "news"', '"task": 7'))
    told: list[str] = []
    assert study.scores(note=told.append).num_rows == 2
    assert len(told) == 5
    assert all(str(name) in sentence for name, sentence in zip(names, told, strict=False))
    with pytest.warns(UserWarning, match=r"run\.json"):
        study.summaries()


def test_records_are_read_without_torch(tmp_path: Path) -> None:
    finished_run(Study(tmp_path), 1)
    code = (
        "import sys\nfor name in ('torch', 'safetensors', 'pydantic'): sys.modules[name] = None\n"
        "from taskmix.records import Study\n"
        f"study = Study({str(tmp_path)!r})\n"
        "assert study.scores().num_rows == 2\n"
        "for run in study.runs(): run.steps(), run.scores(), run.probabilities()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": "src"})


def test_a_lean_study_keeps_the_final_scores_of_a_run_and_nothing_else(tmp_path: Path) -> None:
    study = Study(tmp_path, lean=True)
    folder = study.run(SPECIFICATION)
    with folder.claim() as claim:
        writer = begin(claim.writer, steps=2)
        add_steps(writer, [1, 2])
        writer.add_scores(2, [("news", "dev", "accuracy", 0.7)])
        writer.finish(scores=[("news", "test", "accuracy", 0.75)], best_step=2, best={"w": [1.0]})
    summary = folder.summary()
    assert summary is not None
    assert (summary.status, summary.step, summary.kept) == ("finished", 2, None)
    assert [score.value for score in summary.scores] == [0.75]
    assert {path.name for path in folder.path.rglob("*") if path.is_file()} <= {"run.json", ".lock"}


def test_a_lean_run_goes_on_from_its_checkpoint_and_then_drops_it(tmp_path: Path) -> None:
    folder = Study(tmp_path, lean=True).run(SPECIFICATION)
    for finish in (False, True):
        with folder.claim() as claim:
            writer = begin(claim.writer, steps=2)
            assert (writer.resumed is not None) == finish
            if finish:
                writer.finish(scores=[], best_step=1, step=2)
            else:
                writer.commit(1, {"step": 1}, best=None, best_step=None)
                writer.stop()
    assert not list(folder.path.rglob("*.safetensors"))
