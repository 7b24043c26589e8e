"""The words of `taskmix train --weighting`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import taskmix.weighting
from taskmix.cli._options._methods import WORDS, parse_weighting
from taskmix.errors import OptionError
from taskmix.records import Study

from .running import Program

METHODS = {
    name
    for name, value in vars(taskmix.weighting).items()
    if inspect.isclass(value) and isinstance(getattr(value, "needs", None), taskmix.weighting.Needs)
}


def test_every_method_has_a_word_that_the_page_and_the_help_name(cli: Program) -> None:
    shown = " ".join(cli.out("train", "--help").split())
    page = (Path(__file__).parents[3] / "docs" / "weighting.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    table = {
        row[1].strip(" `").partition(":")[0]: row[2].strip(" `") for row in rows if len(row) == 7
    }
    assert sorted(table.values()) == sorted(METHODS)
    assert set(WORDS) == set(taskmix.weighting.WEIGHTINGS) == set(table)
    listed = shown[shown.index("All tasks every step:") : shown.index("options follow a colon")]
    assert set(re.findall(r"[a-z][a-z-]+", listed)) >= set(table)


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("equal", {"kind": "Equal"}),
        ("fixed:1,2", {"kind": "FixedWeights", "weights": [1.0, 2.0]}),
        ("bandit", {"kind": "BanditMTL", "radius": 1.2, "step_size": 0.5}),
        ("bandit:0.3,large_losses=clip", {"radius": 0.3, "large_losses": "clip"}),
        ("mgda-ub:l2", {"kind": "MGDAUB", "normalization": "l2"}),
        ("dwa:1,steps_per_epoch=7", {"temperature": 1.0, "steps_per_epoch": 7}),
        ("stch:logarithm=true", {"kind": "SmoothTchebycheff", "logarithm": True}),
        ("upgrad:preference=1/2", {"kind": "UPGrad", "preference": [1.0, 2.0]}),
        ("uncertainty:forms=regression/classification", {"kind": "Uncertainty"}),
    ],
)
def test_a_word_stands_for_its_method_with_its_options(
    word: str, kept: dict[str, object], tmp_path: Path, cli: Program
) -> None:
    words = ("train", "digits", "--only", "parity,half", "--weighting", word, "--steps", "1")
    assert cli(*words, "--out", tmp_path / "study") == 0
    (run,) = Study(tmp_path / "study").summaries()
    assert kept.items() <= run.specification["weighting"].items()


@pytest.mark.parametrize("word", WORDS)
def test_every_word_makes_its_method_and_knows_all_of_its_options(word: str) -> None:
    method = parse_weighting("fixed:1,2" if word == "fixed" else word)
    assert type(method) is taskmix.weighting.WEIGHTINGS[word].method
    options = [each.name for each in dataclasses.fields(method)]
    with pytest.raises(OptionError) as refused:
        parse_weighting(f"{word}:nothing=1,nothing=2")
    if word != "fixed":
        assert all(f"{name}=" in str(refused.value) for name in options) or not options
