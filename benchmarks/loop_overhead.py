"""What our training loop costs: a step of ours against the same step written by hand.

Same model, same batches, same optimiser; ours has the policy, the probabilities, the events and the
record on disk on top. Blocks of steps of the two alternate, and the ratio is that of their medians.
Lightning's loop and the Hugging Face Trainer's run the same single-task model, each in an environment
of its own, in turns with ours.

    python benchmarks/loop_overhead.py [--quick] [--json]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from _common import ask, environment, report, row, started, stepping, times_in_turns
from taskmix.engine import record_event
from taskmix.models import HardSharing, TextConvolution
from taskmix.policies import Uniform
from taskmix.records import Study
from taskmix.tasks import EncodedSplit, EncodedTask, EncodedTasks, RaggedInputs
from taskmix.training import StepEvent, train
from taskmix.weighting import Equal

BATCH, WORDS, LENGTH, ROWS, DIMENSION = 32, 5_000, 60, 1_024, 100


def make_tasks(count: int) -> EncodedTasks:
    """Texts of about 60 random words, two classes a task."""
    generator = torch.Generator().manual_seed(0)
    tasks = []
    for number in range(count):
        lengths = torch.randint(LENGTH // 2, LENGTH, (ROWS,), generator=generator)
        offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
        ids = torch.randint(1, WORDS, (int(offsets[-1]),), generator=generator)
        targets = torch.randint(0, 2, (ROWS,), generator=generator)
        split = EncodedSplit(RaggedInputs(ids, offsets, minimum=7), targets)
        tasks.append(
            EncodedTask(
                name=f"task {number}",
                kind="classification",
                labels=("0", "1"),
                metric="accuracy",
                source=f"task {number}",
                splits={"train": split},
            )
        )
    vectors = torch.randn(WORDS, DIMENSION, generator=generator)
    words = tuple(str(number) for number in range(WORDS))
    return EncodedTasks(tuple(tasks), vocabulary=words, vectors=vectors)


def make_model(tasks: EncodedTasks) -> HardSharing:
    torch.manual_seed(0)
    return TextConvolution().build(tasks)


def by_hand(tasks: EncodedTasks, *, all_tasks: bool) -> Iterator[float]:
    """The loop a user would write: draw a task (or go through all), one step."""
    model = make_model(tasks)
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=1e-3)
    criterion = torch.nn.CrossEntropyLoss()
    generator = torch.Generator().manual_seed(0)
    model.train()

    def batches(position: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        split = tasks[position].splits["train"]
        while True:
            for rows in torch.randperm(len(split), generator=generator).split(BATCH):
                yield split.inputs.batch(rows), split.targets[rows]

    streams = [batches(position) for position in range(len(tasks))]
    while True:
        if all_tasks:
            loss = torch.zeros(())
            for position, stream in enumerate(streams):
                inputs, targets = next(stream)
                loss = loss + criterion(model(inputs, position), targets)
        else:
            position = int(torch.randint(len(tasks), (1,), generator=generator))
            inputs, targets = next(streams[position])
            loss = criterion(model(inputs, position), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def ours(tasks: EncodedTasks, folder: Path, *, all_tasks: bool, every: int) -> Iterator[float]:
    """Our loop with its record; the steps so far go to disk after each block."""
    model = make_model(tasks)
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=1e-3)
    study = Study(folder)
    specification = {"benchmark": "loop_overhead", "tasks": len(tasks), "all": all_tasks}
    events = train(
        model,
        tasks,
        steps=10**9,
        optimizer=optimizer,
        generator=np.random.default_rng(0),
        batch_size=BATCH,
        **({"weighting": Equal()} if all_tasks else {"policy": Uniform()}),
    )
    with study.run(specification).claim() as claim:
        writer = started(claim, specification, [task.name for task in tasks], 10**9)
        for event in events:
            record_event(writer, event)
            if isinstance(event, StepEvent):
                if event.step % every == 0:
                    writer.commit(event.step, {}, best=None, best_step=None, best_changed=False)
                yield event.losses[0]


def measure(quick: bool) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    rows = []
    for count in (4, 14):
        tasks = make_tasks(count)
        for all_tasks in (False, True):
            block = 6 if all_tasks else 40
            with tempfile.TemporaryDirectory() as folder:
                loops = (
                    ours(tasks, Path(folder), all_tasks=all_tasks, every=block),
                    by_hand(tasks, all_tasks=all_tasks),
                )
                blocks = [stepping(loop, block) for loop in loops]
                times = times_in_turns(blocks, 4 if quick else 12)
            mine, hand = (1e3 * statistics.median(each) / block for each in times)
            way = "all tasks a step" if all_tasks else "one task a step"
            rows.append(
                row(f"text convolution, {count} tasks, {way}", mine, hand, "by hand", "ms/step")
            )
    return rows + [against_trainer(name, quick) for name in TRAINERS]


TRAINERS = {
    "lightning": ("Lightning", ["lightning>=2.4"]),
    "transformers": ("Hugging Face Trainer", ["transformers>=4.45", "accelerate>=1.0"]),
}


def against_trainer(name: str, quick: bool) -> dict[str, Any]:
    """Our loop and a trainer's on one task, in turns, each in a fresh process."""
    shown, packages = TRAINERS[name]
    asked = partial(ask, sys.executable, "_trainer_loops.py", "ours")
    asked_peer = partial(ask, environment(name, packages), "_trainer_loops.py", name)
    steps = 150 if quick else 400
    turns = [(asked(steps), asked_peer(steps)) for _ in range(2 if quick else 9)]
    mine, peer = (1e3 * statistics.median(each) for each in zip(*turns, strict=True))
    return row("text convolution, 1 task", mine, peer, shown, "ms/step")


if __name__ == "__main__":
    report("loop_overhead", measure, __doc__ or "")
