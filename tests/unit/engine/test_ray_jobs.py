"""How runs become jobs, without a cluster."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.engine import DigitsSource, Run
from taskmix.engine._apart import put_together, take_apart
from taskmix.engine._ray import _cluster, _jobs
from taskmix.engine._ray._cluster import Places
from taskmix.engine._ray._jobs import Job, Queue
from taskmix.errors import InputError, MissingExtraError, OptionError
from taskmix.models import Perceptron
from taskmix.policies import Exp3
from taskmix.tasks import digits_tasks

RUN = Run(
    label="toy", source=DigitsSource(), architecture=Perceptron(hidden=(8,)), steps=10, seed=0
)


def runs(count: int) -> Iterator[Run]:
    return (replace(RUN, seed=seed) for seed in range(count))


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


def test_short_runs_share_a_job_and_long_ones_do_not() -> None:
    def first_job(seconds: float) -> int:
        queue = Queue(runs(1000), lambda number, run: False)
        queue.took(seconds)
        job = queue.next_job(Places(2, 0), cores=1, gpus=0)
        assert job is not None
        return len(job.runs)

    assert first_job(0.1) == 20  # twenty of a tenth of a second are two seconds
    assert first_job(1.5) == 1
    assert first_job(0.0) == 64


def test_the_last_runs_are_shared_out_among_the_cores() -> None:
    queue = Queue(runs(16), lambda number, run: False)
    queue.took(0.001)
    sizes = [len(job.runs) for job in all_jobs(queue, Places(4, 0))]
    assert max(sizes) == 2
    assert sum(sizes) == 16


def test_runs_on_a_gpu_become_one_fleet_for_each_gpu() -> None:
    plain = [replace(RUN, seed=seed, device="cuda:1") for seed in range(10)]
    adaptive = replace(RUN, device="cuda", policy=Exp3(exploration=0.1))
    queue = Queue([*plain, adaptive], lambda number, run: False)
    jobs = all_jobs(queue, Places(8, 2))
    assert [len(job.runs) for job in jobs] == [5, 5, 1]
    assert all(job.on_gpu for job in jobs)
    assert {run.device for job in jobs for run in job.runs} == {"cuda"}


def test_a_queue_draws_no_more_than_a_window() -> None:
    drawn = 0

    def endless() -> Iterator[Run]:
        nonlocal drawn
        while True:
            drawn += 1
            yield replace(RUN, seed=drawn)

    queue = Queue(endless(), lambda number, run: False)
    for _ in range(10):
        assert queue.next_job(Places(2, 0), cores=1, gpus=0) is not None
    assert drawn <= _jobs.WINDOW + 1


def test_another_attempt_comes_after_a_while_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(_jobs.time, "monotonic", lambda: now)
    queue = Queue(runs(0), lambda number, run: False)
    job = Job((4,), (RUN,), on_gpu=False).later(died=True).later()
    assert (job.attempt, job.deaths) == (2, 1)
    queue.put_back(job)
    assert not queue.is_empty
    assert queue.next_job(Places(1, 0), cores=1, gpus=0) is None
    now += 2 * _jobs.FIRST_PAUSE
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


def test_tasks_that_were_taken_apart_are_the_same_tasks() -> None:
    tasks = digits_tasks()
    again = put_together(take_apart(tasks))
    assert again.content == tasks.content
    assert again.names == tasks.names
    assert type(again)(again.tasks).content == tasks.content  # hashed anew
    inputs = {id(task.splits["train"].inputs) for task in again}
    assert len(inputs) == len({id(task.splits["train"].inputs) for task in tasks})


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'taskmix\[cluster\]'"):
        _cluster.import_ray()


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


def test_an_address_where_nobody_listens_is_told_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(InputError, match=rf"should answer at 127.0.0.1:{port}"):
        _cluster.Cluster(f"127.0.0.1:{port}", None).connect()
