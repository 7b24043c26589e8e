"""The adversarial architecture goes into a run like any other, with a policy or with any weighting."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from taskmix.engine import DigitsSource, Run, execute, model_of_run
from taskmix.models import AdversarialSharing, Perceptron
from taskmix.records import Study
from taskmix.weighting import FAMO, MGDA, MGDAUB, AnyWeighting, Equal, GradNorm

ARCHITECTURE = AdversarialSharing(architecture=Perceptron(hidden=(32,)), head_dropout=0.1)


@pytest.mark.parametrize(
    "method",
    [None, Equal(), FAMO(), MGDA(), MGDAUB(), GradNorm()],
    ids=lambda method: type(method).__name__,
)
def test_an_adversarial_run_learns_and_its_model_can_be_loaded(
    tmp_path: Path, method: AnyWeighting | None
) -> None:
    torch.set_num_threads(1)
    run = Run(
        label="adversarial",
        source=DigitsSource(),
        architecture=ARCHITECTURE,
        weighting=method,
        steps=60 if method else 200,
        seed=1,
    )
    study = Study(tmp_path)
    executed = execute(run, study)
    assert executed.summary is not None
    (parity,) = [
        score.value
        for score in executed.summary.scores
        if (score.task, score.split, score.metric) == ("parity", "test", "accuracy")
    ]
    assert parity > 0.8
    model, _ = model_of_run(run, study)
    assert any("discriminator" in name for name in model.state_dict())
