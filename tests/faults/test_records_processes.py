"""Runs that are killed for real, and processes that share a study."""

from __future__ import annotations

import multiprocessing
import os
import random
import runpy
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from taskmix.records import RunFolder, Study

SCRIPT = Path(__file__).with_name("records_toy.py")
TOY = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
SIZE = {"steps": 40, "every": 4}


def process(study: Path, numbers: list[int], log: Path) -> BaseProcess:
    """A process of its own, forked from a clean server that has torch imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "safetensors.torch", "taskmix.records"])
    begun = context.Process(target=work, args=(str(SCRIPT), str(study), numbers, str(log)))
    begun.start()
    return begun


def work(script: str, study: str, numbers: list[int], log: str) -> None:
    run_toy = runpy.run_path(script)["toy"]
    Path(f"{log}-begun").touch()
    for number in numbers:
        outcome = run_toy(study, number, pause=0.002, **SIZE)
        with Path(log).open("a") as file:
            file.write(f"{number} {outcome}\n")


def folder_of(study: Path, number: int) -> RunFolder:
    return Study(study).run(TOY.specification(number, **SIZE))


def whole(folder: Path, number: int) -> dict[str, Any]:
    TOY.toy(folder / "whole", number, **SIZE)
    return dict(TOY.outcome(folder_of(folder / "whole", number)))


def test_processes_that_share_a_study_do_every_run_once(tmp_path: Path) -> None:
    numbers = list(range(20))
    workers = []
    for seed in range(4):
        order = random.Random(seed // 2).sample(numbers, len(numbers))  # two pairs start alike
        workers.append(process(tmp_path / "study", order, tmp_path / f"log-{seed}"))
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    lines = [line for log in tmp_path.glob("log-*") for line in log.read_text().splitlines()]
    done = sorted(int(line.split()[0]) for line in lines if line.endswith("claimed"))
    assert done == numbers
    assert {line.split()[1] for line in lines} <= {"claimed", "finished", "busy"}
    study = Study(tmp_path / "study")
    assert len(list(study.runs())) == len(numbers)
    assert study.scores().num_rows == len(numbers)
    for number in numbers[::5]:
        folder = folder_of(tmp_path / "study", number)
        assert TOY.outcome(folder) == whole(tmp_path, number)


def test_processes_killed_while_they_share_a_study_leave_it_to_be_finished(tmp_path: Path) -> None:
    chance, numbers = random.Random(2), list(range(6))
    study = tmp_path / "study"
    for _ in range(4):
        workers = [
            process(study, chance.sample(numbers, len(numbers)), tmp_path / "log") for _ in range(3)
        ]
        time.sleep(chance.uniform(0.2, 0.6))
        for worker in workers:
            worker.kill()
            worker.join()
    work(str(SCRIPT), str(study), numbers, str(tmp_path / "log"))
    for number in numbers:
        assert TOY.outcome(folder_of(study, number)) == whole(tmp_path, number)


def test_a_reader_sees_every_row_once_while_the_writer_commits_and_merges(tmp_path: Path) -> None:
    undisturbed = whole(tmp_path, 3)
    folder = folder_of(tmp_path / "study", 3)
    worker = process(tmp_path / "study", [3], tmp_path / "log")
    looks = 0
    while worker.is_alive():
        TOY.comparable(folder.steps())
        assert len(folder.probabilities()) in {0, *range(4, 41, 4)}
        steps = folder.steps(["step"])["step"].to_pylist()
        assert steps == list(range(1, len(steps) + 1))
        scores = folder.scores().to_pylist()
        assert scores == undisturbed["scores"][: len(scores)]
        looks += 1
    assert worker.exitcode == 0
    assert looks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_worker_that_outlives_its_parent_does_not_keep_the_lock(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 0)
    ear, mouth = os.pipe()
    with folder.claim() as claim:
        assert claim.outcome == "claimed"
        child = os.fork()
        if child == 0:
            os.write(mouth, b"!")
            time.sleep(20)
            os._exit(0)
        os.read(ear, 1)
    # Here the parent has let go, as the kernel does for a killed one, and the child is alive.
    with folder.claim() as claim:
        assert claim.outcome == "claimed"
    os.kill(child, 9)
    os.waitpid(child, 0)
