"""A weighting in Lightning: manual optimisation, and one line in place of `manual_backward`.

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
        # As a part of the module it is in Lightning's checkpoints, and resumed from them.
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
        # With precision="16-mixed" Lightning unscales gradients before the step: scale them here.
        scaler = getattr(self.trainer.precision_plugin, "scaler", None)
        balanced = self.balancer.backward(losses, scaler=scaler)
        optimizer.step()
        self.weights = balanced.weights.tolist()

    def on_train_epoch_end(self) -> None:
        self.balancer.end_epoch()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


def train(model: TwoTasks, **options: Any) -> TwoTasks:
    torch.manual_seed(0)
    rows = torch.randn(512, 10)
    data = TensorDataset(rows, (rows[:, 0] > 0).long(), (rows[:, 1] * rows[:, 2] > 0).long())
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    trainer.fit(model, DataLoader(data, batch_size=32, shuffle=True))
    return model


if __name__ == "__main__":
    weights = train(TwoTasks(), max_epochs=3).weights
    print("weights in the last step:", [round(weight, 3) for weight in weights])
