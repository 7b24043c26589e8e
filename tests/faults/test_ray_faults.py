"""Workers, raylet, machines and drivers of a Ray cluster that are killed at random moments.

Afterwards no finished run is lost, none is there twice, every file can be read, and every result is
that of a run nobody disturbed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import ray
import torch

from taskmix.engine import Here, Observers, Progress, Ray
from taskmix.records import Study

SCRIPT = Path(__file__).with_name("ray_driver.py")
DRIVER = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
RUNS = DRIVER.RUNS


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """What nobody disturbed."""
    torch.set_num_threads(1)
    study = Study(tmp_path_factory.mktemp("whole"))
    Here(workers=1).run(RUNS, study)
    return study


def drive(study: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(study)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def wait_for_a_checkpoint(driver: subprocess.Popen[str], study: Path) -> None:
    while not any(summary.step > 0 for summary in Study(study).summaries(note=lambda word: None)):
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.02)


MOMENTS = [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 19))]


def family(process: int, name: str) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(process).children(recursive=True):
        try:
            if child.name().startswith(name):
                found.append(child)
        except psutil.Error:
            continue
    return found


def ended(driver: subprocess.Popen[str]) -> list[tuple[str, str | None]]:
    printed, said = driver.communicate(timeout=250)
    assert driver.returncode == 0, said
    results: list[tuple[str, str | None]] = json.loads(printed)
    return results


def must_be_whole(study: Path, whole: Study) -> None:
    names = {folder.name for folder in whole.runs()}
    assert {folder.name for folder in Study(study).runs()} == names
    assert {path.name for path in study.iterdir() if not path.name.startswith(".")} == names
    for run in RUNS:
        one, two = (each.run(run.specification()) for each in (whole, Study(study)))
        first, second = (folder.steps().drop_columns(["seconds"]) for folder in (one, two))
        assert first.equals(second)
        assert one.scores().equals(two.scores())
        before, after = one.best(), two.best()
        assert isinstance(before, dict)
        assert isinstance(after, dict)
        assert all(torch.equal(before[name], after[name]) for name in before)
        told, found = one.summary(), two.summary()
        assert told is not None
        assert found is not None
        assert (found.status, found.scores) == ("finished", told.scores)


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_workers_and_the_raylet_are_killed_and_every_run_is_done(
    tmp_path: Path, whole: Study, moment: int
) -> None:
    chance, kills = random.Random(moment), 0
    driver = drive(tmp_path)
    wait_for_a_checkpoint(driver, tmp_path)
    for _ in range(2):
        workers = family(driver.pid, "ray::do_job")
        if workers:
            chance.choice(workers).kill()
            kills += 1
        time.sleep(chance.uniform(0.1, 0.6))
    raylets = family(driver.pid, "raylet")
    raylets[0].kill()
    results = ended(driver)
    assert kills
    assert results == [["finished", None]] * len(RUNS)
    must_be_whole(tmp_path, whole)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_driver_is_killed_and_the_next_one_goes_on(
    tmp_path: Path, whole: Study, moment: int
) -> None:
    chance = random.Random(moment)
    driver = drive(tmp_path)
    wait_for_a_checkpoint(driver, tmp_path)
    time.sleep(chance.uniform(0.0, 0.8))
    orphans = psutil.Process(driver.pid).children(recursive=True)
    workers = family(driver.pid, "ray::do_job")
    driver.kill()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive, "who outlives the driver would keep its locks"
    for orphan in orphans:  # Ray's own helpers, which take their time to notice
        with contextlib.suppress(psutil.Error):
            orphan.kill()
    driver.communicate()
    study = Study(tmp_path)
    for folder in study.runs():  # readable at every moment
        folder.steps()
        folder.scores()
        folder.checkpoint()
    finished = {
        folder: (folder.path / "run.json").read_bytes()
        for folder in study.runs()
        if folder.is_finished
    }
    outcomes = [outcome for outcome, _ in ended(drive(tmp_path))]
    assert outcomes.count("already finished") == len(finished)
    assert set(outcomes) <= {"finished", "already finished"}
    assert all((f.path / "run.json").read_bytes() == text for f, text in finished.items())
    must_be_whole(tmp_path, whole)


@pytest.fixture
def machines() -> Iterator[tuple[ray.cluster_utils.Cluster, list[object]]]:
    """A cluster of three machines, as far as Ray can tell; the first only has the driver."""
    from ray.cluster_utils import Cluster

    memory = 100 << 20
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [made.add_node(num_cpus=1, object_store_memory=memory) for _ in range(2)]
    ray.init(address=made.address, log_to_driver=False)
    yield made, nodes
    ray.shutdown()
    made.shutdown()


@pytest.mark.slow
def test_a_machine_is_lost_and_its_runs_go_on_from_what_was_sent_home(
    tmp_path: Path,
    whole: Study,
    machines: tuple[ray.cluster_utils.Cluster, list[object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, nodes = machines
    monkeypatch.setattr("taskmix.engine._ray._sender.SEND_EVERY", 0.2)
    study, lost = Study(tmp_path / "study"), threading.Event()
    begun: list[int] = []

    def tell(progress: Progress) -> None:
        if not lost.is_set() and any(folder.checkpoint() for folder in study.runs()):
            lost.set()
            begun.extend(summary.step for summary in study.summaries())
            made.remove_node(nodes[0], allow_graceful=False)

    results = Ray(shared_disk=False, observers=Observers.telling(tell)).run(RUNS, study)
    assert lost.is_set()
    assert max(begun) > 0, "records of unfinished runs were sent home"
    assert {result.outcome for result in results} == {"finished"}
    must_be_whole(study.path, whole)
