"""Tasks, models and the usual loop that `fleet.py` compares with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from taskmix.engine import Run
from taskmix.models import Perceptron, TextConvolution, WindowBiLSTM
from taskmix.tasks import (
    DenseInputs,
    EncodedSplit,
    EncodedTask,
    EncodedTasks,
    RaggedInputs,
    WindowInputs,
)

ROWS, CLASSES, WORDS, LENGTH = 2_000, 10, 5_000, 60


def task_of(inputs: Any, rows: int, kind: str = "classification") -> EncodedTask:
    """One task of ten classes, which no input says anything about."""
    targets = torch.randint(0, CLASSES, (rows,), generator=torch.Generator().manual_seed(1))
    return EncodedTask(
        name="task",
        kind=kind,  # type: ignore[arg-type]
        labels=tuple(map(str, range(CLASSES))),
        metric="accuracy",
        source="task",
        splits={"train": EncodedSplit(inputs, targets)},
    )


def table_task(features: int) -> EncodedTasks:
    values = torch.randn(ROWS, features, generator=torch.Generator().manual_seed(0))
    return EncodedTasks((task_of(DenseInputs(values), ROWS),), features=features)


def window_task(dimension: int) -> EncodedTasks:
    """Windows of seven random words with frozen vectors."""
    generator = torch.Generator().manual_seed(0)
    padded = torch.randint(1, WORDS, (ROWS + 6,), generator=generator)
    inputs = WindowInputs(padded, torch.arange(ROWS) + 3, 3)
    vectors = torch.randn(WORDS, dimension, generator=generator)
    vectors[0] = 0
    words = tuple(map(str, range(WORDS)))
    return EncodedTasks((task_of(inputs, ROWS),), vocabulary=words, vectors=vectors)


def text_task(dimension: int) -> EncodedTasks:
    """Texts of about 60 random words with frozen vectors."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(LENGTH // 2, 3 * LENGTH // 2, (ROWS,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    ids = torch.randint(1, WORDS, (int(offsets[-1]),), generator=generator)
    vectors = torch.randn(WORDS, dimension, generator=generator)
    vectors[0] = 0
    inputs = RaggedInputs(ids, offsets, minimum=7)
    words = tuple(map(str, range(WORDS)))
    return EncodedTasks((task_of(inputs, ROWS),), vocabulary=words, vectors=vectors)


def usual_loop(run: Run, tasks: EncodedTasks, *, fused: bool) -> Iterator[None]:
    """One model at a time, the way it is usually written; the loss is fetched now and then."""
    device = torch.device(run.device)
    torch.manual_seed(run.seed)
    model = run.architecture.build(tasks).to(device)
    split = tasks.to(device)[0].splits["train"]
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-3, fused=True if fused else None)
    criterion = torch.nn.CrossEntropyLoss()
    model.train()
    step = 0
    while True:
        for rows in torch.randperm(len(split), device=device).split(run.batch_size):
            if len(rows) < run.batch_size:
                continue
            optimizer.zero_grad()
            loss = criterion(model(split.inputs.batch(rows), 0), split.targets[rows])
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                loss.item()
            yield


def seconds_a_step(
    advance: Callable[[int], object], count: int, *, rounds: int, device: str
) -> float:
    """The best of some rounds, after one to warm up; `advance(n)` takes n steps."""
    clock = clock_of(device)
    best = float("inf")
    for number in range(rounds + 1):
        _settle(device)
        begin = clock()
        advance(count)
        _settle(device)
        if number:
            best = min(best, (clock() - begin) / count)
    return best


def clock_of(device: str) -> Callable[[], float]:
    """On the CPU the time of the process, whatever else the machine does meanwhile."""
    return time.process_time if device == "cpu" else time.perf_counter


def usual_seconds(run: Run, tasks: EncodedTasks, count: int, rounds: int) -> tuple[float, str]:
    """Of a step of the usual loop with PyTorch's default Adam or the fused one: the faster."""
    found = []
    for fused in (False, True):
        loop = usual_loop(run, tasks, fused=fused)

        def advance(steps: int, loop: Iterator[None] = loop) -> None:
            for _ in range(steps):
                next(loop)

        name = "usual loop, " + ("fused Adam" if fused else "Adam")
        found.append((seconds_a_step(advance, count, rounds=rounds, device=run.device), name))
    return min(found)


def _settle(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def operations(run: Run, tasks: EncodedTasks) -> float:
    """Floating-point operations of the matrix products in one model's step, forward and back."""
    options: Any = run.architecture
    rows = run.batch_size
    if isinstance(options, Perceptron):
        widths = [tasks.features, *options.hidden, CLASSES]
        products = [a * b for a, b in pairwise(widths)]
        return 2.0 * rows * (3 * sum(products) - products[0])  # the inputs need no gradient
    assert tasks.vectors is not None
    dimension = tasks.vectors.shape[1]
    if isinstance(options, WindowBiLSTM):
        read, hidden = 2 * (options.width + 1), options.hidden
        of_inputs = 2 * read * dimension * 4 * hidden  # forward, and the weight's gradient
        of_states = 3 * (read - 2) * hidden * 4 * hidden
        return 2.0 * rows * (of_inputs + of_states + 3 * 2 * hidden * CLASSES)
    assert isinstance(options, TextConvolution)
    tokens = rows * LENGTH
    filters = 2 * tokens * dimension * options.filters * sum(options.kernels)
    return 2.0 * (filters + 3 * rows * options.filters * len(options.kernels) * CLASSES)


def limits(device: str) -> tuple[float, float, str]:
    """Operations and bytes a second that the device can do: the vendor's figures, or measured."""
    if device != "cpu":
        known = {"H200": (67e12, 4.8e12), "H100": (67e12, 3.35e12), "A100": (19.5e12, 2.0e12)}
        for name, (flops, bandwidth) in known.items():
            if name in torch.cuda.get_device_name():
                return flops, bandwidth, f"the vendor's float32 peak of {name}"
    size = 4096 if device != "cpu" else 1024
    matrix = torch.randn(size, size, device=device)
    product = seconds_a_step(
        lambda n: [matrix @ matrix for _ in range(n)], 5, rounds=3, device=device
    )
    large = torch.zeros(1 << 24, device=device)
    copy = seconds_a_step(lambda n: [large.clone() for _ in range(n)], 5, rounds=3, device=device)
    return 2 * size**3 / product, 8 * large.numel() / copy, "a large product on this device"


def parameters(run: Run, tasks: EncodedTasks) -> int:
    model = run.architecture.build(tasks)
    trained: list[Tensor] = [p for p in model.parameters() if p.requires_grad]
    return sum(parameter.numel() for parameter in trained)
