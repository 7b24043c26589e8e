"""Disks that are full or read-only, and files that were damaged after they were written."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from taskmix.errors import RecordError
from taskmix.records import RecordWriter, RunFolder, Study

TOY = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("records_toy.py"))))
SPECIFICATION = TOY.specification(0, 12, 4)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB in memory, where we may mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    options = ["-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)]
    if sys.platform != "linux" or subprocess.run(["mount", *options], check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, Any]:
    TOY.toy(tmp_path / "whole")
    return dict(TOY.outcome(folder_of(tmp_path / "whole")))


def folder_of(study: Path) -> RunFolder:
    return Study(study).run(SPECIFICATION)


class PowerCutError(Exception):
    pass


def interrupted(study: Path, monkeypatch: pytest.MonkeyPatch, *, after: int) -> RunFolder:
    """A run that ended without a word after so many commits."""
    commits = 0
    commit = RecordWriter.commit

    def counting(self: RecordWriter, *arguments: Any, **options: Any) -> None:
        nonlocal commits
        commit(self, *arguments, **options)
        commits += 1
        if commits == after:
            raise PowerCutError

    with monkeypatch.context() as patch, pytest.raises(PowerCutError):
        patch.setattr(RecordWriter, "commit", counting)
        TOY.toy(study)
    return folder_of(study)


def flip(path: Path, place: float = 0.1) -> None:  # in the data, before a Parquet footer
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 16
    path.write_bytes(data)


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 2 // 3)


def notes_of(folder: RunFolder) -> list[str]:
    with folder.claim() as claim:
        assert claim.writer is not None
        return claim.writer.notes


def test_a_disk_that_fills_up_is_told_and_the_run_goes_on_when_there_is_room(
    small_disk: Path, whole: dict[str, Any]
) -> None:
    ballast, refused = small_disk / "ballast", 0
    for room in range(0, 80_000, 8_000):
        ballast.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - room))
        folder = folder_of(small_disk / "study")
        try:
            TOY.toy(small_disk / "study")
        except RecordError as error:
            refused += "No space left on device" in str(error)
            TOY.must_read_right(folder, whole)
        ballast.unlink()
    TOY.toy(small_disk / "study")
    assert TOY.outcome(folder) == whole
    assert refused > 2


def test_a_disk_that_turned_read_only_is_told_and_reads_on(
    small_disk: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(small_disk / "study", monkeypatch, after=2)
    TOY.toy(small_disk / "study2")
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    subprocess.run(remount, check=True)
    try:
        with pytest.raises(RecordError, match="Read-only file system"):
            TOY.toy(small_disk / "study")
        with pytest.raises(RecordError, match="choose another folder"):
            TOY.toy(small_disk / "new")
        TOY.must_read_right(folder, whole)
        assert TOY.toy(small_disk / "study2") == "finished"
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    TOY.toy(small_disk / "study")
    assert TOY.outcome(folder) == whole


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_a_folder_without_write_permission_is_told() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        locked = Path(folder, "locked")
        locked.mkdir()
        locked.chmod(0o555)
        user = os.geteuid()
        if user == 0:  # who may write everywhere, so be nobody for a moment
            os.seteuid(65534)
        try:
            with pytest.raises(RecordError, match="Change its permissions") as caught:
                TOY.toy(locked / "study")
        finally:
            os.seteuid(user)
        assert str(locked) in str(caught.value)


def test_a_file_in_the_place_of_the_study_is_told(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("not a folder")
    with pytest.raises(RecordError, match="study"):
        TOY.toy(tmp_path / "study")
    with pytest.raises(RecordError, match="study"):
        Study(tmp_path / "study").summaries()


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink], ids=["flip", "cut", "unlink"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    tmp_path: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch, damage: Any
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch, after=2)
    damage(folder.path / "checkpoint" / "state-8.safetensors")
    read = folder.checkpoint()
    assert read is not None
    assert read.step == 4
    with folder.claim() as claim:
        assert claim.writer is not None
        assert claim.writer.resumed is not None
        assert claim.writer.resumed.step == 4
        first, second = claim.writer.notes
        assert "state-8.safetensors" in first
        assert second == "The run goes on from its checkpoint at step 4."
        assert len(folder.steps()) == 4
    TOY.toy(tmp_path / "study")
    assert TOY.outcome(folder) == whole


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink], ids=["flip", "cut", "unlink"])
@pytest.mark.parametrize("table", ["steps", "scores"])
def test_a_damaged_part_is_named_to_readers_and_cut_off_by_the_run(
    tmp_path: Path,
    whole: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    damage: Any,
    table: str,
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch, after=2)
    part = folder.path / table / "part-000000004-000000008.parquet"
    damage(part)
    if part.exists():
        with pytest.raises(RecordError, match=part.name):
            getattr(folder, table)()
    notes = notes_of(folder)
    assert notes[-1] == "The run goes on from its checkpoint at step 4."
    TOY.toy(tmp_path / "study")
    assert TOY.outcome(folder) == whole


@pytest.mark.parametrize(
    "name",
    [
        "checkpoint/latest.json",
        "steps/part-000000000-000000004.parquet",
        "checkpoint/best-4.safetensors",
    ],
)
def test_damage_before_both_checkpoints_starts_the_run_over_and_says_so(
    tmp_path: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch, after=2)
    flip(folder.path / name)
    notes = notes_of(folder)
    assert any(Path(name).name in note for note in notes)
    assert notes[-1] == "No checkpoint is sound, so the run starts over."
    TOY.toy(tmp_path / "study")
    assert TOY.outcome(folder) == whole


def test_every_digit_of_the_list_of_checkpoints_is_guarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch, after=2)
    path = folder.path / "checkpoint" / "latest.json"
    sound = path.read_text()
    for place in [index for index, letter in enumerate(sound) if letter.isdigit()]:
        changed = sound[:place] + str((int(sound[place]) + 1) % 10) + sound[place + 1 :]
        if json.loads(changed) == json.loads(sound):
            continue  # the seventeenth digit of a float may say nothing
        path.write_text(changed)
        with pytest.raises(RecordError, match=r"latest\.json|version of taskmix"):
            folder.checkpoint()


def test_a_damaged_description_is_written_anew_by_a_run_with_a_checkpoint(
    tmp_path: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch, after=2)
    cut(folder.path / "run.json")
    with pytest.raises(RecordError, match=r"run\.json"):
        folder.summary()
    told: list[str] = []
    assert Study(tmp_path / "study").summaries(note=told.append) == []
    assert len(told) == 1
    assert notes_of(folder)[-1] == "The run goes on from its checkpoint at step 8."
    TOY.toy(tmp_path / "study")
    assert TOY.outcome(folder) == whole


def test_a_finished_run_without_a_sound_description_is_not_wiped(tmp_path: Path) -> None:
    TOY.toy(tmp_path / "study")
    folder = folder_of(tmp_path / "study")
    before = folder.steps()
    sound = (folder.path / "run.json").read_bytes()
    cut(folder.path / "run.json")
    with pytest.raises(RecordError, match="delete the folder to run it again"):
        TOY.toy(tmp_path / "study")
    (folder.path / "run.json").write_bytes(sound)
    assert folder.steps().equals(before)


def test_a_record_of_a_later_format_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch, after=2)
    path = folder.path / "run.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    files = sorted(folder.path.rglob("*"))
    with pytest.raises(RecordError, match="which a newer taskmix"):
        TOY.toy(tmp_path / "study")
    assert sorted(folder.path.rglob("*")) == files


def test_no_flipped_bit_of_a_part_goes_unnoticed(
    tmp_path: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch, after=1)
    (part,) = (folder.path / "steps").iterdir()
    sound, rows = part.read_bytes(), folder.steps()
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << (place % 8)
        part.write_bytes(damaged)
        try:
            assert folder.steps().equals(rows)  # statistics and the like, which we do not read
        except RecordError as error:
            sentence = str(error)
            assert "part-000000000-000000004.parquet" in sentence or "run.json" in sentence
