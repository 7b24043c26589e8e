"""Tasks, models and the usual loop that `fleet.py` compares with."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from _common import best_of
from taskmix.engine import Run
from taskmix.tasks import (
    MISSING,
    DenseInputs,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    RaggedInputs,
    WindowInputs,
)

ROWS, CLASSES, WORDS, LENGTH = 2_000, 10, 5_000, 60


def task_of(inputs: Any) -> EncodedTask:
    """One task of ten classes, which no input says anything about."""
    targets = torch.randint(0, CLASSES, (ROWS,), generator=torch.Generator().manual_seed(1))
    return EncodedTask(
        name="task",
        kind="classification",
        labels=tuple(map(str, range(CLASSES))),
        metric="accuracy",
        source="task",
        splits={"train": EncodedSplit(inputs, targets)},
    )


def table_task(features: int) -> EncodedTasks:
    values = torch.randn(ROWS, features, generator=torch.Generator().manual_seed(0))
    return EncodedTasks((task_of(DenseInputs(values)),), features=features)


def window_task(dimension: int) -> EncodedTasks:
    """Windows of seven random words with frozen vectors."""
    generator = torch.Generator().manual_seed(0)
    padded = torch.randint(1, WORDS, (ROWS + 6,), generator=generator)
    return with_vectors(WindowInputs(padded, torch.arange(ROWS) + 3, 3), dimension)


def text_task(dimension: int) -> EncodedTasks:
    """Texts of about 60 random words with frozen vectors."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(LENGTH // 2, 3 * LENGTH // 2, (ROWS,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    ids = torch.randint(1, WORDS, (int(offsets[-1]),), generator=generator)
    return with_vectors(RaggedInputs(ids, offsets, minimum=7), dimension)


def with_vectors(inputs: Any, dimension: int) -> EncodedTasks:
    vectors = torch.randn(WORDS, dimension, generator=torch.Generator().manual_seed(1))
    vectors[0] = 0
    words = tuple(map(str, range(WORDS)))
    return EncodedTasks((task_of(inputs),), vocabulary=words, vectors=vectors)


def usual_loop(
    run: Run,
    tasks: EncodedTasks,
    model: nn.Module,
    optimizer: Callable[..., torch.optim.Optimizer],
    precision: torch.dtype = torch.float32,
) -> Iterator[None]:
    """One model at a time, as it is usually written, a task drawn for every step.

    The batches lie on the device, and the loss is fetched now and then.
    """
    device = torch.device(run.device)
    model = model.to(device).train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    stepper = optimizer(trained, lr=run.optimization.learning_rate)
    splits = [task.splits["train"] for task in tasks.to(device)]
    chance = random.Random(run.seed)
    for step in count(1):
        place = chance.randrange(len(splits))
        split = splits[place]
        rows = torch.randint(len(split), (run.batch_size,), device=device)
        stepper.zero_grad()
        with torch.autocast(device.type, precision, enabled=precision != torch.float32):
            answers = model(split.inputs.batch(rows), place).flatten(0, -2)
            targets = split.targets[rows].flatten()
            loss = functional.cross_entropy(answers, targets, ignore_index=MISSING)
        loss.backward()
        stepper.step()
        if step % 50 == 0:
            loss.item()
        yield


def seconds_a_step(
    advance: Callable[[int], object], steps: int, *, rounds: int, device: str
) -> float:
    """The best of some rounds, after one to warm up; `advance(n)` takes n steps."""

    def work() -> None:
        advance(steps)
        if device != "cpu":
            torch.cuda.synchronize()

    return best_of(rounds, work, clock=clock_of(device)) / steps


def clock_of(device: str) -> Callable[[], float]:
    """On the CPU the time of the process, whatever else the machine does meanwhile."""
    return time.process_time if device == "cpu" else time.perf_counter


def loop_seconds(loop: Iterator[None], steps: int, *, rounds: int, device: str) -> float:
    def advance(times: int) -> None:
        for _ in range(times):
            next(loop)

    return seconds_a_step(advance, steps, rounds=rounds, device=device)


def usual_seconds(run: Run, tasks: EncodedTasks, steps: int, rounds: int) -> tuple[float, str]:
    """Of a step of the usual loop with PyTorch's default Adam or the fused one: the faster."""
    found = []
    for name, fused in (("Adam", None), ("fused Adam", True)):
        torch.manual_seed(run.seed)
        model, optimizer = run.architecture.build(tasks), partial(torch.optim.Adam, fused=fused)
        loop = usual_loop(run, tasks, model, optimizer)
        seconds = loop_seconds(loop, steps, rounds=rounds, device=run.device)
        found.append((seconds, f"usual loop, {name}"))
    return min(found)


def parameters(run: Run, tasks: EncodedTasks) -> int:
    model = run.architecture.build(tasks)
    trained: list[Tensor] = [p for p in model.parameters() if p.requires_grad]
    return sum(parameter.numel() for parameter in trained)
