"""Studies that a newer taskmix wrote, and runs whose record is not all there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from taskmix.records import Study

from .running import Program, run_cli

QUICK = ("--steps", "12", "--batch-size", "4")


@pytest.fixture(scope="module")
def trained(shared_folder: Path) -> Path:
    """Two finished runs."""
    out = shared_folder.parent / "study"
    words = ("--seeds", "2", "--workers", "1", "--out", out)
    assert run_cli("train", shared_folder, *QUICK, *words) == 0
    return out


@pytest.fixture
def study(trained: Path, tmp_path: Path) -> Path:
    """That study, for one test alone."""
    return Path(shutil.copytree(trained, tmp_path / "study"))


def make_newer(run: Path) -> None:
    text = re.sub(r'"format": 1\b', '"format": 2', (run / "run.json").read_text())
    (run / "run.json").write_text(text)


def test_a_study_of_a_newer_taskmix_is_told_as_such_by_every_command(
    study: Path, folder: Path, tmp_path: Path, cli: Program
) -> None:
    for run in Study(study).runs():
        make_newer(run.path)
    cli.said()
    for words in (
        ("report", study),
        ("improve", study, "--write-plan", tmp_path / "plan.json"),
        ("train", folder, *QUICK, "--out", study),
        ("train", folder, *QUICK, "--seeds", "2", "--workers", "1", "--out", study),
    ):
        assert cli(*words) == 1, words
        (line,) = cli.said().err.splitlines()
        assert "Found 2, which a newer taskmix than this one (" in line
        assert "Update it with `pip install --upgrade taskmix`." in line
    assert not (study / "report.html").exists()
    for run in Study(study).runs():
        assert json.loads((run.path / "run.json").read_text())["format"] == 2, "left as it is"


def test_one_run_of_a_newer_taskmix_is_a_note_beside_the_others(
    study: Path, tmp_path: Path, cli: Program
) -> None:
    make_newer(next(Study(study).runs()).path)
    cli.said()
    assert cli("report", study) == 0
    shown = cli.said()
    assert "about 1 runs" in shown.out
    assert shown.err.startswith("Note: ")
    assert "which a newer taskmix" in shown.err
    cli("improve", study, "--write-plan", tmp_path / "plan.json")
    assert "which a newer taskmix" in "".join(cli.said())


def test_a_run_without_its_steps_is_told_by_report_and_improve(
    study: Path, tmp_path: Path, cli: Program
) -> None:
    first, second = Study(study).runs()
    shutil.rmtree(first.path / "steps")
    cli.said()
    assert cli("report", study) == 0
    note = "1 run has no whole record of its steps, so its lines are missing from the plots"
    assert f"{note}: `{first.name}`" in cli.said().err
    page = (study / "report.html").read_text()
    assert "no whole record of its steps" in page
    found = cli.json("improve", study, "--write-plan", tmp_path / "plan.json", "--json")
    assert f"Run `{first.name}` (uniform) has no whole record" in found["notes"][0]
    assert found["runs"] == [second.name]

    shutil.rmtree(second.path / "steps")
    assert cli("improve", study, "--write-plan", tmp_path / "plan.json") == 1
    (line,) = cli.said().err.splitlines()
    assert "no whole record of its steps" in line


def test_a_lean_run_has_no_steps_by_design(tmp_path: Path) -> None:
    from taskmix.engine import DigitsSource, Run, execute
    from taskmix.models import Perceptron
    from taskmix.report import gather_report

    run = Run(
        label="x", source=DigitsSource(), architecture=Perceptron(hidden=(4,)), steps=3, seed=0
    )
    execute(run, Study(tmp_path, lean=True))
    (folder,) = Study(tmp_path).runs()
    summary = folder.summary()
    assert summary is not None
    assert summary.lean
    assert not folder.lacks_steps(summary)
    assert gather_report(Study(tmp_path)).notes == ()


def test_a_run_of_two_labels_is_one_run_with_scores_under_both(study: Path, cli: Program) -> None:
    for run in Study(study).runs():
        Study(study).run_named(run.name, label="again").keep_label()
    told = cli.json("report", study, "--json")
    assert told["runs"] == 2
    values = {
        label: [row["value"] for row in told["rows"] if row["label"] == label]
        for label in ("uniform", "again")
    }
    assert values["uniform"] == values["again"] != []
    assert "again, uniform" in (study / "report.html").read_text()


@pytest.mark.parametrize(
    ("metrics", "mean"),
    [
        (("accuracy", "exact_match"), 1.0),
        (("rmse", "rmse"), 1.0),
        (("exact_match", "bits_per_byte"), None),  # higher is better for one of them only
        (("accuracy", "rmse"), None),
    ],
)
def test_a_mean_is_given_where_scores_can_be_averaged(
    metrics: tuple[str, str], mean: float | None, tmp_path: Path, cli: Program
) -> None:
    study = Study(tmp_path / "study")
    tasks = [{"name": "a"}, {"name": "b"}]
    about = {"specification": {"rate": 0.1}, "seed": 7, "label": "x", "tasks": tasks, "steps": 1}
    with study.run({"rate": 0.1}).claim() as claim:
        claim.writer.start(**about)  # type: ignore[arg-type]
        scores = [("a", "dev", metrics[0], 0.5), ("b", "dev", metrics[1], 1.5)]
        claim.writer.finish(scores=scores, best_step=None)
    rows = cli.json("report", study.path, "--json")["rows"]
    means = [row["value"] for row in rows if row["metric"] == "mean"]
    assert means == ([] if mean is None else [mean])
