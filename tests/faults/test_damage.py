"""Every file of a run's folder, cut short or with a bit changed, wherever that is.

What is read is what was written, or it is refused in a sentence. A run goes on from what is sound, or
says what to restore; a finished run is never taken for an unfinished one.
"""

from __future__ import annotations

import random
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from taskmix.errors import RecordError
from taskmix.records import RecordWriter, RunFolder, Study

from .disturbed import Tally

TOY = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("records_toy.py"))))
Damage = Callable[[bytes, random.Random], bytes]


def flipped(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def shortened(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def zeroed(data: bytes, chance: random.Random) -> bytes:
    """A block that was never written, as a power cut leaves it."""
    begin = chance.randrange(len(data))
    end = min(begin + chance.choice([1, 16, 512]), len(data))
    return data[:begin] + bytes(end - begin) + data[end:]


class PowerCutError(Exception):
    pass


def interrupted(study: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run that ended without a word after its second commit."""
    commit = RecordWriter.commit

    def last(self: RecordWriter, step: int, *arguments: Any, **options: Any) -> None:
        commit(self, step, *arguments, **options)
        if step == 8:
            raise PowerCutError

    with monkeypatch.context() as patch, pytest.raises(PowerCutError):
        patch.setattr(RecordWriter, "commit", last)
        TOY.toy(study)
    return run_of(study)


READERS: dict[str, Callable[[RunFolder], Any]] = {
    "summary": lambda folder: folder.summary(),
    "steps": lambda folder: TOY.comparable(folder.steps()),
    "probabilities": lambda folder: folder.probabilities().tolist(),
    "scores": lambda folder: folder.scores().to_pylist(),
    "credits": lambda folder: {task: rows.tolist() for task, rows in folder.credits().items()},
    "best": lambda folder: folder.best()["parameters"].tolist(),
}


def readings(folder: RunFolder) -> dict[str, Any]:
    """What every reader gives, or the sentence that refuses."""
    found: dict[str, Any] = {}
    for name, read in READERS.items():
        try:
            found[name] = read(folder)
        except RecordError as error:
            found[name] = error
    return found


def is_true(name: str, found: Any, sound: Any) -> bool:
    """A reader tells what was written, of an earlier checkpoint where the last is damaged."""
    return found == sound or (name == "best" and isinstance(found, list))


def inject(folder: Path, times: int, damage: Damage, monkeypatch: pytest.MonkeyPatch) -> Tally:
    """Damages the files of an unfinished and of a finished run, a file at a time."""
    tally, chance = Tally(f"a record file {damage.__name__}"), random.Random(damage.__name__)
    TOY.toy(folder / "whole")
    whole = TOY.outcome(run_of(folder / "whole"))
    interrupted(folder / "unfinished", monkeypatch)
    for number in range(times):
        kind = ("whole", "unfinished")[number % 2]
        study = folder / "damaged"
        shutil.copytree(folder / kind, study)
        damaged, sound = run_of(study), readings(run_of(folder / kind))
        files = sorted(path for path in damaged.path.rglob("*.*") if path.name != ".lock")
        file = files[number // 2 % len(files)]
        data = file.read_bytes()
        file.write_bytes(damage(data, chance))
        found = readings(damaged)
        tally.times += 1
        tally.finished += kind == "whole"
        tally.unreadable += any(
            not isinstance(each, RecordError) and not is_true(name, each, sound[name])
            for name, each in found.items()
        )
        others = {path: path.read_bytes() for path in files if path != file}
        try:
            TOY.toy(study)
            again = readings(damaged)
            refused = [each for each in again.values() if isinstance(each, RecordError)]
        except RecordError as error:
            refused = [error]
        assert all("estore" in str(error) or "version" in str(error) for error in refused), refused
        if kind == "whole":  # nothing but the damaged file is touched
            tally.lost += any(path.read_bytes() != old for path, old in others.items())
        if refused:
            file.write_bytes(data)
            TOY.toy(study)
        tally.different += TOY.outcome(damaged) != whole
        shutil.rmtree(study)
    return tally


def run_of(study: Path) -> RunFolder:
    return Study(study).run(TOY.specification(0, 12, 4))


@pytest.mark.parametrize("damage", [flipped, shortened, zeroed])
def test_damage_anywhere_is_seen_and_costs_no_finished_run(
    monkeypatch: pytest.MonkeyPatch, damage: Damage
) -> None:
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        tally = inject(Path(folder), 30, damage, monkeypatch)
    assert tally.is_clean, tally
