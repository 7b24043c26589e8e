"""Runs on a local Ray cluster, which all tests here share: it takes seconds to start."""

from __future__ import annotations

import os
import signal
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
import ray
import torch
from hypothesis import given
from hypothesis import strategies as st

from taskmix.engine import (
    DigitsSource,
    Executed,
    Here,
    Observers,
    Progress,
    Ray,
    Run,
    cluster,
)
from taskmix.engine._apart import take_apart
from taskmix.engine._ray import _cluster, _sender
from taskmix.engine._ray._cluster import Places
from taskmix.engine._ray._sender import Job, Queue
from taskmix.engine._ray._work import Done, do_job
from taskmix.errors import InputError, OptionError, RecordError
from taskmix.models import HardSharing, Perceptron
from taskmix.policies import Exp3, SizeProportional
from taskmix.records import Study, pack_run, unpack_run
from taskmix.tasks import EncodedTasks
from taskmix.weighting import BanditMTL

RUN = Run(
    label="proportional",
    source=DigitsSource(),
    architecture=Perceptron(hidden=(8,), dropout=0.2),
    policy=SizeProportional(),
    steps=24,
    evaluate_every=8,
    checkpoint_every=4,
    seed=0,
)
JOB_RUN = replace(RUN, policy=None, steps=10, evaluate_every=None, checkpoint_every=None)
RUNS = [*(replace(RUN, seed=seed) for seed in range(4)), replace(RUN, tasks=("parity", "half"))]
RUNS.append(replace(RUN, policy=None, weighting=BanditMTL(), label="bandit"))


@pytest.fixture(scope="module", autouse=True)
def _local_cluster(ray_cluster: None) -> Iterator[None]:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Study:
    torch.set_num_threads(1)
    study = Study(tmp_path_factory.mktemp("here"))
    Here(workers=1).run(RUNS, study)
    return study


def must_be_the_same(first: Study, second: Study, runs: list[Run] = RUNS) -> None:
    """The same files, and the same bits in all but the seconds."""
    assert {path.name for path in first.path.iterdir()} >= {p.name for p in second.path.iterdir()}
    for run in runs:
        one, two = (study.run(run.specification()) for study in (first, second))
        assert pack_run(one).keys() == pack_run(two).keys()
        assert one.steps().drop_columns(["seconds"]).equals(two.steps().drop_columns(["seconds"]))
        assert one.scores().equals(two.scores())
        before, after = one.best(), two.best()
        assert isinstance(before, dict)
        assert isinstance(after, dict)
        assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("shared_disk", [None, False], ids=["shared disk", "by post"])
def test_a_run_has_the_bits_it_has_here(
    tmp_path: Path, here: Study, shared_disk: bool | None
) -> None:
    told: list[Progress] = []
    study = Study(tmp_path / "study")
    results = Ray(shared_disk=shared_disk, observers=Observers.telling(told.append)).run(
        RUNS, study
    )
    assert [result.outcome for result in results] == ["finished"] * len(RUNS)
    assert [result.summary and result.summary.seed for result in results] == [
        run.seed for run in RUNS
    ]
    must_be_the_same(here, study)
    done = [progress.run for progress in told if progress.done]
    assert sorted(done) == list(range(len(RUNS)))
    again = Ray(observers=Observers.telling(told.append)).run(RUNS, study)
    assert {result.outcome for result in again} == {"already finished"}


@pytest.mark.parametrize("shared_disk", [None, False], ids=["shared disk", "by post"])
def test_a_lean_study_stays_lean(tmp_path: Path, here: Study, shared_disk: bool | None) -> None:
    study = Study(tmp_path, lean=True)
    Ray(shared_disk=shared_disk).run(RUNS[:2], study)
    for run in RUNS[:2]:
        folder = study.run(run.specification())
        files = {path.name for path in folder.path.rglob("*") if path.is_file()}
        assert files - {".lock"} == {"run.json"}
        expected = here.run(run.specification()).summary()
        assert (found := folder.summary()) is not None
        assert expected is not None
        assert found.scores == expected.scores


def test_a_store_takes_labels_that_come_later(tmp_path: Path) -> None:
    store, first = "memory://bucket/labels", Study(tmp_path / "first")
    Ray(store=store).run([RUN], first)
    Ray(store=store).run([replace(RUN, label="other")], first)
    Ray(store=store).run([RUN], Study(tmp_path / "second"))
    (summary,) = Study(tmp_path / "second").summaries()
    assert summary.labels == (RUN.label, "other")


@dataclass(frozen=True, kw_only=True)
class Deadly(Perceptron):
    """A perceptron that kills its process the first times it is built on a worker."""

    folder: str = ""
    times: int = 1

    def build(self, tasks: EncodedTasks) -> HardSharing:
        deaths = len(list(Path(self.folder).iterdir()))
        if deaths < self.times:
            Path(self.folder, str(deaths)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().build(tasks)


def test_a_worker_that_dies_is_tried_again_and_at_last_told(tmp_path: Path) -> None:
    folders = [tmp_path / "once", tmp_path / "always"]
    for folder in folders:
        folder.mkdir()
    deadly = [
        replace(RUN, architecture=Deadly(hidden=(8,), folder=str(folder), times=times))
        for folder, times in zip(folders, (1, 99), strict=True)
    ]
    study = Study(tmp_path / "study")
    results = Ray().run([*deadly, *RUNS], study)
    assert results[0].outcome == "finished"
    assert results[1].outcome == "failed"
    assert "failed 3 times" in (results[1].error or "")
    assert len(list(folders[1].iterdir())) == 3
    assert {result.outcome for result in results[2:]} == {"finished"}


@pytest.mark.parametrize("shared_disk", [True, False], ids=["shared disk", "by post"])
def test_a_worker_with_a_gpu_trains_its_runs_as_a_fleet(tmp_path: Path, shared_disk: bool) -> None:
    study = Study(tmp_path)
    sender = _sender.Sender(study, workers=None, shared_disk=shared_disk)
    plain = [replace(RUN, policy=None, seed=seed) for seed in range(3)]
    tasks = ray.put(take_apart(RUN.load()))
    # On the CPU of this cluster: what a GPU's worker does but for the device.
    done = ray.get(
        ray.remote(do_job).remote(
            (7, 9, 8),
            plain,
            True,
            sender._common,
            sender.ear.post,
            [(RUN.source, tasks)],
            {},
        )
    )
    told, files = sender.ear.hear(stop=False, now=True)
    sender.close()
    assert [each.number for each in done] == [7, 9, 8]
    assert {each.executed.outcome for each in done} == {"finished"}
    assert {progress.run for progress in told} <= {7, 8, 9}
    assert set(files) == (set() if shared_disk else {7, 8, 9})
    for number, run in zip((7, 9, 8), plain, strict=True):
        folder = study.run(run.specification())
        if not shared_disk:
            assert unpack_run(folder, files[number])
        assert folder.is_finished


def test_what_the_user_must_mend_stops_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="batch_size"):
        Ray().run([replace(RUN, batch_size=0), *RUNS], Study(tmp_path / "study"))
    with pytest.raises(OptionError, match="should have GPUs"):
        Ray().run([replace(RUN, device="cuda")], Study(tmp_path / "study"))
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="folder for the study"):
        Ray().run([RUN], Study(tmp_path / "file"))
    assert not list(tmp_path.glob("study/.cluster-*"))


def test_finished_runs_are_copied_to_a_store_and_taken_from_there(
    tmp_path: Path, here: Study
) -> None:
    store, runs = "memory://bucket/study", RUNS[:3]
    Ray(store=store).run(runs[:2], Study(tmp_path / "first"))
    results = Ray(store=store, shared_disk=False).run(runs, Study(tmp_path / "second"))
    assert [result.outcome for result in results] == [*["already finished"] * 2, "finished"]
    must_be_the_same(here, Study(tmp_path / "second"), runs)
    files = fsspec.filesystem("memory")
    folder = Study(tmp_path / "first").run(runs[0].specification())
    assert (
        files.cat(f"/bucket/study/{folder.name}/run.json")
        == (folder.path / "run.json").read_bytes()
    )
    files.pipe(f"/bucket/study/{folder.name}/run.json", b"{")  # a copy that broke
    third = Ray(store=store).run(runs, Study(tmp_path / "third"))
    assert [result.outcome for result in third] == ["finished", *["already finished"] * 2]
    must_be_the_same(here, Study(tmp_path / "third"), runs)
    with pytest.raises(OptionError, match="fsspec can open"):
        Ray(store="nosuch://bucket").run(runs, Study(tmp_path / "third"))


def no_work(numbers: list[int], *rest: Any) -> list[Done]:
    finished = Executed(outcome="finished", summary=None)
    return [Done(number=number, executed=finished) for number in numbers]


def test_many_runs_take_the_driver_no_more_memory_than_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sender, "do_job", no_work)

    def peak(count: int) -> int:
        seen = 0
        tracemalloc.start()
        for number, result in Ray().stream(
            (replace(RUN, seed=seed) for seed in range(count)), Study(tmp_path)
        ):
            seen += number >= 0 and result.outcome == "finished"
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seen == count
        return most

    peak(100)  # what is loaded once
    few, many = peak(1000), peak(8000)
    assert many < 1.5 * few + (1 << 20), (few, many)


def test_a_cluster_within_a_cluster_is_the_same_one() -> None:
    before = ray.get_runtime_context().get_node_id()
    with cluster("10.0.0.1:1", workers=1):
        assert ray.get_runtime_context().get_node_id() == before
    assert ray.is_initialized()


def runs(count: int) -> Iterator[Run]:
    return (replace(JOB_RUN, seed=seed) for seed in range(count))


def all_jobs(queue: Queue, places: Places) -> list[Job]:
    jobs = []
    while (job := queue.next_job(places, cores=places.cores, gpus=places.gpus)) is not None:
        jobs.append(job)
    return jobs


@given(count=st.integers(0, 300), cores=st.integers(1, 8), seconds=st.floats(0.0, 3.0))
def test_every_run_is_in_one_job_in_order(count: int, cores: int, seconds: float) -> None:
    queue = Queue(runs(count), lambda number, run: number % 7 == 3)
    queue.took(seconds)
    jobs = all_jobs(queue, Places(cores, 0))
    numbers = [number for job in jobs for number in job.numbers]
    assert numbers == [number for number in range(count) if number % 7 != 3]
    assert [run.seed for job in jobs for run in job.runs] == numbers
    assert queue.is_empty


def test_runs_on_a_gpu_become_one_fleet_for_each_gpu() -> None:
    plain = [replace(JOB_RUN, seed=seed, device="cuda:1") for seed in range(10)]
    adaptive = replace(JOB_RUN, device="cuda", policy=Exp3(exploration=0.1))
    queue = Queue([*plain, adaptive], lambda number, run: False)
    jobs = all_jobs(queue, Places(8, 2))
    assert [len(job.runs) for job in jobs] == [5, 5, 1]
    assert all(job.on_gpu for job in jobs)
    assert {run.device for job in jobs for run in job.runs} == {"cuda"}


def test_another_attempt_comes_after_a_while_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(_sender.time, "monotonic", lambda: now)
    queue = Queue(runs(0), lambda number, run: False)
    job = Job((4,), (JOB_RUN,), on_gpu=False).later(died=True).later()
    assert (job.attempt, job.deaths) == (2, 1)
    queue.put_back(job)
    assert not queue.is_empty
    assert queue.next_job(Places(1, 0), cores=1, gpus=0) is None
    now += 2 * _sender.FIRST_PAUSE
    assert queue.next_job(Places(1, 0), cores=1, gpus=0) == job
    assert queue.is_empty


def test_a_fleet_is_tried_again_whole_and_other_runs_one_by_one() -> None:
    runs_of_job = tuple(runs(3))
    for on_gpu, sizes in ((True, [3]), (False, [1, 1, 1])):
        queue = Queue(runs(0), lambda number, run: False)
        queue.put_back(Job((5, 6, 7), runs_of_job, on_gpu=on_gpu))
        jobs = all_jobs(queue, Places(1, 1))
        assert [len(job.runs) for job in jobs] == sizes
        assert [number for job in jobs for number in job.numbers] == [5, 6, 7]
    rest = Job((5, 6, 7), runs_of_job, on_gpu=True).only([7, 5])
    assert (rest.numbers, [run.seed for run in rest.runs]) == ((7, 5), [2, 0])


def test_a_cluster_without_gpus_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cluster, "count_places", lambda workers: Places(2, 0))
    assert _cluster.choose_cluster_device("auto") == "cpu"
    assert _cluster.choose_cluster_device("cpu") == "cpu"
    with pytest.raises(OptionError, match="should have GPUs"):
        _cluster.choose_cluster_device("cuda:1")
    with pytest.raises(OptionError, match="auto, cpu or cuda"):
        _cluster.choose_cluster_device("tpu")
    monkeypatch.setattr(_cluster, "count_places", lambda workers: Places(2, 4))
    assert _cluster.choose_cluster_device("auto") == "cuda"
    assert _cluster.choose_cluster_device("cuda:3") == "cuda"
