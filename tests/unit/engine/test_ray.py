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
from older import make_older, older_name

from taskmix.engine import (
    DigitsSource,
    Executed,
    Here,
    Observers,
    Optimization,
    Progress,
    Ray,
    Run,
    cluster,
    execute,
)
from taskmix.engine._apart import take_apart
from taskmix.engine._ray import _sender
from taskmix.engine._ray._work import Done, do_job
from taskmix.errors import InputError, OptionError, RecordError
from taskmix.models import HardSharing, Perceptron
from taskmix.policies import SizeProportional
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
RUNS = [*(replace(RUN, seed=seed) for seed in range(4)), replace(RUN, tasks=("parity", "half"))]
RUNS.append(replace(RUN, policy=None, weighting=BanditMTL(), label="bandit"))


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    with cluster(workers=2):
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


def test_a_run_that_is_asked_for_twice_is_done_once(tmp_path: Path) -> None:
    results = Ray().run([RUN, replace(RUN, seed=1), RUN], Study(tmp_path))
    assert [result.outcome for result in results] == ["finished"] * 3
    assert results[0] is results[2]
    assert len(list(Study(tmp_path).runs())) == 2


@pytest.mark.parametrize("shared_disk", [None, False], ids=["shared disk", "by post"])
def test_runs_that_are_equal_but_for_their_labels_are_done_once(
    tmp_path: Path, shared_disk: bool | None
) -> None:
    study, other = Study(tmp_path), replace(RUN, label="other")
    for number, result in Ray(shared_disk=shared_disk).stream([RUN, other, RUN], study):
        assert result.outcome in ("finished", "already finished")
        assert result.summary is not None
        assert result.summary.label == (other if number == 1 else RUN).label
    (summary,) = study.summaries()
    assert summary.labels == (RUN.label, "other")
    Ray(shared_disk=shared_disk).run([replace(RUN, label="third")], study)
    assert set(study.scores()["label"].to_pylist()) == {RUN.label, "other", "third"}


@pytest.mark.parametrize("shared_disk", [None, False], ids=["shared disk", "by post"])
def test_a_run_that_version_0_1_began_goes_on_in_its_own_folder(
    tmp_path: Path, here: Study, shared_disk: bool | None
) -> None:
    study = Study(tmp_path)
    steps: list[object] = []
    stop = {"listener": steps.append, "should_stop": lambda: len(steps) > 12}
    assert execute(RUNS[0], study, **stop).outcome == "stopped"  # type: ignore[arg-type]
    make_older(RUNS[0].folder(study), RUNS[0])
    other = replace(RUNS[0], label="other")
    (result,) = Ray(shared_disk=shared_disk).run([other], Study(tmp_path))
    assert result.outcome == "finished"
    assert [folder.name for folder in Study(tmp_path).runs()] == [older_name(RUNS[0])]
    assert set(Study(tmp_path).scores()["label"].to_pylist()) == {RUNS[0].label, "other"}
    one, two = RUNS[0].folder(here), RUNS[0].folder(Study(tmp_path))
    assert one.steps().drop_columns(["seconds"]).equals(two.steps().drop_columns(["seconds"]))


def test_a_store_takes_labels_that_come_later_and_has_runs_of_version_0_1(tmp_path: Path) -> None:
    store, first = "memory://bucket/labels", Study(tmp_path / "first")
    Ray(store=store).run([RUN], first)
    Ray(store=store).run([replace(RUN, label="other")], first)
    Ray(store=store).run([RUN], Study(tmp_path / "second"))
    (summary,) = Study(tmp_path / "second").summaries()
    assert summary.labels == (RUN.label, "other")

    make_older(RUN.folder(first), RUN)
    old = "memory://bucket/older"
    Ray(store=old).run([RUN], Study(tmp_path / "first"))
    (result,) = Ray(store=old).run([RUN], Study(tmp_path / "third"))
    assert result.outcome == "already finished"
    assert [each.name for each in Study(tmp_path / "third").runs()] == [older_name(RUN)]


def test_fresh_starts_over(tmp_path: Path, here: Study) -> None:
    study = Study(tmp_path)
    Ray().run(RUNS[:2], study)
    before = [folder.path.stat().st_mtime_ns for folder in study.runs()]
    results = Ray().run(RUNS[:2], study, fresh=True)
    assert {result.outcome for result in results} == {"finished"}
    assert before != [folder.path.stat().st_mtime_ns for folder in study.runs()]
    must_be_the_same(here, study, RUNS[:2])


@pytest.mark.parametrize("shared_disk", [None, False], ids=["shared disk", "by post"])
def test_a_stopped_study_goes_on_to_the_bits_of_one_that_never_was(
    tmp_path: Path, shared_disk: bool | None
) -> None:
    torch.set_num_threads(1)
    long = [replace(RUN, seed=seed, steps=1500, checkpoint_every=500) for seed in range(2)]
    study, whole = Study(tmp_path / "study"), Study(tmp_path / "whole")
    begun: list[int] = []

    def tell(progress: Progress) -> None:
        begun.append(progress.step)

    results = Ray(shared_disk=shared_disk, observers=Observers.telling(tell)).run(
        long, study, stop=lambda: any(0 < step < 1500 for step in begun)
    )
    stopped = [result for result in results if result.outcome == "stopped"]
    assert stopped
    assert any(result.summary and 0 < result.summary.step < 1500 for result in stopped)
    assert not list(study.path.glob(".cluster-*"))
    assert {r.outcome for r in Ray(shared_disk=shared_disk).run(long, study)} <= {
        "finished",
        "already finished",
    }
    Here(workers=1).run(long, whole)
    must_be_the_same(whole, study, long)


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
    names = [run.folder(study).name for run in plain]
    # On the CPU of this cluster: what a GPU's worker does but for the device.
    done = ray.get(
        ray.remote(do_job).remote(
            (7, 9, 8),
            plain,
            names,
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


def test_a_run_that_diverges_fails_alone(tmp_path: Path) -> None:
    bad = replace(RUN, optimization=Optimization(optimizer="sgd", learning_rate=1e30))
    results = Ray().run([bad, RUNS[0]], Study(tmp_path))
    assert [result.outcome for result in results] == ["failed", "finished"]
    assert "should be finite" in (results[0].error or "")


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
