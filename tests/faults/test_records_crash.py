"""A run whose process dies at any call that changes the disk, and a disk that refuses any of them."""

from __future__ import annotations

import errno
import os
import random
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from taskmix.errors import RecordError
from taskmix.files import _atomic
from taskmix.records import RunFolder, Study

TOY = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("records_toy.py"))))
CALLS = ("open", "write", "fsync", "replace", "unlink", "makedirs", "lseek")


class Killed(BaseException):
    """The process is no more; nothing catches this."""


class FaultyDisk:
    """`os` for the records, with a fault at the call of a given number and at all calls after it.

    A write that dies may have written a part before (`halfway`); another call may have been done.
    """

    def __init__(self, at: int, fault: BaseException | None, *, halfway: bool = False) -> None:
        self.at, self.fault, self.halfway = at, fault, halfway
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            done = None
            if (
                self.fault is None
                or self.count < self.at
                or (self.count == self.at and self.halfway)
            ):
                if name == "write" and self.count == self.at:
                    arguments = (arguments[0], memoryview(arguments[1])[: len(arguments[1]) // 2])
                # Waiting for the disk would only take time: the kernel outlives a killed process.
                done = None if name == "fsync" else real(*arguments, **options)
            if self.fault is not None and self.count >= self.at:
                if name == "open" and done is not None:
                    os.close(done)
                raise self.fault
            return done

        return call


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where there is such a folder: thousands of files are replaced here."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, Any]:
    TOY.toy(tmp_path / "whole")
    return dict(TOY.outcome(folder_of(tmp_path / "whole")))


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir())) if descriptors.exists() else 0
    yield
    if before:
        assert len(list(descriptors.iterdir())) <= before + 2


def folder_of(study: Path) -> RunFolder:
    return Study(study).run(TOY.specification(0, 12, 4))


def disturbed(
    study: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_atomic, "os", disk)
        TOY.toy(study, **options)


def calls_of_a_whole_run(study: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    disk = FaultyDisk(0, None)
    disturbed(study, disk, monkeypatch)
    return disk.count


@pytest.mark.parametrize(
    "within",  # the call, as a share of the deaths; else before it
    [0.5, pytest.param(0.0, marks=pytest.mark.slow), pytest.param(1.0, marks=pytest.mark.slow)],
)
def test_a_death_at_any_call_leaves_a_record_that_reads_right_and_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, Any], within: float
) -> None:
    chance = random.Random(0)
    calls = calls_of_a_whole_run(tmp_path / "counted", monkeypatch)
    assert calls > 100
    for number in range(1, calls + 1):
        study, halfway = tmp_path / "killed", chance.random() < within
        with pytest.raises(Killed):
            disturbed(study, FaultyDisk(number, Killed(), halfway=halfway), monkeypatch)
        folder = folder_of(study)
        TOY.must_read_right(folder, whole)
        disturbed(study, FaultyDisk(0, None), monkeypatch)
        assert TOY.outcome(folder) == whole, f"after a death at call {number} of {calls}"
        must_be_tidy(folder)
        shutil.rmtree(study)


@pytest.mark.parametrize("every", [4, 12], ids=["after commits", "without any"])
def test_a_run_that_ends_without_a_last_commit_survives_a_death_at_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    options = {"every": every, "last_commit": False}
    TOY.toy(tmp_path / "whole", every=every)
    wanted = TOY.outcome(Study(tmp_path / "whole").run(TOY.specification(0, 12, every)))
    disk = FaultyDisk(0, None)
    disturbed(tmp_path / "counted", disk, monkeypatch, **options)
    for number in range(1, disk.count + 1, 3):
        study = tmp_path / "killed"
        with pytest.raises(Killed):
            disturbed(study, FaultyDisk(number, Killed()), monkeypatch, **options)
        folder = Study(study).run(TOY.specification(0, 12, every))
        TOY.must_read_right(folder, wanted)
        disturbed(study, FaultyDisk(0, None), monkeypatch, **options)
        assert TOY.outcome(folder) == wanted, f"after a death at call {number} of {disk.count}"
        assert len([*folder.path.glob("checkpoint/*.safetensors")]) == 1
        assert not (folder.path / "checkpoint" / "latest.json").exists()
        shutil.rmtree(study)


def test_deaths_during_recovery_change_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, Any]
) -> None:
    chance = random.Random(0)
    for _ in range(15):
        study, folder, deaths = tmp_path / "killed", folder_of(tmp_path / "killed"), 0
        while True:
            disk = FaultyDisk(
                chance.randint(1, 40 + 5 * deaths), Killed(), halfway=chance.random() < 0.5
            )
            try:
                disturbed(study, disk, monkeypatch)
                break
            except Killed:
                deaths += 1
                TOY.must_read_right(folder, whole)
        assert deaths > 1
        assert TOY.outcome(folder) == whole
        shutil.rmtree(study)


def test_deaths_while_a_finished_run_starts_over_leave_a_run_to_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, Any]
) -> None:
    for number in range(1, 40, 2):
        study, folder = tmp_path / "fresh", folder_of(tmp_path / "fresh")
        disturbed(study, FaultyDisk(0, None), monkeypatch)
        with pytest.raises(Killed):
            disturbed(study, FaultyDisk(number, Killed()), monkeypatch, fresh=True)
        if number > 10:  # the end is no longer told by then
            assert folder.summary().status != "finished"  # type: ignore[union-attr]
        TOY.must_read_right(folder, whole)
        disturbed(study, FaultyDisk(0, None), monkeypatch)
        assert TOY.outcome(folder) == whole
        shutil.rmtree(study)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_is_told_in_a_sentence_and_nothing_complete_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, Any], code: int
) -> None:
    calls = calls_of_a_whole_run(tmp_path / "counted", monkeypatch)
    for number in range(1 + code % 5, calls + 1, 5):
        study, folder = tmp_path / "full", folder_of(tmp_path / "full")
        disk = FaultyDisk(number, OSError(code, os.strerror(code)))
        sentence = None
        try:
            disturbed(study, disk, monkeypatch)
        except RecordError as error:
            sentence = str(error)
        summary = folder.summary()
        if sentence is None:  # only merging failed: the run is finished and reads as well without
            assert summary is not None
            assert summary.status == "finished"
        else:
            assert os.strerror(code) in sentence
            assert str(study) in sentence
            assert sentence.endswith("is kept.")
        TOY.must_read_right(folder, whole)
        disturbed(study, FaultyDisk(0, None), monkeypatch)  # there is room again
        assert TOY.outcome(folder) == whole
        must_be_tidy(folder)
        shutil.rmtree(study)


def test_content_reaches_the_disk_before_its_name_and_rows_before_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()  # what a power cut cannot take, by inode
    named: dict[str, int] = {}
    pending: set[str] = set()  # folders with names not yet flushed

    class Watched(FaultyDisk):
        def __getattr__(self, name: str) -> Any:
            real = getattr(os, name)
            if name == "fsync":

                def fsync(descriptor: int) -> None:
                    synced.add(os.fstat(descriptor).st_ino)
                    pending.discard(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

                return fsync
            if name == "replace":

                def replace(source: Path, target: Path) -> None:
                    assert source.stat().st_ino in synced
                    if target.name == "latest.json" or b'"finished"' in source.read_bytes():
                        assert not pending, "all that the checkpoint names has to be there first"
                    real(source, target)
                    named[target.name] = target.stat().st_ino
                    if target.name != "run.json":  # whose progress may be old
                        pending.add(str(target.parent))

                return replace
            return real

    disturbed(tmp_path / "study", Watched(0, None), monkeypatch)
    assert {"latest.json", "run.json", "state-12.safetensors"} <= set(named)


def must_be_tidy(folder: RunFolder) -> None:
    kept = folder.summary().kept  # type: ignore[union-attr]
    assert kept is not None
    assert kept.best is not None
    files = {
        str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file()
    }
    assert files == {
        ".lock",
        "run.json",
        "steps/part-000000000-000000012.parquet",
        "scores/part-000000000-000000013.parquet",
        "scores/credits.safetensors",
        f"checkpoint/{kept.best.file}",
    }
