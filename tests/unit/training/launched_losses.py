"""What `accelerate launch` runs in the test of several processes: writes `found.json` with its counts.

A task's loss is a constant that is known, so every step of the log says whether it is the right one.
"""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration

from taskmix.errors import RunError
from taskmix.policies import Exp3S, Outcome
from taskmix.training import MixedStream, PolicyBatchSampler, connect_trainer

SIZES, CONSTANTS = (30, 9, 16), (1.0, 2.0, 4.0)
TASKS = [task for task, size in enumerate(SIZES) for _ in range(size)]
ROWS = [{"task": task, "row": row} for row, task in enumerate(TASKS)]
VOCABULARY = 11


class Constant(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, task: torch.Tensor, row: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": torch.tensor(CONSTANTS)[task].mean() + 0 * self.weight.sum()}


class LossAsReward:
    """Policies learn from it although the losses never change."""

    needs_loss_after = False

    def init(self, task_count: int) -> None:
        return None

    def observe(self, state: None, outcome: Outcome, generator: Any) -> tuple[float, None]:
        return outcome.loss / 4, None


class Heard:
    def __init__(self) -> None:
        self.rows: list[tuple[int, float, float]] = []

    def add_step(self, step: int, task: int, *, probability: float, loss: float, **_: Any) -> None:
        self.rows.append((task, probability, loss))

    @property
    def right(self) -> int:
        return sum(abs(loss - CONSTANTS[task]) < 1e-6 for task, _, loss in self.rows)


def make_sampler(steps: int, heard: Any, *, seed: int = 0, size: int = 4) -> PolicyBatchSampler:
    return PolicyBatchSampler(
        SIZES,
        policy=Exp3S(eta=0.2),
        reward=LossAsReward(),
        batch_size=size,
        steps=steps,
        generator=np.random.default_rng(seed),
        record=heard,
    )


def own_loop(accelerator: Accelerator, *, size: int, **options: Any) -> tuple[Heard, Any]:
    heard = Heard()
    sampler = make_sampler(40, heard, size=size)
    loader = accelerator.prepare(sampler.loader(ROWS, **options))
    model = accelerator.prepare(Constant())
    for batch in loader:
        draw = batch.pop("draw")
        loss = model(**batch)["loss"]
        accelerator.backward(loss)
        sampler.observe(loss, draw)
    return heard, sampler.state_dict()["learner"]["policy"]["log_weights"].tolist()


def with_trainer(folder: Path, resume: Any, *, accumulation: int = 2) -> Heard:
    heard = Heard()
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=12,
        save_strategy="steps",
        save_steps=4,
        gradient_accumulation_steps=accumulation,
        eval_strategy="steps",
        eval_steps=5,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        label_names=["task"],
    )
    trainer = transformers.Trainer(Constant(), arguments, train_dataset=ROWS, eval_dataset=ROWS[:8])
    connect_trainer(trainer, make_sampler(24 * accumulation, heard)).train(resume)
    return heard


def causal_rows(answers: tuple[int, int, int]) -> list[dict[str, list[int]]]:
    """Twelve tokens each, of which so many are the answer in each task."""
    generator = np.random.default_rng(0)
    rows = []
    for answered, size in zip(answers, SIZES, strict=True):
        for _ in range(size):
            tokens = generator.integers(1, VOCABULARY, size=12).tolist()
            rows.append(
                {"input_ids": tokens, "labels": [-100] * (12 - answered) + tokens[-answered:]}
            )
    return rows


def tiny_llama() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=16,
    )
    return transformers.LlamaForCausalLM(config)


def causal(folder: Path) -> tuple[int, int]:
    """How many of this process's losses are the mean over the batch's own tokens, and of how many."""
    rows, model = causal_rows((5, 12, 2)), tiny_llama()
    expected, told = list[float](), list[float]()

    def watch(module: Any, positional: Any, named: Any, outputs: Any) -> None:
        if module.training:
            logits, labels = outputs.logits.detach()[:, :-1], named["labels"][:, 1:]
            mean = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            expected.append(float(mean))

    model.register_forward_hook(watch, with_kwargs=True)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=5,
        save_strategy="no",
        gradient_accumulation_steps=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model, arguments, train_dataset=rows, data_collator=transformers.default_data_collator
    )
    sampler = make_sampler(20, None)
    observe = sampler.observe

    def listening(loss: Any, draw: Any) -> Any:
        told.append(float(loss))
        return observe(loss, draw)

    sampler.observe = listening  # type: ignore[method-assign]
    connect_trainer(trainer, sampler).train()
    right = sum(abs(a - b) < 1e-4 for a, b in zip(told, expected, strict=True))
    return right, len(told)


def streams() -> tuple[Heard, dict[str, float]]:
    heard: Any = Heard()
    parts = {str(task): [row for row in ROWS if row["task"] == task] for task in range(3)}
    mixed = MixedStream(
        parts, shares=Exp3S(eta=0.2), seed=0, reward=LossAsReward(), record=heard, with_draws=True
    )
    for batch in islice(torch.utils.data.DataLoader(mixed, batch_size=4), 10):
        mixed.observe(torch.tensor(CONSTANTS)[batch["task"]], batch["draw"])
    return heard, mixed.shares


def main(folder: Path) -> None:
    accelerator = Accelerator(cpu=True)
    found: dict[str, Any] = {}
    heard, weights = own_loop(accelerator, size=10)  # larger than the second task
    found["own loop"] = [heard.right, len(heard.rows)]
    heard_ahead, weights_ahead = own_loop(accelerator, size=4, num_workers=2)
    found["workers"] = [heard_ahead.right, len(heard_ahead.rows)]
    every = [None] * accelerator.num_processes
    torch.distributed.all_gather_object(every, (weights, weights_ahead, len(heard.rows)))
    found["in step"] = all(each[:2] == every[0][:2] for each in every)  # type: ignore[index]
    found["learned"] = len({share for _, share, _ in heard.rows}) > 5
    found["rows of each process"] = [each[2] for each in every]  # type: ignore[index]
    cut = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(split_batches=True))
    heard, _ = own_loop(cut, size=4)
    found["split batches"] = [heard.right, len(heard.rows)]
    whole = with_trainer(folder, None)
    found["trainer"] = [whole.right, len(whole.rows)]
    later = with_trainer(folder, str(folder / "checkpoint-4"))
    found["resumed"] = [later.right, len(later.rows)]
    found["resumed exactly"] = later.rows == whole.rows[16:]
    heard, shares = streams()
    found["streams"] = [heard.right, len(heard.rows)]
    torch.distributed.all_gather_object(every, (causal(folder), shares))
    found["causal"] = [each[0] for each in every]  # type: ignore[index]
    found["streams in step"] = every[0][1] == every[1][1]  # type: ignore[index]
    apart = make_sampler(8, None, seed=accelerator.process_index)
    try:
        for batch in accelerator.prepare(apart.loader(ROWS)):
            apart.observe(1.0, batch["draw"])
    except RunError as error:
        found["apart"] = str(error)
    if accelerator.is_main_process:
        (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
