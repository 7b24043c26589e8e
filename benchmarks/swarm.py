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
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from _common import report, row
from _fleet_peers import loop_seconds, parameters, usual_loop
from fleet import Case, fleet_of, model_seconds
from taskmix.engine import DigitsSource, Optimization, Run, peak_operations
from taskmix.models import CausalTransformer
from taskmix.tasks import Split, Task, TaskSet

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


def case_of(device: str) -> Case:
    architecture = CausalTransformer.of_size("1M")
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
    if device == "cpu":
        return Case(name, run, tasks, (4,), steps=2, usual=8)
    return Case(name, run, tasks, (512,), steps=40, usual=100)


def usual_seconds(case: Case, rounds: int) -> tuple[float, str]:
    """Of a step of the usual loop in the faster type."""
    kinds = [torch.float32] if case.run.device == "cpu" else [torch.float32, torch.bfloat16]
    found = []
    for precision in kinds:
        torch.manual_seed(case.run.seed)
        decay = case.run.optimization.weight_decay
        adam = partial(torch.optim.AdamW, weight_decay=decay, fused=True)
        model = case.run.architecture.build(case.tasks)
        loop = usual_loop(case.run, case.tasks, model, adam, precision)

        seconds = loop_seconds(loop, case.usual, rounds=rounds, device=case.run.device)
        found.append((seconds, f"usual loop, eager, fused AdamW, {str(precision)[6:]}"))
    return min(found)


def measure(quick: bool, device: str) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    case, rounds = case_of(device), 2 if quick else 3
    usual, peer_name = usual_seconds(case, rounds)
    (members,) = case.members
    fleet = fleet_of(case, members)
    each, replayed = model_seconds(fleet, case, rounds)
    name = f"{members} {case.name}, {case.run.precision}"
    found = row(name, 1 / each, 1 / usual, peer_name, "model-steps/s")
    if device == "cpu":
        return [found]
    options, encoder = case.run.architecture, fleet.encoder
    assert isinstance(options, CausalTransformer)
    more: dict[str, Any] = {
        "CUDA graph": replayed,
        "compiled": encoder.is_compiled,
        "own attention": encoder.has_own_attention,
        "memory, GB": torch.cuda.max_memory_allocated() / 1e9,
        "step of all, ms": 1e3 * each * members,
    }
    if (peak := peak_operations(device)) is not None:
        more["share of the bfloat16 peak"] = options.operations(BATCH) / each / peak
    return [found | more]


if __name__ == "__main__":
    report("swarm", measure, __doc__ or "", device=True)
