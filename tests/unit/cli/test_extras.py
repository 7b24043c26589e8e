"""Commands where only the core is installed: an answer is never lost, and nothing begins in vain."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from taskmix.extras import PACKAGES
from taskmix.records import Study

from .running import Program

QUICK = ("--budget", "100-steps", "--steps", "2", "--workers", "1")


@pytest.fixture
def core_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no extra were installed; sympy is torch's own, which breaks without it."""
    for name in PACKAGES.keys() - {"sympy"}:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("core_only")
def test_advice_without_the_report_extra_costs_the_page_and_not_the_answer(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "advice"
    assert cli("advise", folder, *QUICK, "--out", out) == 0
    shown = cli.said()
    note = (
        "Note: There will be no report page. It needs the package `vl-convert-python`, which is not "
        "installed. Install it with `pip install 'taskmix[report]'`.\n"
    )
    assert shown.err == note
    answer = json.loads((out / "advice.json").read_text())["lines"]
    assert answer
    for line in (*answer, f"elsewhere: {out / 'plan.json'}.", "The model to use:"):
        assert line in shown.out
    assert "The page" not in shown.out
    assert not (out / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (("train", "TASKS", "--model", "some/encoder"), "transformers"),
        (("train", "TASKS", "--tensorboard", "curves"), "tensorboard"),
        (("train", "TASKS", "--mlflow", "runs"), "mlflow-skinny"),
        (("train", "TASKS", "--wandb", "project"), "wandb"),
        (("train", "TASKS", "--engine", "ray"), "ray"),
        (("advise", "TASKS", "--model", "some/encoder"), "transformers"),
        (("advise", "TASKS", "--tensorboard", "curves"), "tensorboard"),
        (("advise", "TASKS", "--engine", "ray"), "ray"),
        (("transfer", "TASKS", "--all", "--model", "some/encoder"), "transformers"),
        (("transfer", "TASKS", "--all", "--engine", "ray"), "ray"),
        (("report", "STUDY"), "vl-convert-python"),
        (
            ("laws", "t.csv", "--explain", "y", "--inputs", "x", "--plot", "x.svg"),
            "vl-convert-python",
        ),
    ],
)
@pytest.mark.usefixtures("core_only")
def test_what_was_asked_for_by_name_is_refused_before_anything_is_read(
    words: tuple[str, ...],
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Program,
) -> None:
    # The folders are not there: who looked into them first would complain of that.
    monkeypatch.chdir(tmp_path)
    said = cli.refused(*words)
    assert f"needs the package `{package}`, which is not installed" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("core_only")
def test_training_needs_no_extra(tables: Path, tmp_path: Path, cli: Program) -> None:
    study = tmp_path / "study"
    words = ("--steps", "40", "--batch-size", "4", "--out", study)
    assert cli("train", tables, *words) == 0
    assert cli("improve", study, "--write-plan", tmp_path / "plan.json") == 0
    assert cli.said().err == ""
    assert len(Study(study).summaries()) == 1


@pytest.mark.usefixtures("core_only")
def test_sequences_without_extras_have_their_figures_and_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    for task in ("a", "b"):
        (tmp_path / "lines" / task).mkdir(parents=True)
        for split in ("train", "test"):
            (tmp_path / "lines" / task / f"{split}.txt").write_text("x y x\ny x y\nx x y\n")
    words = ["sequences", tmp_path / "lines", "--generators", "2", "--iterations", "3"]
    words += ["--no-baselines", "--out", tmp_path / "out"]
    assert cli(*words) == 0
    shown = cli.said()
    assert "2 tasks, 2 generators" in shown.out
    assert "Wrote" not in shown.out
    slow, page = (line for line in shown.err.splitlines() if line.startswith("Note: The"))
    assert "Note: The fit will be a slower one" in slow
    assert "`pip install 'taskmix[sequences]'`" in slow
    assert "Note: There will be no report page" in page

    monkeypatch.undo()  # installed since: the same command adds the page
    assert cli(*words) == 0
    assert (tmp_path / "out" / "report.html").exists()
    assert "Wrote" in cli.said().out
