"""The fleet against the usual loop over models: training steps of one model a second.

Ours is the engine's own inner step with everything in it: rows drawn per member, targets, masks,
the optimiser, losses fetched for the record. The peer trains one model after another, the way it is
usually written in PyTorch, with the same module and batches of the same size, its losses fetched every
50th step; its optimiser is `torch.optim.Adam`, plain or fused, whichever is faster.
"End to end" is the executor `Fleet` with evaluation, checkpoints and records on disk.

    python benchmarks/fleet.py [--device cuda] [--quick] [--json]
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch

from _common import report, row
from _fleet_peers import (
    clock_of,
    seconds_a_step,
    table_task,
    text_task,
    usual_seconds,
    window_task,
)
from taskmix.engine import DigitsSource, Fleet, Here, Run, build
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._plan import fitting
from taskmix.engine._fleet._stepper import Stepper
from taskmix.models import Perceptron, TextConvolution, WindowBiLSTM
from taskmix.policies import HardProgress, QuantileScaled
from taskmix.records import Study
from taskmix.tasks import EncodedTasks
from taskmix.weighting import BanditMTL, Equal, GroupDRO, Uncertainty


@dataclass(frozen=True)
class Case:
    name: str
    run: Run
    tasks: EncodedTasks
    members: tuple[int, ...]
    steps: int  # of ours in a round
    usual: int  # of the peer's


def run_of(architecture: Any, batch_size: int, device: str) -> Run:
    return Run(
        label="benchmark",
        source=DigitsSource(),  # not read: the tasks are made here
        architecture=architecture,
        weighting=Equal(),
        batch_size=batch_size,
        steps=10**9,
        seed=0,
        device=device,
    )


def case_of(
    name: str,
    architecture: Any,
    tasks: EncodedTasks,
    batch: int,
    members: tuple[int, ...],
    device: str,
    *,
    steps: int,
    usual: int = 100,
) -> Case:
    run = run_of(architecture, batch, device)
    return Case(f"{name}, batch {batch}", run, tasks, members, steps=steps, usual=usual)


def perceptron(width: int, batch: int, members: tuple[int, ...], device: str, steps: int) -> Case:
    architecture, name = Perceptron(hidden=(width, width)), f"perceptrons 32-{width}-{width}-10"
    tasks = table_task(32)
    return case_of(name, architecture, tasks, batch, members, device, steps=steps, usual=300)


def cases(device: str, quick: bool) -> list[Case]:
    bilstm, convolution = WindowBiLSTM(), TextConvolution(head_dropout=0.0)
    filters = "text convolutions, 100 filters of widths 3, 5, 7"

    def windows(inputs: int, members: tuple[int, ...], steps: int, usual: int) -> Case:
        name = f"window BiLSTMs, input {inputs}, hidden 100, window 7"
        tasks = window_task(inputs)
        return case_of(name, bilstm, tasks, 100, members, device, steps=steps, usual=usual)

    if device == "cpu":
        return [
            perceptron(64, 32, (64,), device, 100),
            perceptron(32, 8, (64,), device, 100),
            perceptron(256, 128, (8,), device, 100),
            windows(100, (8,), 3, 30),
            case_of(filters, convolution, text_task(100), 32, (4,), device, steps=3, usual=20),
        ]
    many = (512, 256) if quick else (1024, 512, 256)
    return [
        perceptron(64, 32, (1024, 256), device, 1000),
        windows(100, many, 60, 100),
        windows(300, many, 60, 100),
        case_of(filters, convolution, text_task(100), 32, (256,), device, steps=20),
    ]


def fleet_of(case: Case, members: int) -> StackedModels:
    nothing: Any = SimpleNamespace(resumed=None)  # a record that there is none of
    runs = [replace(case.run, seed=seed) for seed in range(members)]
    return StackedModels([Member.of(n, run, case.tasks, nothing) for n, run in enumerate(runs)])


def model_seconds(fleet: StackedModels, case: Case, rounds: int) -> tuple[float, bool]:
    """Of one model's step, and whether steps were replayed as a CUDA graph."""
    stepper = Stepper(fleet)

    def advance(steps: int) -> None:
        while steps:
            steps -= len(stepper.advance(steps)[0])

    seconds = seconds_a_step(advance, case.steps, rounds=rounds, device=case.run.device)
    return seconds / len(fleet.members), stepper.replays


def measure_case(case: Case, rounds: int) -> list[dict[str, Any]]:
    device = case.run.device
    usual, peer_name = usual_seconds(case.run, case.tasks, case.usual, rounds)
    fleet = fleet_of(case, max(case.members))
    rows = []
    for members in case.members:
        fleet.keep(list(range(members)))
        each, replayed = model_seconds(fleet, case, rounds)
        graph = "" if device == "cpu" else " (CUDA graph)" if replayed else " (no CUDA graph)"
        name = f"{members} {case.name}{graph}"
        rows.append(row(name, 1 / each, 1 / usual, peer_name, "model-steps/s"))
    if device != "cpu":
        with tf32():
            each, _ = model_seconds(fleet, case, rounds)
        name = f"{len(fleet.members)} {case.name}, products in TF32, if allowed"
        rows.append(row(name, 1 / each, 1 / usual, peer_name, "model-steps/s"))
    return rows


@contextmanager
def tf32() -> Iterator[None]:
    """What a user may allow; the fleet never does by itself."""
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


DIGITS = {"tasks": ("ten_digits", "parity", "half"), "steps": 200, "evaluate_every": 100}


def both_ways(run: Run, members: int, alone: int) -> tuple[float, float]:
    """Seconds of a model's step in a fleet and one by one, with evaluation and records."""
    build(run)  # the tasks are read before the clock starts
    clock, seconds = clock_of(run.device), []
    for executor, count in ((Fleet(workers=1), members), (Here(workers=1), alone)):
        runs = [replace(run, seed=seed) for seed in range(count)]
        with tempfile.TemporaryDirectory() as folder:
            begin = clock()
            results = executor.run(runs, Study(folder))
            seconds.append((clock() - begin) / count / run.steps)
        assert all(result.outcome == "finished" for result in results), results[0].error
    return seconds[0], seconds[1]


def end_to_end(device: str, quick: bool) -> list[dict[str, Any]]:
    """The digits tasks, three of them every step, with evaluation and records."""
    members = 64 if quick else 256
    run = replace(run_of(Perceptron(hidden=(64, 64)), 32, device), **DIGITS)
    whole, solo = both_ways(run, members, alone=2)
    inner = Case("", run, build(run)[1], (), steps=50, usual=0)
    together = fitting(run) if device == "cpu" else members
    step, _ = model_seconds(fleet_of(inner, min(members, together)), inner, rounds=2)
    name = f"end to end: {members} perceptrons, 3 tasks a step, {run.steps} steps"
    return [
        row(name, 1 / whole, 1 / solo, "one by one, one process", "model-steps/s"),
        row(f"{name}: cost of a step", whole * 1e6, step * 1e6, "the step alone", "us"),
        *learning(run if quick else replace(run, steps=1000, evaluate_every=250)),
    ]


def learning(run: Run) -> list[dict[str, Any]]:
    """The same for runs that learn from their losses while they train."""
    cases: dict[str, dict[str, Any]] = {
        "the adviser's uniform runs, with a reward": {"weighting": None, "reward": HardProgress()},
        "a reward that draws": {
            "weighting": None,
            "reward": QuantileScaled(reward=HardProgress(), reservoir=2),
        },
        "GroupDRO, for all members at once": {"weighting": GroupDRO()},
        "BanditMTL, member by member": {"weighting": BanditMTL()},
        "Uncertainty, member by member": {"weighting": Uncertainty()},
    }
    rows = []
    for name, changes in cases.items():
        whole, solo = both_ways(replace(run, **changes), 12, alone=2)
        peer, unit = "one by one, one process", "model-steps/s"
        name = f"end to end: 12 perceptrons, {name}, {run.steps} steps"
        rows.append(row(name, 1 / whole, 1 / solo, peer, unit))
    return rows


def measure(quick: bool, device: str) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    rounds = 2 if quick else 4
    rows = [found for case in cases(device, quick) for found in measure_case(case, rounds)]
    return rows + end_to_end(device, quick)


if __name__ == "__main__":
    report("fleet", measure, __doc__ or "", device=True)
