"""What our training loop costs: a step of ours against the same step written by hand.

Same model, same batches, same optimiser; ours has the policy, the probabilities, the events and the
record on disk on top. Blocks of steps of the two alternate, and the ratio is that of their medians.
Lightning's loop and the Hugging Face Trainer's run the same single-task model, each in an environment
of its own, in turns with ours.

    python benchmarks/loop_overhead.py [--quick] [--json]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from _common import ROOT, environment, report, row
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
        writer = claim.writer
        assert writer is not None
        described = [
            {"name": task.name, "kind": task.kind, "metric": task.metric, "sizes": {}, "labels": 2}
            for task in tasks
        ]
        writer.start(
            specification=specification, seed=0, label="ours", steps=10**9, tasks=described
        )
        for event in events:
            record_event(writer, event)
            if isinstance(event, StepEvent):
                if event.step % every == 0:
                    writer.commit(event.step, {}, best=None, best_step=None, best_changed=False)
                yield event.losses[0]


def alternate(
    first: Iterator[float], second: Iterator[float], *, block: int, blocks: int
) -> tuple[float, float]:
    """Median seconds a step of each, in alternating blocks; the first block of each warms up."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(blocks + 1):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        for side in order:
            stepper = (first, second)[side]
            begin = time.process_time()
            for _ in range(block):
                next(stepper)
            if number:
                times[side].append((time.process_time() - begin) / block)
    return statistics.median(times[0]), statistics.median(times[1])


def measure(quick: bool) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    rows = []
    for count in (4, 14):
        tasks = make_tasks(count)
        for all_tasks in (False, True):
            block, blocks = (6, 12) if all_tasks else (40, 12)
            if quick:
                blocks = 4
            with tempfile.TemporaryDirectory() as folder:
                mine, hand = alternate(
                    ours(tasks, Path(folder), all_tasks=all_tasks, every=block),
                    by_hand(tasks, all_tasks=all_tasks),
                    block=block,
                    blocks=blocks,
                )
            way = "all tasks a step" if all_tasks else "one task a step"
            rows.append(
                row(
                    f"text convolution, {count} tasks, {way}",
                    mine * 1e3,
                    hand * 1e3,
                    "by hand",
                    "ms/step",
                )
            )
    steps = 150 if quick else 400
    for name, packages in (
        ("lightning", ["lightning>=2.4"]),
        ("transformers", ["transformers>=4.45", "accelerate>=1.0"]),
    ):
        rows.append(against_trainer(name, packages, steps, rounds=2 if quick else 9))
    return rows


def against_trainer(name: str, packages: list[str], steps: int, rounds: int) -> dict[str, Any]:
    """Our loop and a trainer's on one task, in turns, each in a fresh process."""
    python = environment(name, packages)
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(rounds):
        times["ours"].append(_in_process(Path(sys.executable), "ours", steps))
        times["peer"].append(_in_process(python, name, steps))
    mine, peer = statistics.median(times["ours"]), statistics.median(times["peer"])
    shown = {"lightning": "Lightning", "transformers": "Hugging Face Trainer"}[name]
    return row("text convolution, 1 task", mine * 1e3, peer * 1e3, shown, "ms/step")


def _in_process(python: Path, who: str, steps: int) -> float:
    script = ROOT / "benchmarks" / "_trainer_loops.py"
    done = subprocess.run(
        [str(python), str(script), who, str(steps)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")},
    )
    return float(json.loads(done.stdout.splitlines()[-1])["seconds_a_step"])


if __name__ == "__main__":
    report("loop_overhead", measure, __doc__ or "")
