"""Methods that ask for gradients, losses or rewards work with adapters and with heads on vectors."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet_toys import text_source
from test_fleet_adapters import prompts, saved

from taskmix.engine import Optimization, Run, build, execute
from taskmix.models import Adapters, named_last_layer, pretrained
from taskmix.policies import Exp3S, PredictionGain, QuantileScaled
from taskmix.records import Study
from taskmix.weighting import (
    FAMO,
    Balancer,
    GradNorm,
    NashMTL,
    PCGrad,
)

METHODS = (PCGrad(), NashMTL(), GradNorm(), FAMO())
REWARD = QuantileScaled(reward=PredictionGain())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKMIX_CACHE", str(tmp_path / "cache"))
    torch.set_num_threads(1)


def run_of(folder: Path, kind: str, tune: Any, **options: Any) -> Run:
    written = kind == "llama"
    source = prompts(folder) if written else text_source(folder)
    return Run(
        label="toy",
        source=source,
        architecture=pretrained(saved(folder, kind), tune, max_length=32),
        tasks=None if written else ("two", "three", "long"),
        optimization=Optimization(learning_rate=0.01),
        steps=5,
        batch_size=4,
        seed=0,
        **options,
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize(
    ("kind", "tune"), [("bert", "adapters"), ("bert", "heads"), ("llama", "adapters")]
)
def test_weights_of_any_method_train_what_is_tuned(
    tmp_path: Path, kind: str, tune: str, method: Any
) -> None:
    run = run_of(tmp_path, kind, tune, weighting=method)
    study = Study(tmp_path / "study")
    assert execute(run, study).outcome == "finished"
    steps = run.folder(study).steps(["step", "weight"]).to_pylist()
    weights = [row["weight"] for row in steps]
    assert all(math.isfinite(weight) for weight in weights)
    if not isinstance(method, PCGrad):  # which leaves gradients alone that agree
        assert max(weights) - min(weights) > 1e-6, "the method has an opinion"
    best = run.folder(study).best()
    assert best is not None
    fresh = build(run)[0].state_dict()
    changed = [name for name, value in fresh.items() if not torch.equal(best[name], value)]
    shared = [name for name in fresh if name.startswith("encoder.")]
    assert set(shared) <= set(changed), "all that is shared was trained"


@pytest.mark.parametrize("tune", ["heads", "adapters"])
def test_a_policy_that_learns_from_rewards_draws_its_tasks(tmp_path: Path, tune: str) -> None:
    run = run_of(tmp_path, "bert", tune, policy=Exp3S(eta=0.5), reward=REWARD)
    study = Study(tmp_path / "study")
    assert execute(run, study).outcome == "finished"
    steps = run.folder(study).steps(["reward", "probability"]).to_pylist()
    assert len(steps) == 5
    assert any(row["reward"] for row in steps)
    assert len({row["probability"] for row in steps}) > 1, "they were learned from"


def test_gradients_are_compared_over_the_adapters_alone(tmp_path: Path) -> None:
    model, tasks = build(run_of(tmp_path, "bert", "adapters"))
    with torch.no_grad():
        for parameter in model.encoder.parameters():  # B begins at 0, and then A has no gradient
            parameter.add_(0.1)

    def losses() -> list[torch.Tensor]:
        code = model.encoder(tasks[0].splits["train"].inputs.batch(torch.arange(4)))
        return [head(code).square().mean() for head in model.heads]

    model.eval()
    parameters = list(model.encoder.parameters())
    assert sum(each.numel() for each in parameters) == 2 * 2 * 2 * 8 * 16  # the base has far more
    rows = []
    for loss in losses():
        found = torch.autograd.grad(loss, parameters, retain_graph=True)
        rows.append(torch.cat([each.flatten() for each in found]))
    matrix = torch.stack(rows)
    balanced = Balancer(PCGrad(), shared=model.encoder).backward(losses())
    assert balanced.gramian is not None
    torch.testing.assert_close(balanced.gramian.float(), matrix @ matrix.T, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize(
    ("targets", "last"),
    [(None, "attention-self-value"), (("dense",), "output-dense")],  # not the pooler's, last of all
)
def test_the_last_layer_is_the_last_b_that_is_trained(
    tmp_path: Path, targets: Any, last: str
) -> None:
    run = run_of(tmp_path, "bert", "adapters", weighting=GradNorm())
    architecture: Any = run.architecture
    adapters = Adapters(rank=2, targets=targets)
    run = replace(run, architecture=replace(architecture, adapters=adapters))
    model, _ = build(run)
    found: Any = named_last_layer(model.encoder)
    name = f"encoder.adapters.encoder-layer-1-{last}.lora_B"
    assert [id(each) for each in found] == [id(dict(model.named_parameters())[name])]
    assert execute(run, Study(tmp_path / "study")).outcome == "finished"
