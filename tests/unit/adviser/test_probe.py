from __future__ import annotations

import pytest

from taskmix.adviser._probe import probe_of
from taskmix.engine import DigitsSource, Run
from taskmix.models import Architecture, Perceptron, TextConvolution, Transformer, WindowBiLSTM


def template(architecture: Architecture) -> Run:
    return Run(label="x", source=DigitsSource(), architecture=architecture, steps=1, seed=0)


@pytest.mark.parametrize(
    ("architecture", "narrower"),
    [
        (Perceptron(hidden=(64, 16)), Perceptron(hidden=(32, 16))),
        (TextConvolution(max_length=50), TextConvolution(filters=20, max_length=50)),
        (WindowBiLSTM(hidden=100), WindowBiLSTM(hidden=32)),
        (Transformer(path="somewhere"), Transformer(path="somewhere")),
    ],
)
def test_a_probe_is_a_narrower_model_of_the_same_family(
    architecture: Architecture, narrower: Architecture
) -> None:
    probe = probe_of(template(architecture))
    assert probe.architecture == narrower
    assert probe.source == DigitsSource()
