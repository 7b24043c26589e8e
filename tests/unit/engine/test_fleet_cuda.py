"""On CUDA, too, a member gives what it gives alone, with its steps replayed as a graph."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet_toys import RUN, on_cuda, passage_runs, runs_of, side_by_side

from taskmix.engine import Fleet
from taskmix.errors import TaskmixWarning
from taskmix.models import CausalTransformer
from taskmix.policies import HardProgress, QuantileScaled
from taskmix.records import Study
from taskmix.weighting import (
    BanditMTL,
    DynamicWeightAverage,
    GeometricMean,
    GroupDRO,
    SmoothTchebycheff,
    Tchebycheff,
)

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device here"
)


@pytest.mark.parametrize("drawn", [False, True], ids=["all", "drawn"])
@pytest.mark.parametrize("kind", ["perceptron", "convolution", "bilstm", "causal"])
def test_members_train_as_they_do_alone_and_in_a_graph(
    tmp_path: Path, kind: Any, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Solo runs would otherwise use TF32 in convolutions and in `nn.LSTM`, PyTorch's default there.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that steps cannot be captured is told as a warning
        side_by_side(on_cuda(tmp_path, kind, drawn=drawn), tmp_path, tolerance=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {"weighting": GroupDRO(step_size=0.3)},
        {"weighting": GeometricMean()},
        {"weighting": SmoothTchebycheff(smoothness=0.5)},
        {"weighting": Tchebycheff(weights=(1.0, 2.0), ideal=(0.1, 0.2))},
        {"weighting": BanditMTL()},
        {"weighting": DynamicWeightAverage(steps_per_epoch=3)},
        {"weighting": None, "reward": HardProgress(per_cost=True)},
        {"weighting": None, "reward": QuantileScaled(reward=HardProgress(), reservoir=5)},
    ],
    ids=lambda changes: " ".join(type(each).__name__ for each in changes.values()),
)
def test_members_learn_from_their_losses_as_they_do_alone(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    subsets = (("ten_digits", "parity"), ("remainder", "half"), ("half", "ten_digits"))
    base = replace(RUN, device="cuda", checkpoint_every=7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        side_by_side(runs_of(base, subsets, **changes), tmp_path, tolerance=1e-3)


@pytest.mark.parametrize("words", ["1", "step"], ids=["own attention", "plain attention"])
def test_compiled_causal_models_are_as_near_to_plain_ones_as_bfloat16_lets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr("taskmix.engine._fleet._causal.COMPILED_STEPS", 1)
    wide = CausalTransformer(layers=2, width=64, attention_heads=2, context=48)
    runs = passage_runs(tmp_path, device="cuda", precision="bfloat16", architecture=wide)
    results = []
    for setting in ("0", words):
        monkeypatch.setenv("TASKMIX_COMPILE", setting)
        with warnings.catch_warnings():
            warnings.simplefilter("error", TaskmixWarning)  # that something does not compile is one
            results.append(Fleet(workers=1).run(runs, Study(tmp_path / setting)))
    for plain, compiled in zip(*results, strict=True):
        assert plain.summary is not None
        assert compiled.summary is not None
        for mine, its in zip(compiled.summary.scores, plain.summary.scores, strict=True):
            assert mine.value == pytest.approx(its.value, rel=0.02)
