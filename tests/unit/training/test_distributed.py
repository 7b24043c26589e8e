"""Two processes (gloo) that train one model are one process with the whole batch."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

from taskmix.engine import (
    Optimization,
    Run,
    _distributed,
    execute,
    launched_processes,
)
from taskmix.errors import RecordError, TaskmixError
from taskmix.models import HardSharing, Perceptron
from taskmix.policies import Exp3, PredictionGain
from taskmix.records import RunFolder, Study
from taskmix.tasks import MISSING, Split, Task, TaskSet
from taskmix.training import CheckpointEvent, DistributedRanks
from taskmix.weighting import (
    DBMTL,
    FAMO,
    MGDAUB,
    Equal,
    GradNorm,
    PCGrad,
)

PROCESSES = 2


@dataclass(frozen=True)
class Toys:
    """Classes, numbers and label sets of the same rows, some missing, and a task of a single row.

    So many label sets are missing that whole batches have none.
    """

    def load(self) -> TaskSet:
        generator = np.random.default_rng(5)
        tasks = []
        inputs = {name: self._table(generator, 30) for name in ("train", "dev", "test")}
        kinds = ("classification", "regression", "multilabel")
        for name, kind in zip(("colour", "weight", "signs"), kinds, strict=True):
            splits = {}
            for split, table in inputs.items():
                targets: Any = generator.integers(0, 3, 30)
                if kind == "regression":
                    targets = generator.normal(5.0, 2.0, 30)
                    targets[:11] = np.nan
                elif kind == "multilabel":
                    targets = generator.integers(0, 2, (30, 3)).astype(np.int8)
                    targets[6:, 0] = targets[4:] = MISSING
                else:
                    targets[4:15] = MISSING
                splits[split] = Split(table, targets)
            tasks.append(self._task(name, kind, "rows", splits))
        few = {name: Split(self._table(generator, 1), np.array([1])) for name in inputs}
        tasks.append(self._task("few", "classification", "few", few))
        return TaskSet(tuple(tasks))

    def _table(self, generator: np.random.Generator, rows: int) -> pa.Table:
        return pa.table({f"x{place}": generator.normal(size=rows) for place in range(4)})

    def _task(self, name: str, kind: Any, source: str, splits: dict[str, Split]) -> Task:
        classes = kind != "regression"
        metric = "micro_f1" if kind == "multilabel" else "accuracy" if classes else "rmse"
        return Task(
            name=name,
            kind=kind,
            inputs="table",
            labels=("a", "b", "c") if classes else (),
            metric=metric,
            source=source,
            splits=splits,
        )


RUN = Run(
    label="toy",
    source=Toys(),
    architecture=Perceptron(hidden=(6,), dropout=0.0),
    # Adam makes much of gradients that are 0 but for the last bits; SGD does not.
    optimization=Optimization(optimizer="sgd", learning_rate=0.05),
    steps=12,
    batch_size=7,
    evaluate_every=5,
    checkpoint_every=3,
    seed=2,
)
CASES = {
    "uniform": RUN,
    "clipped": replace(RUN, clip_norm=0.1, patience=2),
    "exp3": replace(RUN, policy=Exp3(exploration=0.2), reward=PredictionGain()),
}
for method in (
    Equal(),
    FAMO(),
    PCGrad(),
    GradNorm(),
    MGDAUB(),
    DBMTL(),
):
    CASES[type(method).__name__] = replace(RUN, weighting=method)
STOPPED = replace(RUN, label="stopped", steps=20)
BROKEN = replace(RUN, label="broken", seed=RUN.seed + 1)
FULL = replace(RUN, label="full", seed=RUN.seed + 2)


def work(rank: int, port: int, folder: str) -> None:
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    distributed.init_process_group("gloo", address, rank=rank, world_size=PROCESSES)
    ranks, study = DistributedRanks(), Study(folder)
    told: dict[str, Any] = {}
    for name, run in CASES.items():
        told[name] = _distributed._execute_together(run, study, ranks).outcome
    told["again"] = _distributed._execute_together(RUN, study, ranks).outcome

    asked = 0

    def should_stop() -> bool:  # only the second process is asked to
        nonlocal asked
        asked += 1
        return rank == 1 and asked == 5

    told["stopped"] = _distributed._execute_together(
        STOPPED, study, ranks, should_stop=should_stop
    ).outcome
    told["asked"] = asked
    told["resumed"] = _distributed._execute_together(STOPPED, study, ranks).outcome
    told["broken"] = words_of(lambda: break_down(rank, study, ranks))
    told["full"] = words_of(lambda: fill_disk(study, ranks))
    Path(folder, f"{rank}.json").write_text(json.dumps(told))
    distributed.destroy_process_group()


def words_of(call: Any) -> str:
    try:
        call()
    except (TaskmixError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def break_down(rank: int, study: Study, ranks: DistributedRanks) -> None:
    """The second process has no room at its fifth step."""
    forward, calls = HardSharing.forward, 0

    def fail(self: HardSharing, batch: Any, task: int) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if rank == 1 and calls == 5:
            raise MemoryError("no room")
        return forward(self, batch, task)

    HardSharing.forward = fail  # type: ignore[method-assign]
    try:
        _distributed._execute_together(BROKEN, study, ranks)
    finally:
        HardSharing.forward = forward  # type: ignore[method-assign]


def fill_disk(study: Study, ranks: DistributedRanks) -> None:
    """The first process cannot write its second checkpoint."""
    write = _distributed.record_event

    def fail(writer: Any, event: Any) -> None:
        if isinstance(event, CheckpointEvent) and event.step == 6:
            raise RecordError("The disk is full.")
        write(writer, event)

    _distributed.record_event = fail  # type: ignore[attr-defined]
    try:
        _distributed._execute_together(FULL, study, ranks)
    finally:
        _distributed.record_event = write  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("together")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    multiprocessing.spawn(work, (port, str(folder)), nprocs=PROCESSES)
    told = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(PROCESSES)]
    return Study(folder), told


def must_be_alike(found: RunFolder, wanted: RunFolder, tolerance: float = 2e-5) -> None:
    steps, expected = found.steps(), wanted.steps()
    for name in ("step", "task", "examples"):
        assert steps[name].equals(expected[name]), name
    for name in ("loss", "loss_after", "probability", "reward", "weight"):
        np.testing.assert_allclose(
            steps[name].to_numpy().astype(float),
            expected[name].to_numpy().astype(float),
            rtol=tolerance,
            atol=tolerance,
            err_msg=name,
        )
    scores, measured = found.scores(), wanted.scores()
    assert scores.drop_columns(["value"]).equals(measured.drop_columns(["value"]))
    np.testing.assert_allclose(scores["value"], measured["value"], rtol=tolerance, atol=tolerance)
    trained, alone = found.best(), wanted.best()
    assert isinstance(trained, dict)
    assert isinstance(alone, dict)
    for name, value in alone.items():
        torch.testing.assert_close(trained[name], value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", list(CASES))
def test_two_processes_give_what_one_gives_with_the_whole_batch(
    together: tuple[Study, list[dict[str, Any]]], tmp_path: Path, name: str
) -> None:
    study, told = together
    run = CASES[name]
    assert {each[name] for each in told} == {"finished"}
    torch.set_num_threads(1)
    execute(run, Study(tmp_path))
    folders = [each.run(run.specification()) for each in (study, Study(tmp_path))]
    must_be_alike(*folders)


def test_a_finished_run_is_told_in_every_process(
    together: tuple[Study, list[dict[str, Any]]],
) -> None:
    assert {each["again"] for each in together[1]} == {"already finished"}


def test_a_stop_that_one_process_hears_of_stops_all_at_one_step_and_the_run_goes_on(
    together: tuple[Study, list[dict[str, Any]]], tmp_path: Path
) -> None:
    study, told = together
    assert [each["stopped"] for each in told] == ["stopped"] * PROCESSES
    assert [each["asked"] for each in told] == [5] * PROCESSES
    assert [each["resumed"] for each in told] == ["finished"] * PROCESSES
    torch.set_num_threads(1)
    execute(STOPPED, Study(tmp_path))
    must_be_alike(*(each.run(STOPPED.specification()) for each in (study, Study(tmp_path))))


def test_what_fails_in_one_process_ends_all_with_its_words(
    together: tuple[Study, list[dict[str, Any]]],
) -> None:
    study, (first, second) = together
    assert second["broken"] == "MemoryError: no room"
    assert first["broken"] == "OtherRankError: Rank 1 of 2 failed. MemoryError: no room"
    summary = study.run(BROKEN.specification()).summary()
    assert summary is not None
    assert summary.status == "failed"
    assert "no room" in (summary.error or "")
    assert first["full"] == "RecordError: The disk is full."
    assert second["full"] == "OtherRankError: Rank 0 of 2 failed. RecordError: The disk is full."


def test_one_process_without_a_launcher_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert launched_processes() == 1
    monkeypatch.setenv("WORLD_SIZE", "4")
    for name in _distributed.NEEDED:
        monkeypatch.delenv(name, raising=False)
    assert launched_processes() == 1, "some other tool's variable"
    for name in _distributed.NEEDED:
        monkeypatch.setenv(name, "1")
    assert launched_processes() == 4


LAUNCHERS = {
    "torchrun": ["torch.distributed.run", "--nproc-per-node", "2", "-m"],
    "accelerate": ["accelerate.commands.launch", "--cpu", "--num_processes", "2", "-m"],
}


def launch(launcher: str, out: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", *LAUNCHERS[launcher], "taskmix", "train", "digits"]
    command += ["--device", "cpu", "--out", str(out), "--json", *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("launcher", list(LAUNCHERS))
def test_the_command_under_a_launcher_writes_one_record(tmp_path: Path, launcher: str) -> None:
    process = launch(launcher, tmp_path / "study", "--steps", "30", "--seeds", "2")
    printed, said = process.communicate(timeout=200)
    assert process.returncode == 0, said
    document = json.loads(printed)  # printed once
    assert [run["outcome"] for run in document["runs"]] == ["finished"] * 2
    assert len(list(Study(tmp_path / "study").runs())) == 2


@pytest.mark.slow
def test_an_interrupt_under_torchrun_leaves_a_checkpoint(tmp_path: Path) -> None:
    process = launch("torchrun", tmp_path, "--steps", "1000000", "--checkpoint-every", "1000000")
    run = None
    while process.poll() is None and run is None:
        time.sleep(0.2)
        run = next(Study(tmp_path).runs(), None)
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=100)
    assert run is not None
    summary = run.summary()
    assert summary is not None
    assert summary.status == "stopped"
    assert 0 < summary.step < 1_000_000
