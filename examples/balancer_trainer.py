"""A weighting in the Hugging Face Trainer: `training_step` takes one line in place of `backward`.

python examples/balancer_trainer.py
"""

import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import Trainer, TrainingArguments

from taskmix.weighting import Balancer, BanditMTL


class TwoTasks(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU())
        self.heads = torch.nn.ModuleList(torch.nn.Linear(16, 2) for _ in range(2))
        # As a part of the model it is in the Trainer's checkpoints, and resumed from them.
        self.balancer = Balancer(BanditMTL(radius=0.3, step_size=0.5), shared=self.encoder)

    def forward(self, rows: torch.Tensor, easy: torch.Tensor, hard: torch.Tensor) -> Any:
        code = self.encoder(rows)
        return {
            name: torch.nn.functional.cross_entropy(head(code), target)
            for name, head, target in zip(("easy", "hard"), self.heads, (easy, hard), strict=True)
        }


class BalancedTrainer(Trainer):
    weights: list[float]

    def training_step(
        self, model: torch.nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        model.train()
        with self.compute_loss_context_manager():
            losses = model(**self._prepare_inputs(inputs))
        share = 1 / self.args.gradient_accumulation_steps
        # With fp16 the Trainer unscales gradients before the step: scale them here.
        scaler = self.accelerator.scaler
        balanced = self.model.balancer.backward(losses, scale=share, scaler=scaler)
        self.weights = balanced.weights.tolist()
        return balanced.losses.sum() * share


def make_trainer(folder: str, **options: Any) -> BalancedTrainer:
    torch.manual_seed(0)
    rows = torch.randn(512, 10)
    easy, hard = (rows[:, 0] > 0).long(), (rows[:, 1] * rows[:, 2] > 0).long()
    return BalancedTrainer(
        TwoTasks(),
        TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=32,
            gradient_accumulation_steps=2,
            learning_rate=0.01,
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            remove_unused_columns=False,
            **options,
        ),
        train_dataset=[{"rows": rows[n], "easy": easy[n], "hard": hard[n]} for n in range(512)],
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(folder, max_steps=40, save_steps=20)
        trainer.train()
        with safe_open(Path(folder) / "checkpoint-40" / "model.safetensors", "pt") as saved:
            kept = [name for name in saved.keys() if "balancer" in name]  # noqa: SIM118
    print("weights in the last step:", [round(w, 3) for w in trainer.weights], "kept:", kept)
