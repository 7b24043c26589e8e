"""A run that is killed again and again ends with the bits of one that never was."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import torch

from taskmix.engine import DigitsSource, Fleet, Observers, Progress, Run, execute
from taskmix.models import Perceptron
from taskmix.policies import SizeProportional
from taskmix.records import Study
from taskmix.training import Event, StepEvent
from taskmix.weighting import BanditMTL, Equal, ExcessMTL

KILLS = 6

POLICY = Run(
    label="killed",
    source=DigitsSource(),
    architecture=Perceptron(hidden=(16,), dropout=0.2),
    policy=SizeProportional(),
    steps=250,
    evaluate_every=20,
    checkpoint_every=7,
    seed=3,
)
WEIGHTING = replace(POLICY, policy=None, weighting=Equal(), steps=180)
BANDIT = replace(WEIGHTING, weighting=BanditMTL(smoothing=0.5))
GRADIENTS = replace(WEIGHTING, weighting=ExcessMTL(), steps=120)


def work(run: Run, path: Path, die_at: int | None, die_after: float | None) -> None:
    """Does the run, dying at a step or so many seconds after its first step, wherever that is."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, lambda number, frame: os.kill(os.getpid(), signal.SIGKILL))
    armed = False

    def listen(event: Event) -> None:
        nonlocal armed
        if die_after is not None and not armed:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, die_after)
        # Not `==`: the last death may have come after a commit and before the summary told of it.
        if die_at is not None and isinstance(event, StepEvent) and event.step >= die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    execute(run, Study(path), listener=listen)


def in_child(run: Run, path: Path, die_at: int | None, die_after: float | None) -> int:
    """The exit code of a process that does the run."""
    process = multiprocessing.get_context("fork").Process(
        target=work, args=(run, path, die_at, die_after)
    )
    process.start()
    process.join(timeout=120)
    assert process.exitcode is not None
    return process.exitcode


@pytest.mark.parametrize(
    "run",
    [POLICY, BANDIT, GRADIENTS],
    ids=["policy", "weighting of losses", "weighting of gradients"],
)
def test_a_run_killed_again_and_again_ends_with_the_same_bits(tmp_path: Path, run: Run) -> None:
    torch.set_num_threads(1)
    execute(run, Study(tmp_path / "whole"))
    chance = random.Random(0)
    reached = 0
    folder = Study(tmp_path / "killed").run(run.specification())
    for number in range(KILLS):
        # Half the deaths are at a chosen step, half at a moment that may be inside a write.
        die_at = reached + chance.randint(1, 12) if number % 2 == 0 else None
        die_after = chance.uniform(0.0005, 0.02) if number % 2 else None
        assert in_child(run, tmp_path / "killed", die_at, die_after) == -signal.SIGKILL
        summary = folder.summary()
        if summary is not None:
            assert summary.step >= reached, "what was committed stays"
            reached = summary.step
            folder.steps()  # readable at every moment
    assert in_child(run, tmp_path / "killed", None, None) == 0
    same_records(tmp_path / "whole", tmp_path / "killed", run)


def same_records(first: Path, second: Path, run: Run) -> None:
    one, two = (Study(path).run(run.specification()) for path in (first, second))
    for table in ("steps", "scores"):
        a, b = getattr(one, table)(), getattr(two, table)()
        assert without_seconds(a).equals(without_seconds(b)), table
    saved, again = one.best(), two.best()
    assert isinstance(saved, dict)
    assert isinstance(again, dict)
    assert saved.keys() == again.keys()
    assert all(torch.equal(saved[name], again[name]) for name in saved)
    before, after = one.summary(), two.summary()
    assert before is not None
    assert after is not None
    assert (before.scores, before.best_step) == (after.scores, after.best_step)


def without_seconds(table: pa.Table) -> pa.Table:
    names = [name for name in table.column_names if name != "seconds"]
    return table.select(names).combine_chunks()


def work_together(runs: list[Run], path: Path, die_after: float | None) -> None:
    """Trains the runs as a fleet, dying so many seconds after the first word of it."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, lambda number, frame: os.kill(os.getpid(), signal.SIGKILL))

    def tell(progress: Progress) -> None:
        if die_after is not None and signal.getitimer(signal.ITIMER_REAL)[0] == 0:
            signal.setitimer(signal.ITIMER_REAL, die_after)

    Fleet(workers=1, observers=Observers.telling(tell)).run(runs, Study(path))


def test_a_fleet_killed_again_and_again_ends_with_the_records_of_one_that_never_was(
    tmp_path: Path,
) -> None:
    torch.set_num_threads(1)
    subsets = [("parity", "half"), ("ten_digits",), ("remainder", "parity", "loop")]
    runs = [
        replace(base, seed=seed, tasks=tasks, steps=120, policy=None)
        for base in (WEIGHTING, POLICY)
        for seed, tasks in enumerate(subsets)
    ]
    Fleet(workers=1).run(runs, Study(tmp_path / "whole"))
    chance = random.Random(0)
    context = multiprocessing.get_context("fork")
    deaths = 0
    for number in range(9):
        die_after = chance.uniform(0.001, 0.2) if number < 8 else None
        process = context.Process(target=work_together, args=(runs, tmp_path / "killed", die_after))
        process.start()
        process.join(timeout=120)
        deaths += process.exitcode == -signal.SIGKILL
        if process.exitcode == 0:
            break
    assert deaths > 2
    for run in runs:
        one, two = (Study(tmp_path / name).run(run.specification()) for name in ("whole", "killed"))
        first, second = one.steps(), two.steps()
        assert first.drop_columns(["loss", "seconds"]) == second.drop_columns(["loss", "seconds"])
        # Members that go on from different steps train in fleets of other sizes, and sums of
        # floats come in another order.
        assert first["loss"].to_pylist() == pytest.approx(second["loss"].to_pylist(), abs=1e-4)
        summaries = [folder.summary() for folder in (one, two)]
        assert all(summary is not None for summary in summaries)
        assert len({summary.best_step for summary in summaries if summary}) == 1
