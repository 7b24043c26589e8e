"""Disks that are full or read-only, and files that were damaged after they were written."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from taskmix.errors import RecordError
from taskmix.records import RunFolder

from .test_damage import TOY, interrupted, run_of


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, Any]:
    TOY.toy(tmp_path / "whole")
    return dict(TOY.outcome(run_of(tmp_path / "whole")))


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


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink], ids=["flip", "cut", "unlink"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    tmp_path: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch, damage: Any
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch)
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
    folder = interrupted(tmp_path / "study", monkeypatch)
    flip(folder.path / name)
    notes = notes_of(folder)
    assert any(Path(name).name in note for note in notes)
    assert notes[-1] == "No checkpoint is sound, so the run starts over."
    TOY.toy(tmp_path / "study")
    assert TOY.outcome(folder) == whole


def test_a_record_of_a_later_format_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(tmp_path / "study", monkeypatch)
    path = folder.path / "run.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    files = sorted(folder.path.rglob("*"))
    with pytest.raises(RecordError, match="which a newer taskmix"):
        TOY.toy(tmp_path / "study")
    assert sorted(folder.path.rglob("*")) == files
