from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import taskmix.weighting
from taskmix.cli._options._weightings import WEIGHTING_HELP, WORDS, parse_weighting
from taskmix.errors import OptionError
from taskmix.weighting import (
    MGDAUB,
    AnyWeighting,
    BanditMTL,
    DynamicWeightAverage,
    Equal,
    FixedWeights,
    GradNorm,
    SmoothTchebycheff,
    Tchebycheff,
    Uncertainty,
    UPGrad,
)

METHODS = {
    name
    for name, value in vars(taskmix.weighting).items()
    if inspect.isclass(value) and isinstance(getattr(value, "needs", None), taskmix.weighting.Needs)
}


def test_every_method_has_one_word_and_help_names_it() -> None:
    assert sorted(word.method for word in WORDS.values()) == sorted(METHODS)
    assert all(word in WEIGHTING_HELP for word in WORDS)


@pytest.mark.parametrize("name", sorted(WORDS))
def test_every_option_of_a_method_can_be_typed(name: str) -> None:
    method = getattr(taskmix.weighting, WORDS[name].method)
    assert {*WORDS[name].options} == {field.name for field in dataclasses.fields(method)}
    if name != "fixed":
        assert parse_weighting(name) == method()


@pytest.mark.parametrize(
    ("word", "method"),
    [
        ("equal", Equal()),
        ("fixed:1,2", FixedWeights(weights=(1.0, 2.0))),
        ("bandit", BanditMTL(radius=1.2, step_size=0.5)),
        ("bandit:0.3", BanditMTL(radius=0.3)),
        ("bandit:radius=1.5,step_size=0.9", BanditMTL(radius=1.5, step_size=0.9)),
        ("bandit:0.3,large_losses=clip", BanditMTL(radius=0.3, large_losses="clip")),
        ("gradnorm:0.5", GradNorm(alpha=0.5)),
        ("mgda-ub:l2", MGDAUB(normalization="l2")),
        ("dwa:1,steps_per_epoch=7", DynamicWeightAverage(temperature=1.0, steps_per_epoch=7)),
        ("stch:logarithm=true", SmoothTchebycheff(logarithm=True)),
        ("upgrad:preference=1/2/1", UPGrad(preference=(1.0, 2.0, 1.0))),
        ("tchebycheff:weights=1/2/1", Tchebycheff(weights=(1.0, 2.0, 1.0))),
        ("uncertainty:regression", Uncertainty(forms="regression")),
        (
            "uncertainty:forms=regression/classification",
            Uncertainty(forms=("regression", "classification")),
        ),
    ],
)
def test_a_word_stands_for_its_method_with_its_options(word: str, method: AnyWeighting) -> None:
    assert parse_weighting(word) == method


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("bandits", "Did you mean `bandit`"),
        ("", "Found ''"),
        ("equal:1", "should stand alone"),
        ("fixed", "should be numbers"),
        ("fixed:1,x", "should be numbers"),
        ("bandit:radius=", "`radius` of `bandit` should be a number. Found ''"),
        ("bandit:radius=nan", "should be a number"),
        ("bandit:rho=1", "should be followed by radius=, step_size="),
        ("bandit:1,2", "Found '2'"),
        ("bandit:1,radius=2", "given once"),
        ("bandit:-1", "should be above 0"),
        ("mgda:l3", "l3"),
        ("stch:logarithm=yes", "true or false"),
        ("random:1.5", "a whole number"),
    ],
)
def test_a_wrong_word_is_refused_in_words(word: str, sentence: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_weighting(word)
    assert sentence in str(caught.value)


def test_lists_have_one_entry_a_task() -> None:
    assert parse_weighting("fixed:1,2", task_count=2) == FixedWeights(weights=(1.0, 2.0))
    with pytest.raises(OptionError, match=r"each of the 3 tasks\. Found 2"):
        parse_weighting("fixed:1,2", task_count=3)


def test_the_page_on_weighting_has_a_row_for_every_word() -> None:
    page = (Path(__file__).parents[3] / "docs" / "weighting.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    table = {
        row[1].strip(" `").partition(":")[0]: row[2].strip(" `") for row in rows if len(row) == 7
    }
    assert table == {name: word.method for name, word in WORDS.items()}


def test_the_words_are_known_without_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; import taskmix.cli._options._weightings"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
