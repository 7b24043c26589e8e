"""A weighting in the Hugging Face Trainer: `training_step` takes one line in place of `backward`.

python examples/balancer_trainer.py
"""

import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from taskmix.weighting import Balancer, BanditMTL


class TwoTasks(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU())
        self.heads = torch.nn.ModuleList(torch.nn.Linear(16, 2) for _ in range(2))

    def forward(self, rows: torch.Tensor, easy: torch.Tensor, hard: torch.Tensor) -> Any:
        code = self.encoder(rows)
        return {
            name: torch.nn.functional.cross_entropy(head(code), target)
            for name, head, target in zip(("easy", "hard"), self.heads, (easy, hard), strict=True)
        }


class BalancedTrainer(Trainer):
    def __init__(self, *arguments: Any, balancer: Balancer, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.balancer = balancer
        self.weights: list[float] = []

    def training_step(
        self, model: torch.nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        model.train()
        with self.compute_loss_context_manager():
            losses = model(**self._prepare_inputs(inputs))
        share = 1 / self.args.gradient_accumulation_steps
        balanced = self.balancer.backward(losses, scale=share)
        self.weights = balanced.weights.tolist()
        return balanced.losses.sum() * share


class SaveBalancer(TrainerCallback):
    def __init__(self, balancer: Balancer) -> None:
        self.balancer = balancer

    def on_save(self, arguments: Any, state: Any, control: Any, **others: Any) -> None:
        folder = Path(arguments.output_dir) / f"checkpoint-{state.global_step}"
        torch.save(self.balancer.state_dict(), folder / "balancer.pt")


torch.manual_seed(0)
rows = torch.randn(512, 10)
easy, hard = (rows[:, 0] > 0).long(), (rows[:, 1] * rows[:, 2] > 0).long()
data = [{"rows": rows[n], "easy": easy[n], "hard": hard[n]} for n in range(len(rows))]
model = TwoTasks()
balancer = Balancer(BanditMTL(radius=0.3, step_size=0.5), shared=model.encoder)
with tempfile.TemporaryDirectory() as folder:
    trainer = BalancedTrainer(
        model,
        TrainingArguments(
            output_dir=folder,
            max_steps=40,
            per_device_train_batch_size=32,
            gradient_accumulation_steps=2,
            learning_rate=0.01,
            save_steps=20,
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            remove_unused_columns=False,
        ),
        train_dataset=data,
        callbacks=[SaveBalancer(balancer)],
        balancer=balancer,
    )
    trainer.train()
    saved = sorted(path.parent.name for path in Path(folder).glob("*/balancer.pt"))
print("weights in the last step:", [round(weight, 3) for weight in trainer.weights], saved)
