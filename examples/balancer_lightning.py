"""A weighting in PyTorch Lightning: manual optimisation, and one line in place of `manual_backward`.

python examples/balancer_lightning.py
"""

import logging
import warnings
from typing import Any

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from taskmix.weighting import MGDAUB, Balancer

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")


class TwoTasks(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.encoder = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU())
        self.heads = torch.nn.ModuleList(torch.nn.Linear(16, 2) for _ in range(2))
        self.balancer = Balancer(MGDAUB(), shared=self.encoder, representation=self.encoder)
        self.weights: list[float] = []

    def training_step(self, batch: tuple[torch.Tensor, ...], number: int) -> None:
        rows, *targets = batch
        code = self.encoder(rows)
        losses = [
            torch.nn.functional.cross_entropy(head(code), target)
            for head, target in zip(self.heads, targets, strict=True)
        ]
        optimizer = self.optimizers()
        optimizer.zero_grad()
        balanced = self.balancer.backward(losses)
        optimizer.step()
        self.weights = balanced.weights.tolist()

    def on_train_epoch_end(self) -> None:
        self.balancer.end_epoch()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["balancer"] = self.balancer.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.balancer.load_state_dict(checkpoint["balancer"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


torch.manual_seed(0)
rows = torch.randn(512, 10)
data = TensorDataset(rows, (rows[:, 0] > 0).long(), (rows[:, 1] * rows[:, 2] > 0).long())
model = TwoTasks()
trainer = pl.Trainer(
    max_epochs=3,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(data, batch_size=32, shuffle=True))
print("weights in the last step:", [round(weight, 3) for weight in model.weights])
