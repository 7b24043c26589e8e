from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from taskmix.adviser._ladder import RUNG_PRICES, misleading, rungs_below, words_of_agreement
from taskmix.adviser._race import Race
from taskmix.engine import DigitsSource, Run
from taskmix.models import Perceptron, Transformer, tuning_of
from taskmix.numerics import Interval

MODEL = Transformer(path="bert-base-uncased", max_length=128)
TEMPLATE = Run(label="t", source=DigitsSource(), architecture=MODEL, steps=1, seed=0)


def tasks_of(*inputs: str) -> Any:
    return [SimpleNamespace(inputs=kind) for kind in inputs]


@pytest.mark.parametrize(
    ("tune", "device", "inputs", "names"),
    [
        ("all", "cpu", ("text", "pair"), ["frozen features"]),
        ("all", "cuda", ("text",), ["frozen features", "adapters"]),
        ("adapters", "cuda:1", ("text",), ["frozen features"]),
        ("all", "cpu", ("tokens",), ["short texts"]),
        ("all", "cuda", ("text", "tokens"), ["short texts", "adapters"]),
    ],
)
def test_the_rungs_below_a_pretrained_model(
    tune: Any, device: str, inputs: tuple[str, ...], names: list[str]
) -> None:
    template = replace(TEMPLATE, architecture=replace(MODEL, tune=tune), device=device)
    found = rungs_below(template, tasks_of(*inputs))
    assert [rung.name for rung in found] == names
    for rung in found:
        assert 0 < rung.price < 1
        assert rung.price == RUNG_PRICES[rung.name]
        assert rung.template.architecture != template.architecture
        assert rung.template.device == device


def test_rungs_are_cheaper_models_of_the_same_weights() -> None:
    frozen, adapters = rungs_below(replace(TEMPLATE, device="cuda"), tasks_of("text"))
    assert tuning_of(frozen.template.architecture) == "heads"
    assert tuning_of(adapters.template.architecture) == "adapters"
    (short,) = rungs_below(TEMPLATE, tasks_of("tokens"))
    assert short.template.architecture == replace(MODEL, max_length=32)


def test_nothing_is_below_a_model_from_scratch_or_frozen_features() -> None:
    scratch = replace(TEMPLATE, architecture=Perceptron())
    assert rungs_below(scratch, tasks_of("text")) == ()
    (frozen,) = rungs_below(TEMPLATE, tasks_of("text"))
    assert rungs_below(frozen.template, tasks_of("text")) == ()


def test_texts_that_are_short_are_not_cut() -> None:
    template = replace(TEMPLATE, architecture=replace(MODEL, max_length=63))
    assert rungs_below(template, tasks_of("tokens")) == ()


def test_a_rung_that_ranks_the_other_way_round_is_left_out_in_words() -> None:
    agreement = {
        "frozen features": Interval(-0.1, -0.8, 0.6, 0, 0.9),
        "adapters": Interval(0.75, 0.5, 0.9, 0, 0.9),
    }
    race = Race(standings=(), noise=0.1, agreement=agreement)
    assert misleading(race, both=4) == ("frozen features",)
    assert misleading(race, both=3) == (), "three ways say little of how two models rank"
    kept = replace(race, agreement={"adapters": agreement["adapters"]})
    assert words_of_agreement(kept, ("frozen features",)) == [
        "The adapters rank the ways as the model itself does: correlation 0.75 (0.50 to 0.90 at 90%).",
        "The frozen features are not seen to rank the ways as the model itself does: what they say is "
        "left out.",
    ]
