"""Weak supervision on a set that is made up: two good functions, one that is always wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from papers.label_model import fit_label_model, majority_vote
from papers.weak_data import WeakSource, class_balance, read_weak_rows
from papers.weak_supervision import WeakOptions, direct_rows, reproduce_weak_supervision
from taskmix.engine import Fleet
from taskmix.errors import InputError
from taskmix.records import Study

WORDS = ("bad", "good")
SIZES = {"train": 80, "dev": 40, "test": 40}


@pytest.fixture
def wrench(tmp_path: Path) -> Path:
    """Rows whose first word is their label; a function that never votes is among the five."""
    generator = np.random.default_rng(0)
    folder = tmp_path / "wrench" / "toy"
    folder.mkdir(parents=True)
    for split, count in SIZES.items():
        lines = []
        for _ in range(count):
            label = int(generator.integers(2))
            votes = [label, label if generator.random() < 0.8 else -1, 1 - label, -1]
            votes.append(1 if generator.random() < 0.3 else -1)
            text = " ".join([WORDS[label], *generator.choice(["one", "two", "the"], 3)])
            lines.append(json.dumps({"text": text, "label": label, "weak_labels": votes}))
        with gzip.open(folder / f"{split}.jsonl.gz", "wt") as file:
            file.write("\n".join(lines) + "\n")
    return folder


def options(wrench: Path, encoder: Path) -> WeakOptions:
    return WeakOptions(
        data=wrench.parent,
        set="toy",
        encoder=str(encoder),
        size=2,
        subsets=6,
        runs=2,
        subset_steps=60,
        steps=60,
        learning_rate=0.02,
        max_length=8,
        seeds=2,
    )


def test_the_votes_of_chosen_functions_are_the_rows_of_one_task(wrench: Path) -> None:
    tasks = WeakSource(path=str(wrench), choices=((1, 2), (4,))).load()
    assert tasks.names == ("functions 1 2", "functions 4", "vote", "label model", "truth")
    rows = read_weak_rows(wrench)["train"]
    voted = rows.votes[:, 1] >= 0
    together = tasks["functions 1 2"].splits["train"].targets
    assert together.tolist() == [*rows.labels[voted], *(1 - rows.labels)]
    assert tasks["functions 4"].splits["train"].targets.min() == 1, "it knows one class"
    assert all(task.labels == ("0", "1") for task in tasks)
    assert {task.sizes["dev"] for task in tasks} == {40}
    assert tasks["truth"].size == 80


def test_direct_votes_by_hand(wrench: Path) -> None:
    rows = read_weak_rows(wrench)
    found = {row.quantity: row.ours for row in direct_rows("toy", rows, "accuracy", ("0", "1"))}
    test, right = rows["test"], []
    usual = int(np.bincount(rows["dev"].labels).argmax())
    for votes, label in zip(test.votes, test.labels, strict=True):
        counts = [int((votes == name).sum()) for name in (0, 1)]
        chosen = usual if counts[0] == counts[1] else int(np.argmax(counts))
        right.append(chosen == label)
    assert found["toy/vote_direct"] == pytest.approx(100 * np.mean(right))


def test_the_function_that_is_always_wrong_is_left_out(
    wrench: Path, encoder: Path, tmp_path: Path
) -> None:
    study, executor = Study(tmp_path / "study", lean=True), Fleet(workers=1)
    found = reproduce_weak_supervision(options(wrench, encoder), study, executor)
    rows = {row.quantity: row for row in found}
    name = "weak_supervision/toy"
    assert rows[f"{name}/selected_minus_best"].paper == 3.6
    left_out = rows[f"{name}/source_accuracy/left_out"].ours
    assert rows[f"{name}/source_accuracy/selected"].ours > left_out
    assert rows[f"{name}/gain_against_accuracy"].ours > 0
    assert rows[f"{name}/truth"].ours > 90
    assert rows[f"{name}/selected"].ours >= rows[f"{name}/all_sources"].ours
    assert rows[f"{name}/sources_selected"].ours < 4
    assert reproduce_weak_supervision(options(wrench, encoder), study, executor) == found


def test_the_command_prints_the_rows_and_tells_bad_input(
    wrench: Path,
    encoder: Path,
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["weak-supervision", wrench.parent, "--set", "toy", "--encoder", encoder]
    words += ["--size", "2", "--subsets", "6", "--workers", "1", "--quick", "--device", "cpu"]
    words += ["--subset-steps", "2", "--steps", "3", "--out", tmp_path / "study"]
    assert command(*words, "--minutes", "0") != 0, "no minute is no run"
    capsys.readouterr()
    assert command(*words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert "weak_supervision/toy/selected" in {row["quantity"] for row in found["rows"]}
    assert command(*words, "--set", "other") == 2
    assert "should hold dev and test files" in " ".join(capsys.readouterr().err.split())


def test_bad_rows_are_told(wrench: Path) -> None:
    (wrench / "dev.jsonl.gz").unlink()
    (wrench / "dev.jsonl").write_text('{"text": "good", "label": 1}\n')
    with pytest.raises(InputError, match="Every line of `toy/dev` should have"):
        read_weak_rows(wrench)
    (wrench / "dev.jsonl").write_text("not json\n")
    with pytest.raises(InputError, match="should be lines of JSON"):
        read_weak_rows(wrench)
    (wrench / "dev.jsonl").write_text("[]\n")
    with pytest.raises(InputError, match="an object on every line"):
        read_weak_rows(wrench)


@pytest.mark.paper
def test_real_votes_are_modelled_about_as_well_as_by_their_majority(real_data: Path) -> None:
    rows = read_weak_rows(real_data / "wrench" / "semeval")
    votes, truth = rows["train"].votes, rows["train"].labels
    model = fit_label_model(votes, 9, balance=class_balance(rows, 9))
    voted = majority_vote(votes, 9)[np.arange(len(truth)), truth].mean()
    assert (model.predict(votes).argmax(axis=1) == truth).mean() > voted
