"""The balancer in other people's trainers, with a scaler of mixed precision and after a resumption."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str, package: str) -> ModuleType:
    pytest.importorskip(package, reason=f"{package} is not installed")
    found = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_in_lightning_a_scaler_moves_the_parameters_as_far_as_none() -> None:
    lightning = example("balancer_lightning", "lightning")
    from lightning.pytorch.plugins import MixedPrecision

    class Stepping(MixedPrecision):
        """Lightning's own steps with a scaler; in float32, since a CPU has no kernels for the other."""

        def autocast_context_manager(self) -> Any:
            return torch.autocast("cpu", enabled=False)

    class Descending(lightning.TwoTasks):  # type: ignore[name-defined,misc]
        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.5)  # Adam would hide a wrong scale

    moved = []
    for plugins in ([], [Stepping("16-mixed", "cpu", torch.amp.GradScaler("cpu"))]):
        torch.manual_seed(1)
        model = Descending()
        before = flat(model)
        lightning.train(model, plugins=plugins, max_steps=5)
        moved.append(flat(model) - before)
    assert float(moved[0].abs().max()) > 0.1
    torch.testing.assert_close(moved[1], moved[0], atol=1e-4, rtol=1e-3)


def test_in_the_trainer_a_scaler_moves_the_parameters_as_far_as_none(tmp_path: Path) -> None:
    trainers = example("balancer_trainer", "accelerate")
    moved = []
    for number, scaler in enumerate((None, torch.amp.GradScaler("cpu"))):
        trainer = trainers.make_trainer(
            str(tmp_path / str(number)),
            max_steps=5,
            optim="sgd",
            save_strategy="no",
            max_grad_norm=0.0,  # with fp16 accelerate unscales before it clips, here it would not
        )
        trainer.args.learning_rate = 0.5
        trainer.accelerator.scaler = scaler  # what fp16=True makes on a GPU
        before = flat(trainer.model)
        trainer.train()
        moved.append(flat(trainer.model) - before)
    assert float(moved[0].abs().max()) > 0.1
    torch.testing.assert_close(moved[1], moved[0], atol=1e-4, rtol=1e-3)


def test_the_trainer_resumes_the_balancer_with_the_model(tmp_path: Path) -> None:
    trainers = example("balancer_trainer", "accelerate")
    folder = str(tmp_path)
    whole = trainers.make_trainer(folder, max_steps=6, save_steps=3)
    whole.train()
    resumed = trainers.make_trainer(folder, max_steps=6, save_strategy="no")
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert resumed.weights == whole.weights
    torch.testing.assert_close(flat(resumed.model), flat(whole.model))
