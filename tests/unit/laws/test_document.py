from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskmix.errors import InputError, OptionError
from taskmix.laws import (
    LawRegressor,
    LearnedLaws,
    is_laws_document,
    learn_laws,
    read_laws,
    write_laws,
)

EARLIER: dict[str, Any] = {  # as the first version of `taskmix laws --document` wrote it
    "command": "taskmix laws rows.csv --explain f1 --inputs n --document laws.json",
    "engine": "search",
    "target": "f1",
    "inputs": ["n"],
    "rows": 40,
    "noise": "relative",
    "notes": ["Column `n` has zeros, so laws with its logarithm were left out."],
    "law": {
        "formula": "f1 = 0.69*sqrt(n)",
        "complexity": 4,
        "constants": [{"value": 0.69, "low": 0.68, "high": 0.7}],
        "growth": {"n": "n^0.5"},
        "ranges": {"n": [1.0, 50.0]},
        "deviation": 0.02,
        "latex": "0.69 \\, \\sqrt{n}",
        "python": "def law(n): ...",
    },
    "front": [
        {
            "complexity": 4,
            "formula": "0.69*sqrt(n)",
            "constants": [{"value": 0.69, "low": None, "high": None}],
            "train_mse": 0.01,
            "held_out_mse": 0.02,
            "held_out_r2": 0.9,
            "left_out_mse": 0.03,
            "left_out_relative": None,
            "cross_mse": None,
            "nats": -12.5,
            "chosen": True,
            "growth": {"n": None},
            "latex": "0.69 \\, \\sqrt{n}",
        }
    ],
    "left_out": {"input": "n", "rows": 4},
    "seconds": 1.25,
}


@pytest.fixture(scope="module")
def found() -> LearnedLaws:
    generator = np.random.default_rng(0)
    n = generator.uniform(1, 50, 60)
    table = {"n": n, "f1": 2 * np.sqrt(n), "kind": ["<b>", "plain"] * 30}
    return learn_laws(
        table,
        target="f1",
        inputs=["n"],
        model=LawRegressor(enough=0.999, seed=3),
        compare=["3*n", "paper"],
        group="kind",
        at={"n": 16},
        to={"n": 100},
        bootstrap=20,
    )


def test_what_is_written_reads_back_the_same(found: LearnedLaws, tmp_path: Path) -> None:
    path = write_laws(found.document, tmp_path / "laws.json")
    assert is_laws_document(path.read_bytes()[:4096])
    read = read_laws(path)
    assert read.as_json() == found.document.as_json()
    # NaN is no equal of itself: the errors over folds, which were not asked for, are compared so.
    assert all(math.isnan(row.cross_mse) for row in read.front)
    known = [replace(row, cross_mse=0.0) for row in read.front]
    assert known == [replace(row, cross_mse=0.0) for row in found.document.front]
    assert read.groups == found.document.groups
    assert (read.prediction, read.gain) == (found.document.prediction, found.document.gain)


def test_a_file_of_the_first_version_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "laws.json"
    path.write_text(json.dumps(EARLIER))
    document = read_laws(path)
    assert document.law.constants[0].high == 0.7
    assert math.isnan(document.front[0].left_out_relative)
    assert document.comparisons is None
    again = json.loads(write_laws(document, tmp_path / "again.json").read_text())
    assert again == EARLIER
    assert list(again) == list(EARLIER)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[:40], "no JSON"),
        (lambda text: "[1, 2]", "another kind"),
        (lambda text: "{}", "another kind"),
        (lambda text: text.replace('"constants": [', '"constants": 3, "else": ['), "another kind"),
        (lambda text: text.replace('"nats": -12.5', '"nats": "many"'), "another kind"),
        (lambda text: text.replace('"rows": 40', '"rows": Infinity'), "another kind"),
        (lambda text: text.replace('"left_out": {', '"left_out": 7, "else": {'), "another kind"),
        (
            lambda text: text.replace('"ranges": {"n": [1.0', '"ranges": {"n": [1.0, 2.0'),
            "another kind",
        ),
    ],
)
def test_a_file_that_is_no_such_document_is_told(tmp_path: Path, damage: Any, words: str) -> None:
    path = tmp_path / "laws.json"
    path.write_text(damage(json.dumps(EARLIER)))
    with pytest.raises(InputError, match=f"that `taskmix laws --document` wrote. Found .*{words}"):
        read_laws(path)


def test_a_folder_and_a_file_that_is_missing_are_told(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(InputError, match="should be a JSON file"):
            read_laws(path)


def test_the_answers_are_those_of_the_law(found: LearnedLaws) -> None:
    prediction, gain = found.document.prediction, found.document.gain
    assert prediction is not None
    assert gain is not None
    assert prediction.value == pytest.approx(8.0)
    assert gain.value == pytest.approx(12.0)
    assert "n = 100 (data 1." in gain.warning
    assert prediction.warning == ""
    names = [row.name for row in found.document.comparisons or ()]
    assert names[:2] == ["given 1", "eq3"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inputs": ["n", "f1"]}, "none of them the target"),
        ({"inputs": ["n", "n"]}, "different columns"),
        ({"inputs": []}, "Found none"),
        ({"inputs": ["n"], "to": {"n": 3}}, "should come with `at`"),
        ({"inputs": ["n"], "at": {"m": 3}}, "Found none for n"),
    ],
)
def test_what_cannot_be_asked_is_told(options: dict[str, Any], words: str) -> None:
    n = np.arange(1.0, 21.0)
    model = LawRegressor(enough=0.9)
    with pytest.raises(OptionError, match=words):
        learn_laws({"n": n, "f1": 3 * n}, target="f1", model=model, **options)
