from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from taskmix.plans import Plan

from .conftest import NAMES
from .running import run_cli

QUICK = (
    "--steps", "5", "--subsets", "8", "--held-out", "4", "--alone", "2", "--size", "2",
    "--prefixes", "1", "--workers", "1", "--engine", "here",
)  # fmt: skip


def test_one_target_gets_a_table_a_plan_and_a_file_in_the_study(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, plan = tmp_path / "study", tmp_path / "plan.json"
    words = ("transfer", tables, "--target", "a", *QUICK, "--out", study, "--write-plan", plan)
    assert run_cli(monkeypatch, *words) == 0
    shown = capsys.readouterr().out
    assert "Read all 5 tasks: table of 2 columns; 2 classes of `label`; accuracy\n" in shown
    for name in NAMES[1:]:
        assert name in shown
    for part in ("95 % interval", "unless surely harmful", "measured prefixes", "Spearman"):
        assert part in shown
    document = json.loads((study / "transfer.json").read_text())
    assert [target["target"] for target in document["targets"]] == ["a"]
    assert document["failed"] == 0
    advised = Plan.load(plan)
    assert "a" in advised.tasks
    assert advised.targets == ("a",)
    assert len(advised.parts) == 1
    assert run_cli(monkeypatch, "report", study) == 0
    page = (study / "report.html").read_text()
    assert "Which tasks help which" in page


def test_all_targets_share_their_runs_and_asking_again_trains_nothing(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("transfer", tables, "--all", *QUICK, "--out", tmp_path / "study", "--json")
    assert run_cli(monkeypatch, *words) == 0
    first = json.loads(capsys.readouterr().out)
    runs = sorted(path.name for path in (tmp_path / "study").iterdir() if path.is_dir())
    assert run_cli(monkeypatch, *words) == 0
    again = json.loads(capsys.readouterr().out)
    assert first == again
    assert sorted(p.name for p in (tmp_path / "study").iterdir() if p.is_dir()) == runs
    assert sorted(name for group in first["groups"] for name in group) == sorted(NAMES)
    assert len(first["targets"]) == len(NAMES)


def test_the_matrix_is_shown_for_all_targets(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("transfer", tables, "--all", *QUICK, "--out", tmp_path / "study")
    assert run_cli(monkeypatch, *words, "--steps-of", "all-tasks", "--outcome", "margin") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "sources down, targets across" in shown
    assert "Groups to train together" in shown


def test_estimates_from_gradients_can_be_compared_with_training(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("transfer", tables, "--target", "b", *QUICK, "--estimate", "gradients")
    assert run_cli(monkeypatch, *words, "--out", tmp_path / "one") == 0
    assert "estimated from gradients" in capsys.readouterr().out
    assert len([path for path in (tmp_path / "one").iterdir() if path.is_dir()]) == 2
    assert run_cli(monkeypatch, *words, "--compare", "--out", tmp_path / "two") == 0
    assert "times as long" in capsys.readouterr().out
    document = json.loads((tmp_path / "two" / "transfer.json").read_text())
    assert document["comparison"]["targets"][0]["subsets"] >= 8


def test_a_cheaper_study_is_a_prior_for_few_runs(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cheap, study = tmp_path / "cheap", tmp_path / "study"
    # An estimate, whose file has the agreement of its models in it: it has to be read again.
    words = ("transfer", tables, "--all", *QUICK, "--estimate", "gradients", "--out", cheap)
    assert run_cli(monkeypatch, *words) == 0
    document = json.loads((cheap / "transfer.json").read_text())
    for name in document["agreement"]:  # as if its two models had agreed
        document["agreement"][name] = 0.9
    (cheap / "transfer.json").write_text(json.dumps(document))
    capsys.readouterr()
    few = ("transfer", tables, "--all", *QUICK, "--subsets", "4", "--out", study)
    assert run_cli(monkeypatch, *few, "--prior-study", cheap) == 0
    assert "The prior study" in capsys.readouterr().out
    prior = json.loads((study / "transfer.json").read_text())["prior"]
    assert prior["pairs"] == 20
    assert prior["low"] <= prior["slope"] <= prior["high"]
    assert run_cli(monkeypatch, "report", cheap) == 0
    assert run_cli(monkeypatch, *few, "--shrink", "--json") == 0
    assert "prior" not in json.loads(capsys.readouterr().out.split("\n", 1)[1])


def test_a_prior_that_is_no_other_study_is_refused(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("transfer", tables, "--all", *QUICK, "--out", tmp_path / "study")
    assert run_cli(monkeypatch, *words, "--prior-study", tmp_path / "study") == 2
    assert "`--prior-study` should be another study than --out" in capsys.readouterr().err
    assert run_cli(monkeypatch, *words, "--prior-study", tmp_path) == 2
    assert "`--prior-study` should be a study of `taskmix transfer`" in capsys.readouterr().err
    assert run_cli(monkeypatch, *words, "--shrink", "--ridge", "1") == 2
    assert "`--ridge` should be 0 where effects are shrunken" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_a_new_task_gets_an_answer_from_a_finished_study_and_nothing_is_trained(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, new = tmp_path / "study", tmp_path / "new"
    words = ("transfer", tables, "--out", study)
    assert run_cli(monkeypatch, *words, "--new", new) == 2
    assert "Found no transfer.json in" in capsys.readouterr().err
    assert run_cli(monkeypatch, *words, "--all", *QUICK) == 0
    runs = sorted(path.name for path in study.iterdir())
    (new / "fresh").mkdir(parents=True)
    for file in sorted((tables / "a").iterdir()):
        (new / "fresh" / file.name).write_bytes(file.read_bytes())
    capsys.readouterr()
    assert run_cli(monkeypatch, *words, "--new", new) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "fresh: " in shown
    assert "Each known task was left out and predicted from the others" in shown
    assert run_cli(monkeypatch, *words, "--new", new, "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)["tasks"]
    assert sorted(row["source"] for row in answer["sources"]) == sorted(NAMES)
    assert sorted(path.name for path in study.iterdir()) == runs
    assert run_cli(monkeypatch, *words, "--new", new, "--all") == 2
    assert "`--new` should go without" in capsys.readouterr().err


def test_new_texts_are_compared_by_the_vectors_of_the_model_that_is_named(
    save_letters: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=80, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path / "encoder")
    encoder = save_letters(tmp_path / "encoder")
    for name in (*(f"known/{letter}" for letter in NAMES), "new/fresh"):
        (tmp_path / name).mkdir(parents=True)
        for split in ("train", "dev"):
            rows = [{"text": word, "label": word[0] in "ai"} for word in ("an", "be", "in", "so")]
            rows.append({"text": name[-1], "label": True})
            text = "".join(json.dumps(row) + "\n" for row in rows * 2)
            (tmp_path / name / f"{split}.jsonl").write_text(text)
    words = ("transfer", tmp_path / "known", "--out", tmp_path / "study", "--max-length", "8")
    read = ("--model", encoder, "--tune", "heads")
    assert run_cli(monkeypatch, *words, "--all", *read, *QUICK) == 0
    new = (*words, "--new", tmp_path / "new")
    capsys.readouterr()
    assert run_cli(monkeypatch, *new, *read) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"Texts were compared by the vectors of {encoder}." in shown
    assert run_cli(monkeypatch, *new) == 0
    assert "Texts were compared by their words; --model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Either --target or --all should be given. Found neither"),
        (("--target", "a", "--all"), "Either --target or --all should be given. Found both"),
        (("--target", "none"), "The target should be one of the tasks a, b, c, d, e. Found `none`"),
        (("--target", "a", "--only", "a,b,c"), "at least 3 source tasks. Found 2"),
        (("--target", "a", "--subsets", "9", "--standard-error", "0.1"), "Found both"),
        (("--target", "a", "--standard-error", "-1"), "standard error above zero"),
        (("--target", "a", "--size", "7"), "between 1 and the number of sources"),
        (("--target", "a", "--compare"), "`--compare` should go with --estimate"),
        (("--all", "--largest-group", "1", "--groups", "2"), "5 tasks should fit into 2 groups"),
        (
            ("--target", "a", "--steps-of", "all-tasks", "--steps", "2"),
            "should have a batch of each",
        ),
        (("--target", "a", "--subsets", "1", "--size", "2"), "Every source should be in a subset"),
        (("--all", "--subsets", "2", "--size", "2"), "Ask for more `--subsets`"),
        (
            ("--target", "a", "--subsets", "3", "--size", "3"),
            "3 different ones would be trained, of rank 3. Ask for more `--subsets`, or pass "
            "`--shrink` or `--ridge`",
        ),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    words: tuple[str, ...],
    sentence: str,
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "--steps" not in words:
        words = (*words, "--steps", "1")
    study = tmp_path / "study"
    code = run_cli(
        monkeypatch, "transfer", tables, "--workers", "1", "--engine", "here", "--alone", "1",
        "--held-out", "3", "--out", study, *words,
    )  # fmt: skip
    assert code == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not (study / "transfer.json").exists()


def test_a_source_of_one_class_is_told(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = ["x,y,label", *(f"{row},1,1" for row in range(20))]
    for split in ("train", "dev", "test"):
        (tables / "c" / f"{split}.csv").write_text("\n".join(rows) + "\n")
    assert run_cli(monkeypatch, "transfer", tables, "--target", "a", "--out", tmp_path / "s") == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "rows of at least two classes to train on. Found 1 in `c`" in shown


def test_a_precision_that_takes_too_many_subsets_is_told_with_their_number(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--standard-error", "1e-7", *("--steps", "2", "--alone", "2", "--workers", "1"))
    words = (*words, "--out", tmp_path / "s")
    assert run_cli(monkeypatch, "transfer", tables, "--target", "a", *words) == 2
    assert "should be within reach of 5,000 subsets" in " ".join(capsys.readouterr().err.split())


def test_runs_that_all_fail_are_told(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--target", "a", *QUICK, "--optimizer", "sgd", "--learning-rate", "1e30")
    assert run_cli(monkeypatch, "transfer", tables, *words, "--out", tmp_path / "study") == 2
    assert "at least one finished run alone" in " ".join(capsys.readouterr().err.split())


def test_the_tasks_of_the_demo_have_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = "half,loop,prime,remainder"
    words = ("--target", "loop", "--only", names, *QUICK, "--out", tmp_path / "study")
    assert run_cli(monkeypatch, "transfer", "digits", *words) == 0
    assert "remainder" in capsys.readouterr().out


def test_the_help_has_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "transfer", "--help") == 0
    assert "taskmix transfer digits --all" in capsys.readouterr().out
