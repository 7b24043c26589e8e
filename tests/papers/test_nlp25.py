"""Text tasks of several benchmarks: how they are read, and the whole on a few made-up ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers.nlp25 import Nlp25Options, reproduce_nlp25
from papers.nlp25_data import Nlp25Source, expand
from taskmix.engine import Fleet
from taskmix.errors import InputError, OptionError
from taskmix.records import Study

WORDS = ("good", "bad", "one", "two", "three", "the")
FOLDERS = ("glue/cola", "glue/rte", "glue/stsb", "superglue/copa", "tweeteval/hate", "anli/r1")


def line(place: str, generator: np.random.Generator) -> dict[str, Any]:
    label = int(generator.integers(2))
    text = " ".join([WORDS[label], *generator.choice(WORDS, 3)])
    match place:
        case "glue/rte":
            return {"text": text, "text2": WORDS[label], "label": label}
        case "glue/stsb":
            return {"text": text, "text2": WORDS[label], "label": label + float(generator.random())}
        case "superglue/copa":
            choices = {"choice1": "good", "choice2": "bad", "question": "cause"}
            return {"text": text, "label": label, **choices}
        case _:
            return {"text": text, "label": label}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Six folders, of which ANLI has no train rows and TweetEval has test rows."""
    generator = np.random.default_rng(0)
    for place in FOLDERS:
        folder = tmp_path / "data" / place
        folder.mkdir(parents=True)
        splits = ["dev"] if place == "anli/r1" else ["train", "dev"]
        for split in splits + (["test"] if place == "tweeteval/hate" else []):
            lines = [json.dumps(line(place, generator)) for _ in range(30)]
            (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "data"


def test_tasks_with_train_rows_are_loaded_and_the_others_named(data: Path) -> None:
    tasks = Nlp25Source(path=str(data), rows=20, dev_rows=5, test_rows=25).load()
    assert tasks.names == ("cola", "rte", "stsb", "copa", "hate")
    assert "anli/r1" in tasks.notes[0]
    # No test labels: the dev rows are the test rows, and 5 of the 30 train rows are dev rows.
    assert tasks["cola"].sizes == {"train": 20, "dev": 5, "test": 25}
    assert tasks["hate"].sizes == {"train": 20, "dev": 5, "test": 25}
    assert tasks["copa"].sizes == {"train": 40, "dev": 10, "test": 50}, "two rows a question"
    assert (tasks["stsb"].kind, tasks["stsb"].metric) == ("regression", "pearson+spearman")
    assert (tasks["rte"].inputs, tasks["cola"].inputs) == ("pair", "text")


def test_copa_and_wic_as_rows_by_hand() -> None:
    question = {"text": "It rained.", "choice1": "wet", "choice2": "dry", "question": "effect"}
    assert expand("copa", [{**question, "label": 1}]) == [
        {"text": "It rained. What was the effect?", "text2": "wet", "label": 0},
        {"text": "It rained. What was the effect?", "text2": "dry", "label": 1},
    ]
    pair = {"word": "bank", "text": "a bank", "text2": "the bank", "label": 0, "more": 1}
    assert expand("wic", [pair]) == [
        {"text": "bank: a bank", "text2": "bank: the bank", "label": 0}
    ]


def options(data: Path, encoder: Path) -> Nlp25Options:
    return Nlp25Options(
        data=data,
        encoder=str(encoder),
        hidden=(8,),
        steps=8,
        batch_size=8,
        size=2,
        subsets=6,
        held_out=3,
        repeats=2,
        alone=3,
        seeds=2,
        cache=data / "cache",
    )


def test_all_methods_stand_beside_each_other(data: Path, encoder: Path, tmp_path: Path) -> None:
    study, executor = Study(tmp_path / "study"), Fleet(workers=1)
    found = reproduce_nlp25(options(data, encoder), study, executor)
    rows = {row.quantity: row for row in found}
    assert rows["nlp25/selected_minus_best"].paper == 1.8
    names = ("cola", "rte", "stsb", "copa", "hate")
    for method in ("single", "equal", "bandit", "pairwise", "grouped", "selected"):
        each = [rows[f"nlp25/{method}/{name}"].ours for name in names]
        assert rows[f"nlp25/{method}/average"].ours == pytest.approx(np.mean(each))
        assert rows[f"nlp25/{method}/average"].n == 2
    best = max(
        rows[f"nlp25/{name}/average"].ours for name in ("equal", "bandit", "pairwise", "grouped")
    )
    gain = rows["nlp25/selected/average"].ours - best
    assert rows["nlp25/selected_minus_best"].ours == pytest.approx(gain)
    assert rows["nlp25/failed_runs"].ours == 0
    assert reproduce_nlp25(options(data, encoder), study, executor) == found


def test_the_command_prints_the_rows_and_tells_bad_input(
    data: Path,
    encoder: Path,
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["nlp25", data, "--encoder", encoder, "--quick", "--steps", "2"]
    words += ["--size", "2", "--workers", "1", "--device", "cpu", "--out", tmp_path / "study"]
    assert command(*words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert "nlp25/selected/average" in {row["quantity"] for row in found["rows"]}
    assert command("nlp25", tmp_path, "--encoder", encoder) == 2
    assert "should hold 4 tasks or more" in capsys.readouterr().err
    assert command("nlp25", data) == 2, "the encoder has no default"
    capsys.readouterr()
    study = tmp_path / "other"
    assert command("nlp25", data, "--encoder", tmp_path / "nothing", "--out", study) == 2
    assert "`--encoder` should be a folder with a Hugging Face model" in capsys.readouterr().err
    assert not study.exists()


def test_what_is_missing_in_a_row_is_told(data: Path) -> None:
    (data / "glue" / "cola" / "train.jsonl").write_text('{"text": "good"}\n' * 5)
    with pytest.raises(InputError, match="Every row of `glue/cola` should have 'label'"):
        Nlp25Source(path=str(data)).load()
    with pytest.raises(OptionError, match="should be 1 or more"):
        Nlp25Source(path=str(data), rows=0)


@pytest.mark.paper
def test_twenty_four_real_tasks_have_train_rows(real_data: Path) -> None:
    tasks = Nlp25Source(path=str(real_data)).load()
    assert len(tasks) == 24
    assert "anli/r1, anli/r2, anli/r3" in tasks.notes[0]
    assert tasks["emoji"].sizes == {"train": 1000, "dev": 500, "test": 1000}
    assert tasks["copa"].sizes == {"train": 640, "dev": 160, "test": 200}
