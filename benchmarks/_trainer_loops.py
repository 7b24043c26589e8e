"""One task, one model, three loops: ours, Lightning's, the Hugging Face Trainer's.

Run by `loop_overhead.py` in the environment of each: `python _trainer_loops.py WHO STEPS` prints the
CPU seconds of a step, the first third of the steps left out as warm-up. The trainers log nothing, keep
no checkpoint and draw no bar; ours writes its record.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import loop_overhead as shared


class Clock:
    """CPU time from a third of the steps to the last."""

    def __init__(self, steps: int) -> None:
        self.steps, self.ticks = steps, [0.0]

    def tick(self) -> None:
        self.ticks.append(time.process_time())

    def seconds_a_step(self) -> float:
        first = self.steps // 3
        return (self.ticks[self.steps] - self.ticks[first]) / (self.steps - first)


TASKS = shared.make_tasks(1)


class Rows(torch.utils.data.Dataset[int]):
    """Row numbers; the collate function below makes the batch in one operation, as ours does."""

    def __len__(self) -> int:
        return shared.ROWS

    def __getitem__(self, place: int) -> int:
        return place


def batch_of(places: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    rows, split = torch.tensor(places), TASKS[0].splits["train"]
    return split.inputs.batch(rows), split.targets[rows]


def adam(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=1e-3)


def ours(steps: int) -> float:
    clock = Clock(steps)
    with tempfile.TemporaryDirectory() as folder:
        stepper = shared.ours(TASKS, Path(folder), all_tasks=False, every=steps)
        for _ in range(steps):
            next(stepper)
            clock.tick()
    return clock.seconds_a_step()


def lightning(steps: int) -> float:
    import lightning.pytorch as trainer_library

    clock = Clock(steps)

    class Module(trainer_library.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = shared.make_model(TASKS)
            self.criterion = torch.nn.CrossEntropyLoss()

        def training_step(self, batch: Any, number: int) -> torch.Tensor:
            inputs, targets = batch
            return self.criterion(self.model(inputs, 0), targets)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return adam(self)

        def on_train_batch_end(self, *ignored: Any) -> None:
            clock.tick()

    loader = torch.utils.data.DataLoader(
        Rows(), batch_size=shared.BATCH, shuffle=True, collate_fn=batch_of
    )
    trainer = trainer_library.Trainer(
        max_steps=steps,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), loader)
    return clock.seconds_a_step()


def transformers(steps: int) -> float:
    import transformers as trainer_library

    clock = Clock(steps)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = shared.make_model(TASKS)
            self.criterion = torch.nn.CrossEntropyLoss()

        def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            outputs = self.model(inputs, 0)
            return {"loss": self.criterion(outputs, labels), "logits": outputs}

    class Tick(trainer_library.TrainerCallback):
        def on_step_end(self, *ignored: Any, **options: Any) -> None:
            clock.tick()

    def collate(places: list[int]) -> dict[str, torch.Tensor]:
        return dict(zip(("inputs", "labels"), batch_of(places), strict=True))

    model = Module()
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_library.Trainer(
            model=model,
            args=trainer_library.TrainingArguments(
                output_dir=folder,
                max_steps=steps,
                per_device_train_batch_size=shared.BATCH,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
                remove_unused_columns=False,
                max_grad_norm=0.0,
            ),
            train_dataset=Rows(),
            data_collator=collate,
            optimizers=(adam(model), None),
            callbacks=[Tick()],
        )
        trainer.train()
    return clock.seconds_a_step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    who, steps = sys.argv[1], int(sys.argv[2])
    print({"ours": ours, "lightning": lightning, "transformers": transformers}[who](steps))
