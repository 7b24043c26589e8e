"""A fleet of whole causal transformers against the usual loop: training steps of one model a second.

Ours is the engine's own inner step with everything in it: tasks and rows drawn for each member, the
optimiser, losses fetched for the record; evaluation and records are apart. The peer trains one model
after another, the way it is usually written in PyTorch: the same module in eager mode on batches of the
same size that lie on the device, fused AdamW, flash attention, in float32 or under bfloat16 autocast,
whichever is faster, its loss fetched every 50th step.

    python benchmarks/swarm.py [--device cuda] [--quick] [--json]

TASKMIX_COMPILE=0 in the environment leaves torch.compile and our own kernels out of ours,
TASKMIX_COMPILE=step the kernels alone.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch.nn import functional

from _common import report, row
from _fleet_peers import parameters, seconds_a_step
from fleet import Case, fleet_of, model_seconds
from taskmix.engine import DigitsSource, Optimization, Run, peak_operations
from taskmix.models import CausalTransformer
from taskmix.tasks import MISSING, EncodedTasks, Split, Task, TaskSet

BATCH, CONTEXT, BYTES = 8, 128, 1 << 18


def passages() -> TaskSet:
    """Two tasks of random letters, some more frequent than others."""
    generator = np.random.default_rng(0)
    letters = np.array(list(string.ascii_letters + " "))
    tasks = []
    for name in ("first", "second"):
        drawn = generator.choice(letters, BYTES, p=generator.dirichlet(np.ones(len(letters))))
        table = pa.table({"text": ["".join(part) for part in drawn.reshape(-1, 512)]})
        tasks.append(
            Task(
                name=name,
                kind="language",
                inputs="passage",
                labels=(),
                metric="bits_per_byte",
                source=name,
                splits={"train": Split(table, np.empty(0))},
            )
        )
    return TaskSet(tuple(tasks))


def case_of(
    architecture: CausalTransformer, members: tuple[int, ...], device: str, steps: int, usual: int
) -> Case:
    tasks = architecture.encoding.encode(passages())
    run = Run(
        label="benchmark",
        source=DigitsSource(),  # not read: the tasks are made here
        architecture=architecture,
        optimization=Optimization(optimizer="adamw", learning_rate=1e-3, weight_decay=0.1),
        batch_size=BATCH,
        steps=10**9,
        seed=0,
        device=device,
        precision="float32" if device == "cpu" else "bfloat16",
    )
    millions = parameters(run, tasks) / 1e6
    name = (
        f"causal models of {millions:.2f} M parameters, {architecture.layers} layers of "
        f"{architecture.width}, batch {BATCH} x {CONTEXT} bytes"
    )
    return Case(name, run, tasks, members, steps=steps, usual=usual)


def cases(device: str, quick: bool) -> list[Case]:
    small, middle, large = (CausalTransformer.of_size(size) for size in ("1M", "5M", "20M"))
    if device == "cpu":
        return [case_of(small, (4,), device, steps=2, usual=8)]
    found = [case_of(small, (512,), device, steps=40, usual=100)]
    if not quick:
        deep = CausalTransformer(layers=9, width=96, attention_heads=3)
        found += [
            case_of(deep, (512,), device, steps=40, usual=100),
            case_of(middle, (128,), device, steps=40, usual=100),
            case_of(large, (32,), device, steps=40, usual=100),
        ]
    return found


def usual_loop(run: Run, tasks: EncodedTasks, precision: torch.dtype) -> Iterator[None]:
    """One model at a time, the way it is usually written; a task is drawn for every batch."""
    device = torch.device(run.device)
    torch.manual_seed(run.seed)
    model = run.architecture.build(tasks).to(device)
    rate, decay = run.optimization.learning_rate, run.optimization.weight_decay
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)
    splits: list[Any] = [task.splits["train"] for task in tasks.to(device)]
    model.train()
    step = 0
    while True:
        split = splits[int(torch.randint(len(splits), ()))]
        rows = torch.randint(len(split), (run.batch_size,)).to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast(device.type, precision, enabled=precision != torch.float32):
            scores = model(split.inputs.values[rows], 0)
            loss = functional.cross_entropy(
                scores.flatten(0, 1), split.targets[rows].flatten(), ignore_index=MISSING
            )
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            loss.item()
        yield


def usual_seconds(case: Case, rounds: int) -> tuple[float, str]:
    """Of a step of the usual loop in the faster type."""
    kinds = [torch.float32] if case.run.device == "cpu" else [torch.float32, torch.bfloat16]
    found = []
    for precision in kinds:
        loop = usual_loop(case.run, case.tasks, precision)

        def advance(steps: int, loop: Iterator[None] = loop) -> None:
            for _ in range(steps):
                next(loop)

        seconds = seconds_a_step(advance, case.usual, rounds=rounds, device=case.run.device)
        found.append((seconds, f"usual loop, eager, fused AdamW, {str(precision)[6:]}"))
    return min(found)


def measure_case(case: Case, rounds: int) -> list[dict[str, Any]]:
    device, options = case.run.device, case.run.architecture
    assert isinstance(options, CausalTransformer)
    usual, peer_name = usual_seconds(case, rounds)
    rows = []
    for members in case.members:
        fleet = fleet_of(case, members)
        each, replayed = model_seconds(fleet, case, rounds)
        name = f"{members} {case.name}, {case.run.precision}"
        if device != "cpu":
            encoder: Any = fleet.encoder
            had = {
                "CUDA graph": replayed,
                "compiled": encoder.is_compiled,
                "own attention": encoder.has_own_attention,
            }
            name += f" ({', '.join(word if done else f'no {word}' for word, done in had.items())})"
        rows.append(row(name, 1 / each, 1 / usual, peer_name, "model-steps/s"))
        if device != "cpu":
            rows += shares_of_limits(case, members, each)
            del fleet
            torch.cuda.empty_cache()
    return rows


def shares_of_limits(case: Case, members: int, each: float) -> list[dict[str, Any]]:
    options: Any = case.run.architecture
    done = options.operations(case.run.batch_size) / each
    peak = peak_operations(case.run.device)
    name = f"{members} {case.name}"
    limit = "the vendor's dense bfloat16 peak"
    memory = torch.cuda.max_memory_allocated() / 1e9
    total = torch.cuda.get_device_properties(0).total_memory / 1e9
    return [
        row(
            f"{name}: products",
            done / 1e12,
            None if peak is None else peak / 1e12,
            limit,
            "TFLOP/s",
        ),
        row(f"{name}: memory", memory, total, "of the device", "GB"),
        row(f"{name}: step of all", 1e3 * each * members, None, "-", "ms"),
    ]


def measure(quick: bool, device: str) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    rounds = 2 if quick else 3
    return [found for case in cases(device, quick) for found in measure_case(case, rounds)]


if __name__ == "__main__":
    report("swarm", measure, __doc__ or "", device=True)
