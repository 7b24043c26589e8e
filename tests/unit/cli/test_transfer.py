from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .conftest import NAMES, save_encoder
from .running import Program

QUICK = (
    "--steps", "5", "--subsets", "8", "--held-out", "4", "--alone", "2", "--size", "2",
    "--prefixes", "1", "--workers", "1", "--engine", "here",
)  # fmt: skip


def test_a_cheaper_study_is_a_prior_for_few_runs(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    cheap, study = tmp_path / "cheap", tmp_path / "study"
    words = ("transfer", tables, "--all", *QUICK, "--steps", "2", "--seed", "9", "--out", cheap)
    assert cli(*words) == 0
    cli.said()
    few = ("transfer", tables, "--all", *QUICK, "--subsets", "4", "--out", study)
    assert "The prior study" in cli.out(*few, "--prior-study", cheap)
    prior = json.loads((study / "transfer.json").read_text())["prior"]
    assert prior["pairs"] == 20
    assert prior["low"] <= prior["slope"] <= prior["high"]
    assert cli(*few, "--shrink", "--json") == 0
    assert "prior" not in json.loads(cli.said().out)


def test_a_prior_that_is_no_other_study_is_refused(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("transfer", tables, "--all", *QUICK, "--out", tmp_path / "study")
    assert "`--prior-study` should be another study than --out" in cli.refused(
        *words, "--prior-study", tmp_path / "study"
    )
    assert "`--prior-study` should be a study of `taskmix transfer`" in cli.refused(
        *words, "--prior-study", tmp_path
    )
    assert "`--ridge` should be 0 where effects are shrunken" in cli.refused(
        *words, "--shrink", "--ridge", "1"
    )
    assert not (tmp_path / "study").exists()


def test_asking_again_and_for_a_new_task_trains_nothing(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    study, new = tmp_path / "study", tmp_path / "new"
    words = ("transfer", tables, "--out", study)
    assert "Found no transfer.json in" in cli.refused(*words, "--new", new)
    first = cli.json(*words, "--all", *QUICK, "--json")
    assert sorted(name for group in first["groups"] for name in group) == sorted(NAMES)
    assert len(first["targets"]) == len(NAMES)
    runs = sorted(path.name for path in study.iterdir())
    assert cli.json(*words, "--all", *QUICK, "--json") == first
    (new / "fresh").mkdir(parents=True)
    for file in sorted((tables / "a").iterdir()):
        (new / "fresh" / file.name).write_bytes(file.read_bytes())
    shown = " ".join(cli.out(*words, "--new", new).split())
    assert "fresh: " in shown
    assert "Each known task was left out and predicted from the others" in shown
    (answer,) = cli.json(*words, "--new", new, "--json")["tasks"]
    assert sorted(row["source"] for row in answer["sources"]) == sorted(NAMES)
    assert sorted(path.name for path in study.iterdir()) == runs
    assert "`--new` should go without" in cli.refused(*words, "--new", new, "--all")


def test_new_texts_are_compared_by_the_vectors_of_the_model_that_is_named(
    save_letters: Any, tmp_path: Path, cli: Program
) -> None:
    encoder = save_letters(save_encoder(tmp_path / "encoder"))
    for name in (*(f"known/{letter}" for letter in NAMES), "new/fresh"):
        (tmp_path / name).mkdir(parents=True)
        for split in ("train", "dev"):
            rows = [{"text": word, "label": word[0] in "ai"} for word in ("an", "be", "in", "so")]
            rows.append({"text": name[-1], "label": True})
            text = "".join(json.dumps(row) + "\n" for row in rows * 2)
            (tmp_path / name / f"{split}.jsonl").write_text(text)
    words = ("transfer", tmp_path / "known", "--out", tmp_path / "study", "--max-length", "8")
    read = ("--model", encoder, "--tune", "heads")
    assert cli(*words, "--all", *read, *QUICK) == 0
    new = (*words, "--new", tmp_path / "new")
    shown = " ".join(cli.out(*new, *read).split())
    assert f"Texts were compared by the vectors of {encoder}." in shown
    assert "Texts were compared by their words; --model" in cli.out(*new)


def test_a_source_of_one_class_is_told(tables: Path, tmp_path: Path, cli: Program) -> None:
    rows = ["x,y,label", *(f"{row},1,1" for row in range(20))]
    for split in ("train", "dev", "test"):
        (tables / "c" / f"{split}.csv").write_text("\n".join(rows) + "\n")
    shown = cli.refused("transfer", tables, "--target", "a", "--out", tmp_path / "s")
    assert "rows of at least two classes to train on. Found 1 in `c`" in shown


def test_a_precision_that_takes_too_many_subsets_is_told_with_their_number(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("--standard-error", "1e-7", *("--steps", "2", "--alone", "2", "--workers", "1"))
    words = (*words, "--out", tmp_path / "s")
    assert "should be within reach of 5,000 subsets" in cli.refused(
        "transfer", tables, "--target", "a", *words
    )


def test_runs_that_all_fail_are_told(tables: Path, tmp_path: Path, cli: Program) -> None:
    words = ("--target", "a", *QUICK, "--optimizer", "sgd", "--learning-rate", "1e30")
    assert "at least one finished run alone" in cli.refused(
        "transfer", tables, *words, "--out", tmp_path / "study"
    )
